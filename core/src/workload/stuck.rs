//! Pods that keep an ordered StatefulSet from rolling out its restored template.
//!
//! A StatefulSet that starts its pods in order waits for a broken pod to become ready before it goes on, also when the
//! pod's template has been repaired meanwhile. The pod has to be deleted.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

const REVISION: &str = "controller-revision-hash";

/// A pod to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckPod {
    /// Its name.
    pub name: String,
    /// Its UID: only this one, not the next of that name.
    pub uid: String,
}

/// Pods of the set that are of another revision than the one that rolls out, and not ready. Ready ones are left to the
/// set's controller. None unless the set starts its pods in order and its controller has seen the restored template.
pub fn stuck(set: &StatefulSet, pods: &[Pod]) -> Vec<StuckPod> {
    let status = set.status.clone().unwrap_or_default();
    let ordered = set.spec.pod_management_policy.as_deref().unwrap_or("OrderedReady") == "OrderedReady";
    let seen = status.observed_generation.is_some() && status.observed_generation >= set.metadata.generation;
    let Some(revision) = status.update_revision.filter(|_| ordered && seen) else { return Vec::new() };
    let uid = set.metadata.uid.as_deref();
    let is_stuck = |pod: &&Pod| {
        let owned = pod
            .metadata
            .owner_references
            .iter()
            .flatten()
            .any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid);
        let labels = pod.metadata.labels.as_ref();
        let of = labels.and_then(|labels| labels.get(REVISION));
        owned
            && pod.metadata.deletion_timestamp.is_none()
            && of.is_some_and(|of| *of != revision)
            && !is_ready(pod)
    };
    let found = pods.iter().filter(is_stuck);
    found
        .filter_map(|pod| Some(StuckPod { name: pod.metadata.name.clone()?, uid: pod.metadata.uid.clone()? }))
        .collect()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(policy: Option<&str>, generation: i64) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "db", "uid": "set", "generation": generation},
            "spec": {"serviceName": "db", "selector": {}, "template": {}, "podManagementPolicy": policy},
            "status": {"replicas": 3, "observedGeneration": 2, "updateRevision": "db-a"},
        }))
        .unwrap()
    }

    fn pod(name: &str, revision: &str, ready: bool, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name, "uid": format!("uid-{name}"), "labels": {"controller-revision-hash": revision},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set", "controller": true}],
            },
            "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]},
        });
        for (key, value) in more.as_object().unwrap() {
            pod["metadata"][key] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn only_unready_pods_of_another_revision() {
        let pods = [
            pod("db-0", "db-b", true, &json!({})),
            pod("db-1", "db-a", false, &json!({})),
            pod("db-2", "db-b", false, &json!({})),
            pod("db-3", "db-b", false, &json!({"deletionTimestamp": "2026-11-01T10:00:00Z"})),
            pod("db-4", "db-b", false, &json!({"ownerReferences": []})),
            pod("db-5", "db-b", false, &json!({"labels": {}})),
        ];
        let expected = [StuckPod { name: "db-2".into(), uid: "uid-db-2".into() }];
        assert_eq!(stuck(&set(None, 2), &pods), expected);
        assert_eq!(stuck(&set(Some("OrderedReady"), 2), &pods), expected);
        assert_eq!(stuck(&set(Some("Parallel"), 2), &pods), []);
        assert_eq!(stuck(&set(None, 3), &pods), [], "the controller has not seen the restored template");
    }
}
