//! An attempt failed: another one, later, or the end.

use rollback_api::AttemptState;
use rollback_api::conditions::SucceededReason;

use super::backoff::{after_attempt, later};
use super::observed::Observed;
use super::standing::{Standing, standing, stop};
use super::start::deadline;
use super::status::{Draft, max_attempts};
use super::step::{Step, Until};
use super::trigger::{done, moved_on};
use super::{Outcome, RollbackView};

/// Between two attempts.
pub(super) fn step(observed: &Observed<'_>) -> Step {
    let view = RollbackView::of(observed.rollback);
    if standing(observed) == Standing::DoneByUs {
        return done(observed, &view.to);
    }
    if let Some(stop) = stop(observed) {
        return Draft::of(observed)
            .stopped(&stop, AttemptState::Failed, "no deployment is running")
            .persist();
    }
    let status = observed.rollback.status.as_ref();
    let number = status.and_then(|status| status.attempts.last()).map_or(1, |attempt| attempt.number);
    let next =
        status.and_then(|status| status.next_attempt_time.as_ref()).map_or(observed.now, |next| next.0);
    if next > observed.now {
        return Step::Wait(Until::Time(next.min(deadline(observed))));
    }
    if number >= max_attempts(observed.rollback) {
        return out_of_attempts(observed, number, "the last attempt failed");
    }
    if observed.releases.is_none() {
        return Step::ReadReleases { from: view.from, to: view.to, all: false };
    }
    match standing(observed) {
        Standing::FromIsLive => Draft::of(observed).next_attempt(None).persist(),
        Standing::DoneByUs => done(observed, &view.to),
        Standing::Elsewhere(active) => moved_on(observed, &view, &active, number.saturating_add(1)),
        // Nothing is known to be active: the deadline bounds the wait.
        Standing::NoneActive => Step::Wait(Until::Time(deadline(observed))),
    }
}

/// The attempt failed for good: wait for the next one, or end.
pub(super) fn attempt_failed(observed: &Observed<'_>, number: i32, why: &str) -> Step {
    if number >= max_attempts(observed.rollback) {
        return out_of_attempts(observed, number, why);
    }
    let next = later(observed.now, after_attempt(observed.settings, number, observed.jitter));
    Draft::of(observed).attempt_failed(next, why).persist()
}

fn out_of_attempts(observed: &Observed<'_>, number: i32, why: &str) -> Step {
    let message = format!("attempt {number} of {}: {why}", max_attempts(observed.rollback));
    Draft::of(observed)
        .ended(Outcome::NotSucceeded(SucceededReason::DeploymentFailed), AttemptState::Failed, &message)
        .persist()
}
