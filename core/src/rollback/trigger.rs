//! An attempt is persisted; the backend has not confirmed it.

use std::time::Duration;

use rollback_api::conditions::SucceededReason;
use rollback_api::{Attempt, AttemptState, Plan};

use super::backoff::{later, put_off};
use super::observed::{Evidence, Observed};
use super::standing::{Standing, standing, stop};
use super::start::{deadline, stopped_unstarted};
use super::status::Draft;
use super::step::{Call, Step, Until};
use super::{Outcome, RollbackView, retry};
use crate::backend::{BackendError, ErrorClass};

pub(super) fn step(observed: &Observed<'_>) -> Step {
    let status = observed.rollback.status.as_ref();
    let Some((attempt, plan)) =
        status.and_then(|status| Some((status.attempts.last()?, status.plan.as_ref()?)))
    else {
        let message = "status.plan is missing, so what the attempt deploys is not known; look for a deployment by its key";
        return Draft::of(observed)
            .ended(Outcome::NotSucceeded(SucceededReason::DeploymentFailed), AttemptState::Abandoned, message)
            .persist();
    };
    match observed.evidence {
        Some(Evidence::Triggered(Ok(deployment)) | Evidence::Found(Ok(Some(deployment)))) => {
            Draft::of(observed).running(deployment).persist()
        }
        Some(Evidence::NewAttempt | Evidence::Found(Ok(None))) => may_trigger(observed, attempt, plan),
        Some(Evidence::Triggered(Err(error))) => trigger_failed(observed, attempt, error),
        Some(Evidence::Found(Err(error))) => find_failed(observed, attempt, error),
        Some(
            Evidence::Planned(_)
            | Evidence::Polled(_)
            | Evidence::Cancelled(_)
            | Evidence::AbandonedPolled(_)
            | Evidence::AbandonedCancelled(_)
            | Evidence::ActivationRequested,
        )
        | None => find(observed, attempt, plan),
    }
}

/// The attempt is not new: adopt what carries its key before anything is created (invariant 1).
fn find(observed: &Observed<'_>, attempt: &Attempt, plan: &Plan) -> Step {
    let next = observed.rollback.status.as_ref().and_then(|status| status.next_attempt_time.as_ref());
    match next {
        Some(next) if next.0 > observed.now && stop(observed).is_none() => {
            Step::Wait(Until::Time(next.0.min(deadline(observed))))
        }
        Some(_) | None => {
            Step::Call(plan.backend, Call::Find { key: attempt.key.clone(), plan: Box::new(plan.clone()) })
        }
    }
}

/// Nothing carries the key. The preconditions are read live once more (rule 4).
fn may_trigger(observed: &Observed<'_>, attempt: &Attempt, plan: &Plan) -> Step {
    let view = RollbackView::of(observed.rollback);
    if let Some(stop) = stop(observed) {
        return stopped_unstarted(observed, &stop);
    }
    if observed.releases.is_none() {
        return Step::ReadReleases { from: view.from, to: view.to, all: false };
    }
    match standing(observed) {
        Standing::FromIsLive => {
            Step::Call(plan.backend, Call::Trigger { key: attempt.key.clone(), plan: Box::new(plan.clone()) })
        }
        Standing::DoneByUs => done(observed, &view.to),
        Standing::Elsewhere(active) => moved_on(observed, &view, &active, attempt.number),
        Standing::NoneActive => {
            let why = format!("no release of {} is known to be active", view.target);
            wait(observed, attempt, &why, None)
        }
    }
}

/// What this Rollback was to leave is gone: nothing to do, or somebody was faster (rule 4).
pub(super) fn moved_on(observed: &Observed<'_>, view: &RollbackView, active: &str, number: i32) -> Step {
    let (reason, message) = if number <= 1 {
        let text = format!("{} is no longer on {}, which this rollback was to leave", view.target, view.from);
        (SucceededReason::NotNeeded, format!("{text}; {active} is active"))
    } else {
        (SucceededReason::DeploymentSuperseded, format!("{active} was deployed between two attempts"))
    };
    Draft::of(observed).ended(Outcome::NotSucceeded(reason), AttemptState::Cancelled, &message).persist()
}

/// The target release is active by this Rollback's doing (a crash came between activation and status).
pub(super) fn done(observed: &Observed<'_>, to: &str) -> Step {
    Draft::of(observed)
        .ended(Outcome::Succeeded, AttemptState::Succeeded, &format!("{to} is active"))
        .persist()
}

fn trigger_failed(observed: &Observed<'_>, attempt: &Attempt, error: &BackendError) -> Step {
    match error.class {
        ErrorClass::Unavailable(asked) => wait(observed, attempt, &error.message, asked),
        ErrorClass::Busy => wait(observed, attempt, &error.message, None),
        ErrorClass::Failed => retry::attempt_failed(observed, attempt.number, &error.message),
        ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => {
            refused(observed, AttemptState::Failed, error)
        }
    }
}

fn find_failed(observed: &Observed<'_>, attempt: &Attempt, error: &BackendError) -> Step {
    let asked = match error.class {
        ErrorClass::Unavailable(asked) => asked,
        ErrorClass::Busy | ErrorClass::Failed => None,
        // Whether something was created is not known, so the lock stays (rule 5).
        ErrorClass::NotPermitted | ErrorClass::Invalid | ErrorClass::NotFound => {
            return refused(observed, AttemptState::Abandoned, error);
        }
    };
    match stop(observed) {
        Some(stop) => {
            let detail = format!("whether a deployment was created is not known: {}", error.message);
            Draft::of(observed).stopped(&stop, AttemptState::Abandoned, &detail).persist()
        }
        None => wait(observed, attempt, &error.message, asked),
    }
}

fn refused(observed: &Observed<'_>, attempt: AttemptState, error: &BackendError) -> Step {
    let outcome = Outcome::NotSucceeded(SucceededReason::DeploymentFailed);
    Draft::of(observed).ended(outcome, attempt, &error.message).persist()
}

/// The same attempt, later: no attempt is spent (invariant 6).
fn wait(observed: &Observed<'_>, attempt: &Attempt, why: &str, asked: Option<Duration>) -> Step {
    let since = attempt.start_time.as_ref().map_or(observed.now, |time| time.0);
    let next = later(observed.now, put_off(observed.settings, since, observed.now, asked));
    Draft::of(observed).put_off(next, why).persist()
}
