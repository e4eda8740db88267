//! A pretend API server that holds the releases and the pointer of one target.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::{HealthReason, Status};
use rollback_api::{Activation, Release, ReleaseConfig, ReleaseFields, ReleaseStatus, Revision, annotations};
use rollback_core::conditions;
use rollback_core::pointer::{Lock, Pointer};
use rollback_core::release::ReleaseView;
use rollback_core::release::health::HealthReport;
use rollback_core::release::pass::{TargetDecision, TargetObserved, decide};

pub const TARGET: &str = "payments";
/// 2027-01-15T08:00:00Z.
pub const START: i64 = 1_800_000_000;

/// What happens to the writes of a pass.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// All are made.
    Fine,
    /// The process dies when it has made this many.
    CrashAfter(usize),
}

#[derive(Clone)]
pub struct World {
    pub now: Timestamp,
    pub releases: BTreeMap<String, Release>,
    /// The pointer as an object, and how often it was written.
    pub pointer: Option<ConfigMap>,
    pub in_use: BTreeSet<String>,
    pub limit: usize,
    pub writes: usize,
    pub deleted: Vec<String>,
    versions: u64,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START + second).unwrap()
}

pub fn rfc3339(second: i64) -> String {
    at(second).to_string()
}

pub fn event(id: &str, second: i64) -> Activation {
    Activation { id: id.into(), time: MicroTime(at(second)), rollback_ref: None, rollback_uid: None }
}

pub fn event_of(id: &str, second: i64, rollback: &str) -> Activation {
    Activation {
        rollback_ref: Some(rollback.into()),
        rollback_uid: Some(format!("uid-{rollback}")),
        ..event(id, second)
    }
}

pub fn report(status: Status, second: i64) -> String {
    let reason = match status {
        Status::True => HealthReason::RolloutSucceeded,
        Status::False => HealthReason::RolloutFailed,
        Status::Unknown => HealthReason::RolloutInProgress,
    };
    HealthReport { status, reason, message: format!("it is {status}"), time: at(second) }.to_json()
}

impl World {
    pub fn new() -> Self {
        Self {
            now: at(0),
            releases: BTreeMap::new(),
            pointer: None,
            in_use: BTreeSet::new(),
            limit: 30,
            writes: 0,
            deleted: Vec::new(),
            versions: 0,
        }
    }

    fn version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    pub fn create(&mut self, name: &str) {
        let config = ReleaseConfig {
            target_name: TARGET.into(),
            revisions: vec![Revision { name: "application".into(), id: name.into(), ..Revision::default() }],
        };
        let mut release = Release::new(name, ReleaseFields { config });
        release.metadata.creation_timestamp = Some(Time(stored(&Time(self.now)).0));
        release.metadata.generation = Some(1);
        release.metadata.resource_version = Some(self.version());
        release.metadata.uid = Some(format!("uid-{name}-{}", self.versions));
        self.releases.insert(name.into(), release);
    }

    pub fn annotate(&mut self, name: &str, key: &str, value: Option<&str>) {
        let version = self.version();
        let Some(release) = self.releases.get_mut(name) else { return };
        let all = release.metadata.annotations.get_or_insert_default();
        match value {
            Some(value) => drop(all.insert(key.into(), value.into())),
            None => drop(all.remove(key)),
        }
        release.metadata.resource_version = Some(version);
    }

    /// What theatre's CI does.
    pub fn set_active(&mut self, name: &str) {
        self.annotate(name, annotations::ACTIVE, Some("true"));
    }

    /// What a Rollback and the recorder do.
    pub fn ask(&mut self, name: &str, activation: &Activation) {
        self.set_active(name);
        let json = serde_json::to_string(activation).unwrap();
        self.annotate(name, annotations::ACTIVATION, Some(&json));
    }

    pub fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn pointer(&self) -> Pointer {
        self.pointer.as_ref().map(|object| Pointer::parse(TARGET, object).unwrap()).unwrap_or_default()
    }

    pub fn active(&self) -> Option<String> {
        self.pointer().active.map(|active| active.release)
    }

    pub fn write_pointer(&mut self, pointer: &Pointer) {
        let mut object = pointer.to_object("shop", TARGET, self.pointer.as_ref());
        object.metadata.resource_version = Some(self.version());
        self.pointer = Some(object);
    }

    /// What the rollback controller does before it calls a backend.
    pub fn lock(&mut self, rollback: &str, from: &str, to: &str) {
        let lock = Lock {
            rollback: rollback.into(),
            uid: format!("uid-{rollback}"),
            to: to.into(),
            from: from.into(),
            abandoned: None,
        };
        self.write_pointer(&Pointer { lock: Some(lock), ..self.pointer() });
    }

    pub fn unlock(&mut self) {
        self.write_pointer(&Pointer { lock: None, ..self.pointer() });
    }

    pub fn status(&self, name: &str) -> ReleaseStatus {
        self.releases[name].status.clone().unwrap_or_default()
    }

    pub fn annotation(&self, name: &str, key: &str) -> Option<&String> {
        self.releases[name].metadata.annotations.as_ref()?.get(key)
    }

    pub fn condition(&self, name: &str, type_: &str) -> Option<Condition> {
        conditions::find(&self.status(name).conditions, type_).cloned()
    }

    /// `status/reason` of a condition, or `-`.
    pub fn is(&self, name: &str, type_: &str) -> String {
        self.condition(name, type_).map_or("-".into(), |found| format!("{}/{}", found.status, found.reason))
    }

    pub fn views(&self) -> Vec<ReleaseView> {
        self.releases.values().map(ReleaseView::of).collect()
    }

    pub fn decide(&self) -> TargetDecision {
        self.decide_on(self)
    }

    /// Decides on what a cache shows.
    pub fn decide_on(&self, cache: &Self) -> TargetDecision {
        let releases: Vec<&Release> = cache.releases.values().collect();
        let observed = TargetObserved {
            now: self.now,
            releases: &releases,
            pointer: &cache.pointer(),
            in_use: &self.in_use,
            limit: self.limit,
        };
        let decision = decide(&observed);
        assert_eq!(decision, decide(&observed), "two decisions on one observation differ");
        decision
    }

    /// Passes until nothing is left to do.
    pub fn settle(&mut self) -> usize {
        for round in 0..60 {
            let decision = self.decide();
            if decision.is_idle() {
                assert!(!decision.again, "nothing to write, but not done: {decision:?}");
                return round;
            }
            let (again, stale) = (decision.again, self.clone());
            assert!(self.apply(&stale, &decision, Fate::Fine), "a conflict without anybody else");
            if !again {
                let rest = self.decide();
                assert!(rest.is_idle(), "not idempotent: {rest:?}");
            }
        }
        panic!("no rest after 60 rounds: {:?}", self.decide());
    }

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

    /// What holds once everything has settled: releases and pointer say the same.
    pub fn check_settled(&self) {
        let active = self.pointer().active;
        for (name, release) in &self.releases {
            let here = active.as_ref().is_some_and(|active| &active.release == name);
            let view = ReleaseView::of(release);
            assert_eq!(view.is_active(), here, "{name} against the pointer {active:?}");
            let asks = self.annotation(name, annotations::ACTIVE).is_some_and(|text| text == "true");
            assert_eq!(asks, here, "{name} asks to be active: {asks}");
            assert!(view.initialised, "{name} is not initialised");
            if let Some(active) = active.as_ref().filter(|_| here) {
                assert_eq!(active.uid, view.uid, "the pointer means another object named {name}");
                assert_eq!(view.activation.as_ref(), Some(&active.activation));
                assert_eq!((view.left, view.left_by_rollback), (None, None));
            }
        }
    }
}

/// An object as it comes back from the API server.
pub fn stored<T: serde::Serialize + serde::de::DeserializeOwned>(object: &T) -> T {
    serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap()
}
