//! After the end: the ledger, the lock, the finalizer, the time to live. The Rollback's status never changes again
//! (invariant 3).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::RollbackCondition;
use rollback_api::{AttemptState, Rollback, annotations};

use super::RollbackView;
use super::observed::{Evidence, Observed};
use super::run::activation;
use super::status::{progress_deadline, seconds_later};
use super::step::{Call, Step, Until};
use crate::backend::{DeploymentState, ErrorClass};
use crate::conditions;
use crate::pointer::{Abandoned, LedgerEntry, Lock, Pointer};

/// Keeps a Rollback while a deployment of it may be running (rule 14).
pub const FINALIZER: &str = "theatre.gocardless.com/rollback";

/// Whether the Rollback carries our finalizer.
pub fn has_finalizer(rollback: &Rollback) -> bool {
    rollback.metadata.finalizers.iter().flatten().any(|name| name == FINALIZER)
}

pub(super) fn step(observed: &Observed<'_>) -> Step {
    if let Some(pointer) = settled_pointer(observed) {
        return Step::WritePointer(Box::new(pointer));
    }
    if has_finalizer(observed.rollback) {
        return Step::RemoveFinalizer;
    }
    if observed.rollback.metadata.deletion_timestamp.is_some() {
        return Step::Wait(Until::Change);
    }
    if let Some(step) = abandoned(observed) {
        return step;
    }
    time_to_live(observed)
}

/// A Rollback that is being deleted before it ever tried: nothing to record.
pub(super) fn let_go(observed: &Observed<'_>) -> Step {
    let uid = observed.rollback.metadata.uid.as_deref().unwrap_or_default();
    if observed.pointer.lock.as_ref().is_some_and(|lock| lock.uid == uid) {
        return Step::WritePointer(Box::new(Pointer { lock: None, ..observed.pointer.clone() }));
    }
    if has_finalizer(observed.rollback) { Step::RemoveFinalizer } else { Step::Wait(Until::Change) }
}

/// The pointer with this Rollback's outcome in the ledger and its lock given back, if it is not that already.
fn settled_pointer(observed: &Observed<'_>) -> Option<Pointer> {
    // In a namespace that is being deleted the pointer may be gone already, and cannot be made again.
    let deleted = observed.rollback.metadata.deletion_timestamp.is_some();
    if deleted && *observed.pointer == Pointer::default() {
        return None;
    }
    let view = RollbackView::of(observed.rollback);
    let mut pointer = observed.pointer.clone();
    let entry = entry(observed.rollback, &view);
    if pointer.wants(&entry) {
        pointer.record(entry);
    }
    if let Some(lock) = pointer.lock.take_if(|lock| lock.uid == view.uid && lock.abandoned.is_none()) {
        // Not proven stopped: the next Rollback has to deal with it (rule 5).
        pointer.lock =
            left_behind(observed.rollback).map(|abandoned| Lock { abandoned: Some(abandoned), ..lock });
    }
    (pointer != *observed.pointer).then_some(pointer)
}

fn entry(rollback: &Rollback, view: &RollbackView) -> LedgerEntry {
    let status = rollback.status.as_ref();
    let succeeded =
        status.and_then(|status| conditions::find(&status.conditions, RollbackCondition::Succeeded.as_str()));
    let ended = status.and_then(|status| status.completion_time.clone());
    LedgerEntry {
        name: view.name.clone(),
        uid: view.uid.clone(),
        hash: rollback
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(annotations::SUBMITTED_HASH))
            .cloned()
            .unwrap_or_default(),
        outcome: succeeded.map(|condition| condition.reason.clone()).unwrap_or_default(),
        from: view.from.clone(),
        to: view.to.clone(),
        time: ended.unwrap_or_else(|| {
            succeeded.map_or(Time(Timestamp::UNIX_EPOCH), |condition| condition.last_transition_time.clone())
        }),
    }
}

/// The deployment that the Rollback's last attempt left behind, if it may still be running.
fn left_behind(rollback: &Rollback) -> Option<Abandoned> {
    let status = rollback.status.as_ref()?;
    let attempt = status.attempts.last()?;
    match attempt.state {
        AttemptState::Abandoned => Some(Abandoned {
            key: attempt.key.clone(),
            backend: status.plan.as_ref()?.backend,
            deployment_id: attempt.deployment_id.clone(),
            since: status.completion_time.clone()?,
        }),
        AttemptState::Triggering
        | AttemptState::Running
        | AttemptState::Succeeded
        | AttemptState::Failed
        | AttemptState::Superseded
        | AttemptState::Cancelled => None,
    }
}

/// Follows the deployment that was left behind until it ends, or for one more deadline.
fn abandoned(observed: &Observed<'_>) -> Option<Step> {
    let uid = observed.rollback.metadata.uid.as_deref().unwrap_or_default();
    let lock = observed.pointer.lock.as_ref().filter(|lock| lock.uid == uid)?;
    let abandoned = lock.abandoned.as_ref()?;
    let clear = || Step::WritePointer(Box::new(Pointer { lock: None, ..observed.pointer.clone() }));
    let give_up = seconds_later(abandoned.since.0, progress_deadline(observed.rollback));
    if give_up <= observed.now {
        return Some(clear());
    }
    let wait = Step::Wait(Until::Poll(give_up));
    Some(match observed.evidence {
        Some(Evidence::AbandonedPolled(Ok(deployment))) => match &deployment.state {
            DeploymentState::Succeeded(finished) => late_success(observed, *finished),
            DeploymentState::Failed | DeploymentState::Superseded => clear(),
            DeploymentState::Pending | DeploymentState::InProgress => wait,
        },
        Some(Evidence::AbandonedPolled(Err(error))) => match error.class {
            ErrorClass::NotFound => clear(),
            ErrorClass::Unavailable(_)
            | ErrorClass::Busy
            | ErrorClass::Failed
            | ErrorClass::NotPermitted
            | ErrorClass::Invalid => wait,
        },
        Some(Evidence::ActivationRequested) => clear(),
        Some(
            Evidence::NewAttempt
            | Evidence::Planned(_)
            | Evidence::Found(_)
            | Evidence::Triggered(_)
            | Evidence::Polled(_)
            | Evidence::Cancelled(_)
            | Evidence::AbandonedCancelled(_),
        )
        | None => {
            if observed.poll_due {
                Step::Call(abandoned.backend, Call::PollAbandoned(abandoned.clone()))
            } else {
                wait
            }
        }
    })
}

/// A deployment succeeded after its Rollback had ended: its release is activated like any other (rule 5).
pub(super) fn late_success(observed: &Observed<'_>, finished: Option<Timestamp>) -> Step {
    let Some(Lock { rollback, uid, to, from, abandoned: Some(abandoned) }) = observed.pointer.lock.as_ref()
    else {
        return Step::Wait(Until::Change);
    };
    let view = RollbackView {
        name: rollback.clone(),
        uid: uid.clone(),
        from: from.clone(),
        to: to.clone(),
        ..RollbackView::of(observed.rollback)
    };
    let finished = finished.unwrap_or(observed.now);
    Step::Activate { release: to.clone(), activation: activation(observed, &view, &abandoned.key, finished) }
}

fn time_to_live(observed: &Observed<'_>) -> Step {
    let ended = observed.rollback.status.as_ref().and_then(|status| status.completion_time.as_ref());
    match (observed.rollback.spec.ttl_seconds_after_finished, ended) {
        (Some(seconds), Some(ended)) => {
            let due = seconds_later(ended.0, seconds);
            if due <= observed.now { Step::Delete } else { Step::Wait(Until::Time(due)) }
        }
        (Some(_) | None, Some(_) | None) => Step::Wait(Until::Change),
    }
}
