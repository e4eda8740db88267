//! The backend has the attempt: follow it to its end, then activate the target release.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::SucceededReason;
use rollback_api::{Activation, AttemptState, Backend, Plan};

use super::observed::{Evidence, Observed};
use super::standing::{Standing, Stop, left_again, standing, stop};
use super::start::{backend, deadline};
use super::status::Draft;
use super::step::{Call, Step, Until};
use super::trigger::done;
use super::{Outcome, RollbackView, retry};
use crate::backend::{BackendError, Cancellation, Deployment, DeploymentState, ErrorClass};

/// Polls in a row that may fail for a reason that asking again cannot mend (H-8).
const FAILED_POLLS: u32 = 5;
/// Seconds after the deadline that an activation may still take: the deployment itself is done.
const ACTIVATION_GRACE: i64 = 30;

/// What is being followed.
struct Running<'a> {
    view: RollbackView,
    key: String,
    number: i32,
    id: String,
    backend: Backend,
    plan: Option<&'a Plan>,
}

pub(super) fn step(observed: &Observed<'_>) -> Step {
    let Some(running) = running(observed) else {
        let message = "no backend is enabled that could be asked about the deployment";
        return end(observed, SucceededReason::DeploymentFailed, AttemptState::Abandoned, message);
    };
    if standing(observed) == Standing::DoneByUs {
        return done(observed, &running.view.to);
    }
    if observed.rollback.status.as_ref().is_some_and(|status| status.attempts.is_empty()) {
        return Draft::of(observed).taken_over().persist();
    }
    if let Some(finished) = finished(observed) {
        return activate(observed, &running, finished);
    }
    match observed.evidence {
        Some(Evidence::Polled(Ok(deployment))) => polled(observed, &running, deployment),
        Some(Evidence::Polled(Err(error))) => poll_failed(observed, &running, error),
        Some(Evidence::Cancelled(answer)) => cancelled(observed, answer),
        Some(
            Evidence::NewAttempt
            | Evidence::Planned(_)
            | Evidence::Found(_)
            | Evidence::Triggered(_)
            | Evidence::AbandonedPolled(_)
            | Evidence::AbandonedCancelled(_)
            | Evidence::ActivationRequested,
        )
        | None => {
            // Asked once more before it is stopped: success wins (rule 5).
            if observed.poll_due || stop(observed).is_some() {
                let Running { key, id, backend, plan, .. } = running;
                Step::Call(backend, Call::Poll { key, id, plan: plan.map(|plan| Box::new(plan.clone())) })
            } else {
                Step::Wait(Until::Poll(deadline(observed)))
            }
        }
    }
}

/// A rollback that theatre began has neither attempts nor a plan: its id is in the status (reference B.2).
fn running<'a>(observed: &'a Observed<'_>) -> Option<Running<'a>> {
    let status = observed.rollback.status.as_ref()?;
    let attempt = status.attempts.last();
    let plan = status.plan.as_ref();
    let id =
        attempt.and_then(|attempt| attempt.deployment_id.clone()).or_else(|| status.deployment_id.clone());
    Some(Running {
        view: RollbackView::of(observed.rollback),
        key: attempt.map(|attempt| attempt.key.clone()).unwrap_or_default(),
        number: attempt.map_or(1, |attempt| attempt.number),
        id: id.unwrap_or_default(),
        backend: plan.map(|plan| plan.backend).or_else(|| backend(observed))?,
        plan,
    })
}

/// When the attempt's deployment finished well, if that is persisted.
fn finished(observed: &Observed<'_>) -> Option<Timestamp> {
    let attempt = observed.rollback.status.as_ref()?.attempts.last()?;
    match attempt.state {
        AttemptState::Succeeded => Some(attempt.completion_time.as_ref().map_or(observed.now, |time| time.0)),
        AttemptState::Triggering
        | AttemptState::Running
        | AttemptState::Failed
        | AttemptState::Superseded
        | AttemptState::Cancelled
        | AttemptState::Abandoned => None,
    }
}

fn end(observed: &Observed<'_>, reason: SucceededReason, attempt: AttemptState, message: &str) -> Step {
    Draft::of(observed).ended(Outcome::NotSucceeded(reason), attempt, message).persist()
}

fn polled(observed: &Observed<'_>, running: &Running<'_>, deployment: &Deployment) -> Step {
    let text = |fallback: &str| {
        if deployment.message.is_empty() { fallback.to_owned() } else { deployment.message.clone() }
    };
    match &deployment.state {
        DeploymentState::Succeeded(finished) => {
            Draft::of(observed).deployed(finished.unwrap_or(observed.now), &running.view.to).persist()
        }
        DeploymentState::Failed => match stop(observed) {
            Some(stop) => {
                Draft::of(observed).stopped(&stop, AttemptState::Failed, &text("it had failed")).persist()
            }
            None => retry::attempt_failed(observed, running.number, &text("the deployment failed")),
        },
        DeploymentState::Superseded => end(
            observed,
            SucceededReason::DeploymentSuperseded,
            AttemptState::Superseded,
            &text("another deployment took over"),
        ),
        DeploymentState::Pending | DeploymentState::InProgress => match stop(observed) {
            Some(_) => cancel(running),
            None => Draft::of(observed).running(deployment).or_wait(Until::Poll(deadline(observed))),
        },
    }
}

fn cancel(running: &Running<'_>) -> Step {
    Step::Call(running.backend, Call::Cancel { key: running.key.clone(), id: running.id.clone() })
}

fn poll_failed(observed: &Observed<'_>, running: &Running<'_>, error: &BackendError) -> Step {
    if stop(observed).is_some() {
        return cancel(running);
    }
    let hopeless = match error.class {
        ErrorClass::Unavailable(_) | ErrorClass::Busy | ErrorClass::Failed => false,
        ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => {
            observed.failed_polls >= FAILED_POLLS
        }
    };
    if hopeless {
        let message = format!("the deployment's state cannot be read: {}", error.message);
        return end(observed, SucceededReason::DeploymentFailed, AttemptState::Abandoned, &message);
    }
    Draft::of(observed).poll_failed(&error.message).or_wait(Until::Poll(deadline(observed)))
}

/// The answer to the request to stop ends the Rollback whatever it is (invariant 4).
fn cancelled(observed: &Observed<'_>, answer: &Result<Cancellation, BackendError>) -> Step {
    // The reason may have gone meanwhile (an annotation removed); a deployment that was stopped stays stopped.
    let stop = stop(observed).unwrap_or(Stop::Cancel { by: None, why: "it was asked to stop".to_owned() });
    let (attempt, detail) = match answer {
        Ok(Cancellation::Stopped) => (AttemptState::Cancelled, "the deployment was stopped".to_owned()),
        Ok(Cancellation::NotStopped(why)) => (AttemptState::Abandoned, why.clone()),
        Err(error) => {
            (AttemptState::Abandoned, format!("the deployment may still be running: {}", error.message))
        }
    };
    Draft::of(observed).stopped(&stop, attempt, &detail).persist()
}

/// Asks the release controller for the activation and waits until the pointer shows it (rule 1).
fn activate(observed: &Observed<'_>, running: &Running<'_>, finished: Timestamp) -> Step {
    let limit = super::status::seconds_later(deadline(observed), ACTIVATION_GRACE);
    if limit <= observed.now {
        let message = format!(
            "{} was deployed, but the release controller has not made it the active release; is it running?",
            running.view.to
        );
        return end(observed, SucceededReason::DeadlineExceeded, AttemptState::Succeeded, &message);
    }
    if let Some(Stop::Superseded(by)) = stop(observed) {
        return Draft::of(observed).stopped(&Stop::Superseded(by), AttemptState::Superseded, "").persist();
    }
    match observed.evidence {
        Some(Evidence::ActivationRequested) => Step::Wait(Until::Time(limit)),
        Some(
            Evidence::NewAttempt
            | Evidence::Planned(_)
            | Evidence::Found(_)
            | Evidence::Triggered(_)
            | Evidence::Polled(_)
            | Evidence::Cancelled(_)
            | Evidence::AbandonedPolled(_)
            | Evidence::AbandonedCancelled(_),
        )
        | None => Step::Activate {
            release: running.view.to.clone(),
            activation: activation(observed, &running.view, &running.key, finished),
        },
    }
}

/// The activation that a finished attempt stands for. It comes after that of the release it leaves, also within
/// the same second.
pub(super) fn activation(
    observed: &Observed<'_>,
    view: &RollbackView,
    key: &str,
    finished: Timestamp,
) -> Activation {
    let left = observed.pointer.active.as_ref().filter(|active| {
        (active.release == view.from && !left_again(observed, active))
            || (active.release == view.to && active.activation.id != key)
    });
    let after = left.and_then(|left| left.activation.time.0.checked_add(SignedDuration::from_micros(1)).ok());
    Activation {
        id: key.to_owned(),
        time: MicroTime(after.map_or(finished, |after| after.max(finished))),
        rollback_ref: Some(view.name.clone()),
        rollback_uid: Some(view.uid.clone()),
    }
}
