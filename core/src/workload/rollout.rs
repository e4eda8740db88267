//! How far a workload's rollout is, by what its own controller says.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, DeploymentCondition, StatefulSet};
use serde_json::Value;

use super::object::WorkloadKind;
use super::ownership;

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutState {
    /// Under way; how far, for people.
    InProgress(String),
    /// Every wanted pod runs the current template and is available; no other pod is left.
    Finished,
    /// The workload's controller gave up; why, for people.
    Failed(String),
}

/// The state of a workload's rollout. Fails on an object that is none of its kind.
pub fn rollout(kind: WorkloadKind, object: &Value) -> serde_json::Result<RolloutState> {
    rollout_counted(kind, object, None)
}

/// The same with the number of ready pods of the current template, for whoever has counted them: a Deployment's status
/// counts pods of all templates together.
pub fn rollout_counted(
    kind: WorkloadKind,
    object: &Value,
    ready: Option<i32>,
) -> serde_json::Result<RolloutState> {
    Ok(match kind {
        WorkloadKind::Deployment => of_deployment(&serde_json::from_value(object.clone())?, ready),
        WorkloadKind::StatefulSet => of_stateful_set(&serde_json::from_value(object.clone())?),
        WorkloadKind::DaemonSet => of_daemon_set(&serde_json::from_value(object.clone())?),
        WorkloadKind::ConfigMap => RolloutState::Finished,
    })
}

fn unseen() -> RolloutState {
    RolloutState::InProgress("its controller has not seen the new template".to_owned())
}

fn pods(ready: i32, wanted: i32) -> RolloutState {
    RolloutState::InProgress(format!("{ready} of {wanted} pods ready"))
}

fn old_pods(count: i32) -> RolloutState {
    let (pods, are) = if count == 1 { ("pod", "is") } else { ("pods", "are") };
    RolloutState::InProgress(format!("{count} old {pods} {are} still there"))
}

fn of_deployment(deployment: &Deployment, ready: Option<i32>) -> RolloutState {
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return unseen();
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let (updated, all) = (status.updated_replicas.unwrap_or(0), status.replicas.unwrap_or(0));
    let available = status.available_replicas.unwrap_or(0);
    if updated >= wanted && all == updated && available >= wanted {
        return RolloutState::Finished;
    }
    // All other pods may be among the available ones.
    let ready = ready.unwrap_or_else(|| (available - (all - updated)).max(0));
    let exceeded = status.conditions.iter().flatten().find(|condition| {
        condition.type_.as_deref() == Some("Progressing")
            && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    });
    if let Some(condition) = exceeded.filter(|condition| !is_stale(deployment, condition)) {
        let why = condition.message.as_deref().unwrap_or("its progress deadline has passed");
        return RolloutState::Failed(format!("{ready} of {wanted} pods ready: {why}"));
    }
    if updated >= wanted && all > updated && available >= wanted {
        old_pods(all - updated)
    } else {
        pods(ready, wanted)
    }
}

/// Whether the condition is about an earlier template: it stays in the status until a pod of the new one makes progress.
fn is_stale(deployment: &Deployment, condition: &DeploymentCondition) -> bool {
    let fields = deployment.metadata.managed_fields.as_deref().unwrap_or_default();
    let written = ownership::last_write(WorkloadKind::Deployment, fields);
    match (written, &condition.last_update_time) {
        (Some(written), Some(updated)) => updated.0 <= written,
        (_, _) => false,
    }
}

fn of_stateful_set(set: &StatefulSet) -> RolloutState {
    let Some(status) = &set.status else { return unseen() };
    if status.observed_generation < set.metadata.generation {
        return unseen();
    }
    let wanted = set.spec.replicas.unwrap_or(1);
    let rolling = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    // Pods below the partition keep their template.
    let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0).clamp(0, wanted);
    let updated = status.updated_replicas.unwrap_or(0);
    let same = status.update_revision == status.current_revision;
    let (ready, available) = (status.ready_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
    let all_updated = same || updated >= wanted - partition;
    if all_updated && status.replicas == wanted && ready >= wanted && available >= wanted {
        return RolloutState::Finished;
    }
    pods(if same { ready } else { ready.min(updated) }, wanted)
}

fn of_daemon_set(set: &DaemonSet) -> RolloutState {
    let Some(status) = &set.status else { return unseen() };
    if status.observed_generation < set.metadata.generation {
        return unseen();
    }
    let wanted = status.desired_number_scheduled;
    let updated = status.updated_number_scheduled.unwrap_or(0);
    let available = status.number_available.unwrap_or(0);
    if updated >= wanted && available >= wanted {
        return RolloutState::Finished;
    }
    pods(available.min(updated), wanted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(kind: WorkloadKind, spec: &Value, status: &Value) -> RolloutState {
        let mut spec = spec.clone();
        for (key, value) in [("selector", json!({})), ("template", json!({})), ("serviceName", json!(""))] {
            spec[key] = value;
        }
        let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
        rollout(kind, &object).unwrap()
    }

    fn in_progress(text: &str) -> RolloutState {
        RolloutState::InProgress(text.to_owned())
    }

    #[test]
    fn deployments() {
        let three = json!({"replicas": 3});
        let unseen = in_progress("its controller has not seen the new template");
        for (status, expected) in [
            (json!({}), unseen.clone()),
            (
                json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                unseen,
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                RolloutState::Finished,
            ),
            (
                json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 2, "availableReplicas": 3}),
                in_progress("1 of 3 pods ready"),
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 1}),
                in_progress("1 of 3 pods ready"),
            ),
            (
                json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "availableReplicas": 4}),
                in_progress("1 old pod is still there"),
            ),
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 1, "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too slow"},
                ]}),
                RolloutState::Failed("1 of 3 pods ready: too slow".to_owned()),
            ),
            // It was too slow, and is done all the same.
            (
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
                ]}),
                RolloutState::Finished,
            ),
        ] {
            assert_eq!(state(WorkloadKind::Deployment, &three, &status), expected, "{status}");
        }
        let object = json!({
            "metadata": {"generation": 2}, "spec": {"replicas": 3, "selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 4, "updatedReplicas": 2, "availableReplicas": 3},
        });
        let counted = rollout_counted(WorkloadKind::Deployment, &object, Some(2)).unwrap();
        assert_eq!(counted, in_progress("2 of 3 pods ready"));
        assert_eq!(
            state(WorkloadKind::Deployment, &json!({"replicas": 0}), &json!({"observedGeneration": 2})),
            RolloutState::Finished
        );
    }

    /// The bad version was too slow; the good one has only just been written.
    #[test]
    fn the_deadline_of_an_earlier_template_is_none() {
        let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}});
        let object = |exceeded: &str| {
            json!({
                "metadata": {"generation": 2, "managedFields": [
                    {"manager": "kubectl", "operation": "Apply", "time": "2026-11-01T10:00:00Z", "fieldsV1": fields},
                    {"manager": "rollback-controller", "operation": "Update", "time": "2026-11-01T10:20:00Z",
                     "fieldsV1": {"f:metadata": {"f:annotations": {"f:theatre.gocardless.com/attempt-key": {}}}}},
                    {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
                     "time": "2026-11-01T10:40:00Z", "fieldsV1": {"f:status": {"f:replicas": {}}}},
                ]},
                "spec": {"replicas": 1, "selector": {}, "template": {}},
                "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 0, "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "slow", "lastUpdateTime": exceeded},
                ]},
            })
        };
        let state = |exceeded| rollout(WorkloadKind::Deployment, &object(exceeded)).unwrap();
        assert_eq!(state("2026-11-01T10:10:00Z"), in_progress("0 of 1 pods ready"));
        assert_eq!(state("2026-11-01T10:30:00Z"), RolloutState::Failed("0 of 1 pods ready: slow".to_owned()));
    }

    #[test]
    fn stateful_sets() {
        let three = json!({"replicas": 3});
        for (spec, status, expected) in [
            (
                &three,
                json!({"observedGeneration": 1, "replicas": 3}),
                in_progress("its controller has not seen the new template"),
            ),
            (
                &three,
                json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentRevision": "a", "updateRevision": "a"}),
                RolloutState::Finished,
            ),
            (
                &three,
                json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
                in_progress("1 of 3 pods ready"),
            ),
            (
                &json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
                json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
                RolloutState::Finished,
            ),
        ] {
            assert_eq!(state(WorkloadKind::StatefulSet, spec, &status), expected, "{status}");
        }
    }

    #[test]
    fn daemon_sets() {
        for (status, expected) in [
            (
                json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}),
                RolloutState::Finished,
            ),
            (
                json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2}),
                in_progress("1 of 2 pods ready"),
            ),
        ] {
            let mut status = status;
            for key in ["currentNumberScheduled", "numberMisscheduled", "numberReady"] {
                status[key] = json!(0);
            }
            assert_eq!(state(WorkloadKind::DaemonSet, &json!({}), &status), expected, "{status}");
        }
    }
}
