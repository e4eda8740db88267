//! The one pointer object of a target (rule 2): a ConfigMap that says which release
//! is active, which Rollback holds the lock, and which manifests were carried out.
//! Written by compare-and-swap on its resourceVersion only.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;
use rollback_api::{Activation, Backend, labels};
use serde::{Deserialize, Serialize};

/// Most entries of the ledger; the oldest go first. 500 entries are about 150 KiB.
pub const LEDGER_CAP: usize = 500;

const TARGET: &str = "target";
const ACTIVE: &str = "active";
const DEPLOYING: &str = "deploying";
const LOCK: &str = "lock";
const LEDGER: &str = "ledger";

/// What a target's pointer says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pointer {
    /// The active release. `None`: none is known to be active.
    pub active: Option<ActiveRelease>,
    /// A release that is being deployed and never was active (rule 11): what is live differs from `active`.
    pub deploying: Option<Deploying>,
    /// The Rollback past its first persisted attempt, or one that was abandoned.
    pub lock: Option<Lock>,
    /// Outcomes, oldest first.
    pub ledger: Vec<LedgerEntry>,
}

/// The active release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveRelease {
    /// Its name.
    pub release: String,
    /// Its UID.
    pub uid: String,
    /// The event that made it active.
    pub activation: Activation,
    /// The release it replaced (name), if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// The release that the activation's Rollback left (name), if a Rollback made the activation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// A deployment that began and has not made its release active (rule 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deploying {
    /// Name of the release.
    pub release: String,
    /// Its UID.
    pub uid: String,
    /// When the deployment started.
    pub since: Time,
}

/// Who may deploy to the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Name of the Rollback.
    pub rollback: String,
    /// Its UID.
    pub uid: String,
    /// Name of the release it deploys.
    pub to: String,
    /// Name of the release it leaves.
    pub from: String,
    /// Set when the Rollback ended without proof that its deployment was stopped (rule 5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandoned>,
}

/// A deployment that may still be running although its Rollback ended (rule 5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandoned {
    /// Its key.
    pub key: String,
    /// The backend that runs it.
    pub backend: Backend,
    /// The backend's id, if it ever gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<String>,
    /// Since when.
    pub since: Time,
}

/// How one Rollback ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Name of the Rollback.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Hash of its spec as submitted; empty if it was never admitted.
    pub hash: String,
    /// Reason of its condition Succeeded.
    pub outcome: String,
    /// The release that was to be left.
    pub from: String,
    /// The release that was to be deployed.
    pub to: String,
    /// When it ended.
    pub time: Time,
}

/// A pointer that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "ConfigMap {name} is not a readable target pointer: data.{field}: {why}; correct it, or delete it to have it rebuilt from the Releases"
)]
pub struct PointerError {
    name: String,
    field: &'static str,
    why: String,
}

/// The name of a target's pointer: targets may be longer than an object name may be with a prefix.
pub fn object_name(target: &str) -> String {
    format!("rollback-target-{}", &crate::signature::sha256_hex(target.as_bytes())[..16])
}

impl Pointer {
    /// Reads a pointer object.
    pub fn parse(target: &str, object: &ConfigMap) -> Result<Self, PointerError> {
        let empty = BTreeMap::new();
        let data = object.data.as_ref().unwrap_or(&empty);
        let error = |field: &'static str, why: String| PointerError {
            name: object.metadata.name.clone().unwrap_or_default(),
            field,
            why,
        };
        match data.get(TARGET) {
            Some(stored) if stored == target => {}
            Some(stored) => return Err(error(TARGET, format!("is {stored:?}, expected {target:?}"))),
            None => return Err(error(TARGET, "is missing".to_owned())),
        }
        Ok(Self {
            active: field(data, ACTIVE).map_err(|why| error(ACTIVE, why))?,
            deploying: field(data, DEPLOYING).map_err(|why| error(DEPLOYING, why))?,
            lock: field(data, LOCK).map_err(|why| error(LOCK, why))?,
            ledger: field(data, LEDGER).map_err(|why| error(LEDGER, why))?.unwrap_or_default(),
        })
    }

    /// The object that says this. `base` is the object that was read, if there was one:
    /// its resourceVersion makes the write a compare-and-swap.
    pub fn to_object(&self, namespace: &str, target: &str, base: Option<&ConfigMap>) -> ConfigMap {
        let mut data = BTreeMap::from([(TARGET.to_owned(), target.to_owned())]);
        let mut put = |key: &str, value: Option<serde_json::Result<String>>| {
            // These types hold nothing that JSON cannot say, so there is no error to pass on.
            if let Some(Ok(text)) = value {
                data.insert(key.to_owned(), text);
            }
        };
        put(ACTIVE, self.active.as_ref().map(serde_json::to_string));
        put(DEPLOYING, self.deploying.as_ref().map(serde_json::to_string));
        put(LOCK, self.lock.as_ref().map(serde_json::to_string));
        put(LEDGER, (!self.ledger.is_empty()).then(|| serde_json::to_string(&self.ledger)));
        let mut metadata = base.map_or_else(ObjectMeta::default, |object| ObjectMeta {
            managed_fields: None,
            ..object.metadata.clone()
        });
        metadata.name = Some(object_name(target));
        metadata.namespace = Some(namespace.to_owned());
        metadata
            .labels
            .get_or_insert_default()
            .insert(labels::COMPONENT.to_owned(), labels::COMPONENT_POINTER.to_owned());
        ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
    }

    /// The target that an object with the pointer's label is about.
    pub fn target_of(object: &ConfigMap) -> Option<&str> {
        object.data.as_ref()?.get(TARGET).map(String::as_str)
    }

    /// Whether that release is the active one.
    pub fn is_active(&self, release: &str) -> bool {
        self.active.as_ref().is_some_and(|active| active.release == release)
    }

    /// Name of what is live: the release that is being deployed, else the active one.
    pub fn live(&self) -> Option<&str> {
        let deploying = self.deploying.as_ref().map(|deploying| deploying.release.as_str());
        deploying.or_else(|| self.active.as_ref().map(|active| active.release.as_str()))
    }

    /// The earlier outcome of the same manifest (name and hash) carried out as another object (rule 6).
    pub fn carried_out(&self, name: &str, hash: &str, uid: &str) -> Option<&LedgerEntry> {
        self.ledger
            .iter()
            .rev()
            .find(|entry| !hash.is_empty() && entry.name == name && entry.hash == hash && entry.uid != uid)
    }

    /// Whether the outcome of the Rollback with that UID is in the ledger.
    pub fn has_outcome(&self, uid: &str) -> bool {
        self.ledger.iter().any(|entry| entry.uid == uid)
    }

    /// Whether an outcome belongs into the ledger and is not there: older ones than a full ledger holds do not.
    pub fn wants(&self, entry: &LedgerEntry) -> bool {
        !self.has_outcome(&entry.uid)
            && (self.ledger.len() < LEDGER_CAP
                || self.ledger.first().is_some_and(|oldest| oldest.time < entry.time))
    }

    /// Adds an outcome, once for each UID, and drops the oldest ones above [`LEDGER_CAP`].
    pub fn record(&mut self, entry: LedgerEntry) {
        if self.wants(&entry) {
            let place = self.ledger.partition_point(|earlier| earlier.time <= entry.time);
            self.ledger.insert(place, entry);
        }
        let excess = self.ledger.len().saturating_sub(LEDGER_CAP);
        self.ledger.drain(..excess);
    }
}

fn field<T: serde::de::DeserializeOwned>(
    data: &BTreeMap<String, String>,
    key: &str,
) -> Result<Option<T>, String> {
    data.get(key).map(|text| serde_json::from_str(text).map_err(|error| error.to_string())).transpose()
}
