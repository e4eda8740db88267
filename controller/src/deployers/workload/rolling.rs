//! The rollout of one restored workload: how far it is, what its pods say, and pods that stand in its way.

use k8s_openapi::api::apps::v1::{ControllerRevision, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use rollback_core::workload::pods::{self, Template};
use rollback_core::workload::rollout::{RolloutState, rollout};
use rollback_core::workload::stuck::stuck;
use serde_json::Value;

use super::item::called;
use super::objects::Objects;

/// A pod that is only slow is no trouble here: the rollback's deadline is for that.
const SLOW: SignedDuration = SignedDuration::from_hours(24 * 365);

/// The state of the rollout. Takes broken pods of an ordered StatefulSet out of its way.
pub(super) async fn rolling(
    objects: &Objects<'_>,
    object: &ObjectKey,
    live: &Value,
) -> Result<RolloutState, BackendError> {
    let unreadable = |error: serde_json::Error| {
        BackendError::new(ErrorClass::Invalid, format!("cannot read {}: {error}", called(object)))
    };
    let state = rollout(object.kind, live).map_err(unreadable)?;
    let (failed, text) = match state {
        RolloutState::Finished => return Ok(RolloutState::Finished),
        RolloutState::InProgress(text) => (false, text),
        RolloutState::Failed(text) => (true, text),
    };
    let pods: Vec<Pod> = objects.selected(live).await?;
    if object.kind == WorkloadKind::StatefulSet {
        let set = serde_json::from_value(live.clone()).map_err(unreadable)?;
        for pod in stuck(&set, &pods) {
            tracing::info!(
                namespace = objects.namespace(),
                pod = pod.name,
                "deleting a broken pod that {} waits for",
                called(object)
            );
            objects.delete_pod(&pod.name, &pod.uid).await?;
        }
    }
    let text = match template(objects, object.kind, live).await? {
        Some(template) => with_trouble(text, &template, &pods, Timestamp::now()),
        None => text,
    };
    Ok(if failed { RolloutState::Failed(text) } else { RolloutState::InProgress(text) })
}

/// Which pods run the template that rolls out.
async fn template(
    objects: &Objects<'_>,
    kind: WorkloadKind,
    live: &Value,
) -> Result<Option<Template>, BackendError> {
    Ok(match kind {
        WorkloadKind::Deployment => {
            Template::of_deployment(live, &objects.selected::<ReplicaSet>(live).await?)
        }
        WorkloadKind::StatefulSet => Template::of_stateful_set(live),
        WorkloadKind::DaemonSet => {
            Template::of_daemon_set(live, &objects.selected::<ControllerRevision>(live).await?)
        }
        WorkloadKind::ConfigMap => None,
    })
}

/// The reason that a person needs: which pod, which container, what state.
fn with_trouble(text: String, template: &Template, pods: &[Pod], now: Timestamp) -> String {
    let own = pods.iter().filter(|pod| template.runs(pod));
    let trouble = own.filter_map(|pod| pods::trouble(pod, SLOW)).find(|trouble| trouble.counts_from <= now);
    match trouble {
        Some(trouble) => format!("{text}; {}", trouble.text),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_the_pod_that_cannot_start() {
        let pod = |name: &str, owner: &str, reason: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {
                    "name": name, "uid": name, "creationTimestamp": "2026-11-01T10:00:00Z",
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true}],
                },
                "status": {"phase": "Pending", "containerStatuses": [{
                    "name": "app", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": reason}},
                }]},
            }))
            .unwrap()
        };
        let template = Template { owner: "new".into(), revision: None };
        let text = |pods: &[Pod]| {
            with_trouble("0 of 1 pods ready".into(), &template, pods, "2026-11-01T11:00:00Z".parse().unwrap())
        };
        let said = text(&[pod("web-1", "old", "CrashLoopBackOff"), pod("web-2", "new", "ImagePullBackOff")]);
        assert!(
            said.starts_with("0 of 1 pods ready; pod web-2 ") && said.contains("ImagePullBackOff"),
            "{said}"
        );
        assert_eq!(text(&[pod("web-1", "old", "ImagePullBackOff")]), "0 of 1 pods ready");
        assert_eq!(text(&[pod("web-2", "new", "ContainerCreating")]), "0 of 1 pods ready");
    }
}
