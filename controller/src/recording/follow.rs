//! Following the release that a target's objects are: when its rollout is finished it becomes active, and its health is
//! measured.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::{HealthReason, Status};
use rollback_api::{Activation, Release, annotations};
use rollback_core::release::health::HealthReport;
use rollback_core::workload::health::{self, Assessment, HealthVerdict, Limits, Subject};
use rollback_core::workload::recording;
use rollback_core::workload::rollout::{RolloutState, rollout};
use serde_json::{Map, json};

use super::memory::Memory;
use super::record::{annotate, restore_snapshots, rfc3339};
use super::running::running;
use super::{Target, wait_until};
use crate::error::PassError;
use crate::queue::Next;

/// A deployment is young for this long.
const YOUNG: SignedDuration = SignedDuration::from_mins(2);
/// How often pods are looked at while a deployment is young. Nothing tells of a pod that fails.
const OFTEN: Duration = Duration::from_secs(1);
/// How often afterwards, while there is no verdict.
const SOMETIMES: Duration = Duration::from_secs(10);
/// How often once the release has failed.
const SELDOM: Duration = Duration::from_secs(30);

/// Brings the activation and the health of the release up to date.
pub(super) async fn follow(
    target: &Target<'_>,
    memory: &mut Memory,
    release: &Arc<Release>,
    now: Timestamp,
) -> Result<Next, PassError> {
    restore_snapshots(target, memory, release).await?;
    let finished = target
        .seen
        .iter()
        .all(|seen| matches!(rollout(seen.key.kind, &seen.object), Ok(RolloutState::Finished)));
    let active_since = recording::active_since(release, target.pointer);
    if finished && active_since.is_none() {
        activate(target, release, now).await?;
    }
    measure(target, release, active_since, finished, now).await
}

/// Asks the release controller to make the release active: once for each deployment.
async fn activate(target: &Target<'_>, release: &Release, now: Timestamp) -> Result<(), PassError> {
    let Some(activation) = recording::activation(release, now) else { return Ok(()) };
    let annotation = |key: &str| release.metadata.annotations.as_ref().and_then(|all| all.get(key));
    let asked: Option<Activation> =
        annotation(annotations::ACTIVATION).and_then(|text| serde_json::from_str(text).ok());
    let wants = annotation(annotations::ACTIVE).is_some_and(|value| value == "true");
    if wants && asked.is_some_and(|asked| asked.id == activation.id) {
        return Ok(());
    }
    let mut edits = Map::new();
    edits.insert(annotations::ACTIVE.to_owned(), json!("true"));
    edits.insert(annotations::DEPLOYMENT_END_TIME.to_owned(), json!(rfc3339(activation.time.0)));
    edits.insert(annotations::ACTIVATION.to_owned(), json!(json!(activation).to_string()));
    annotate(target, release, "release activation", edits).await.map(|_| ())
}

/// Judges the release and says so on it, if there is anything new to say.
async fn measure(
    target: &Target<'_>,
    release: &Release,
    active_since: Option<Timestamp>,
    finished: bool,
    now: Timestamp,
) -> Result<Next, PassError> {
    let known = known(release, target);
    let proven = known.as_ref().is_some_and(|known| known.status == Status::True);
    if proven && finished && active_since.is_some() {
        return Ok(Next::Idle);
    }
    let running = running(target.ctx, target.key, target.seen).await?;
    let settings = &target.ctx.settings;
    let limits = Limits {
        minimum_active: signed(settings.minimum_active_time),
        failure_after: signed(settings.rollout_failure_after),
    };
    let Assessment { verdict, again } =
        health::assess(&running, Subject { active_since, proven }, limits, now);
    if let Some(report) = report(&verdict, known.as_ref(), now) {
        let edits = Map::from_iter([(annotations::HEALTH.to_owned(), json!(report.to_json()))]);
        if annotate(target, release, "release health", edits).await? {
            announce(target, release, &report);
        }
    }
    let began = recording::measured_since(release, target.pointer).max(active_since);
    let young = began.is_some_and(|began| now.duration_since(began) < YOUNG);
    let pace = match verdict {
        // A change of the workload's status wakes this pass.
        HealthVerdict::Healthy(_) | HealthVerdict::NothingRunning => Next::Idle,
        HealthVerdict::RollbackRequired(_) => Next::After(SELDOM),
        HealthVerdict::InProgress(_) => Next::After(if young { OFTEN } else { SOMETIMES }),
    };
    Ok(again.map_or(pace, |again| pace.earlier(Next::After(wait_until(again, now)))))
}

/// The report on the release, if it is about its current deployment.
fn known(release: &Release, target: &Target<'_>) -> Option<HealthReport> {
    let text = release.metadata.annotations.as_ref()?.get(annotations::HEALTH)?;
    let report = HealthReport::parse(text).ok()?;
    let since = recording::measured_since(release, target.pointer);
    since.is_none_or(|since| report.time.as_second() >= since.as_second()).then_some(report)
}

/// What is to be reported; `None` when it says nothing new. A verdict stands until the opposite is measured.
fn report(verdict: &HealthVerdict, known: Option<&HealthReport>, now: Timestamp) -> Option<HealthReport> {
    let (status, reason, message) = match verdict {
        HealthVerdict::Healthy(how) => (Status::True, HealthReason::RolloutSucceeded, how.clone()),
        HealthVerdict::RollbackRequired(why) => (Status::False, HealthReason::RolloutFailed, why.clone()),
        HealthVerdict::InProgress(how) => (Status::Unknown, HealthReason::RolloutInProgress, how.clone()),
        HealthVerdict::NothingRunning => (
            Status::Unknown,
            HealthReason::NothingRunning,
            "no pod is wanted, so nothing can be judged".to_owned(),
        ),
    };
    let stands = known.is_some_and(|known| match status {
        Status::Unknown => known.is_verdict() || (known.reason == reason && known.message == message),
        // Which pod failed first is told; that more do is not news.
        Status::True | Status::False => known.status == status,
    });
    (!stands).then_some(HealthReport { status, reason, message, time: now })
}

fn announce(target: &Target<'_>, release: &Release, report: &HealthReport) {
    let name = release.metadata.name.as_deref().unwrap_or_default();
    match report.status {
        Status::False => {
            tracing::warn!(target = %target.key, release = name, "rollback required: {}", report.message);
            target.ctx.events.warning(release, "RollbackRequired", "Measure", &report.message);
        }
        Status::True => tracing::info!(target = %target.key, release = name, "healthy: {}", report.message),
        Status::Unknown => tracing::debug!(target = %target.key, release = name, "{}", report.message),
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
