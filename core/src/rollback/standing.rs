//! Where the target stands with respect to a Rollback: the preconditions of every triggering (rules 4, 5 and 11).

use k8s_openapi::jiff::Timestamp;
use rollback_api::annotations;

use super::RollbackView;
use super::observed::Observed;

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
    let pinned = observed.rollback.spec.from_release_ref.as_ref().and_then(|from| from.activation.as_deref());
    if active.release == view.from && pinned.is_none_or(|id| id.is_empty() || id == active.activation.id) {
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
    if let Some(why) = annotation(annotations::CANCEL) {
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

/// A third release that became active after the latest attempt began.
fn superseded_by(observed: &Observed<'_>) -> Option<String> {
    let view = RollbackView::of(observed.rollback);
    let started: Timestamp =
        observed.rollback.status.as_ref()?.attempts.last()?.start_time.as_ref().map(|time| time.0)?;
    let active = observed.pointer.active.as_ref()?;
    (active.release != view.from && active.release != view.to && active.activation.time.0 > started)
        .then(|| active.release.clone())
}
