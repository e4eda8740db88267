//! Which pods run a workload's current template, and what is wrong with one of them.

use k8s_openapi::api::apps::v1::{ControllerRevision, ReplicaSet};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How long a container may lack its image or its configuration: what it refers to may be created right after it.
pub const GRACE: SignedDuration = SignedDuration::from_secs(10);
/// From this many restarts on, a container that ends with an error crashes in a loop: one restart can be an accident.
pub const RESTARTS: i32 = 2;
/// What the node says of a container that cannot start as its template says.
const CANNOT_START: &[&str] = &[
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];
const REVISION_HASH: &str = "controller-revision-hash";
const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";

/// How the pods of a workload's current template are told from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// UID of the object that controls them.
    pub owner: String,
    /// Value of their label `controller-revision-hash`, where pods of several templates have one owner.
    pub revision: Option<String>,
}

impl Template {
    /// Of a Deployment: its newest ReplicaSet controls them. `None` until its controller has made that one.
    pub fn of_deployment(deployment: &Value, sets: &[ReplicaSet]) -> Option<Self> {
        let newest = deployment["metadata"]["annotations"][DEPLOYMENT_REVISION].as_str()?;
        let owner = deployment["metadata"]["uid"].as_str()?;
        let set = sets.iter().find(|set| {
            let annotations = set.metadata.annotations.as_ref();
            is_controlled(&set.metadata, owner)
                && annotations.and_then(|all| all.get(DEPLOYMENT_REVISION)).is_some_and(|it| it == newest)
        })?;
        Some(Self { owner: set.metadata.uid.clone()?, revision: None })
    }

    /// Of a StatefulSet: it names the revision itself.
    pub fn of_stateful_set(set: &Value) -> Option<Self> {
        let revision = set["status"]["updateRevision"].as_str()?;
        Some(Self { owner: set["metadata"]["uid"].as_str()?.to_owned(), revision: Some(revision.to_owned()) })
    }

    /// Of a DaemonSet: its newest ControllerRevision has the label.
    pub fn of_daemon_set(set: &Value, revisions: &[ControllerRevision]) -> Option<Self> {
        let owner = set["metadata"]["uid"].as_str()?;
        let own = revisions.iter().filter(|revision| is_controlled(&revision.metadata, owner));
        let newest = own.max_by_key(|revision| revision.revision)?;
        let revision = newest.metadata.labels.as_ref()?.get(REVISION_HASH)?.clone();
        Some(Self { owner: owner.to_owned(), revision: Some(revision) })
    }

    /// Whether the pod runs it. One that is going away or has ended does not count.
    pub fn runs(&self, pod: &Pod) -> bool {
        let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION_HASH));
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        is_controlled(&pod.metadata, &self.owner)
            && pod.metadata.deletion_timestamp.is_none()
            && self.revision.as_ref().is_none_or(|revision| label == Some(revision))
            && phase != Some("Failed")
            && phase != Some("Succeeded")
    }
}

fn is_controlled(metadata: &ObjectMeta, owner: &str) -> bool {
    let owners = metadata.owner_references.iter().flatten();
    owners.into_iter().any(|reference| reference.controller == Some(true) && reference.uid == owner)
}

/// What is wrong with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For people: which pod, which container, what state.
    pub text: String,
    /// From when on it counts against the release.
    pub counts_from: Timestamp,
}

/// Whether the pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// What is wrong with a pod that is not ready: the worst first, `None` for a ready one. A pod that only takes too long
/// counts `failure_after` it was ready last, or was created.
pub fn trouble(pod: &Pod, failure_after: SignedDuration) -> Option<Trouble> {
    if is_ready(pod) {
        return None;
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let created = time(pod.metadata.creation_timestamp.as_ref());
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let containers: Vec<&ContainerStatus> = containers.collect();
    if let Some(crash) = containers.iter().find_map(|container| crash(container)) {
        return Some(Trouble { text: format!("pod {name} {crash}"), counts_from: Timestamp::UNIX_EPOCH });
    }
    if let Some((stuck, since)) = containers.iter().find_map(|container| cannot_start(container)) {
        let counts_from = after(since.max(created), GRACE);
        return Some(Trouble { text: format!("pod {name} {stuck}"), counts_from });
    }
    let since = condition(pod, "Ready").map_or(created, |ready| time(ready.last_transition_time.as_ref()));
    let state = unready(pod, &containers);
    Some(Trouble {
        text: format!("pod {name} {state}"),
        counts_from: after(since.max(created), failure_after),
    })
}

/// A container that crashes in a loop.
fn crash(container: &ContainerStatus) -> Option<String> {
    if container.restart_count < RESTARTS || container.ready {
        return None;
    }
    let state = container.state.clone().unwrap_or_default();
    let waits = state.waiting.and_then(|waiting| waiting.reason);
    let ended = state.terminated.or_else(|| container.last_state.clone().unwrap_or_default().terminated);
    let code = ended.as_ref().map(|ended| ended.exit_code);
    let failed = code.is_some_and(|code| code != 0);
    let word = match waits.as_deref() {
        Some("CrashLoopBackOff") => "CrashLoopBackOff".to_owned(),
        // Between two starts. Something else that it waits for says more.
        None if failed => {
            let reason = ended.as_ref().and_then(|ended| ended.reason.clone());
            reason.unwrap_or_else(|| "Error".to_owned())
        }
        Some(_) | None => return None,
    };
    let code = code.map(|code| format!("exit code {code}, ")).unwrap_or_default();
    Some(format!("container {}: {word} ({code}{} restarts)", container.name, container.restart_count))
}

/// A container that the node cannot start, and since when.
fn cannot_start(container: &ContainerStatus) -> Option<(String, Timestamp)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| CANNOT_START.contains(reason))?;
    let mut text = format!("container {}: {reason}", container.name);
    if let Some(message) = waiting.message.as_deref().filter(|message| !message.is_empty()) {
        text = format!("{text} ({message})");
    }
    let ended = container.last_state.clone().unwrap_or_default().terminated;
    Some((text, time(ended.and_then(|ended| ended.finished_at).as_ref())))
}

/// Why a pod is not ready, as far as that can be told.
fn unready(pod: &Pod, containers: &[&ContainerStatus]) -> String {
    if let Some(scheduled) = condition(pod, "PodScheduled").filter(|scheduled| scheduled.status == "False") {
        let reason = scheduled.reason.as_deref().unwrap_or("not scheduled");
        return match scheduled.message.as_deref() {
            Some(message) => format!("is not scheduled: {reason} ({message})"),
            None => format!("is not scheduled: {reason}"),
        };
    }
    let unready = containers.iter().find_map(|container| {
        let state = container.state.clone().unwrap_or_default();
        let what = match (state.waiting, state.running) {
            (Some(waiting), _) => waiting.reason.unwrap_or_else(|| "waiting".to_owned()),
            (None, Some(_)) => "running".to_owned(),
            // An init container that is done, or one that is about to be started again.
            (None, None) => return None,
        };
        (!container.ready).then(|| format!("container {}: {what}, not ready", container.name))
    });
    unready.unwrap_or_else(|| "is not ready".to_owned())
}

fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

fn time(time: Option<&Time>) -> Timestamp {
    time.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn after(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.checked_add(wait).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(uid: &str, by: &str, more: &Value) -> Value {
        let mut metadata = json!({
            "name": uid, "uid": uid,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "X", "name": by, "uid": by, "controller": true}],
        });
        for (key, value) in more.as_object().unwrap() {
            metadata[key] = value.clone();
        }
        metadata
    }

    fn replica_set(uid: &str, by: &str, revision: &str) -> ReplicaSet {
        let metadata = owned(uid, by, &json!({"annotations": {DEPLOYMENT_REVISION: revision}}));
        serde_json::from_value(json!({"metadata": metadata, "spec": {"selector": {}}})).unwrap()
    }

    fn pod(by: &str, hash: Option<&str>, more: &Value, phase: &str) -> Pod {
        let mut metadata = owned("p", by, more);
        metadata["labels"] = json!({REVISION_HASH: hash});
        if hash.is_none() {
            metadata["labels"] = json!({});
        }
        serde_json::from_value(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
    }

    #[test]
    fn a_deployments_template_is_its_newest_replica_set() {
        let deployment = json!({"metadata": {"uid": "d", "annotations": {DEPLOYMENT_REVISION: "7"}}});
        // A rollback gives an old ReplicaSet the newest number, so neither age nor order says anything.
        let sets =
            [replica_set("old", "d", "6"), replica_set("new", "d", "7"), replica_set("x", "other", "7")];
        let template = Template::of_deployment(&deployment, &sets).unwrap();
        assert_eq!(template, Template { owner: "new".into(), revision: None });
        assert!(template.runs(&pod("new", None, &json!({}), "Running")));
        assert!(!template.runs(&pod("old", None, &json!({}), "Running")));
        assert_eq!(Template::of_deployment(&deployment, &sets[..1]), None, "not made yet");
        assert_eq!(Template::of_deployment(&json!({"metadata": {"uid": "d"}}), &sets), None);
    }

    #[test]
    fn sets_tell_templates_by_the_revision_label() {
        let set = json!({"metadata": {"uid": "s"}, "status": {"updateRevision": "db-2"}});
        let template = Template::of_stateful_set(&set).unwrap();
        assert!(template.runs(&pod("s", Some("db-2"), &json!({}), "Pending")));
        assert!(!template.runs(&pod("s", Some("db-1"), &json!({}), "Running")));
        assert!(!template.runs(&pod("s", None, &json!({}), "Running")));
        assert!(!template.runs(&pod("other", Some("db-2"), &json!({}), "Running")));
        for (more, phase) in [
            (json!({"deletionTimestamp": "2026-11-01T10:00:00Z"}), "Running"),
            (json!({}), "Failed"),
            (json!({}), "Succeeded"),
        ] {
            assert!(!template.runs(&pod("s", Some("db-2"), &more, phase)), "{more} {phase}");
        }
        assert_eq!(Template::of_stateful_set(&json!({"metadata": {"uid": "s"}})), None);
    }

    #[test]
    fn a_daemon_sets_template_is_its_newest_revision() {
        let revision = |number: i64, hash: &str, by: &str| -> ControllerRevision {
            let metadata = owned(hash, by, &json!({"labels": {REVISION_HASH: hash}}));
            serde_json::from_value(json!({"metadata": metadata, "revision": number})).unwrap()
        };
        let set = json!({"metadata": {"uid": "d"}});
        let all =
            [revision(1, "a", "d"), revision(3, "b", "d"), revision(2, "c", "d"), revision(9, "x", "other")];
        let expected = Template { owner: "d".into(), revision: Some("b".into()) };
        assert_eq!(Template::of_daemon_set(&set, &all), Some(expected));
        assert_eq!(Template::of_daemon_set(&set, &[]), None);
    }
}
