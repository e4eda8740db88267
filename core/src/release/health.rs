//! Health of a release: the report that a health source leaves in the annotation
//! `theatre.gocardless.com/health`, and the two conditions that the release controller makes of it (reference B.1.1, H-18, H-20).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{HealthReason, ReleaseCondition, Status};
use serde::{Deserialize, Serialize};

use super::times::micros;
use crate::conditions::{self, MAX_MESSAGE, Wanted, cut};

/// What a health source says about the current deployment of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// Whether the release is healthy: True, False, or Unknown while there is no verdict.
    pub status: Status,
    /// Why.
    pub reason: HealthReason,
    /// For people; cut at [`MAX_MESSAGE`] characters.
    pub message: String,
    /// When it was judged, in microseconds. A report that is older than the deployment does not count.
    pub time: Timestamp,
}

/// A report that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HealthReportError {
    /// Not the JSON that is expected.
    #[error("is not a health report: {0}")]
    Json(String),
    /// `status` is none of the three.
    #[error("has status {0:?}; expected True, False or Unknown")]
    Status(String),
    /// `reason` is not a known one.
    #[error("has an unknown reason {0:?}")]
    Reason(String),
}

/// The JSON of a report.
#[derive(Serialize, Deserialize)]
struct Wire {
    status: String,
    reason: String,
    #[serde(default)]
    message: String,
    time: MicroTime,
}

impl HealthReport {
    /// Reads the annotation's value.
    pub fn parse(text: &str) -> Result<Self, HealthReportError> {
        let wire: Wire =
            serde_json::from_str(text).map_err(|error| HealthReportError::Json(error.to_string()))?;
        let Some(status) = Status::parse(&wire.status) else {
            return Err(HealthReportError::Status(cut(&wire.status, 64)));
        };
        let Some(reason) = HealthReason::parse(&wire.reason) else {
            return Err(HealthReportError::Reason(cut(&wire.reason, 64)));
        };
        Ok(Self { status, reason, message: cut(&wire.message, MAX_MESSAGE), time: micros(wire.time.0) })
    }

    /// The annotation's value.
    pub fn to_json(&self) -> String {
        let wire = Wire {
            status: self.status.as_str().to_owned(),
            reason: self.reason.as_str().to_owned(),
            message: cut(&self.message, MAX_MESSAGE),
            time: MicroTime(self.time),
        };
        // Strings and a time are always valid JSON.
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Whether this is a verdict, not a wait for one.
    pub fn is_verdict(&self) -> bool {
        is_verdict(self.status)
    }
}

fn is_verdict(status: Status) -> bool {
    match status {
        Status::True | Status::False => true,
        Status::Unknown => false,
    }
}

/// Where a release stands when its health is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Whether it is active or being deployed.
    pub(super) live: bool,
    /// Whether another event made it active than the one that its conditions are about.
    pub(super) reactivated: bool,
    /// Since when its current (or last) deployment can be judged; `None`: no limit is known.
    pub(super) since: Option<Timestamp>,
    /// When it stopped being live; `None` for a release that was never deployed, and for a live one.
    pub(super) until: Option<Timestamp>,
}

/// Brings Healthy and RollbackRequired up to date. Both stay absent until somebody judges the release.
pub(super) fn apply(
    conditions: &mut Vec<Condition>,
    report: Option<&HealthReport>,
    standing: Standing,
    generation: Option<i64>,
    now: Timestamp,
) {
    let before = conditions::status(conditions, ReleaseCondition::Healthy.as_str());
    let fresh = report.filter(|report| standing.since.is_none_or(|since| report.time >= since));
    let wanted = if standing.live {
        match (fresh, before) {
            (Some(report), _) => Some((report.status, report.reason, report.message.as_str())),
            // The verdict was about an earlier deployment of the same release (H-18).
            (None, Some(_)) if standing.reactivated => {
                Some((Status::Unknown, HealthReason::NotMeasured, "not measured since it was deployed again"))
            }
            (None, Some(_) | None) => None,
        }
    } else if before.is_some_and(is_verdict) {
        None
    } else {
        // The last word that came while it was live still counts; nothing later does.
        let last = fresh
            .filter(|report| report.is_verdict() && standing.until.is_some_and(|until| report.time <= until));
        match (last, before) {
            (Some(report), _) => Some((report.status, report.reason, report.message.as_str())),
            (None, Some(_)) => {
                Some((Status::Unknown, HealthReason::NotMeasured, "it was left before a verdict was reached"))
            }
            (None, None) => None,
        }
    };
    let Some((healthy, reason, message)) = wanted else { return };
    let required = match healthy {
        Status::True => Status::False,
        Status::False => Status::True,
        Status::Unknown => Status::Unknown,
    };
    for (type_, status) in
        [(ReleaseCondition::Healthy, healthy), (ReleaseCondition::RollbackRequired, required)]
    {
        let wanted = Wanted { type_: type_.as_str(), status, reason: reason.as_str(), message, generation };
        conditions::set(conditions, &wanted, now);
    }
}
