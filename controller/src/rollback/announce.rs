//! What people and metrics hear about a status that was persisted.

use std::time::Duration;

use rollback_api::conditions::SucceededReason;
use rollback_api::{Attempt, AttemptState, Rollback};
use rollback_core::rollback::{Outcome, Phase};

use crate::context::Context;
use crate::metrics::Ended;
use crate::target::TargetKey;

/// An event about a Rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Announcement {
    warning: bool,
    reason: &'static str,
    action: &'static str,
    note: String,
}

/// The status went from `before` to `after`.
pub(super) fn persisted(ctx: &Context, key: &TargetKey, before: &Rollback, after: &Rollback) {
    if let Some(Announcement { warning, reason, action, note }) = announcement(before, after) {
        tracing::info!(
            target = %key, rollback = after.metadata.name.as_deref().unwrap_or_default(), reason, "{note}"
        );
        if warning {
            ctx.events.warning(after, reason, action, &note);
        } else {
            ctx.events.normal(after, reason, action, &note);
        }
    }
    if let (false, Phase::Ended(outcome)) = (Phase::of(before).is_ended(), Phase::of(after)) {
        let labels = Ended {
            status: label(outcome),
            namespace: key.namespace.clone(),
            target: key.target.clone(),
            initiator_type: initiator(after),
        };
        let attempts = after.status.as_ref().map_or(0, |status| status.attempts.len());
        let retries = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        ctx.metrics.ended(&labels, took(after).unwrap_or_default(), retries);
    }
}

fn took(rollback: &Rollback) -> Option<Duration> {
    let ended = rollback.status.as_ref()?.completion_time.as_ref()?;
    let created = rollback.metadata.creation_timestamp.as_ref()?;
    Duration::try_from(ended.0.duration_since(created.0)).ok()
}

/// A user may claim anything: only these two words become a label.
fn initiator(rollback: &Rollback) -> &'static str {
    match rollback.spec.initiated_by.as_ref().and_then(|by| by.type_.as_deref()) {
        Some("user") => "user",
        Some("system") => "system",
        Some("") | None => "",
        Some(_) => "other",
    }
}

fn label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::NotSucceeded(reason) => match reason {
            SucceededReason::DeploymentSuperseded => "superseded",
            SucceededReason::Cancelled => "cancelled",
            SucceededReason::NotNeeded => "not_needed",
            SucceededReason::Pending
            | SucceededReason::DeploymentSucceeded
            | SucceededReason::DeploymentFailed
            | SucceededReason::DeadlineExceeded
            | SucceededReason::PreconditionFailed
            | SucceededReason::NotAdmitted => "failed",
        },
    }
}

fn announcement(before: &Rollback, after: &Rollback) -> Option<Announcement> {
    let was = Phase::of(before);
    if was.is_ended() {
        return None;
    }
    let message = || after.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default();
    match Phase::of(after) {
        Phase::Ended(outcome) => {
            let (warning, reason) = ending(outcome);
            Some(Announcement { warning, reason, action: "Finish", note: message() })
        }
        Phase::Running if was != Phase::Running => Some(Announcement {
            warning: false,
            reason: "DeploymentTriggered",
            action: "Deploy",
            note: triggered(after),
        }),
        Phase::Waiting
            if last(after).is_some_and(|attempt| attempt.state == AttemptState::Failed)
                && was != Phase::Waiting =>
        {
            Some(Announcement {
                warning: true,
                reason: "DeploymentFailed",
                action: "Deploy",
                note: message(),
            })
        }
        Phase::Pending | Phase::Queued | Phase::Triggering | Phase::Running | Phase::Waiting => None,
    }
}

fn last(rollback: &Rollback) -> Option<&Attempt> {
    rollback.status.as_ref()?.attempts.last()
}

fn triggered(rollback: &Rollback) -> String {
    let status = rollback.status.as_ref();
    let id = status.and_then(|status| status.deployment_id.as_deref()).unwrap_or_default();
    let number = last(rollback).map_or(1, |attempt| attempt.number);
    match status.and_then(|status| status.deployment_url.as_deref()) {
        Some(url) => format!("attempt {number}: deployment {id}, see {url}"),
        None => format!("attempt {number}: deployment {id}"),
    }
}

/// Whether it is bad, and the event's reason.
fn ending(outcome: Outcome) -> (bool, &'static str) {
    match outcome {
        Outcome::Succeeded => (false, "RollbackSucceeded"),
        Outcome::NotSucceeded(reason) => match reason {
            SucceededReason::DeploymentSuperseded => (true, "RollbackSuperseded"),
            SucceededReason::Cancelled => (false, "RollbackCancelled"),
            SucceededReason::NotNeeded => (false, "NotNeeded"),
            SucceededReason::Pending
            | SucceededReason::DeploymentSucceeded
            | SucceededReason::DeploymentFailed
            | SucceededReason::DeadlineExceeded
            | SucceededReason::PreconditionFailed
            | SucceededReason::NotAdmitted => (true, "RollbackFailed"),
        },
    }
}
