//! A pretend API server that holds the releases and the pointer of one target.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_api::conditions::{HealthReason, Status};
use rollback_api::{Activation, Release, ReleaseConfig, ReleaseFields, ReleaseStatus, Revision, annotations};
use rollback_core::conditions;
use rollback_core::pointer::{Lock, Pointer};
use rollback_core::release::ReleaseView;
use rollback_core::release::health::HealthReport;
use rollback_core::release::pass::{TargetDecision, TargetObserved, decide};

pub const TARGET: &str = "payments";
/// 2027-01-15T08:00:00Z.
pub const START: i64 = 1_800_000_000;

/// What happens to the writes of a pass.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// All are made.
    Fine,
    /// The process dies when it has made this many.
    CrashAfter(usize),
}

#[derive(Clone)]
pub struct World {
    pub now: Timestamp,
    pub releases: BTreeMap<String, Release>,
    /// The pointer as an object, and how often it was written.
    pub pointer: Option<ConfigMap>,
    pub in_use: BTreeSet<String>,
    pub limit: usize,
    pub writes: usize,
    pub deleted: Vec<String>,
    versions: u64,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START + second).unwrap()
}

pub fn rfc3339(second: i64) -> String {
    at(second).to_string()
}

pub fn event(id: &str, second: i64) -> Activation {
    Activation { id: id.into(), time: MicroTime(at(second)), rollback_ref: None, rollback_uid: None }
}

pub fn event_of(id: &str, second: i64, rollback: &str) -> Activation {
    Activation {
        rollback_ref: Some(rollback.into()),
        rollback_uid: Some(format!("uid-{rollback}")),
        ..event(id, second)
    }
}

pub fn report(status: Status, second: i64) -> String {
    let reason = match status {
        Status::True => HealthReason::RolloutSucceeded,
        Status::False => HealthReason::RolloutFailed,
        Status::Unknown => HealthReason::RolloutInProgress,
    };
    HealthReport { status, reason, message: format!("it is {status}"), time: at(second) }.to_json()
}

impl World {
    pub fn new() -> Self {
        Self {
            now: at(0),
            releases: BTreeMap::new(),
            pointer: None,
            in_use: BTreeSet::new(),
            limit: 30,
            writes: 0,
            deleted: Vec::new(),
            versions: 0,
        }
    }

    pub fn version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    pub fn create(&mut self, name: &str) {
        let config = ReleaseConfig {
            target_name: TARGET.into(),
            revisions: vec![Revision { name: "application".into(), id: name.into(), ..Revision::default() }],
        };
        let mut release = Release::new(name, ReleaseFields { config });
        release.metadata.creation_timestamp = Some(Time(stored(&Time(self.now)).0));
        release.metadata.generation = Some(1);
        release.metadata.resource_version = Some(self.version());
        release.metadata.uid = Some(format!("uid-{name}-{}", self.versions));
        self.releases.insert(name.into(), release);
    }

    pub fn annotate(&mut self, name: &str, key: &str, value: Option<&str>) {
        let version = self.version();
        let Some(release) = self.releases.get_mut(name) else { return };
        let all = release.metadata.annotations.get_or_insert_default();
        match value {
            Some(value) => drop(all.insert(key.into(), value.into())),
            None => drop(all.remove(key)),
        }
        release.metadata.resource_version = Some(version);
    }

    /// What theatre's CI does.
    pub fn set_active(&mut self, name: &str) {
        self.annotate(name, annotations::ACTIVE, Some("true"));
    }

    /// What a Rollback and the recorder do.
    pub fn ask(&mut self, name: &str, activation: &Activation) {
        self.set_active(name);
        let json = serde_json::to_string(activation).unwrap();
        self.annotate(name, annotations::ACTIVATION, Some(&json));
    }

    pub fn later(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn pointer(&self) -> Pointer {
        self.pointer.as_ref().map(|object| Pointer::parse(TARGET, object).unwrap()).unwrap_or_default()
    }

    pub fn active(&self) -> Option<String> {
        self.pointer().active.map(|active| active.release)
    }

    pub fn write_pointer(&mut self, pointer: &Pointer) {
        let mut object = pointer.to_object("shop", TARGET, self.pointer.as_ref());
        object.metadata.resource_version = Some(self.version());
        self.pointer = Some(object);
    }

    /// What the rollback controller does before it calls a backend.
    pub fn lock(&mut self, rollback: &str, from: &str, to: &str) {
        let lock = Lock {
            rollback: rollback.into(),
            uid: format!("uid-{rollback}"),
            to: to.into(),
            from: from.into(),
            abandoned: None,
        };
        self.write_pointer(&Pointer { lock: Some(lock), ..self.pointer() });
    }

    pub fn unlock(&mut self) {
        self.write_pointer(&Pointer { lock: None, ..self.pointer() });
    }

    pub fn status(&self, name: &str) -> ReleaseStatus {
        self.releases[name].status.clone().unwrap_or_default()
    }

    pub fn annotation(&self, name: &str, key: &str) -> Option<&String> {
        self.releases[name].metadata.annotations.as_ref()?.get(key)
    }

    pub fn condition(&self, name: &str, type_: &str) -> Option<Condition> {
        conditions::find(&self.status(name).conditions, type_).cloned()
    }

    /// `status/reason` of a condition, or `-`.
    pub fn is(&self, name: &str, type_: &str) -> String {
        self.condition(name, type_).map_or("-".into(), |found| format!("{}/{}", found.status, found.reason))
    }

    pub fn views(&self) -> Vec<ReleaseView> {
        self.releases.values().map(ReleaseView::of).collect()
    }

    pub fn decide(&self) -> TargetDecision {
        self.decide_on(self)
    }

    /// Decides on what a cache shows.
    pub fn decide_on(&self, cache: &Self) -> TargetDecision {
        let releases: Vec<&Release> = cache.releases.values().collect();
        let observed = TargetObserved {
            now: self.now,
            releases: &releases,
            pointer: &cache.pointer(),
            in_use: &self.in_use,
            limit: self.limit,
        };
        let decision = decide(&observed);
        assert_eq!(decision, decide(&observed), "two decisions on one observation differ");
        decision
    }

    /// Passes until nothing is left to do.
    pub fn settle(&mut self) -> usize {
        for round in 0..60 {
            let decision = self.decide();
            if decision.is_idle() {
                assert!(!decision.again, "nothing to write, but not done: {decision:?}");
                return round;
            }
            let (again, stale) = (decision.again, self.clone());
            assert!(self.apply(&stale, &decision, Fate::Fine), "a conflict without anybody else");
            if !again {
                let rest = self.decide();
                assert!(rest.is_idle(), "not idempotent: {rest:?}");
            }
        }
        panic!("no rest after 60 rounds: {:?}", self.decide());
    }

    /// What holds once everything has settled: releases and pointer say the same.
    pub fn check_settled(&self) {
        let active = self.pointer().active;
        for (name, release) in &self.releases {
            let here = active.as_ref().is_some_and(|active| &active.release == name);
            let view = ReleaseView::of(release);
            assert_eq!(view.is_active(), here, "{name} against the pointer {active:?}");
            let asks = self.annotation(name, annotations::ACTIVE).is_some_and(|text| text == "true");
            assert_eq!(asks, here, "{name} asks to be active: {asks}");
            assert!(view.initialised, "{name} is not initialised");
            if let Some(active) = active.as_ref().filter(|_| here) {
                assert_eq!(active.uid, view.uid, "the pointer means another object named {name}");
                assert_eq!(view.activation.as_ref(), Some(&active.activation));
                assert_eq!((view.left, view.left_by_rollback), (None, None));
            }
        }
    }
}

/// An object as it comes back from the API server.
pub fn stored<T: serde::Serialize + serde::de::DeserializeOwned>(object: &T) -> T {
    serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap()
}
