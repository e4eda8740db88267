//! The rollout of one restored workload: how far it is, what its pods say, and pods that stand in its way.

use k8s_openapi::api::apps::v1::{ControllerRevision, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use rollback_core::workload::pods::{self, Template};
use rollback_core::workload::rollout::{RolloutState, rollout, rollout_counted};
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
    if rollout(object.kind, live).map_err(unreadable)? == RolloutState::Finished {
        return Ok(RolloutState::Finished);
    }
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
    let template = template(objects, object.kind, live).await?;
    let own: Option<Vec<&Pod>> =
        template.map(|template| pods.iter().filter(|pod| template.runs(pod)).collect());
    let ready = own.as_ref().map(|own| own.iter().filter(|pod| pods::is_ready(pod)).count());
    let ready = ready.and_then(|ready| i32::try_from(ready).ok());
    let now = Timestamp::now();
    let said = |text, now| with_trouble(text, own.as_deref().unwrap_or_default(), now);
    Ok(match rollout_counted(object.kind, live, ready).map_err(unreadable)? {
        RolloutState::Finished => RolloutState::Finished,
        RolloutState::InProgress(text) => RolloutState::InProgress(said(text, now)),
        // Its controller gave up: what may have been a beginning is the reason.
        RolloutState::Failed(text) => {
            RolloutState::Failed(said(text, now.checked_add(pods::GRACE).unwrap_or(now)))
        }
    })
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
fn with_trouble(text: String, pods: &[&Pod], now: Timestamp) -> String {
    let mut troubles = pods.iter().filter_map(|pod| pods::trouble(pod, SLOW));
    let trouble = troubles.find(|trouble| trouble.counts_from <= now);
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
        let pod = |name: &str, reason: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": name, "creationTimestamp": "2026-11-01T10:00:00Z"},
                "status": {"phase": "Pending", "containerStatuses": [{
                    "name": "app", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"waiting": {"reason": reason}},
                }]},
            }))
            .unwrap()
        };
        let (slow, stuck) = (pod("web-1", "ContainerCreating"), pod("web-2", "ImagePullBackOff"));
        let text =
            |pods: &[&Pod], now: &str| with_trouble("0 of 2 pods ready".into(), pods, now.parse().unwrap());
        let said = text(&[&slow, &stuck], "2026-11-01T11:00:00Z");
        assert!(
            said.starts_with("0 of 2 pods ready; pod web-2 ") && said.contains("ImagePullBackOff"),
            "{said}"
        );
        assert_eq!(text(&[&slow], "2026-11-01T11:00:00Z"), "0 of 2 pods ready");
        assert_eq!(text(&[&stuck], "2026-11-01T10:00:01Z"), "0 of 2 pods ready", "it may yet come");
    }
}
