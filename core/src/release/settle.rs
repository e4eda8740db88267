//! Whether the releases say what the pointer says. The pointer moves on only from there: what a move
//! implies for the release that was left is known only as long as the pointer tells of that move.

use k8s_openapi::jiff::Timestamp;
use rollback_api::ReleaseStatus;
use rollback_api::conditions::{ActiveReason, ReleaseCondition, Status};

use super::annotations::Moment;
use super::facts::Facts;
use super::times::seconds;
use crate::conditions;
use crate::pointer::{ActiveRelease, Pointer};

/// Whether everything that the latest move implies is in the releases' statuses.
pub(super) fn is_settled(facts: &[Facts<'_>], pointer: &Pointer) -> bool {
    let Some(active) = &pointer.active else { return true };
    facts.iter().filter(|fact| !fact.leaving).all(|fact| {
        if fact.is(Some(active)) {
            return fact.active == Status::True
                && fact.status.activation.as_ref() == Some(&active.activation);
        }
        fact.active != Status::True && left_by(fact, fact.status, active).is_none()
    })
}

/// The Rollback that left this release when it made `active` active, if `status` does not say so yet.
pub(super) fn left_by<'a>(
    fact: &Facts<'_>,
    status: &ReleaseStatus,
    active: &'a ActiveRelease,
) -> Option<&'a str> {
    let rollback = active.activation.rollback_ref.as_deref()?;
    let left = active.left.as_deref()? == fact.name && !fact.is(Some(active));
    let since = seconds(active.activation.time.0);
    let condition = conditions::find(&status.conditions, ReleaseCondition::Active.as_str());
    let known = condition.is_some_and(|condition| condition.reason == ActiveReason::Rollback.as_str())
        && status.deactivation_time.as_ref().is_some_and(|left| left.0 == since);
    (left && !known).then_some(rollback)
}

/// Whether a deployment of it started after that time, and this is news. A start that the status knows already is that
/// of the deployment which was left, whatever the clocks of the two say.
pub(super) fn started_again(fact: &Facts<'_>, since: Timestamp) -> bool {
    let known = fact.status.deployment_start_time.as_ref().map(|time| time.0);
    let start = started(fact).map(seconds);
    start != known && start > Some(seconds(since))
}

/// When its latest deployment started.
pub(super) fn started(fact: &Facts<'_>) -> Option<Timestamp> {
    match fact.inputs.start {
        Moment::At(time) => Some(time),
        Moment::Absent => None,
        Moment::Unreadable => fact.status.deployment_start_time.as_ref().map(|time| time.0),
    }
}
