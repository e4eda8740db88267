//! Whether the releases say what the pointer says. The pointer moves on only from there: what a move
//! implies for the release that was left is known only as long as the pointer tells of that move.

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::Status;

use super::annotations::Moment;
use super::facts::Facts;
use super::times::seconds;
use crate::pointer::{ActiveRelease, Pointer};

/// Whether everything that the latest move implies is in the releases' statuses.
pub(super) fn is_settled(facts: &[Facts<'_>], pointer: &Pointer) -> bool {
    let Some(active) = &pointer.active else { return true };
    facts.iter().filter(|fact| !fact.leaving).all(|fact| {
        if fact.is(Some(active)) {
            return fact.active == Status::True
                && fact.status.activation.as_ref() == Some(&active.activation);
        }
        match left_by(fact, active) {
            Some(rollback) => {
                fact.active == Status::False && fact.status.left_by_rollback.as_deref() == Some(rollback)
            }
            None => fact.active != Status::True,
        }
    })
}

/// The Rollback that left this release when it made `active` active, unless the release was deployed again since.
pub(super) fn left_by<'a>(fact: &Facts<'_>, active: &'a ActiveRelease) -> Option<&'a str> {
    let rollback = active.activation.rollback_ref.as_deref()?;
    let left = active.left.as_deref()? == fact.name && !fact.is(Some(active));
    let since = seconds(active.activation.time.0);
    // An object that was made later only has the same name.
    let again = started(fact).max(fact.created()).is_some_and(|time| seconds(time) > since);
    (left && !again).then_some(rollback)
}

/// When its latest deployment started.
pub(super) fn started(fact: &Facts<'_>) -> Option<Timestamp> {
    match fact.inputs.start {
        Moment::At(time) => Some(time),
        Moment::Absent => None,
        Moment::Unreadable => fact.status.deployment_start_time.as_ref().map(|time| time.0),
    }
}
