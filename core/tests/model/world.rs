//! The pretend cluster: API objects, the release controller's part, and a backend.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::Status;
use rollback_api::{
    Activation, FromReleaseRef, ReleaseRef, Rollback, RollbackSpec, RollbackStatus, annotations,
};
use rollback_core::backend::{BackendError, Cancellation, Deployment, DeploymentState, ErrorClass};
use rollback_core::pointer::{ActiveRelease, Pointer};
use rollback_core::release::ReleaseView;
use rollback_core::rollback::{Outcome, Phase, RollbackView, has_finalizer};

use crate::choices::Choices;
use crate::controller::Controller;

pub const TARGET: &str = "payments";
pub const DEADLINE: i64 = 120;

/// A deployment in the backend.
#[derive(Clone, Debug)]
pub struct Running {
    pub key: String,
    pub state: DeploymentState,
}

pub struct World {
    pub now: Timestamp,
    pub pointer: Pointer,
    pub pointer_version: u64,
    pub rollbacks: Vec<Rollback>,
    pub releases: Vec<ReleaseView>,
    pub backend: Vec<Running>,
    /// How the backend answers until the choices change it.
    pub backend_mood: u8,
    pub requests: Vec<(String, Activation)>,
    pub created: u64,
    ended: BTreeMap<String, RollbackStatus>,
    succeeded: u64,
    /// Attempts that reached the backend or were refused by it, by Rollback UID.
    pub reached: BTreeMap<String, i32>,
    /// Which Rollback (UID) made which release active.
    history: BTreeSet<(String, String)>,
}

impl World {
    pub fn new() -> Self {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let releases = ["a", "b", "c", "d"].map(|name| ReleaseView {
            name: name.into(),
            uid: format!("uid-{name}"),
            target: TARGET.into(),
            signature: format!("sig-{name}"),
            created: Some(now),
            active: Status::Unknown,
            healthy: Status::True,
            health_message: String::new(),
            rollback_required: Status::False,
            activation: None,
            deployment_end: None,
            left: None,
            left_by_rollback: None,
            previous: None,
            blocked: None,
            initialised: true,
        });
        let mut world = Self {
            now,
            pointer: Pointer::default(),
            pointer_version: 1,
            rollbacks: Vec::new(),
            releases: releases.into(),
            backend: Vec::new(),
            backend_mood: 0,
            requests: Vec::new(),
            created: 0,
            ended: BTreeMap::new(),
            succeeded: 0,
            reached: BTreeMap::new(),
            history: BTreeSet::new(),
        };
        world.activate(
            "c",
            Activation { id: "first".into(), time: MicroTime(now), rollback_ref: None, rollback_uid: None },
        );
        world
    }

    pub fn deployments(&self) -> u64 {
        self.backend.len() as u64
    }

    pub fn successes(&self) -> u64 {
        self.succeeded
    }

    pub fn create_rollback(&mut self, choices: &mut Choices) {
        if self.rollbacks.len() >= 6 {
            return;
        }
        let to = ["a", "b", "c", "d"][choices.below(4) as usize];
        let Some(active) = self.pointer.active.clone() else { return };
        self.created += 1;
        let name = format!("rb{}", self.created);
        let spec = RollbackSpec {
            to_release_ref: ReleaseRef {
                target: TARGET.into(),
                name: Some(to.into()),
                signature: Some(format!("sig-{to}")),
            },
            from_release_ref: Some(FromReleaseRef {
                target: TARGET.into(),
                name: Some(active.release),
                signature: None,
                activation: Some(active.activation.id),
            }),
            reason: "x".into(),
            progress_deadline_seconds: Some(DEADLINE),
            max_attempts: Some(1 + i32::from(choices.below(3))),
            ..RollbackSpec::default()
        };
        self.store(&name, spec);
    }

    fn store(&mut self, name: &str, spec: RollbackSpec) {
        let mut rollback = Rollback::new(name, spec);
        rollback.metadata.uid = Some(format!("uid-{name}-{}", self.created));
        rollback.metadata.creation_timestamp = Some(Time(self.now));
        rollback.metadata.resource_version = Some("1".into());
        rollback.metadata.annotations = Some(BTreeMap::from([
            (annotations::AUTHENTICATED_AS.into(), "somebody".into()),
            (annotations::SUBMITTED_HASH.into(), format!("hash-{name}")),
        ]));
        self.rollbacks.push(rollback);
    }

    /// The manifest of an ended Rollback is applied again after the object is gone (invariant: no further deployment).
    pub fn recreate_rollback(&mut self, choices: &mut Choices) {
        let index = choices.below(6) as usize;
        let Some(old) = self.rollbacks.get(index).cloned() else { return };
        if !Phase::of(&old).is_ended() || has_finalizer(&old) {
            return;
        }
        let uid = old.metadata.uid.clone().unwrap_or_default();
        if !self.pointer.has_outcome(&uid) {
            return;
        }
        self.forget(index);
        self.created += 1;
        let name = old.metadata.name.clone().unwrap_or_default();
        self.store(&name, old.spec);
        let again = self.rollbacks.last().and_then(|again| again.metadata.uid.clone()).unwrap_or_default();
        self.reached.insert(format!("never:{again}"), 0);
    }

    pub fn forget(&mut self, index: usize) {
        let gone = self.rollbacks.remove(index);
        self.ended.remove(gone.metadata.uid.as_deref().unwrap_or_default());
    }

    pub fn cancel(&mut self, choices: &mut Choices) {
        let index = choices.below(6) as usize;
        if let Some(rollback) = self.rollbacks.get_mut(index) {
            rollback
                .metadata
                .annotations
                .get_or_insert_default()
                .insert(annotations::CANCEL.into(), "stop".into());
            bump(rollback);
        }
    }

    pub fn delete(&mut self, choices: &mut Choices) {
        let index = choices.below(6) as usize;
        let Some(rollback) = self.rollbacks.get_mut(index) else { return };
        if has_finalizer(rollback) {
            rollback.metadata.deletion_timestamp.get_or_insert(Time(self.now));
            bump(rollback);
        } else {
            self.forget(index);
        }
    }

    /// Somebody deploys another release, or the same one again.
    pub fn deploy_something_else(&mut self, choices: &mut Choices) {
        let to = ["a", "b", "c", "d"][choices.below(4) as usize];
        self.created += 1;
        let activation = Activation {
            id: format!("other-{}", self.created),
            time: MicroTime(self.now),
            rollback_ref: None,
            rollback_uid: None,
        };
        self.requests.push((to.into(), activation));
    }

    pub fn step_clock(&mut self, choices: &mut Choices) {
        let seconds = [1, 3, 10, 40, 200, -2, -30, 0][choices.below(8) as usize];
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn backend_moves(&mut self, choices: &mut Choices) {
        self.backend_mood = choices.below(8);
        let index = choices.below(8) as usize;
        let state = match choices.below(6) {
            0 | 1 => DeploymentState::Succeeded(None),
            2 => DeploymentState::Failed,
            3 => DeploymentState::Superseded,
            4 => DeploymentState::InProgress,
            _ => DeploymentState::Pending,
        };
        if let Some(running) = self.backend.get_mut(index) {
            match running.state {
                DeploymentState::Pending | DeploymentState::InProgress => running.state = state,
                DeploymentState::Succeeded(_) | DeploymentState::Failed | DeploymentState::Superseded => {}
            }
        }
    }

    /// What the release controller does: latest activation by time wins; one of `to` belongs to the lock's Rollback.
    pub fn release_pass(&mut self) {
        for (release, mut activation) in std::mem::take(&mut self.requests) {
            if let Some(lock) =
                self.pointer.lock.as_ref().filter(|lock| lock.abandoned.is_none() && lock.to == release)
                && activation.rollback_uid.is_none()
            {
                activation.rollback_ref = Some(lock.rollback.clone());
                activation.rollback_uid = Some(lock.uid.clone());
            }
            let current = self.pointer.active.as_ref().map(|active| &active.activation);
            if current.is_none_or(|current| current.id != activation.id && current.time <= activation.time) {
                self.activate(&release, activation);
            }
        }
    }

    fn activate(&mut self, release: &str, activation: Activation) {
        if let Some(uid) = &activation.rollback_uid {
            self.history.insert((release.into(), uid.clone()));
        }
        let replaced = self.pointer.active.as_ref().map(|active| active.release.clone());
        self.pointer.active = Some(ActiveRelease {
            release: release.into(),
            uid: format!("uid-{release}"),
            activation,
            replaced,
            left: None,
        });
        self.pointer_version += 1;
    }

    fn error(class: ErrorClass) -> BackendError {
        BackendError::new(class, "the backend said so")
    }

    fn deployment(running: &Running) -> Deployment {
        Deployment {
            id: format!("id-{}", running.key),
            url: None,
            state: running.state.clone(),
            message: String::new(),
        }
    }

    pub fn find(&self, key: &str, fault: u8) -> Result<Option<Deployment>, BackendError> {
        if fault == 1 {
            return Err(Self::error(ErrorClass::Unavailable(None)));
        }
        Ok(self.backend.iter().find(|running| running.key == key).map(Self::deployment))
    }

    pub fn trigger(&mut self, uid: &str, key: &str, fault: u8) -> Result<Deployment, BackendError> {
        match fault {
            1 => return Err(Self::error(ErrorClass::Unavailable(Some(std::time::Duration::from_secs(3))))),
            2 => return Err(Self::error(ErrorClass::Busy)),
            3 => {
                *self.reached.entry(uid.into()).or_default() += 1;
                return Err(Self::error(ErrorClass::Failed));
            }
            4 => return Err(Self::error(ErrorClass::Invalid)),
            _ => {}
        }
        assert!(
            self.backend.iter().all(|running| running.key != key),
            "invariant 1: {key} was deployed twice"
        );
        assert!(
            !self.reached.contains_key(&format!("never:{uid}")),
            "a manifest of the ledger was carried out again"
        );
        *self.reached.entry(uid.into()).or_default() += 1;
        let running = Running { key: key.into(), state: DeploymentState::Pending };
        let answer = Self::deployment(&running);
        self.backend.push(running);
        // Created, but the answer was lost.
        if fault == 5 { Err(Self::error(ErrorClass::Unavailable(None))) } else { Ok(answer) }
    }

    pub fn poll(&self, id: &str, fault: u8) -> Result<Deployment, BackendError> {
        match fault {
            1 => return Err(Self::error(ErrorClass::Unavailable(None))),
            2 => return Err(Self::error(ErrorClass::NotPermitted)),
            _ => {}
        }
        let running = self.backend.iter().find(|running| format!("id-{}", running.key) == id);
        running.map(Self::deployment).ok_or_else(|| Self::error(ErrorClass::NotFound))
    }

    pub fn stop(&mut self, key: &str, fault: u8) -> Result<Cancellation, BackendError> {
        match fault {
            1 => return Err(Self::error(ErrorClass::Unavailable(None))),
            2 => return Ok(Cancellation::NotStopped("it goes on".into())),
            _ => {}
        }
        if let Some(running) = self.backend.iter_mut().find(|running| running.key == key) {
            running.state = DeploymentState::Failed;
        }
        Ok(Cancellation::Stopped)
    }

    /// Invariants that hold after every event.
    pub fn check(&mut self) {
        let past_queued: Vec<&str> = self
            .rollbacks
            .iter()
            .filter(|rollback| Phase::of(rollback).holds_lock())
            .filter_map(|rollback| rollback.metadata.name.as_deref())
            .collect();
        assert!(past_queued.len() <= 1, "invariant 2: {past_queued:?} are past Queued");
        for rollback in &self.rollbacks {
            let uid = rollback.metadata.uid.clone().unwrap_or_default();
            let status = rollback.status.clone().unwrap_or_default();
            assert!(status.attempts.len() <= 10 && status.conditions.len() <= 3, "invariant 10");
            let reached = self.reached.get(&uid).copied().unwrap_or_default();
            let spent = i32::try_from(status.attempts.len()).unwrap();
            assert!(spent <= reached + 1, "invariant 6: {spent} attempts, {reached} reached the backend");
            let phase = Phase::of(rollback);
            match self.ended.get(&uid) {
                Some(before) => assert_eq!(before, &status, "invariant 3: an ended Rollback changed"),
                None if phase.is_ended() => {
                    if phase == Phase::Ended(Outcome::Succeeded) {
                        self.succeeded += 1;
                        let to = RollbackView::of(rollback).to;
                        // Something newer may be deployed by now; that this Rollback made it active is for ever.
                        let done = (to.clone(), uid.clone());
                        assert!(self.history.contains(&done), "invariant 8: {to} never was active by it");
                    }
                    self.ended.insert(uid, status);
                }
                None => {}
            }
        }
    }

    /// No more faults of ours: everything has to end within its deadline and a minute.
    pub fn settle(&mut self, controller: &mut Controller) {
        let rollbacks = i64::try_from(self.rollbacks.len()).unwrap();
        // Each may wait for the one before, at most its own queue limit; then has its own deadline.
        let end = self.now.checked_add(SignedDuration::from_secs((rollbacks + 1) * (DEADLINE + 60))).unwrap();
        let mut calm = Choices::new(Vec::new());
        let mood = self.backend_mood;
        while self.now < end {
            self.backend_mood = mood;
            controller.pass(self, &mut calm);
            self.release_pass();
            self.check();
            self.now = self.now.checked_add(SignedDuration::from_secs(9)).unwrap();
        }
        for rollback in &self.rollbacks {
            let name = rollback.metadata.name.as_deref().unwrap_or_default();
            assert!(
                Phase::of(rollback).is_ended(),
                "invariant 4: {name} has not ended: {:?}",
                rollback.status
            );
            assert!(!has_finalizer(rollback), "{name} keeps its finalizer");
        }
        let lock = &self.pointer.lock;
        assert!(
            lock.as_ref().is_none_or(|lock| lock.abandoned.is_some()),
            "the lock was never given back: {lock:?}"
        );
    }
}

pub fn bump(rollback: &mut Rollback) {
    let version: u64 = rollback.metadata.resource_version.as_deref().unwrap_or("0").parse().unwrap();
    rollback.metadata.resource_version = Some((version + 1).to_string());
}
