//! The status that a kubelet would report for a pod.

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::behaviour::Behaviour;
use super::config::Resolved;
use super::node::seconds;

/// What has happened to a pod so far.
pub(super) struct Facts {
    host_ip: String,
    ip: String,
    accepted: Timestamp,
    /// All that it refers to was there and its containers have started.
    pub(super) resolved: bool,
    started: Timestamp,
    /// Of each container that crashes.
    pub(super) restarts: i32,
    /// The last crash.
    pub(super) crashed: Option<Timestamp>,
    /// The containers of a job have had their time.
    pub(super) work_done: bool,
    finished: Option<Timestamp>,
    /// Whether its containers are ready, and since when that is so.
    ready: Option<(bool, Timestamp)>,
}

/// The state of one container.
#[derive(PartialEq, Eq)]
enum State {
    Waiting { reason: &'static str, message: Option<String> },
    Running { ready: bool },
    BackOff,
    Terminated { code: i32 },
}

/// Whether the pod's containers end by themselves.
pub(super) fn is_job(pod: &Pod) -> bool {
    matches!(restart_policy(pod), "Never" | "OnFailure")
}

/// Whether the pod has ended.
pub(super) fn finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether one of the pod's containers behaves so.
pub(super) fn has(pod: &Pod, behaviour: Behaviour) -> bool {
    containers(pod).iter().any(|container| Behaviour::of(image(container)) == behaviour)
}

impl Facts {
    /// Of a pod that is new to this node, or that ran on it before the node was started again.
    pub(super) fn of(pod: &Pod, host_ip: String, address: impl FnOnce() -> String, now: Timestamp) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let known = pod.annotations().contains_key(super::CONFIGMAPS_SEEN);
        let containers = status.container_statuses.unwrap_or_default();
        let running = containers
            .iter()
            .find_map(|container| container.state.as_ref()?.running.as_ref()?.started_at.as_ref());
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "ContainersReady");
        Self {
            host_ip,
            ip: status.pod_ip.unwrap_or_else(address),
            accepted: status.start_time.map_or(now, |time| time.0),
            resolved: known,
            started: running.map_or(now, |time| time.0),
            restarts: containers.iter().map(|container| container.restart_count).max().unwrap_or_default(),
            crashed: None,
            work_done: false,
            finished: None,
            ready: ready.map(|condition| {
                let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0);
                (condition.status == "True", since)
            }),
        }
    }

    /// The containers start.
    pub(super) fn start(&mut self, now: Timestamp) {
        self.resolved = true;
        self.started = now;
    }

    /// A strategic merge patch for the pod's status; the same as before when nothing has happened.
    pub(super) fn status(&mut self, pod: &Pod, waits: &Resolved, now: Timestamp) -> Value {
        if self.work_done && self.finished.is_none() {
            self.finished = Some(now);
        }
        let states: Vec<State> =
            containers(pod).iter().map(|container| self.state(pod, container, waits)).collect();
        let unready: Vec<&str> = containers(pod)
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state != State::Running { ready: true })
            .map(|(container, _)| container.name.as_str())
            .collect();
        let ready = unready.is_empty();
        let since = match self.ready {
            Some((before, since)) if before == ready => since,
            Some(_) | None => now,
        };
        self.ready = Some((ready, since));

        let phase = phase(&states);
        let condition = |kind: &str, status: bool, since: Timestamp| {
            json!({ "type": kind, "status": if status { "True" } else { "False" },
                    "lastTransitionTime": seconds(since), "reason": null, "message": null })
        };
        let readiness = |kind: &str| {
            let mut condition = condition(kind, ready, since);
            if matches!(phase, "Succeeded" | "Failed") {
                condition["reason"] = json!("PodCompleted");
            } else if !ready {
                condition["reason"] = json!("ContainersNotReady");
                condition["message"] =
                    json!(format!("containers with unready status: [{}]", unready.join(" ")));
            }
            condition
        };
        let statuses: Vec<Value> = containers(pod)
            .iter()
            .zip(&states)
            .map(|(container, state)| self.container_status(pod, container, state))
            .collect();
        json!({
            "phase": phase,
            "observedGeneration": pod.metadata.generation,
            "hostIP": self.host_ip,
            "hostIPs": [{ "ip": self.host_ip }],
            "podIP": self.ip,
            "podIPs": [{ "ip": self.ip }],
            "startTime": seconds(self.accepted),
            "conditions": [
                condition("PodReadyToStartContainers", true, self.accepted),
                condition("Initialized", self.resolved, self.started),
                readiness("Ready"),
                readiness("ContainersReady"),
            ],
            "initContainerStatuses": self.init_statuses(pod, waits),
            "containerStatuses": statuses,
        })
    }

    fn state(&self, pod: &Pod, container: &Container, waits: &Resolved) -> State {
        let behaviour = Behaviour::of(image(container));
        if waits.volume.is_some() {
            return creating();
        }
        if behaviour == Behaviour::ImageMissing {
            let message = format!("Back-off pulling image \"{}\": not found", image(container));
            return State::Waiting { reason: "ImagePullBackOff", message: Some(message) };
        }
        if let Some(problem) = waits.containers.get(&container.name) {
            return config_error(problem.clone());
        }
        if !self.resolved {
            return creating();
        }
        match behaviour {
            Behaviour::BadConfig => config_error("the tag of the image asks for this error".to_owned()),
            Behaviour::CrashLoop if self.work_done && restart_policy(pod) == "Never" => {
                State::Terminated { code: 1 }
            }
            Behaviour::CrashLoop if self.restarts > 0 => State::BackOff,
            Behaviour::CrashLoop | Behaviour::NeverReady => State::Running { ready: false },
            Behaviour::Runs if self.work_done && is_job(pod) => State::Terminated { code: 0 },
            Behaviour::Runs => State::Running { ready: true },
            // Never gets so far; said again so that a new behaviour cannot be forgotten here.
            Behaviour::ImageMissing => creating(),
        }
    }

    fn container_status(&self, pod: &Pod, container: &Container, state: &State) -> Value {
        let never_ran = matches!(state, State::Waiting { .. });
        let crash = json!({ "terminated": {
            "exitCode": 1, "reason": "Error",
            "startedAt": seconds(self.started),
            "finishedAt": seconds(self.crashed.unwrap_or(self.started)),
        } });
        let (state_now, last_state) = match state {
            State::Waiting { reason, message } => {
                (json!({ "waiting": { "reason": reason, "message": message } }), json!({}))
            }
            State::Running { .. } => {
                (json!({ "running": { "startedAt": seconds(self.started) } }), json!({}))
            }
            State::BackOff => {
                let message = format!(
                    "back-off 10s restarting failed container={} pod={}_{}({})",
                    container.name,
                    pod.name_any(),
                    pod.namespace().unwrap_or_default(),
                    pod.uid().unwrap_or_default()
                );
                (json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } }), crash)
            }
            State::Terminated { code } => (self.terminated(*code), json!({})),
        };
        json!({
            "name": container.name,
            "image": image(container),
            "imageID": if never_ran { String::new() } else { format!("rig://{}", image(container)) },
            "containerID": (!never_ran).then(|| format!("rig://{}/{}", pod.uid().unwrap_or_default(), container.name)),
            "ready": *state == State::Running { ready: true },
            "started": matches!(state, State::Running { .. }),
            "restartCount": if *state == State::BackOff { self.restarts } else { 0 },
            "state": state_now,
            "lastState": last_state,
        })
    }

    /// Init containers succeed at once; those that restart always (sidecars) run.
    fn init_statuses(&self, pod: &Pod, waits: &Resolved) -> Vec<Value> {
        let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        init.map(|container| {
            let state = if self.resolved {
                if container.restart_policy.as_deref() == Some("Always") {
                    State::Running { ready: true }
                } else {
                    State::Terminated { code: 0 }
                }
            } else if let Some(problem) = waits.containers.get(&container.name) {
                config_error(problem.clone())
            } else {
                creating()
            };
            let mut status = self.container_status(pod, container, &state);
            status["ready"] = json!(self.resolved);
            status
        })
        .collect()
    }

    fn terminated(&self, code: i32) -> Value {
        json!({ "terminated": {
            "exitCode": code,
            "reason": if code == 0 { "Completed" } else { "Error" },
            "startedAt": seconds(self.started),
            "finishedAt": seconds(self.finished.unwrap_or(self.started)),
        } })
    }
}

fn phase(states: &[State]) -> &'static str {
    if states.iter().any(|state| matches!(state, State::Waiting { .. })) {
        return "Pending";
    }
    let codes: Vec<i32> = states
        .iter()
        .filter_map(|state| match state {
            State::Terminated { code } => Some(*code),
            State::Waiting { .. } | State::Running { .. } | State::BackOff => None,
        })
        .collect();
    match (codes.len() == states.len(), codes.iter().all(|code| *code == 0)) {
        (false, _) => "Running",
        (true, true) => "Succeeded",
        (true, false) => "Failed",
    }
}

fn creating() -> State {
    State::Waiting { reason: "ContainerCreating", message: None }
}

fn config_error(message: String) -> State {
    State::Waiting { reason: "CreateContainerConfigError", message: Some(message) }
}

fn containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().map_or(&[], |spec| &spec.containers)
}

fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

fn restart_policy(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always")
}
