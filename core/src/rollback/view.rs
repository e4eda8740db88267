//! A Rollback as decisions about its target see it.

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{InProgressReason, RollbackCondition, Status, SucceededReason};
use rollback_api::{AttemptState, Rollback, annotations};

use crate::conditions;

/// How far a Rollback has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing was decided yet, or it waits for its preconditions.
    Pending,
    /// Waits for an older Rollback of its target.
    Queued,
    /// The latest attempt is persisted, the backend has not confirmed it.
    Triggering,
    /// The backend has the latest attempt.
    Running,
    /// The latest attempt failed; the next one waits for its time.
    Waiting,
    /// Ended.
    Ended(Outcome),
}

/// How a Rollback ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The target release is deployed and active.
    Succeeded,
    /// See the reason.
    NotSucceeded(SucceededReason),
}

impl Phase {
    /// Whether nothing changes any more.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Ended(_) => true,
            Self::Pending | Self::Queued | Self::Triggering | Self::Running | Self::Waiting => false,
        }
    }

    /// Whether an attempt is persisted and the end is not reached: the Rollback is the lock (rule 3).
    pub fn holds_lock(self) -> bool {
        match self {
            Self::Triggering | Self::Running | Self::Waiting => true,
            Self::Pending | Self::Queued | Self::Ended(_) => false,
        }
    }

    /// Reads it from the persisted conditions and attempts.
    pub fn of(rollback: &Rollback) -> Self {
        let Some(status) = &rollback.status else { return Self::Pending };
        let succeeded = conditions::find(&status.conditions, RollbackCondition::Succeeded.as_str());
        match succeeded.map(|condition| condition.status.as_str()) {
            Some("True") => return Self::Ended(Outcome::Succeeded),
            Some("False") => {
                let reason = succeeded.and_then(|condition| SucceededReason::parse(&condition.reason));
                return Self::Ended(Outcome::NotSucceeded(
                    reason.unwrap_or(SucceededReason::DeploymentFailed),
                ));
            }
            Some(_) | None => {}
        }
        match status.attempts.last().map(|attempt| attempt.state) {
            Some(AttemptState::Triggering) => Self::Triggering,
            Some(AttemptState::Running | AttemptState::Succeeded) => Self::Running,
            Some(
                AttemptState::Failed
                | AttemptState::Superseded
                | AttemptState::Cancelled
                | AttemptState::Abandoned,
            ) => Self::Waiting,
            None => {
                // A rollback begun by theatre has no attempts list.
                if conditions::status(&status.conditions, RollbackCondition::InProgress.as_str())
                    == Some(Status::True)
                {
                    return Self::Running;
                }
                match conditions::find(&status.conditions, RollbackCondition::InProgress.as_str()) {
                    Some(condition) if condition.reason == InProgressReason::Queued.as_str() => Self::Queued,
                    Some(_) | None => Self::Pending,
                }
            }
        }
    }
}

/// What decisions about a target ask of each of its Rollbacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollbackView {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The target.
    pub target: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// How far it has come.
    pub phase: Phase,
    /// Whether it only waits for `spec.dryRun` to be unset, and so is in nobody's way.
    pub dormant: bool,
    /// The release it leaves (name); empty if not decided yet.
    pub from: String,
    /// The release it deploys (name); empty if not decided yet.
    pub to: String,
    /// The verified user, else the claimed one.
    pub by: String,
    /// Why, as its author wrote it.
    pub reason: String,
}

impl RollbackView {
    /// Parses a Rollback. Total: what is absent is empty.
    pub fn of(rollback: &Rollback) -> Self {
        let spec = &rollback.spec;
        let annotation = |key: &str| {
            rollback
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(key))
                .filter(|text| !text.is_empty())
                .cloned()
        };
        let from = rollback
            .status
            .as_ref()
            .and_then(|status| status.from_release_ref.as_ref())
            .or(spec.from_release_ref.as_ref())
            .and_then(|from| from.name.clone());
        Self {
            name: rollback.metadata.name.clone().unwrap_or_default(),
            uid: rollback.metadata.uid.clone().unwrap_or_default(),
            target: spec.to_release_ref.target.clone(),
            created: rollback.metadata.creation_timestamp.as_ref().map(|time| time.0),
            phase: Phase::of(rollback),
            dormant: spec.dry_run == Some(true),
            from: from.unwrap_or_default(),
            to: spec.to_release_ref.name.clone().unwrap_or_default(),
            by: annotation(annotations::AUTHENTICATED_AS)
                .or_else(|| spec.initiated_by.as_ref().and_then(|by| by.principal.clone()))
                .unwrap_or_default(),
            reason: spec.reason.clone(),
        }
    }

    /// Order of Rollbacks that have no attempt yet (rule 3): creation time, then UID.
    pub fn queue_key(&self) -> (Option<Timestamp>, &str) {
        (self.created, &self.uid)
    }
}
