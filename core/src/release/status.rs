//! The status that a release is to have (reference B.1, H-32).

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::{ActiveReason, ReleaseCondition, Status};
use rollback_api::release::PreviousRelease;
use rollback_api::{Activation, ReleaseStatus};

use super::activation::Lost;
use super::annotations::Moment;
use super::facts::Facts;
use super::health::{self, HealthReport};
use super::settle::{left_by, started, started_again};
use super::times::{seconds, time};
use crate::conditions::{self, Wanted};
use crate::pointer::Pointer;

/// Message of a release that was just created.
const CREATED: &str = "Release has been just created, waiting for status update";
/// Message of the active release.
const ACTIVE: &str = "Release is active";
/// Message of a release that another one replaced.
const INACTIVE: &str = "Release is inactive";

/// Everything but its health. `active` in `pointer` is what is to be true after the pass.
pub(super) fn of(fact: &Facts<'_>, pointer: &Pointer, lost: Option<&Lost>, now: Timestamp) -> ReleaseStatus {
    let now = seconds(now);
    let mut status = fact.status.clone();
    initialise(fact, &mut status, now);
    follow(&mut status.deployment_start_time, fact.inputs.start);
    follow(&mut status.deployment_end_time, fact.inputs.end);
    match &pointer.active {
        Some(active) if fact.is(Some(active)) => {
            set_active(&mut status, fact, Status::True, ActiveReason::Deployed, ACTIVE, now);
            status.activation = Some(active.activation.clone());
            status.deactivation_time = None;
            status.left_by_rollback = None;
            link(&mut status, fact, active.replaced.as_deref(), now);
        }
        active => {
            let until = active.as_ref().map_or(now, |active| active.activation.time.0);
            deactivate(&mut status, fact, lost, until, now);
            if let Some((rollback, until)) = active
                .as_ref()
                .and_then(|active| Some((left_by(fact, &status, active)?, active.activation.time.0)))
            {
                leave(&mut status, fact, rollback, until, now);
            }
            forget_rollback(&mut status, fact);
            link(&mut status, fact, lost.and_then(|lost| lost.previous.as_deref()), now);
        }
    }
    status.observed_generation = fact.release.metadata.generation;
    status
}

/// Healthy and RollbackRequired, once it is known whether the release is live.
pub(super) fn measure(
    status: &mut ReleaseStatus,
    fact: &Facts<'_>,
    report: Option<&HealthReport>,
    pointer: &Pointer,
    now: Timestamp,
) {
    let active = fact.is(pointer.active.as_ref());
    let deploying = pointer
        .deploying
        .as_ref()
        .is_some_and(|deploying| deploying.release == fact.name && deploying.uid == fact.uid);
    let known = fact.status.activation.as_ref().map(|activation| &activation.id);
    let activation = status.activation.as_ref();
    // A Rollback deploys without a new start time.
    let by_rollback = activation.filter(|activation| activation.rollback_ref.is_some());
    let until = || {
        let next = pointer.active.as_ref().map(|active| active.activation.time.0);
        let left = status.deactivation_time.as_ref().map(|time| time.0);
        left.or(started(fact).and(next)).map(a_second_later)
    };
    let standing = health::Standing {
        live: active || deploying,
        reactivated: active
            && known.is_some_and(|known| activation.is_some_and(|activation| activation.id != *known)),
        since: by_rollback.map(|activation| seconds(activation.time.0)).max(started(fact).map(seconds)),
        until: until(),
    };
    let generation = fact.release.metadata.generation;
    health::apply(&mut status.conditions, report, standing, generation, seconds(now));
}

fn initialise(fact: &Facts<'_>, status: &mut ReleaseStatus, now: Timestamp) {
    if status.signature.as_ref().is_none_or(String::is_empty) {
        status.signature = Some(crate::signature::signature(&fact.release.spec.config));
    }
    if conditions::find(&status.conditions, ReleaseCondition::Active.as_str()).is_none() {
        set_active(status, fact, Status::Unknown, ActiveReason::Initialised, CREATED, now);
    }
}

fn follow(field: &mut Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>, moment: Moment) {
    match moment {
        Moment::Absent => *field = None,
        Moment::Unreadable => {}
        Moment::At(at) => *field = Some(time(at)),
    }
}

fn set_active(
    status: &mut ReleaseStatus,
    fact: &Facts<'_>,
    value: Status,
    reason: ActiveReason,
    message: &str,
    now: Timestamp,
) {
    status.message = Some(message.to_owned());
    let wanted = Wanted {
        type_: ReleaseCondition::Active.as_str(),
        status: value,
        reason: reason.as_str(),
        message,
        generation: fact.release.metadata.generation,
    };
    conditions::set(&mut status.conditions, &wanted, now);
}

/// Another release is active. One that never was stays Unknown, as in the reference.
fn deactivate(
    status: &mut ReleaseStatus,
    fact: &Facts<'_>,
    lost: Option<&Lost>,
    until: Timestamp,
    now: Timestamp,
) {
    // An older event than the one that is recorded tells nothing new.
    let newer =
        |known: Option<&Activation>, event: &Activation| known.is_none_or(|known| event.time > known.time);
    let lost = lost.filter(|lost| newer(status.activation.as_ref(), &lost.activation));
    if let Some(lost) = lost {
        status.activation = Some(lost.activation.clone());
        status.left_by_rollback = None;
    } else if fact.active != Status::True {
        return;
    }
    status.deactivation_time = Some(time(lost.map_or(until, |lost| lost.until)));
    set_active(status, fact, Status::False, ActiveReason::Superseded, INACTIVE, now);
}

/// A Rollback left it.
fn leave(status: &mut ReleaseStatus, fact: &Facts<'_>, rollback: &str, until: Timestamp, now: Timestamp) {
    status.left_by_rollback = Some(rollback.to_owned());
    status.deactivation_time = Some(time(until));
    let message = format!("Release was left by rollback {rollback}");
    set_active(status, fact, Status::False, ActiveReason::Rollback, &message, now);
}

/// Deployed again: that a Rollback left it once no longer counts.
fn forget_rollback(status: &mut ReleaseStatus, fact: &Facts<'_>) {
    let left = status.deactivation_time.as_ref().map(|time| time.0);
    if left.is_some_and(|left| started_again(fact, left)) {
        status.left_by_rollback = None;
    }
}

/// The release before this one: what the annotation says, else what is known, else what it was.
fn link(status: &mut ReleaseStatus, fact: &Facts<'_>, known: Option<&str>, now: Timestamp) {
    let Some(wanted) = fact.inputs.previous.as_deref().or(known) else { return };
    let linked = status.previous_release.as_ref().and_then(|previous| previous.release_ref.as_deref());
    if linked != Some(wanted) {
        status.previous_release =
            Some(PreviousRelease { release_ref: Some(wanted.to_owned()), transition_time: Some(time(now)) });
    }
}

/// Stored times are cut to seconds, so the last second counts whole.
fn a_second_later(time: Timestamp) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(1)).unwrap_or(time)
}
