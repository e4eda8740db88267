//! The life of one pod on a simulated node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::behaviour::Behaviour;
use super::config::{Resolved, resolve};
use super::node::MANAGER;
use super::status::{self, Facts};

/// From the binding of a pod to its containers' start.
const START: Duration = Duration::from_millis(100);
/// From the request to end to the end.
const TERMINATION: Duration = Duration::from_millis(50);
/// How long a container of a job runs.
const WORK: Duration = Duration::from_millis(200);
/// How often a missing ConfigMap or Secret is looked for.
const RECHECK: Duration = Duration::from_millis(300);
/// After a failed request; the API server may be down on purpose.
const PAUSE: Duration = Duration::from_millis(500);
/// From crash to crash: longer each time, up to the last.
const CRASHES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(5)];

/// The next pod address of this process.
pub(super) type Addresses = Arc<AtomicU32>;

/// What comes next.
enum Next {
    /// Look again at this time, or when the pod changes.
    At(Instant),
    /// Look again when the pod changes.
    Change,
    /// The pod is gone.
    End,
}

struct Simulation {
    client: Client,
    pods: Api<Pod>,
    namespace: String,
    name: String,
    uid: String,
    facts: Facts,
    next_crash: Instant,
    work_done: Instant,
    /// What was written last, so that nothing is written twice.
    written: Option<Value>,
    mount_failure: Option<String>,
}

/// Plays one pod until it is gone, or until the other end of `changes` is dropped.
pub(super) async fn simulate(
    client: Client,
    host_ip: String,
    mut changes: Receiver<Pod>,
    addresses: Addresses,
) {
    let pod = changes.borrow().clone();
    let namespace = pod.namespace().unwrap_or_default();
    let now = Instant::now();
    let mut simulation = Simulation {
        pods: Api::namespaced(client.clone(), &namespace),
        client,
        namespace,
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        facts: Facts::of(&pod, host_ip, || address(&addresses), Timestamp::now()),
        next_crash: now + START + CRASHES[0],
        work_done: now + START + WORK,
        written: None,
        mount_failure: None,
    };
    // A pod that ran before these nodes were started goes on running.
    let mut wake = Next::At(if simulation.facts.resolved { now } else { now + START });
    loop {
        match wake {
            Next::End => return,
            Next::Change => {
                if changes.changed().await.is_err() {
                    return;
                }
            }
            Next::At(time) => tokio::select! {
                () = tokio::time::sleep_until(time) => {}
                news = changes.changed() => {
                    if news.is_err() {
                        return;
                    }
                    // Before its start a pod is only watched for its deletion.
                    if !simulation.facts.resolved && changes.borrow().metadata.deletion_timestamp.is_none() {
                        wake = Next::At(time);
                        continue;
                    }
                }
            },
        }
        let pod = changes.borrow_and_update().clone();
        wake = match simulation.step(&pod).await {
            Ok(next) => next,
            Err(kube::Error::Api(answer)) if answer.code == 404 => return,
            Err(_) => Next::At(Instant::now() + PAUSE),
        };
    }
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

fn address(addresses: &AtomicU32) -> String {
    // 10.64.0.0/10
    let number = addresses.fetch_add(1, Ordering::Relaxed) & 0x003f_ffff;
    format!("10.{}.{}.{}", 64 + (number >> 16), (number >> 8) & 0xff, number & 0xff)
}

impl Simulation {
    async fn step(&mut self, pod: &Pod) -> kube::Result<Next> {
        if pod.metadata.deletion_timestamp.is_some() {
            return self.end().await;
        }
        if status::finished(pod) {
            return Ok(Next::Change);
        }
        let waits = if self.facts.resolved { Resolved::default() } else { self.begin(pod).await? };
        let now = Instant::now();
        let crashes = status::has(pod, Behaviour::CrashLoop);
        if self.facts.resolved {
            self.facts.work_done = now >= self.work_done;
            if crashes && now >= self.next_crash {
                self.facts.restarts += 1;
                self.facts.crashed = Some(Timestamp::now());
                let pauses =
                    usize::try_from(self.facts.restarts).unwrap_or(usize::MAX).min(CRASHES.len() - 1);
                self.next_crash = now + CRASHES[pauses];
            }
        }
        let status = self.facts.status(pod, &waits, Timestamp::now());
        if self.written.as_ref() != Some(&status) {
            let patch = json!({ "metadata": { "uid": self.uid }, "status": status });
            self.pods.patch_status(&self.name, &parameters(), &Patch::Strategic(patch)).await?;
            self.written = Some(status);
        }
        Ok(if !waits.complete() {
            Next::At(now + RECHECK)
        } else if crashes {
            Next::At(self.next_crash)
        } else if status::is_job(pod) && !self.facts.work_done {
            Next::At(self.work_done)
        } else {
            Next::Change
        })
    }

    /// Reads what the pod refers to; when all is there, records it and lets the containers start.
    async fn begin(&mut self, pod: &Pod) -> kube::Result<Resolved> {
        let resolved = resolve(&self.client, &self.namespace, pod).await?;
        if resolved.complete() && !status::has(pod, Behaviour::ImageMissing) {
            let seen = json!(resolved.seen).to_string();
            let patch =
                json!({ "metadata": { "uid": self.uid, "annotations": { super::CONFIGMAPS_SEEN: seen } } });
            self.pods.patch(&self.name, &parameters(), &Patch::Merge(patch)).await?;
            let now = Instant::now();
            self.facts.start(Timestamp::now());
            self.next_crash = now + CRASHES[0];
            self.work_done = now + WORK;
        }
        if let Some(failure) = &resolved.volume
            && self.mount_failure.as_ref() != Some(failure)
        {
            self.report_mount_failure(pod, failure).await?;
            self.mount_failure = Some(failure.clone());
        }
        Ok(resolved)
    }

    async fn report_mount_failure(&self, pod: &Pod, failure: &str) -> kube::Result<()> {
        let now = super::node::seconds(Timestamp::now());
        let event: Event = serde_json::from_value(json!({
            "metadata": { "generateName": format!("{}.", self.name), "namespace": self.namespace },
            "involvedObject": pod.object_ref(&()),
            "type": "Warning",
            "reason": "FailedMount",
            "message": failure,
            "source": { "component": "kubelet" },
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }))
        .map_err(kube::Error::SerdeError)?;
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    }

    /// The containers end at once; then the pod may go.
    async fn end(&self) -> kube::Result<Next> {
        tokio::time::sleep(TERMINATION).await;
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None }),
            ..DeleteParams::default()
        };
        match self.pods.delete(&self.name, &parameters).await {
            Ok(_) => Ok(Next::End),
            // Another pod of the same name: this one is gone.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(Next::End),
            Err(error) => Err(error),
        }
    }
}
