//! Follows one Rollback: asks for the next step and carries it out, until the step is to wait.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Release, Rollback};
use rollback_core::rollback::RollbackView;
use rollback_core::rollback::decide::decide;
use rollback_core::rollback::observed::{Evidence, Observed, Releases};
use rollback_core::rollback::step::{Call, Step, Until};

use super::apply::{self, Written};
use super::gather::{self, Target};
use super::{announce, call};
use crate::error::PassError;
use crate::pointer;
use crate::queue::Next;

/// Most steps of one pass: a rollback that goes well from beginning to end takes about twenty.
const STEPS: usize = 60;
/// The wait after so many steps.
const TOO_MANY: Duration = Duration::from_secs(2);
/// Conflicts in one pass before it is put off.
const CONFLICTS: u32 = 5;
/// A Rollback that has not ended is looked at this often whatever the watches show.
const UNFINISHED: Duration = Duration::from_secs(60);

/// One Rollback that is being followed.
pub(super) struct Follow<'t, 'c> {
    pub(super) target: &'t mut Target<'c>,
    /// As it was last read or written.
    pub(super) rollback: Rollback,
    /// The release to deploy, once it was read live.
    pub(super) to: Option<Release>,
    /// The id of the deployment that an ended Rollback left behind, once it was asked about.
    pub(super) abandoned_id: Option<String>,
    /// Whether `rollback` was read or written in this pass (H-3).
    live: bool,
    releases: Option<Releases>,
    evidence: Option<Evidence>,
    conflicts: u32,
}

enum Flow {
    Again,
    Rest(Next),
}

/// Follows the Rollback, as the watch shows it, until it has to wait.
pub(super) async fn follow(target: &mut Target<'_>, rollback: Rollback) -> Result<Next, PassError> {
    let mut follow = Follow {
        target,
        rollback,
        to: None,
        abandoned_id: None,
        live: false,
        releases: None,
        evidence: None,
        conflicts: 0,
    };
    for _ in 0..STEPS {
        if let Flow::Rest(next) = follow.step().await? {
            return Ok(next);
        }
    }
    tracing::warn!(
        target = %follow.target.key, rollback = follow.name(),
        "the rollback does not come to rest; going on later"
    );
    Ok(Next::After(TOO_MANY))
}

impl Follow<'_, '_> {
    pub(super) fn name(&self) -> &str {
        self.rollback.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.rollback.metadata.uid.as_deref().unwrap_or_default()
    }

    async fn step(&mut self) -> Result<Flow, PassError> {
        let step = self.decide().await?;
        if must_be_live(&step) && !self.live {
            return self.read_rollback().await;
        }
        match step {
            Step::Wait(until) => Ok(Flow::Rest(self.rest(until))),
            Step::ReadReleases { from, to, all } => self.read_releases(&from, &to, all).await,
            Step::Persist(status) => {
                let before = attempts(&self.rollback);
                let (ctx, key) = (self.target.ctx, self.target.key);
                let written = apply::status(ctx, key, &self.rollback, *status).await?;
                if let Written::Stored(stored) = &written {
                    announce::persisted(ctx, key, &self.rollback, stored);
                    self.evidence = (attempts(stored) > before).then_some(Evidence::NewAttempt);
                    if self.evidence.is_some() {
                        ctx.pacing.forget(key, self.uid());
                    }
                }
                self.written(written).await
            }
            Step::AddFinalizer | Step::RemoveFinalizer => {
                let add = step == Step::AddFinalizer;
                let (ctx, key) = (self.target.ctx, self.target.key);
                let written = apply::finalizer(ctx, key, &self.rollback, add).await?;
                self.written(written).await
            }
            Step::WritePointer(wanted) => {
                let (ctx, key) = (self.target.ctx, self.target.key);
                match pointer::write(ctx, key, &self.target.pointer, &wanted).await? {
                    pointer::Written::Stored(stored) => self.target.pointer = *stored,
                    pointer::Written::Conflict => {
                        self.conflict(|| format!("write the pointer of target {key}"))?;
                        self.target.pointer = pointer::live(ctx, key).await?;
                    }
                }
                Ok(Flow::Again)
            }
            Step::Call(backend, call) => {
                self.evidence = Some(call::call(self, backend, call).await?);
                Ok(Flow::Again)
            }
            Step::Activate { release, activation } => {
                apply::activate(self.target.ctx, self.target.key, &release, &activation).await?;
                self.evidence = Some(Evidence::ActivationRequested);
                Ok(Flow::Again)
            }
            Step::Adopt { from, to } => {
                let (ctx, key) = (self.target.ctx, self.target.key);
                let written = apply::adopt(ctx, key, &self.rollback, &from, &to).await?;
                self.written(written).await
            }
            Step::Delete => {
                let written = apply::delete(self.target.ctx, self.target.key, &self.rollback).await?;
                self.written(written).await
            }
        }
    }

    async fn decide(&mut self) -> Result<Step, PassError> {
        let uid = self.uid().to_owned();
        let others = self.target.others(&uid).await?;
        let Target { ctx, key, .. } = *self.target;
        let observed = Observed {
            now: Timestamp::now(),
            rollback: &self.rollback,
            others: &others,
            pointer: &self.target.pointer.pointer,
            releases: self.releases.as_ref(),
            evidence: self.evidence.as_ref(),
            settings: &ctx.settings.rollback,
            jitter: self.target.jitter,
            failed_polls: ctx.pacing.failed(key, &uid),
            poll_due: ctx.pacing.is_due(key, &uid),
        };
        let step = decide(&observed);
        tracing::debug!(target = %key, rollback = self.name(), ?step, "decided");
        Ok(step)
    }

    async fn read_rollback(&mut self) -> Result<Flow, PassError> {
        let live = gather::live_rollback(self.target.ctx, self.target.key, self.name()).await?;
        Ok(self.now_is(live))
    }

    async fn read_releases(&mut self, from: &str, to: &str, all: bool) -> Result<Flow, PassError> {
        let live = gather::live(self.target.ctx, self.target.key, self.name(), from, to, all).await?;
        self.target.pointer = live.pointer;
        self.releases = Some(live.releases);
        self.to = live.to;
        Ok(self.now_is(live.rollback))
    }

    /// Takes in the Rollback as it was read. If it differs from what was decided about, the evidence no longer counts.
    fn now_is(&mut self, live: Option<Rollback>) -> Flow {
        let Some(live) = live.filter(|live| live.metadata.uid == self.rollback.metadata.uid) else {
            return self.gone();
        };
        if live.metadata.resource_version != self.rollback.metadata.resource_version {
            self.evidence = None;
            self.rollback = live;
            self.target.saw(&self.rollback);
        }
        self.live = true;
        Flow::Again
    }

    fn gone(&mut self) -> Flow {
        let uid = self.uid().to_owned();
        self.target.lost(&uid);
        Flow::Rest(Next::Idle)
    }

    /// Takes in what came of a write to the Rollback.
    async fn written(&mut self, written: Written) -> Result<Flow, PassError> {
        match written {
            Written::Stored(stored) => {
                let released = stored.metadata.deletion_timestamp.is_some()
                    && stored.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
                if released {
                    return Ok(self.gone());
                }
                self.target.ctx.stores.rollbacks.note(&stored);
                self.rollback = *stored;
                self.target.saw(&self.rollback);
                self.live = true;
                Ok(Flow::Again)
            }
            Written::Gone => Ok(self.gone()),
            Written::Conflict => {
                let (namespace, name) = (&self.target.key.namespace, self.name().to_owned());
                self.conflict(|| format!("write Rollback {namespace}/{name}"))?;
                // An answer of the backend that could not be stored is asked for again.
                let (pacing, key) = (&self.target.ctx.pacing, self.target.key);
                pacing.again(key, self.uid());
                self.evidence = None;
                self.read_rollback().await
            }
        }
    }

    fn conflict(&mut self, doing: impl FnOnce() -> String) -> Result<(), PassError> {
        self.conflicts += 1;
        if self.conflicts < CONFLICTS { Ok(()) } else { Err(PassError::Contended { doing: doing() }) }
    }

    fn rest(&self, until: Until) -> Next {
        let wait = |time: Timestamp| {
            Next::After(Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default())
        };
        let next = match until {
            Until::Change => Next::Idle,
            Until::Time(time) => wait(time),
            Until::Poll(limit) => {
                let poll = self.target.ctx.pacing.wait(self.target.key, self.uid());
                wait(limit).earlier(Next::After(poll))
            }
        };
        if RollbackView::of(&self.rollback).phase.is_ended() {
            next
        } else {
            next.earlier(Next::After(UNFINISHED))
        }
    }
}

fn attempts(rollback: &Rollback) -> usize {
    rollback.status.as_ref().map_or(0, |status| status.attempts.len())
}

/// Whether the step has an effect outside that is not guarded by the resourceVersion (H-3). `ReadReleases` reads
/// the Rollback itself.
fn must_be_live(step: &Step) -> bool {
    match step {
        Step::Call(_, call) => match call {
            Call::Plan => false,
            Call::Find { .. }
            | Call::Trigger { .. }
            | Call::Poll { .. }
            | Call::Cancel { .. }
            | Call::PollAbandoned(_)
            | Call::CancelAbandoned(_) => true,
        },
        Step::Activate { .. } => true,
        Step::Persist(_)
        | Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::WritePointer(_)
        | Step::ReadReleases { .. }
        | Step::Adopt { .. }
        | Step::Delete
        | Step::Wait(_) => false,
    }
}
