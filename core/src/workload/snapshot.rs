//! What a release keeps of its objects: a ControllerRevision for each of its revisions (rule 17).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Resource as _;
use kube::core::ObjectMeta;
use rollback_api::{Release, Revision, labels};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content;
use super::object::{ObjectKey, WorkloadKind};
use super::set::{self, Set};
use crate::signature::sha256_hex;

/// Most bytes of one snapshot; etcd takes about 1.5 MB an object.
pub const MAX_BYTES: usize = 1_200_000;

/// The objects of one revision, whole but for their status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The objects that the revision consists of.
    pub objects: Vec<Value>,
    /// ConfigMaps that their templates refer to and that do not belong to the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Value>,
}

/// A snapshot that cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Too big to store.
    #[error(
        "{revision} takes {bytes} bytes, more than the {MAX_BYTES} that can be kept of it; split its ConfigMap, or take it out of the target"
    )]
    TooBig {
        /// Name of the revision.
        revision: String,
        /// Its size.
        bytes: usize,
    },
    /// Not JSON of ours.
    #[error("ControllerRevision {name} is not a readable snapshot: {why}")]
    Unreadable {
        /// Name of the ControllerRevision.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The content is not that of the revision.
    #[error(
        "ControllerRevision {name} does not hold what was recorded as {revision}: its content hashes to {found}, not {expected}; roll back to another release"
    )]
    Altered {
        /// Name of the ControllerRevision.
        name: String,
        /// Name of the revision.
        revision: String,
        /// Hash of what is there.
        found: String,
        /// The revision's id.
        expected: String,
    },
}

/// A revision and what is kept of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// As the release names it.
    pub revision: Revision,
    /// What is kept.
    pub snapshot: Snapshot,
}

/// The revisions of some objects and what is kept of each, in the order of their names. `references` says which
/// ConfigMaps are kept beside an object.
pub fn record(
    objects: &[(ObjectKey, Value)],
    references: impl Fn(&ObjectKey) -> Vec<Value>,
) -> Vec<Recorded> {
    let by_key: BTreeMap<&ObjectKey, &Value> = objects.iter().map(|(key, object)| (key, object)).collect();
    let ids: Set =
        by_key.iter().map(|(key, object)| ((*key).clone(), content::id(key.kind, object))).collect();
    let recorded = set::revisions(&ids).into_iter().map(|(revision, keys)| {
        let mut kept: Vec<Value> = Vec::new();
        for configmap in keys.iter().flat_map(&references) {
            let configmap = whole(WorkloadKind::ConfigMap, &configmap);
            if !kept.iter().any(|other| other["metadata"]["name"] == configmap["metadata"]["name"]) {
                kept.push(configmap);
            }
        }
        let objects =
            keys.iter().filter_map(|key| Some(whole(key.kind, by_key.get(key).copied()?))).collect();
        Recorded { revision, snapshot: Snapshot { objects, references: kept } }
    });
    recorded.collect()
}

/// The object as it is kept: without status, with the kind that a list leaves out.
fn whole(kind: WorkloadKind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.as_str().into());
    }
    object
}

impl Snapshot {
    /// The objects with their keys. One of an unknown kind is left out; [`Snapshot::parse`] refuses such a snapshot.
    pub fn keyed(&self) -> Vec<(ObjectKey, &Value)> {
        let keyed = self.objects.iter().filter_map(|object| {
            let kind = WorkloadKind::ALL.iter().find(|kind| object["kind"] == kind.as_str())?;
            Some((ObjectKey::new(*kind, object["metadata"]["name"].as_str()?), object))
        });
        keyed.collect()
    }

    /// The id of a revision of that name with this content.
    fn id(&self, revision: &str) -> String {
        let keyed = self.keyed();
        match keyed.as_slice() {
            [(key, object)] if key.to_string() == revision => content::id(key.kind, object),
            all => set::aggregate(
                &all.iter().map(|(key, object)| (key.clone(), content::id(key.kind, object))).collect(),
            ),
        }
    }

    /// The ControllerRevision that holds this for a release. Owned by the release as its controller and without the
    /// labels of pods, so that no StatefulSet adopts it.
    pub fn to_object(
        &self,
        release: &Release,
        revision: &Revision,
    ) -> Result<ControllerRevision, SnapshotError> {
        let name = release.metadata.name.as_deref().unwrap_or_default();
        let error = |why: String| SnapshotError::Unreadable { name: object_name(name, revision), why };
        let data = serde_json::to_value(self).map_err(|json| error(json.to_string()))?;
        let bytes = data.to_string().len();
        if bytes > MAX_BYTES {
            return Err(SnapshotError::TooBig { revision: revision.name.clone(), bytes });
        }
        Ok(ControllerRevision {
            metadata: ObjectMeta {
                name: Some(object_name(name, revision)),
                namespace: release.metadata.namespace.clone(),
                labels: Some([(labels::COMPONENT.to_owned(), labels::COMPONENT_SNAPSHOT.to_owned())].into()),
                owner_references: Some(vec![OwnerReference {
                    api_version: Release::api_version(&()).into_owned(),
                    kind: Release::kind(&()).into_owned(),
                    name: name.to_owned(),
                    uid: release.metadata.uid.clone().unwrap_or_default(),
                    controller: Some(true),
                    block_owner_deletion: None,
                }]),
                ..ObjectMeta::default()
            },
            data: RawExtension(data),
            revision: Some(1),
        })
    }

    /// Reads a snapshot and verifies that it holds the revision's content.
    pub fn parse(revision: &Revision, object: &ControllerRevision) -> Result<Self, SnapshotError> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let snapshot: Self = serde_json::from_value(object.data.0.clone())
            .map_err(|error| SnapshotError::Unreadable { name: name.clone(), why: error.to_string() })?;
        let keys: BTreeSet<ObjectKey> = snapshot.keyed().into_iter().map(|(key, _)| key).collect();
        if keys.len() != snapshot.objects.len() {
            let why = "it holds an object twice, without a name or of an unknown kind".to_owned();
            return Err(SnapshotError::Unreadable { name, why });
        }
        let found = snapshot.id(&revision.name);
        if found != revision.id {
            let (revision, expected) = (revision.name.clone(), revision.id.clone());
            return Err(SnapshotError::Altered { name, revision, found, expected });
        }
        Ok(snapshot)
    }
}

/// The name of the ControllerRevision that holds a revision of a release.
pub fn object_name(release: &str, revision: &Revision) -> String {
    format!("{release}-{}", &sha256_hex(format!("{}\n{}", revision.name, revision.id).as_bytes())[..10])
}

#[cfg(test)]
mod tests {
    use rollback_api::{ReleaseConfig, ReleaseFields};
    use serde_json::json;

    use super::super::set::{CONFIG, WORKLOADS};
    use super::*;

    fn object(text: &str, content: &str) -> (ObjectKey, Value) {
        let key: ObjectKey = text.parse().unwrap();
        let object = match key.kind {
            WorkloadKind::ConfigMap => json!({"metadata": {"name": key.name}, "data": {"a": content}}),
            WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
                json!({"metadata": {"name": key.name}, "spec": {"template": {"spec": {"x": content}}}, "status": {"replicas": 1}})
            }
        };
        (key, object)
    }

    fn release() -> Release {
        let mut release = Release::new("web-1", ReleaseFields { config: ReleaseConfig::default() });
        release.metadata.uid = Some("uid".into());
        release
    }

    #[test]
    fn kept_and_read_again() {
        let objects = [object("deployment/web", "1"), object("configmap/c", "1")];
        let beside = json!({"metadata": {"name": "shared"}, "data": {"x": "y"}});
        let recorded = record(&objects, |key| match key.kind {
            WorkloadKind::Deployment => vec![beside.clone(), beside.clone()],
            WorkloadKind::ConfigMap | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => Vec::new(),
        });
        let names: Vec<&str> = recorded.iter().map(|recorded| recorded.revision.name.as_str()).collect();
        assert_eq!(names, ["configmap/c", "deployment/web"]);
        assert_eq!(recorded[1].snapshot.references.len(), 1);
        assert_eq!(recorded[1].snapshot.objects[0]["kind"], "Deployment");
        assert!(recorded[1].snapshot.objects[0]["status"].is_null());
        for Recorded { revision, snapshot } in recorded {
            let stored = snapshot.to_object(&release(), &revision).unwrap();
            assert_eq!(stored.metadata.name, Some(object_name("web-1", &revision)));
            assert_eq!(Snapshot::parse(&revision, &stored), Ok(snapshot));
            let other = Revision { id: "x".into(), ..revision };
            assert!(matches!(Snapshot::parse(&other, &stored), Err(SnapshotError::Altered { .. })));
        }
    }

    #[test]
    fn a_big_target_has_two_revisions() {
        let mut objects: Vec<_> = (0..10).map(|n| object(&format!("deployment/web-{n}"), "1")).collect();
        assert_eq!(record(&objects, |_| Vec::new()).len(), 10);
        objects.push(object("configmap/c", "1"));
        let recorded = record(&objects, |_| Vec::new());
        let names: Vec<&str> = recorded.iter().map(|recorded| recorded.revision.name.as_str()).collect();
        assert_eq!(names, [CONFIG, WORKLOADS]);
        assert_eq!(recorded[1].snapshot.objects.len(), 10);
        // Which object has which content counts.
        let before = recorded[1].revision.id.clone();
        objects[3] = object("deployment/web-3", "2");
        assert_ne!(record(&objects, |_| Vec::new())[1].revision.id, before);
        objects.reverse();
        let stored = recorded[1].snapshot.to_object(&release(), &recorded[1].revision).unwrap();
        assert_eq!(Snapshot::parse(&recorded[1].revision, &stored).as_ref(), Ok(&recorded[1].snapshot));
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        let revision = Revision { name: "deployment/web".into(), id: "x".into(), ..Revision::default() };
        for data in [
            json!(null),
            json!({"objects": 1}),
            json!({"objects": [{"kind": "Secret"}]}),
            json!({"objects": [{"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}, {"kind": "ConfigMap", "metadata": {"name": "a"}}]}),
        ] {
            let stored = ControllerRevision { data: RawExtension(data), ..ControllerRevision::default() };
            assert!(matches!(Snapshot::parse(&revision, &stored), Err(SnapshotError::Unreadable { .. })));
        }
        let big = record(&[object("configmap/c", &"x".repeat(MAX_BYTES))], |_| Vec::new());
        let error = big[0].snapshot.to_object(&release(), &big[0].revision).unwrap_err();
        assert!(matches!(error, SnapshotError::TooBig { .. }), "{error}");
    }
}
