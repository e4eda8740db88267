//! Makes a decision's writes, as the driver does: each one guarded by what was seen, with a crash anywhere.

use std::collections::BTreeMap;

use rollback_api::annotations;
use rollback_api::conditions::Status;
use rollback_core::release::pass::TargetDecision;

use crate::world::{Fate, World, stored};

impl World {
    /// Makes a decision's writes in order; false if one met a conflict or the process died.
    pub fn apply(&mut self, cache: &Self, decision: &TargetDecision, fate: Fate) -> bool {
        let mut fresh: BTreeMap<String, Option<String>> = cache
            .releases
            .iter()
            .map(|(name, release)| (name.clone(), release.metadata.resource_version.clone()))
            .collect();
        let mut left = match fate {
            Fate::Fine => usize::MAX,
            Fate::CrashAfter(writes) => writes,
        };
        let mut go_on = || {
            let alive = left > 0;
            left = left.saturating_sub(1);
            alive
        };
        for stamp in &decision.stamps {
            let json = serde_json::to_string(&stamp.activation).unwrap();
            let mut edits = vec![(annotations::ACTIVATION, Some(json))];
            if stamp.drops_health {
                edits.push((annotations::HEALTH, None));
            }
            if !go_on() || !self.edit(&mut fresh, &stamp.release, &edits) {
                return false;
            }
        }
        if let Some(pointer) = &decision.pointer {
            let same = self.pointer.as_ref().map(|object| &object.metadata.resource_version)
                == cache.pointer.as_ref().map(|object| &object.metadata.resource_version);
            // The driver reads what decides about activity live before it writes.
            let live = [&pointer.active, &cache.pointer().active].into_iter().flatten().all(|active| {
                let live =
                    self.releases.get(&active.release).map(|release| &release.metadata.resource_version);
                live == fresh.get(&active.release)
            });
            if !go_on() || !same || !live {
                return false;
            }
            self.writes += 1;
            self.write_pointer(pointer);
        }
        for removal in &decision.early_removals {
            let edits: Vec<_> = removal.keys.iter().map(|key| (*key, None)).collect();
            if !go_on() || !self.edit(&mut fresh, &removal.release, &edits) {
                return false;
            }
        }
        for (name, status) in &decision.statuses {
            if !go_on() || !self.is_fresh(&fresh, name) {
                return false;
            }
            self.writes += 1;
            let version = Some(self.version());
            let release = self.releases.get_mut(name).unwrap();
            release.status = Some(stored(status));
            release.metadata.resource_version.clone_from(&version);
            fresh.insert(name.clone(), version);
        }
        for removal in &decision.late_removals {
            let edits: Vec<_> = removal.keys.iter().map(|key| (*key, None)).collect();
            if !go_on() || !self.edit(&mut fresh, &removal.release, &edits) {
                return false;
            }
        }
        for deletion in &decision.deletions {
            if !go_on() {
                return false;
            }
            // The precondition is the version that was looked at, or what our own writes made of it.
            if self.is_fresh(&fresh, &deletion.name) {
                assert_eq!(self.releases[&deletion.name].metadata.uid.as_ref(), Some(&deletion.uid));
                self.check_deletion(&deletion.name);
                self.writes += 1;
                self.releases.remove(&deletion.name);
                self.deleted.push(deletion.name.clone());
            }
        }
        true
    }

    fn is_fresh(&self, fresh: &BTreeMap<String, Option<String>>, name: &str) -> bool {
        self.releases.get(name).is_some_and(|live| Some(&live.metadata.resource_version) == fresh.get(name))
    }

    fn edit(
        &mut self,
        fresh: &mut BTreeMap<String, Option<String>>,
        name: &str,
        edits: &[(&'static str, Option<String>)],
    ) -> bool {
        if !self.is_fresh(fresh, name) {
            return false;
        }
        self.writes += 1;
        for (key, value) in edits {
            self.annotate(name, key, value.as_deref());
        }
        fresh.insert(name.into(), self.releases[name].metadata.resource_version.clone());
        true
    }

    /// Invariant 9.
    fn check_deletion(&self, name: &str) {
        let pointer = self.pointer();
        assert!(!pointer.is_active(name), "{name} is active and was culled");
        assert!(
            pointer.deploying.is_none_or(|deploying| deploying.release != name),
            "{name} is being deployed"
        );
        assert!(!self.in_use.contains(name), "{name} is named by an unfinished Rollback and was culled");
        let active = self.active().unwrap_or_default();
        let views = self.views();
        let healthy = views.iter().filter(|view| view.healthy == Status::True && view.name != active);
        let newest = healthy.max_by(|a, b| (a.deployed(), &a.name).cmp(&(b.deployed(), &b.name)));
        assert!(
            newest.is_none_or(|newest| newest.name != name),
            "{name} is the newest healthy one and was culled"
        );
    }
}
