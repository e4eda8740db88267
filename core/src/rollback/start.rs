//! From the creation of a Rollback to its first persisted attempt.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::SucceededReason;
use rollback_api::{AttemptState, Backend, FromReleaseRef, ReleaseRef, annotations};

use super::backoff::later;
use super::observed::{Evidence, Observed, Releases};
use super::standing::{Standing, Stop, standing, stop};
use super::status::{Draft, progress_deadline, seconds_later};
use super::step::{Call, Step, Until};
use super::{Outcome, RollbackView, settle};
use crate::backend::{BackendError, Cancellation, DeploymentState, ErrorClass};
use crate::pointer::{Lock, Pointer};
use crate::release::select;

/// How soon to look again when the Rollback is next but something outside holds it up.
const HELD_UP: Duration = Duration::from_secs(5);

pub(super) fn step(observed: &Observed<'_>) -> Step {
    let view = RollbackView::of(observed.rollback);
    if observed.rollback.metadata.deletion_timestamp.is_some() {
        return settle::let_go(observed);
    }
    if let Some(step) = carried_out(observed, &view) {
        return step;
    }
    if let Some(stop) = stop(observed) {
        return Draft::of(observed).stopped(&stop, AttemptState::Cancelled, "nothing was deployed").persist();
    }
    if let Some(step) = unadmitted(observed, &view) {
        return step;
    }
    if observed.rollback.spec.dry_run == Some(true) {
        return Draft::of(observed).dry_run().or_wait(Until::Change);
    }
    if view.from == view.to {
        let message = format!("{} is already active", view.to);
        return end(observed, SucceededReason::NotNeeded, &message);
    }
    if let Some(step) = queue(observed, &view) {
        return step;
    }
    preconditions(observed, &view)
}

fn end(observed: &Observed<'_>, reason: SucceededReason, message: &str) -> Step {
    Draft::of(observed).ended(Outcome::NotSucceeded(reason), AttemptState::Cancelled, message).persist()
}

/// A manifest in the ledger is not carried out again (rule 6, H-14).
fn carried_out(observed: &Observed<'_>, view: &RollbackView) -> Option<Step> {
    let hash = annotation(observed, annotations::SUBMITTED_HASH)?;
    let entry = observed.pointer.carried_out(&view.name, hash, &view.uid)?;
    let message = format!(
        "this manifest was carried out before: it ended as {} at {:.0}; give it another name to roll back again",
        entry.outcome, entry.time.0
    );
    Some(end(observed, SucceededReason::NotNeeded, &message))
}

fn annotation<'a>(observed: &'a Observed<'_>, key: &str) -> Option<&'a str> {
    observed.rollback.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A Rollback that the webhook never saw (rule 9).
fn unadmitted(observed: &Observed<'_>, view: &RollbackView) -> Option<Step> {
    let admitted = annotation(observed, annotations::AUTHENTICATED_AS).is_some();
    let complete = !view.from.is_empty() && !view.to.is_empty();
    if complete && (admitted || observed.settings.adopt_unadmitted) {
        return None;
    }
    if !observed.settings.adopt_unadmitted {
        let message = "the admission webhook has not seen this Rollback; create it again while the webhook is running, \
                       or run the controller with --adopt-unadmitted";
        return Some(end(observed, SucceededReason::NotAdmitted, message));
    }
    Some(match observed.releases {
        Some(releases) => adopt(observed, view, releases),
        None => Step::ReadReleases { from: view.from.clone(), to: view.to.clone(), all: true },
    })
}

/// Resolves from and to by the rules of admission: what is live, and the newest eligible release.
fn adopt(observed: &Observed<'_>, view: &RollbackView, releases: &Releases) -> Step {
    let refused = |message: String| end(observed, SucceededReason::NotAdmitted, &message);
    let Some(live) = observed.pointer.live() else {
        return refused(format!("no release of {} is active, so there is nothing to leave", view.target));
    };
    let active = observed.pointer.active.as_ref();
    let from = if view.from.is_empty() { live } else { &view.from };
    let chosen = match active {
        // Something newer is being deployed: back to what is active (rule 11).
        Some(active) if active.release != from => Some(active.release.as_str()),
        Some(_) | None => select::select(from, &releases.all).chosen.map(|release| release.name.as_str()),
    };
    let to = if view.to.is_empty() { chosen } else { Some(view.to.as_str()) };
    let Some(to) = to else {
        return refused(format!(
            "no healthy release of {} to go back to; name one in spec.toReleaseRef.name",
            view.target
        ));
    };
    let spec = &observed.rollback.spec;
    let activation =
        active.filter(|active| active.release == from).map(|active| active.activation.id.clone());
    let given = spec.from_release_ref.clone().unwrap_or_default();
    Step::Adopt {
        from: FromReleaseRef {
            target: view.target.clone(),
            name: Some(from.to_owned()),
            signature: given.signature,
            activation: given.activation.or(activation),
        },
        to: ReleaseRef { name: Some(to.to_owned()), ..spec.to_release_ref.clone() },
    }
}

/// Waits for whoever holds the lock, then for older ones (rule 3).
fn queue(observed: &Observed<'_>, view: &RollbackView) -> Option<Step> {
    let unfinished = || observed.others.iter().filter(|other| !other.phase.is_ended() && !other.dormant);
    let lock = observed.pointer.lock.as_ref().filter(|lock| lock.abandoned.is_none() && lock.uid != view.uid);
    let head = unfinished()
        .find(|other| other.phase.holds_lock() || lock.is_some_and(|lock| lock.uid == other.uid))
        .or_else(|| {
            let ours = observed.pointer.lock.as_ref().is_some_and(|lock| lock.uid == view.uid);
            let older = unfinished().filter(|other| !ours && other.queue_key() < view.queue_key());
            older.min_by_key(|other| other.queue_key())
        })?;
    if head.from == view.from && head.to == view.to {
        let message = format!(
            "rollback/{} is already rolling {} back to {} (Duplicate)",
            head.name, view.target, view.to
        );
        return Some(end(observed, SucceededReason::NotNeeded, &message));
    }
    let limit = seconds_later(view.created.unwrap_or(observed.now), progress_deadline(observed.rollback));
    if limit <= observed.now {
        let message =
            format!("waited for rollback/{} until the deadline passed; nothing was deployed", head.name);
        return Some(end(observed, SucceededReason::DeadlineExceeded, &message));
    }
    let message = format!("queued: rollback/{} is rolling {} back to {}", head.name, view.target, head.to);
    Some(Draft::of(observed).queued(&message).or_wait(Until::Time(limit)))
}

/// Read live right before anything is done (rule 4).
fn preconditions(observed: &Observed<'_>, view: &RollbackView) -> Step {
    let Some(releases) = observed.releases else {
        return Step::ReadReleases { from: view.from.clone(), to: view.to.clone(), all: false };
    };
    if let Err(message) = target_release(observed, view, releases) {
        return end(observed, SucceededReason::PreconditionFailed, &message);
    }
    match standing(observed) {
        Standing::FromIsLive => finalizer(observed, view),
        Standing::DoneByUs => Draft::of(observed)
            .ended(Outcome::Succeeded, AttemptState::Succeeded, &format!("{} is active", view.to))
            .persist(),
        Standing::Elsewhere(active) => {
            let message = format!(
                "{} is no longer on {}, which this rollback was to leave; {active} is active",
                view.target, view.from
            );
            end(observed, SucceededReason::NotNeeded, &message)
        }
        Standing::NoneActive => {
            held_up(observed, &format!("no release of {} is known to be active", view.target), None)
        }
    }
}

/// The release to deploy is there, and is the one that was meant.
fn target_release(observed: &Observed<'_>, view: &RollbackView, releases: &Releases) -> Result<(), String> {
    let Some(to) = &releases.to else {
        return Err(format!("Release {} does not exist any more; nothing was deployed", view.to));
    };
    if to.target != view.target {
        return Err(format!("Release {} belongs to target {}, not to {}", view.to, to.target, view.target));
    }
    let wanted =
        observed.rollback.spec.to_release_ref.signature.as_deref().filter(|wanted| !wanted.is_empty());
    match wanted {
        Some(wanted) if wanted != to.signature => Err(format!(
            "Release {} is not the one that was meant: its signature is {}, not {wanted}",
            view.to, to.signature
        )),
        Some(_) | None => Ok(()),
    }
}

/// Is next, but something outside is in the way; the deadline runs.
fn held_up(observed: &Observed<'_>, why: &str, asked: Option<Duration>) -> Step {
    let draft = Draft::of(observed).held_up(why);
    let again = later(observed.now, asked.unwrap_or(HELD_UP));
    let deadline = observed.rollback.status.as_ref().and_then(|status| status.deadline.as_ref());
    draft.or_wait(Until::Time(deadline.map_or(again, |deadline| deadline.0.min(again))))
}

/// Takes the target's lock.
fn lock(observed: &Observed<'_>, view: &RollbackView) -> Step {
    let take = || {
        let lock = Lock {
            rollback: view.name.clone(),
            uid: view.uid.clone(),
            to: view.to.clone(),
            from: view.from.clone(),
            abandoned: None,
        };
        Step::WritePointer(Box::new(Pointer { lock: Some(lock), ..observed.pointer.clone() }))
    };
    match &observed.pointer.lock {
        Some(lock) if lock.uid == view.uid => plan(observed, view),
        Some(Lock { abandoned: Some(abandoned), .. }) => {
            let backend = abandoned.backend;
            let clear = || Step::WritePointer(Box::new(Pointer { lock: None, ..observed.pointer.clone() }));
            match observed.evidence {
                Some(Evidence::AbandonedPolled(Ok(deployment))) => match &deployment.state {
                    DeploymentState::Pending | DeploymentState::InProgress => {
                        Step::Call(backend, Call::CancelAbandoned(abandoned.clone()))
                    }
                    DeploymentState::Succeeded(finished) => settle::late_success(observed, *finished),
                    DeploymentState::Failed | DeploymentState::Superseded => clear(),
                },
                Some(Evidence::AbandonedPolled(Err(error)) | Evidence::AbandonedCancelled(Err(error))) => {
                    match error.class {
                        ErrorClass::Unavailable(asked) => held_up(observed, &error.message, asked),
                        ErrorClass::Busy | ErrorClass::Failed => held_up(observed, &error.message, None),
                        ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => take(),
                    }
                }
                // A deployment that goes on is superseded by ours, knowingly (rule 5).
                Some(Evidence::AbandonedCancelled(Ok(
                    Cancellation::Stopped | Cancellation::NotStopped(_),
                ))) => take(),
                Some(Evidence::ActivationRequested) => clear(),
                Some(
                    Evidence::NewAttempt
                    | Evidence::Planned(_)
                    | Evidence::Found(_)
                    | Evidence::Triggered(_)
                    | Evidence::Polled(_)
                    | Evidence::Cancelled(_),
                )
                | None => Step::Call(backend, Call::PollAbandoned(abandoned.clone())),
            }
        }
        // Ended, but it has not given its lock back: what it may have left behind is not known yet (rule 5).
        Some(Lock { abandoned: None, uid, rollback, .. })
            if observed.others.iter().any(|other| other.uid == *uid) =>
        {
            held_up(observed, &format!("rollback/{rollback} has ended and is being settled"), None)
        }
        // Its holder is gone.
        Some(Lock { abandoned: None, .. }) | None => take(),
    }
}

/// Keeps the object while a deployment may be running. Before the lock: a Rollback that is deleted must be
/// there to give its lock back.
fn finalizer(observed: &Observed<'_>, view: &RollbackView) -> Step {
    if settle::has_finalizer(observed.rollback) { lock(observed, view) } else { Step::AddFinalizer }
}

/// Works out what to deploy, then persists the first attempt.
fn plan(observed: &Observed<'_>, view: &RollbackView) -> Step {
    let Some(backend) = backend(observed) else {
        let asked = observed.rollback.spec.backend.map_or("none", Backend::as_str);
        let enabled: Vec<&str> = observed.settings.backends.iter().map(|backend| backend.as_str()).collect();
        let message =
            format!("backend {asked} is not enabled in the controller (enabled: {})", enabled.join(", "));
        return end(observed, SucceededReason::PreconditionFailed, &message);
    };
    match observed.evidence {
        Some(Evidence::Planned(Ok(plan))) => Draft::of(observed).next_attempt(Some(plan.clone())).persist(),
        Some(Evidence::Planned(Err(BackendError { class, message }))) => match class {
            ErrorClass::Unavailable(asked) => held_up(observed, message, *asked),
            ErrorClass::Busy => held_up(observed, message, None),
            ErrorClass::Failed | ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => {
                let message = format!("{message}; nothing was deployed, {} is still live", view.from);
                end(observed, SucceededReason::PreconditionFailed, &message)
            }
        },
        Some(
            Evidence::NewAttempt
            | Evidence::Found(_)
            | Evidence::Triggered(_)
            | Evidence::Polled(_)
            | Evidence::Cancelled(_)
            | Evidence::AbandonedPolled(_)
            | Evidence::AbandonedCancelled(_)
            | Evidence::ActivationRequested,
        )
        | None => Step::Call(backend, Call::Plan),
    }
}

/// The backend that is asked for, else the first one, if it is enabled.
pub(super) fn backend(observed: &Observed<'_>) -> Option<Backend> {
    let enabled = &observed.settings.backends;
    match observed.rollback.spec.backend {
        Some(asked) => enabled.contains(&asked).then_some(asked),
        None => enabled.first().copied(),
    }
}

/// The deadline as a time to wake up at.
pub(super) fn deadline(observed: &Observed<'_>) -> Timestamp {
    let status = observed.rollback.status.as_ref();
    status.and_then(|status| status.deadline.as_ref()).map_or(Timestamp::MAX, |deadline| deadline.0)
}

/// What a reason to stop means when no deployment carries the attempt's key.
pub(super) fn stopped_unstarted(observed: &Observed<'_>, stop: &Stop) -> Step {
    let detail = match observed.evidence {
        Some(Evidence::NewAttempt) => "nothing was deployed by this attempt",
        // A backend that writes several objects may have been interrupted between two of them.
        Some(
            Evidence::Planned(_)
            | Evidence::Found(_)
            | Evidence::Triggered(_)
            | Evidence::Polled(_)
            | Evidence::Cancelled(_)
            | Evidence::AbandonedPolled(_)
            | Evidence::AbandonedCancelled(_)
            | Evidence::ActivationRequested,
        )
        | None => "no complete deployment of this attempt was found; what it may have begun is left as it is",
    };
    Draft::of(observed).stopped(stop, AttemptState::Cancelled, detail).persist()
}
