//! The recording controller: labelled workloads become Releases, their rollouts become health (rules 11, 16 and 20).
//!
//! A pass looks at all objects of a target at once. When they are not what was deployed last, and have been quiet for
//! a while, they are recorded; when they are, their rollout is followed. What changed while no controller ran is found in
//! the same way: the first list of the watches wakes every target.

mod follow;
mod keep;
mod live;
mod memory;
mod record;
mod running;
mod sets;
#[cfg(test)]
mod tests;
mod watched;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::Release;
use rollback_core::pointer::Pointer;
use rollback_core::signature::{signature, validate};
use rollback_core::workload::recording::{Compared, Observed, Standing, standing};
use rollback_core::workload::set::{self, Set};
use rollback_core::workload::window::{Decision, Window};

use crate::context::Context;
use crate::error::PassError;
use crate::pointer;
use crate::queue::Next;
use crate::target::TargetKey;
use crate::watch::Watches;
use memory::{Memories, Memory};
use watched::{Objects, Seen};

/// When to look again at what the watches are about to show.
const SOON: Duration = Duration::from_millis(500);

/// The recording controller.
pub struct Recording {
    ctx: Arc<Context>,
    objects: Objects,
    memories: Memories,
}

/// What a pass knows.
struct Target<'a> {
    ctx: &'a Context,
    key: &'a TargetKey,
    /// Its objects.
    seen: &'a [Arc<Seen>],
    /// Their contents.
    set: &'a Set,
    /// Its releases, as the watch shows them.
    releases: &'a [Arc<Release>],
    /// Its pointer, as the watch shows it.
    pointer: &'a Pointer,
}

impl Target<'_> {
    /// Says why the target cannot be recorded, once for each reason.
    fn complain(&self, memory: &mut Memory, why: &str) {
        if memory.complaint.as_deref() == Some(why) {
            return;
        }
        tracing::warn!(target = %self.key, "{why}");
        if let Some(seen) = self.seen.first() {
            self.ctx.events.warning_about(seen.reference(), "NotRecorded", "Record", why);
        }
        memory.complaint = Some(why.to_owned());
    }
}

impl Recording {
    /// Begins to watch what is to be recorded.
    pub fn start(ctx: Arc<Context>, watches: &mut Watches) -> Arc<Self> {
        let recording = Self::new(ctx);
        recording.objects.watch(&recording.ctx, watches);
        Arc::new(recording)
    }

    fn new(ctx: Arc<Context>) -> Self {
        Self { ctx, objects: Objects::new(), memories: Memories::default() }
    }

    /// Records what changed about the target, and how healthy it is.
    pub async fn pass(self: Arc<Self>, key: TargetKey) -> Result<Next, PassError> {
        self.pass_at(&key, Timestamp::now()).await
    }

    async fn pass_at(&self, key: &TargetKey, now: Timestamp) -> Result<Next, PassError> {
        let seen = self.objects.of(key);
        if seen.is_empty() {
            self.memories.forget(key);
            return Ok(Next::Idle);
        }
        let set: Set = seen.iter().map(|seen| (seen.key.clone(), seen.id.clone())).collect();
        let releases = self.ctx.stores.releases.of(key);
        let pointer = pointer::cached(&self.ctx, key)?.pointer;
        let target =
            Target { ctx: &self.ctx, key, seen: &seen, set: &set, releases: &releases, pointer: &pointer };
        let mut memory = self.memories.of(key);
        let result = self.look(&target, &mut memory, now).await;
        self.memories.keep(key, memory);
        result
    }

    async fn look(
        &self,
        target: &Target<'_>,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Result<Next, PassError> {
        let Target { ctx, key, seen, set, releases, pointer } = *target;
        let config = set::config(&key.target, set);
        if let Err(error) = validate(&config) {
            target.complain(memory, &format!("target {:?} is not recorded: {error}", key.target));
            return Ok(Next::Idle);
        }
        let known: Vec<&Release> = releases.iter().map(AsRef::as_ref).collect();
        let observed = Observed { target: &key.target, set, releases: &known, pointer };
        match self.standing(ctx, key, &observed).await? {
            Standing::Ours => {
                memory.window = None;
                Ok(Next::Idle)
            }
            Standing::Current(name) => {
                memory.window = None;
                let release = releases.iter().find(|release| release.metadata.name.as_ref() == Some(&name));
                match release {
                    Some(release) => follow::follow(target, memory, release, now).await,
                    None => Ok(Next::Idle),
                }
            }
            Standing::Changed => {
                let window = Window::seen(memory.window.take(), &signature(&config), now);
                let first_seen = window.first;
                let observed = seen.iter().all(|seen| seen.is_observed());
                let decision = window.decide(quiet(ctx), observed, now);
                memory.window = Some(window);
                match decision {
                    Decision::WaitUntil(time) => Ok(Next::After(wait_until(time, now))),
                    Decision::Record => record::record(self, target, memory, first_seen, now).await,
                }
            }
        }
    }

    /// What the objects are, with the objects of earlier releases looked up if that takes them.
    async fn standing(
        &self,
        ctx: &Context,
        key: &TargetKey,
        observed: &Observed<'_>,
    ) -> Result<Standing, PassError> {
        let Some(Compared { to, from }) = observed.compared() else {
            return Ok(standing(observed, None, None));
        };
        let mut sets = [None, None];
        for (set, name) in sets.iter_mut().zip([to, from]) {
            let named = |release: &&&Release| release.metadata.name.as_deref() == Some(name);
            if let Some(release) = observed.releases.iter().find(named) {
                *set = sets::of(ctx, key, &self.memories, release).await?;
            }
        }
        let [to, from] = sets;
        Ok(standing(observed, to.as_deref(), from.as_deref()))
    }
}

fn quiet(ctx: &Context) -> SignedDuration {
    SignedDuration::try_from(ctx.settings.recording_quiet_period).unwrap_or(SignedDuration::MAX)
}

/// How long it is until then.
fn wait_until(time: Timestamp, now: Timestamp) -> Duration {
    // A time in between two milliseconds is reached in the later one.
    let wait = Duration::try_from(time.duration_since(now)).unwrap_or_default();
    wait + Duration::from_millis(1)
}
