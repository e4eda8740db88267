//! A target as admission sees it: read live, right before the decision.

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Release, Rollback};

use crate::pointer::Pointer;
use crate::release::ReleaseView;
use crate::rollback::RollbackView;

/// Everything about a target that admission may look at.
#[derive(Clone, Debug)]
pub struct TargetState {
    /// The namespace.
    pub namespace: String,
    /// The target.
    pub target: String,
    /// Its pointer; `None` if there is no such object yet.
    pub pointer: Option<Pointer>,
    /// All its releases.
    pub releases: Vec<Release>,
    /// The same releases, parsed, in the same order.
    pub views: Vec<ReleaseView>,
    /// All its Rollbacks.
    pub rollbacks: Vec<RollbackView>,
    /// A release that the Rollback names although it belongs to another target.
    pub stranger: Option<ReleaseView>,
    /// Other targets of the namespace; read only when this one has no releases.
    pub other_targets: Vec<String>,
}

/// The release that is active now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveNow<'a> {
    /// Its name.
    pub release: &'a str,
    /// Id of its activation; absent for a release that theatre activated.
    pub activation: Option<&'a str>,
}

impl TargetState {
    /// A target as it was read. `releases` and `rollbacks` are those of this target, in any order.
    pub fn new(
        namespace: &str,
        target: &str,
        pointer: Option<Pointer>,
        releases: Vec<Release>,
        rollbacks: &[Rollback],
    ) -> Self {
        Self {
            namespace: namespace.to_owned(),
            target: target.to_owned(),
            pointer,
            views: releases.iter().map(ReleaseView::of).collect(),
            releases,
            rollbacks: rollbacks.iter().map(RollbackView::of).collect(),
            stranger: None,
            other_targets: Vec::new(),
        }
    }

    /// The active release: what the pointer says, else, for releases that only theatre ever touched, the one whose
    /// condition Active is True; of several the one that was deployed last, by name in a tie (H-12).
    pub fn active(&self) -> Option<ActiveNow<'_>> {
        if let Some(active) = self.pointer.as_ref().and_then(|pointer| pointer.active.as_ref()) {
            return Some(ActiveNow { release: &active.release, activation: Some(&active.activation.id) });
        }
        let deployed = |view: &ReleaseView| -> Option<Timestamp> { view.deployed() };
        self.views
            .iter()
            .filter(|view| view.is_active())
            .max_by(|a, b| deployed(a).cmp(&deployed(b)).then_with(|| a.name.cmp(&b.name)))
            .map(|view| ActiveNow {
                release: &view.name,
                activation: view.activation.as_ref().map(|activation| activation.id.as_str()),
            })
    }

    /// A release other than the active one that is being deployed and never was active (rule 11).
    pub fn deploying(&self) -> Option<&str> {
        let deploying = self.pointer.as_ref()?.deploying.as_ref()?.release.as_str();
        let active = self.active().map(|active| active.release);
        (active != Some(deploying)).then_some(deploying)
    }

    /// What is live: the release that is being deployed, else the active one.
    pub fn live(&self) -> Option<&str> {
        self.deploying().or_else(|| self.active().map(|active| active.release))
    }

    /// The target's release of that name.
    pub fn view(&self, name: &str) -> Option<&ReleaseView> {
        self.views.iter().find(|view| view.name == name)
    }

    /// The object of the target's release of that name.
    pub fn release(&self, name: &str) -> Option<&Release> {
        self.releases.iter().find(|release| release.metadata.name.as_deref() == Some(name))
    }

    /// The Rollback that is in the way of another one: the one past its first attempt, else the oldest in line.
    pub fn in_flight(&self) -> Option<&RollbackView> {
        self.rollbacks
            .iter()
            .filter(|rollback| !rollback.phase.is_ended() && !rollback.dormant)
            .min_by_key(|rollback| (!rollback.phase.holds_lock(), rollback.queue_key()))
    }

    /// Whether a Rollback of that name exists.
    pub fn has_rollback(&self, name: &str) -> bool {
        !name.is_empty() && self.rollbacks.iter().any(|rollback| rollback.name == name)
    }
}
