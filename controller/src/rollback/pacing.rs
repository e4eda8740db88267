//! When a deployment is asked about again: often while it is young, seldom when it is old, at once when its backend
//! says that something happened.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::target::TargetKey;

/// The shortest time between two polls of one deployment.
const YOUNG: Duration = Duration::from_secs(2);
/// The longest.
const OLD: Duration = Duration::from_secs(15);
/// A deployment is asked about again after this part of its age.
const PART: u32 = 10;

/// What is being followed, by target and UID of the Rollback. Lost with the process: then everything is due.
#[derive(Debug, Default)]
pub struct Pacing {
    targets: Mutex<HashMap<TargetKey, HashMap<String, Pace>>>,
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    /// When the next poll is due.
    next: Instant,
    /// Something happened since the last poll began.
    woken: bool,
    /// Polls in a row that failed for a reason that asking again cannot mend.
    failed: u32,
}

/// What came of a poll, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// The backend answered.
    Answered,
    /// It did not, and may later; it may have said when.
    Unavailable(Option<Duration>),
    /// It refused for a reason that asking again cannot mend.
    Refused,
}

impl Pacing {
    /// Something happened to what is being deployed for the target: all its polls are due.
    pub fn wake(&self, key: &TargetKey) {
        if let Some(paces) = self.lock().get_mut(key) {
            for pace in paces.values_mut() {
                pace.woken = true;
            }
        }
    }

    /// Whether the Rollback's deployment is to be asked about now.
    pub(super) fn is_due(&self, key: &TargetKey, uid: &str) -> bool {
        self.wait(key, uid).is_zero()
    }

    /// How long until it is.
    pub(super) fn wait(&self, key: &TargetKey, uid: &str) -> Duration {
        let targets = self.lock();
        let Some(pace) = targets.get(key).and_then(|paces| paces.get(uid)) else { return Duration::ZERO };
        if pace.woken { Duration::ZERO } else { pace.next.saturating_duration_since(Instant::now()) }
    }

    /// A poll begins: what happens from now on wakes the next one.
    pub(super) fn begin(&self, key: &TargetKey, uid: &str) {
        self.pace(key, uid, |pace| pace.woken = false);
    }

    /// It ended. `age` is how long the deployment has been running.
    pub(super) fn end(&self, key: &TargetKey, uid: &str, age: Duration, polled: Polled) {
        let interval = (age / PART).clamp(YOUNG, OLD);
        self.pace(key, uid, |pace| {
            let asked = match polled {
                Polled::Answered => {
                    pace.failed = 0;
                    None
                }
                Polled::Unavailable(asked) => asked,
                Polled::Refused => {
                    pace.failed = pace.failed.saturating_add(1);
                    None
                }
            };
            let wait = asked.map_or(interval, |asked| asked.max(interval));
            let now = Instant::now();
            pace.next = now.checked_add(wait).unwrap_or(now + OLD);
        });
    }

    /// What was learned could not be stored: ask again at once.
    pub(super) fn again(&self, key: &TargetKey, uid: &str) {
        self.pace(key, uid, |pace| pace.next = Instant::now());
    }

    /// Polls in a row that failed for a reason that asking again cannot mend.
    pub(super) fn failed(&self, key: &TargetKey, uid: &str) -> u32 {
        self.lock().get(key).and_then(|paces| paces.get(uid)).map_or(0, |pace| pace.failed)
    }

    /// Another deployment begins: nothing that was learned about the one before it counts.
    pub(super) fn forget(&self, key: &TargetKey, uid: &str) {
        if let Some(paces) = self.lock().get_mut(key) {
            paces.remove(uid);
        }
    }

    /// Forgets the target's Rollbacks that are not followed any more.
    pub(super) fn keep(&self, key: &TargetKey, followed: impl Fn(&str) -> bool) {
        let mut targets = self.lock();
        if let Some(paces) = targets.get_mut(key) {
            paces.retain(|uid, _| followed(uid));
            if paces.is_empty() {
                targets.remove(key);
            }
        }
    }

    fn pace(&self, key: &TargetKey, uid: &str, change: impl FnOnce(&mut Pace)) {
        let mut targets = self.lock();
        let paces = targets.entry(key.clone()).or_default();
        change(paces.entry(uid.to_owned()).or_insert(Pace { next: Instant::now(), woken: false, failed: 0 }));
    }

    // Each change is whole: a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<TargetKey, HashMap<String, Pace>>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "u";

    fn key() -> TargetKey {
        TargetKey::new("shop", "payments")
    }

    #[tokio::test(start_paused = true)]
    async fn asks_often_while_young_and_seldom_when_old() {
        let pacing = Pacing::default();
        assert!(pacing.is_due(&key(), UID), "what was never asked about is due");
        for (age, expected) in [(0, 2), (19, 2), (50, 5), (150, 15), (3600, 15)] {
            pacing.begin(&key(), UID);
            pacing.end(&key(), UID, Duration::from_secs(age), Polled::Answered);
            assert_eq!(pacing.wait(&key(), UID), Duration::from_secs(expected), "at {age} s");
        }
        tokio::time::advance(Duration::from_secs(15)).await;
        assert!(pacing.is_due(&key(), UID));
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_during_a_poll_makes_the_next_one_due() {
        let pacing = Pacing::default();
        pacing.begin(&key(), UID);
        pacing.wake(&key());
        pacing.end(&key(), UID, Duration::ZERO, Polled::Answered);
        assert!(pacing.is_due(&key(), UID));
        pacing.begin(&key(), UID);
        pacing.end(&key(), UID, Duration::ZERO, Polled::Answered);
        assert!(!pacing.is_due(&key(), UID));
        pacing.again(&key(), UID);
        assert!(pacing.is_due(&key(), UID));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_as_long_as_the_backend_asks() {
        let pacing = Pacing::default();
        pacing.end(&key(), UID, Duration::ZERO, Polled::Unavailable(Some(Duration::from_secs(90))));
        assert_eq!(pacing.wait(&key(), UID), Duration::from_secs(90));
        pacing.end(&key(), UID, Duration::ZERO, Polled::Unavailable(Some(Duration::MAX)));
        assert_eq!(pacing.wait(&key(), UID), OLD, "a wait without end is none");
        pacing.end(&key(), UID, Duration::ZERO, Polled::Unavailable(None));
        assert_eq!(pacing.wait(&key(), UID), YOUNG);
    }

    #[test]
    fn only_refusals_in_a_row_count() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _guard = runtime.enter();
        let pacing = Pacing::default();
        for (polled, failed) in [
            (Polled::Refused, 1),
            (Polled::Unavailable(None), 1),
            (Polled::Refused, 2),
            (Polled::Answered, 0),
            (Polled::Refused, 1),
        ] {
            pacing.end(&key(), UID, Duration::ZERO, polled);
            assert_eq!(pacing.failed(&key(), UID), failed);
        }
        pacing.keep(&key(), |uid| uid != UID);
        assert_eq!(pacing.failed(&key(), UID), 0);
    }
}
