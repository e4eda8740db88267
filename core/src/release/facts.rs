//! One Release of a target, read once for the decisions of a pass.

use std::sync::LazyLock;

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{ReleaseCondition, Status};
use rollback_api::{Release, ReleaseStatus};

use super::annotations::{Inputs, Note};
use crate::conditions;
use crate::pointer::ActiveRelease;

static EMPTY: LazyLock<ReleaseStatus> = LazyLock::new(ReleaseStatus::default);

/// One Release of a target.
pub(super) struct Facts<'a> {
    pub(super) release: &'a Release,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) status: &'a ReleaseStatus,
    pub(super) inputs: Inputs,
    /// Condition Active; Unknown when absent.
    pub(super) active: Status,
    /// Whether it is being deleted: nothing is written to it any more.
    pub(super) leaving: bool,
}

impl<'a> Facts<'a> {
    pub(super) fn of(release: &'a Release, notes: &mut Vec<Note>) -> Self {
        let status = release.status.as_ref().unwrap_or(&EMPTY);
        Self {
            release,
            name: release.metadata.name.as_deref().unwrap_or_default(),
            uid: release.metadata.uid.as_deref().unwrap_or_default(),
            status,
            inputs: Inputs::of(release, notes),
            active: conditions::status(&status.conditions, ReleaseCondition::Active.as_str())
                .unwrap_or(Status::Unknown),
            leaving: release.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Whether the pointer means this very object, not one that once had its name.
    pub(super) fn is(&self, active: Option<&ActiveRelease>) -> bool {
        active.is_some_and(|active| active.release == self.name && active.uid == self.uid)
    }

    pub(super) fn created(&self) -> Option<Timestamp> {
        self.release.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// When the latest event made it active, as far as its status knows.
    pub(super) fn activated(&self) -> Option<Timestamp> {
        self.status.activation.as_ref().map(|activation| activation.time.0)
    }

    /// When it stopped being active.
    pub(super) fn left(&self) -> Option<Timestamp> {
        self.status.deactivation_time.as_ref().map(|time| time.0)
    }
}
