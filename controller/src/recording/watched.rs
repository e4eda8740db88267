//! What the watches keep of a target's objects: the id of the content and what its own controller says of its rollout,
//! not the content itself.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::Resource;
use kube::core::ObjectMeta;
use kube::runtime::watcher;
use rollback_api::labels;
use rollback_core::workload::content;
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::context::Context;
use crate::index::{self, Index};
use crate::target::TargetKey;
use crate::watch::Watches;

/// A kind whose objects can belong to a target.
trait Kind: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static {
    const KIND: WorkloadKind;
}

impl Kind for ConfigMap {
    const KIND: WorkloadKind = WorkloadKind::ConfigMap;
}
impl Kind for DaemonSet {
    const KIND: WorkloadKind = WorkloadKind::DaemonSet;
}
impl Kind for Deployment {
    const KIND: WorkloadKind = WorkloadKind::Deployment;
}
impl Kind for StatefulSet {
    const KIND: WorkloadKind = WorkloadKind::StatefulSet;
}

/// What is kept of one object.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) key: ObjectKey,
    /// The id of its content. Taken of the object as the server sent it: a typed one may lack fields that are new.
    pub(super) id: String,
    /// The object without its content; nothing of a ConfigMap.
    pub(super) object: Value,
    metadata: ObjectMeta,
}

impl Seen {
    /// Whether it is on its way out and does not belong to the target any more.
    fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its own controller has seen its latest template.
    pub(super) fn is_observed(&self) -> bool {
        match self.key.kind {
            WorkloadKind::ConfigMap => true,
            WorkloadKind::DaemonSet | WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
                let number = |value: &Value| value.as_i64().unwrap_or_default();
                let observed = number(&self.object["status"]["observedGeneration"]);
                observed >= number(&self.object["metadata"]["generation"])
            }
        }
    }

    /// For events about it.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.key.kind.api_version().to_owned()),
            kind: Some(self.key.kind.as_str().to_owned()),
            name: self.metadata.name.clone(),
            namespace: self.metadata.namespace.clone(),
            uid: self.metadata.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// An object of kind `K` as a watch reads it.
#[derive(Clone, Debug)]
struct Watched<K> {
    metadata: ObjectMeta,
    seen: Arc<Seen>,
    kind: PhantomData<K>,
}

impl<'de, K: Kind> Deserialize<'de> for Watched<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let id = content::id(K::KIND, &object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            // All but the Deployment controller's number of the newest ReplicaSet: they can be long.
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.retain(|name, _| name == "deployment.kubernetes.io/revision");
            }
        }
        let mut metadata: ObjectMeta =
            serde_json::from_value(object["metadata"].clone()).map_err(D::Error::custom)?;
        metadata.annotations = None;
        match K::KIND {
            WorkloadKind::ConfigMap => object = Value::Null,
            WorkloadKind::DaemonSet | WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
                if let Some(spec) = object["spec"].as_object_mut() {
                    spec.insert("template".to_owned(), json!({}));
                    spec.remove("volumeClaimTemplates");
                }
            }
        }
        let key = ObjectKey::new(K::KIND, metadata.name.clone().unwrap_or_default());
        let seen = Arc::new(Seen { key, id, object, metadata: metadata.clone() });
        Ok(Self { metadata, seen, kind: PhantomData })
    }
}

impl<K: Kind> Resource for Watched<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// All labelled objects, by target.
pub(super) struct Objects {
    configmaps: Arc<Index<Watched<ConfigMap>>>,
    daemon_sets: Arc<Index<Watched<DaemonSet>>>,
    deployments: Arc<Index<Watched<Deployment>>>,
    stateful_sets: Arc<Index<Watched<StatefulSet>>>,
}

impl Objects {
    pub(super) fn new() -> Self {
        Self {
            configmaps: Index::new(index::by_label),
            daemon_sets: Index::new(index::by_label),
            deployments: Index::new(index::by_label),
            stateful_sets: Index::new(index::by_label),
        }
    }

    /// Begins to watch. Every change wakes the recording, and whoever deploys these objects.
    pub(super) fn watch(&self, ctx: &Arc<Context>, watches: &mut Watches) {
        watch("configmaps", &self.configmaps, ctx, watches);
        watch("daemonsets", &self.daemon_sets, ctx, watches);
        watch("deployments", &self.deployments, ctx, watches);
        watch("statefulsets", &self.stateful_sets, ctx, watches);
    }

    /// The objects of a target in the order of their keys.
    pub(super) fn of(&self, key: &TargetKey) -> Vec<Arc<Seen>> {
        let mut all = Vec::new();
        collect(&self.configmaps, key, &mut all);
        collect(&self.daemon_sets, key, &mut all);
        collect(&self.deployments, key, &mut all);
        collect(&self.stateful_sets, key, &mut all);
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Shows an object as a watch would, for tests.
    #[cfg(test)]
    pub(super) fn show(&self, object: &Value, gone: bool) {
        fn one<K: Kind>(index: &Index<Watched<K>>, object: &Value, gone: bool) {
            let object = serde_json::from_value(object.clone()).unwrap();
            index.apply(if gone { watcher::Event::Delete(object) } else { watcher::Event::Apply(object) });
        }
        match object["kind"].as_str().unwrap() {
            "ConfigMap" => one(&self.configmaps, object, gone),
            "DaemonSet" => one(&self.daemon_sets, object, gone),
            "Deployment" => one(&self.deployments, object, gone),
            "StatefulSet" => one(&self.stateful_sets, object, gone),
            other => panic!("{other} cannot belong to a target"),
        }
    }
}

fn watch<K: Kind>(
    name: &'static str,
    index: &Arc<Index<Watched<K>>>,
    ctx: &Arc<Context>,
    watches: &mut Watches,
) {
    let ctx = Arc::clone(ctx);
    let changed = move |key: &TargetKey| {
        ctx.queues.recording.now(key);
        ctx.wake(key);
    };
    watches.add(name, watcher::Config::default().labels(labels::TARGET), Arc::clone(index), |_| {}, changed);
}

fn collect<K: Kind>(index: &Index<Watched<K>>, key: &TargetKey, all: &mut Vec<Arc<Seen>>) {
    let seen = index.of(key).into_iter().map(|watched| Arc::clone(&watched.seen));
    all.extend(seen.filter(|seen| !seen.is_leaving()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched<K: Kind>(object: &Value) -> Watched<K> {
        serde_json::from_value(object.clone()).unwrap()
    }

    #[test]
    fn keeps_the_id_and_the_status_and_no_content() {
        let object = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "generation": 2, "labels": {labels::TARGET: "web"},
                "annotations": {"deployment.kubernetes.io/revision": "3", "long": "x"},
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "app", "fieldOfTheFuture": 1}]}}},
            "status": {"observedGeneration": 1},
        });
        let watched = watched::<Deployment>(&object);
        assert_eq!(watched.seen.id, content::id(WorkloadKind::Deployment, &object));
        assert_eq!(watched.seen.key.to_string(), "deployment/web");
        assert_eq!(index::by_label(&watched), Some(TargetKey::new("shop", "web")));
        let kept = &watched.seen.object;
        assert_eq!(kept["metadata"]["annotations"], json!({"deployment.kubernetes.io/revision": "3"}));
        assert!(kept["metadata"]["managedFields"].is_null());
        assert_eq!(kept["spec"], json!({"replicas": 2, "template": {}}));
        assert!(!watched.seen.is_observed());
    }

    #[test]
    fn a_configmap_is_only_its_id() {
        let object = json!({"metadata": {"name": "c", "namespace": "shop"}, "data": {"a": "1"}});
        let watched = watched::<ConfigMap>(&object);
        assert_eq!(watched.seen.id, content::id(WorkloadKind::ConfigMap, &object));
        assert_eq!(watched.seen.object, Value::Null);
        assert!(watched.seen.is_observed());
        assert_eq!(watched.seen.reference().kind.as_deref(), Some("ConfigMap"));
    }

    #[test]
    fn an_object_that_goes_away_is_gone() {
        let objects = Objects::new();
        let mut object = json!({"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop", "labels": {labels::TARGET: "web"}}});
        objects.show(&object, false);
        let key = TargetKey::new("shop", "web");
        assert_eq!(objects.of(&key).len(), 1);
        object["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z");
        objects.show(&object, false);
        assert!(objects.of(&key).is_empty());
    }
}
