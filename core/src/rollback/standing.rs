//! Where the target stands with respect to a Rollback: the preconditions of every triggering (rules 4, 5 and 11).

use k8s_openapi::jiff::Timestamp;
use rollback_api::{AttemptState, annotations};

use super::RollbackView;
use super::observed::Observed;
use crate::pointer::ActiveRelease;

/// What is live, seen from a Rollback from→to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The release to leave is live: the rollback is needed.
    FromIsLive,
    /// The release to deploy is active, and this Rollback made it so.
    DoneByUs,
    /// Another release (its name) is active, or another activation of one of the two.
    Elsewhere(String),
    /// No release is known to be active.
    NoneActive,
}

/// Compares the pointer with the Rollback.
pub(super) fn standing(observed: &Observed<'_>) -> Standing {
    let view = RollbackView::of(observed.rollback);
    let pointer = observed.pointer;
    if pointer.active.as_ref().is_some_and(|active| {
        active.release == view.to && active.activation.rollback_uid.as_ref() == Some(&view.uid)
    }) {
        return Standing::DoneByUs;
    }
    if pointer.deploying.as_ref().is_some_and(|deploying| deploying.release == view.from) {
        return Standing::FromIsLive;
    }
    let Some(active) = &pointer.active else { return Standing::NoneActive };
    if active.release == view.from && !left_again(observed, active) {
        return Standing::FromIsLive;
    }
    Standing::Elsewhere(active.release.clone())
}

/// Why an unfinished Rollback should stop now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A person asked for it.
    Cancel {
        /// The verified user, if the webhook stamped one.
        by: Option<String>,
        /// Why.
        why: String,
    },
    /// The object is being deleted.
    Deleted,
    /// Its time is up.
    Deadline,
    /// Another release (its name) became active while an attempt was under way.
    Superseded(String),
}

/// Whether the Rollback should stop. A request of a person comes before a time limit.
pub(super) fn stop(observed: &Observed<'_>) -> Option<Stop> {
    let metadata = &observed.rollback.metadata;
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
    // As in admission, an empty text asks for nothing.
    if let Some(why) = annotation(annotations::CANCEL).filter(|why| !why.is_empty()) {
        return Some(Stop::Cancel { by: annotation(annotations::CANCELLED_BY), why });
    }
    if metadata.deletion_timestamp.is_some() {
        return Some(Stop::Deleted);
    }
    if let Some(by) = superseded_by(observed) {
        return Some(Stop::Superseded(by));
    }
    let deadline = observed.rollback.status.as_ref().and_then(|status| status.deadline.as_ref());
    deadline.is_some_and(|deadline| deadline.0 <= observed.now).then_some(Stop::Deadline)
}

/// A release that somebody else made active after the latest attempt began, or, once that is deployed, after it
/// finished: a third one, or the one that was left by a new deployment of it.
fn superseded_by(observed: &Observed<'_>) -> Option<String> {
    let view = RollbackView::of(observed.rollback);
    let attempt = observed.rollback.status.as_ref()?.attempts.last()?;
    let since = match attempt.state {
        AttemptState::Succeeded => attempt.completion_time.as_ref().or(attempt.start_time.as_ref()),
        AttemptState::Triggering
        | AttemptState::Running
        | AttemptState::Failed
        | AttemptState::Superseded
        | AttemptState::Cancelled
        | AttemptState::Abandoned => attempt.start_time.as_ref(),
    };
    let since: Timestamp = since.map(|time| time.0)?;
    let active = observed.pointer.active.as_ref()?;
    let elsewhere =
        active.release != view.to && (active.release != view.from || left_again(observed, active));
    (elsewhere && active.activation.time.0 > since).then(|| active.release.clone())
}

/// Whether the active release is the one to leave, but by another deployment of it than the one that was meant.
pub(super) fn left_again(observed: &Observed<'_>, active: &ActiveRelease) -> bool {
    let from = observed.rollback.spec.from_release_ref.as_ref();
    let pinned = from.and_then(|from| from.activation.as_deref()).filter(|id| !id.is_empty());
    pinned.is_some_and(|id| id != active.activation.id)
}
