//! A Release, parsed once into what decisions ask of it.

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{ReleaseCondition, Status};
use rollback_api::{Activation, Release, annotations};

use crate::conditions;

/// What decisions ask of a Release.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseView {
    /// Its name.
    pub name: String,
    /// Its UID; empty if the object was never stored.
    pub uid: String,
    /// The target it belongs to.
    pub target: String,
    /// Signature of its config, computed, not taken from status.
    pub signature: String,
    /// When the object was created.
    pub created: Option<Timestamp>,
    /// Condition Active; Unknown when absent.
    pub active: Status,
    /// Condition Healthy; Unknown when absent.
    pub healthy: Status,
    /// Why it is or is not healthy, for people; empty when nothing is known.
    pub health_message: String,
    /// Condition RollbackRequired; Unknown when absent.
    pub rollback_required: Status,
    /// The latest event that made it active.
    pub activation: Option<Activation>,
    /// When its deployment ended.
    pub deployment_end: Option<Timestamp>,
    /// When it stopped being active.
    pub left: Option<Timestamp>,
    /// The Rollback that left it since it was last deployed.
    pub left_by_rollback: Option<String>,
    /// The release that it replaced.
    pub previous: Option<String>,
    /// Why it must not be chosen (rule 22).
    pub blocked: Option<String>,
    /// Whether the release controller has seen it.
    pub initialised: bool,
}

impl ReleaseView {
    /// Parses a Release. Total: what is absent is Unknown or `None`.
    pub fn of(release: &Release) -> Self {
        let status = release.status.clone().unwrap_or_default();
        let condition = |type_: ReleaseCondition| {
            conditions::status(&status.conditions, type_.as_str()).unwrap_or(Status::Unknown)
        };
        let annotation = |key: &str| {
            release
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(key))
                .filter(|text| !text.is_empty())
                .cloned()
        };
        Self {
            name: release.metadata.name.clone().unwrap_or_default(),
            uid: release.metadata.uid.clone().unwrap_or_default(),
            target: release.spec.config.target_name.clone(),
            signature: crate::signature::signature(&release.spec.config),
            created: release.metadata.creation_timestamp.as_ref().map(|time| time.0),
            active: condition(ReleaseCondition::Active),
            healthy: condition(ReleaseCondition::Healthy),
            health_message: conditions::find(&status.conditions, ReleaseCondition::Healthy.as_str())
                .map(|condition| condition.message.clone())
                .unwrap_or_default(),
            rollback_required: condition(ReleaseCondition::RollbackRequired),
            deployment_end: status.deployment_end_time.as_ref().map(|time| time.0),
            left: status.deactivation_time.as_ref().map(|time| time.0),
            left_by_rollback: status.left_by_rollback.clone().filter(|name| !name.is_empty()),
            previous: status
                .previous_release
                .as_ref()
                .and_then(|previous| previous.release_ref.clone())
                .filter(|name| !name.is_empty()),
            blocked: annotation(annotations::ROLLBACK_BLOCKED),
            initialised: conditions::find(&status.conditions, ReleaseCondition::Active.as_str()).is_some()
                && status.signature.as_ref().is_some_and(|signature| !signature.is_empty()),
            activation: status.activation,
        }
    }

    /// Whether it is recorded as the active one.
    pub fn is_active(&self) -> bool {
        self.active == Status::True
    }

    /// When it was last deployed: its activation, else the end of its deployment, else its creation.
    pub fn deployed(&self) -> Option<Timestamp> {
        self.activation.as_ref().map(|activation| activation.time.0).or(self.deployment_end).or(self.created)
    }
}
