//! The pretend controller: carries steps out one by one, with faults before and after each.

use std::collections::BTreeMap;
use std::time::Duration;

use rollback_api::{AttemptState, Backend, Plan, Rollback};
use rollback_core::pointer::Pointer;
use rollback_core::rollback::decide::decide;
use rollback_core::rollback::observed::{Evidence, Observed, Releases, Settings};
use rollback_core::rollback::step::{Call, Step};
use rollback_core::rollback::{FINALIZER, Phase, RollbackView};

use crate::choices::Choices;
use crate::world::{World, bump};

pub struct Controller {
    settings: Settings,
    failed_polls: BTreeMap<String, u32>,
    /// An older state of the cluster that a lagging cache still shows.
    stale: Option<(Vec<Rollback>, Pointer, u64)>,
    pub steps: u64,
    pub crashes: u64,
}

/// What the process sees of its last write.
enum Fate {
    Fine,
    /// Dies before the write.
    CrashBefore,
    /// The write is made, then it dies, or never learns of it.
    CrashAfter,
    /// Somebody else wrote first.
    Conflict,
}

impl Controller {
    pub fn new() -> Self {
        Self {
            settings: Settings {
                backends: vec![Backend::Github],
                adopt_unadmitted: false,
                backoff_base: Duration::from_secs(2),
                backoff_cap: Duration::from_secs(20),
            },
            failed_polls: BTreeMap::new(),
            stale: None,
            steps: 0,
            crashes: 0,
        }
    }

    fn fate(choices: &mut Choices) -> Fate {
        match choices.below(16) {
            13 => Fate::CrashBefore,
            14 => Fate::CrashAfter,
            15 => Fate::Conflict,
            _ => Fate::Fine,
        }
    }

    fn crash(&mut self) {
        self.failed_polls.clear();
        self.crashes += 1;
    }

    /// One pass over the target. Sometimes it begins with what a cache held before.
    pub fn pass(&mut self, world: &mut World, choices: &mut Choices) {
        let fresh = (world.rollbacks.clone(), world.pointer.clone(), world.pointer_version);
        let (rollbacks, pointer, version) = match self.stale.take() {
            Some(stale) if choices.below(4) == 3 => stale,
            Some(_) | None => fresh.clone(),
        };
        self.stale = Some(fresh);
        let mut order: Vec<&Rollback> = rollbacks.iter().collect();
        order.sort_by_key(|rollback| {
            (rollback.metadata.creation_timestamp.as_ref().map(|time| time.0), rollback.metadata.uid.clone())
        });
        let (mut pointer, mut version) = (pointer, version);
        for rollback in order {
            if !self.follow(world, choices, rollback.clone(), &rollbacks, &mut pointer, &mut version) {
                self.crash();
                return;
            }
        }
    }

    /// Follows one Rollback until it waits; false if the process died.
    #[expect(clippy::too_many_lines, reason = "one arm for each step, which read best together")]
    fn follow(
        &mut self,
        world: &mut World,
        choices: &mut Choices,
        mut rollback: Rollback,
        cached: &[Rollback],
        pointer: &mut Pointer,
        version: &mut u64,
    ) -> bool {
        let uid = rollback.metadata.uid.clone().unwrap_or_default();
        let mut releases: Option<Releases> = None;
        let mut evidence: Option<Evidence> = None;
        for _ in 0..60 {
            let others: Vec<RollbackView> = cached
                .iter()
                // The lock's holder is read live if the cache does not have it.
                .chain(world.rollbacks.iter().filter(|live| {
                    pointer.lock.as_ref().is_some_and(|lock| Some(&lock.uid) == live.metadata.uid.as_ref())
                        && cached.iter().all(|known| known.metadata.uid != live.metadata.uid)
                }))
                .filter(|other| other.metadata.uid.as_deref() != Some(&uid))
                .map(RollbackView::of)
                .collect();
            let observed = Observed {
                now: world.now,
                rollback: &rollback,
                others: &others,
                pointer,
                releases: releases.as_ref(),
                evidence: evidence.as_ref(),
                settings: &self.settings,
                jitter: 0.5,
                failed_polls: self.failed_polls.get(&uid).copied().unwrap_or(0),
                poll_due: true,
            };
            let step = decide(&observed);
            assert_eq!(step, decide(&observed), "invariant 7: two decisions on one observation differ");
            self.steps += 1;
            if let Step::Wait(_) = step {
                return true;
            }
            let reads = matches!(step, Step::ReadReleases { .. });
            let fate = if reads { Fate::Fine } else { Self::fate(choices) };
            if let Fate::CrashBefore = fate {
                return false;
            }
            let conflict = matches!(fate, Fate::Conflict);
            match step {
                Step::Wait(_) => return true,
                Step::ReadReleases { from, to, all: _ } => {
                    let named =
                        |name: &str| world.releases.iter().find(|release| release.name == name).cloned();
                    releases = Some(Releases { from: named(&from), to: named(&to), all: Vec::new() });
                    // Live, so the pointer is read again too.
                    (*pointer, *version) = (world.pointer.clone(), world.pointer_version);
                    let live = world.rollbacks.iter().find(|live| live.metadata.uid.as_deref() == Some(&uid));
                    let Some(live) = live else { return true };
                    if live.metadata.resource_version != rollback.metadata.resource_version {
                        rollback = live.clone();
                        evidence = None;
                    }
                }
                Step::WritePointer(wanted) => {
                    if conflict || *version != world.pointer_version {
                        (*pointer, *version) = (world.pointer.clone(), world.pointer_version);
                    } else {
                        world.pointer = *wanted;
                        world.pointer_version += 1;
                        (*pointer, *version) = (world.pointer.clone(), world.pointer_version);
                    }
                }
                Step::Persist(_)
                | Step::AddFinalizer
                | Step::RemoveFinalizer
                | Step::Adopt { .. }
                | Step::Delete => {
                    let Some(index) =
                        world.rollbacks.iter().position(|live| live.metadata.uid.as_deref() == Some(&uid))
                    else {
                        return true;
                    };
                    let live = &mut world.rollbacks[index];
                    if conflict || live.metadata.resource_version != rollback.metadata.resource_version {
                        rollback = live.clone();
                        evidence = None;
                        continue;
                    }
                    let mut gone = false;
                    match step {
                        Step::Persist(status) => {
                            let before = attempts(live);
                            live.status = Some(*status);
                            let adds = attempts(live) > before;
                            evidence = adds.then_some(Evidence::NewAttempt);
                        }
                        Step::AddFinalizer => {
                            live.metadata.finalizers.get_or_insert_default().push(FINALIZER.into());
                        }
                        Step::RemoveFinalizer => {
                            live.metadata.finalizers = None;
                            gone = live.metadata.deletion_timestamp.is_some();
                        }
                        _ => gone = true,
                    }
                    bump(live);
                    rollback = live.clone();
                    if gone {
                        world.forget(index);
                        return true;
                    }
                    world.check();
                }
                Step::Activate { release, activation } => {
                    world.requests.push((release, activation));
                    evidence = Some(Evidence::ActivationRequested);
                }
                Step::Call(_, call) => {
                    let fault = if choices.left() { choices.below(8) } else { world.backend_mood };
                    evidence = Some(self.call(world, &rollback, &uid, call, fault));
                }
            }
            if let Fate::CrashAfter = fate {
                return false;
            }
        }
        panic!("no rest after 60 steps: {:?}", rollback.status);
    }

    fn call(&mut self, world: &mut World, rollback: &Rollback, uid: &str, call: Call, fault: u8) -> Evidence {
        let to = RollbackView::of(rollback).to;
        match call {
            Call::Plan => Evidence::Planned(Ok(Plan {
                backend: Backend::Github,
                options: None,
                revisions: Vec::new(),
                signature: format!("sig-{to}"),
                release_uid: format!("uid-{to}"),
            })),
            Call::Find { key, .. } => Evidence::Found(world.find(&key, fault)),
            Call::Trigger { key, .. } => {
                let live = world.rollbacks.iter().find(|live| live.metadata.uid.as_deref() == Some(uid));
                let persisted = live.and_then(|live| live.status.as_ref()?.attempts.last());
                let persisted = persisted
                    .is_some_and(|attempt| attempt.key == key && attempt.state == AttemptState::Triggering);
                assert!(persisted, "invariant 5: {key} is not persisted");
                Evidence::Triggered(world.trigger(uid, &key, fault))
            }
            Call::Poll { id, .. } => {
                let answer = world.poll(&id, fault);
                if answer.is_err() {
                    *self.failed_polls.entry(uid.into()).or_default() += 1;
                } else {
                    self.failed_polls.remove(uid);
                }
                Evidence::Polled(answer)
            }
            Call::Cancel { key, .. } => Evidence::Cancelled(world.stop(&key, fault)),
            Call::PollAbandoned(abandoned) => {
                let running = world.backend.iter().find(|running| running.key == abandoned.key);
                let id = running.map(|running| format!("id-{}", running.key)).unwrap_or_default();
                Evidence::AbandonedPolled(world.poll(&id, fault))
            }
            Call::CancelAbandoned(abandoned) => {
                Evidence::AbandonedCancelled(world.stop(&abandoned.key, fault))
            }
        }
    }
}

fn attempts(rollback: &Rollback) -> usize {
    match Phase::of(rollback) {
        Phase::Triggering => rollback.status.as_ref().map_or(0, |status| status.attempts.len()),
        Phase::Pending | Phase::Queued | Phase::Running | Phase::Waiting | Phase::Ended(_) => 0,
    }
}
