//! One simulated node: its registration, its heartbeat and the pods bound to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, TryFutureExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

use super::pod::{Addresses, simulate};
use crate::client;

/// Renewed four times in the lease's time, like a kubelet's.
const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;

/// After a failed write; the API server may be down on purpose.
const PAUSE: Duration = Duration::from_millis(500);

/// Whose fields these are.
pub(super) const MANAGER: &str = "rig-node";

/// Plays all nodes until the process is ended. Fails when the kubeconfig cannot be used; an API
/// server that is away is waited for.
pub async fn run(kubeconfig: &Path) -> Result<()> {
    let client = client::client(&client::config(kubeconfig).await?)?;
    let addresses = Arc::new(AtomicU32::new(first_address()));
    let mut nodes = JoinSet::new();
    for (index, name) in super::names().into_iter().enumerate() {
        let node = SimulatedNode { client: client.clone(), name, ip: format!("10.0.1.{}", index + 1) };
        nodes.spawn(node.clone().keep_alive());
        nodes.spawn(node.run_pods(Arc::clone(&addresses)));
    }
    while let Some(ended) = nodes.join_next().await {
        ended?;
    }
    Ok(())
}

/// Differs from run to run, so that nodes started again do not give the address of a pod that lives on.
fn first_address() -> u32 {
    u32::try_from(Timestamp::now().as_second().rem_euclid(1 << 14)).unwrap_or_default() << 8
}

#[derive(Clone)]
struct SimulatedNode {
    client: Client,
    name: String,
    ip: String,
}

impl SimulatedNode {
    /// Registers the node and renews its lease, for ever.
    async fn keep_alive(self) {
        loop {
            let alive = self.register().and_then(|()| self.renew_lease());
            let pause = if alive.await.is_ok() { HEARTBEAT } else { PAUSE };
            tokio::time::sleep(pause).await;
        }
    }

    async fn register(&self) -> kube::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let parameters = PatchParams::apply(MANAGER).force();
        let known = nodes.get_opt(&self.name).await?;
        if known.is_none() {
            let node = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": { "name": self.name, "labels": {
                    "kubernetes.io/hostname": self.name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                } },
            });
            nodes.patch(&self.name, &parameters, &Patch::Apply(node)).await?;
        }
        let now = Timestamp::now();
        let since = known.as_ref().and_then(ready_since).unwrap_or(now);
        let resources = json!({ "cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110" });
        let condition = |kind: &str, status: &str, reason: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": "simulated",
                "lastHeartbeatTime": seconds(now), "lastTransitionTime": seconds(since),
            })
        };
        let status = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name },
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "addresses": [
                    { "type": "InternalIP", "address": self.ip }, { "type": "Hostname", "address": self.name },
                ],
                "conditions": [
                    condition("Ready", "True", "KubeletReady"),
                    condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                    condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                ],
            },
        });
        nodes.patch_status(&self.name, &parameters, &Patch::Apply(status)).await.map(drop)
    }

    async fn renew_lease(&self) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name },
            "spec": {
                "holderIdentity": self.name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": MicroTime(Timestamp::now()),
            },
        });
        leases.patch(&self.name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(lease)).await.map(drop)
    }

    /// Gives each pod of this node a task of its own and tells it of every change, for ever.
    async fn run_pods(self, addresses: Addresses) {
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", self.name));
        let events = watch(Api::<Pod>::all(self.client.clone()), config).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut pods: BTreeMap<String, channel::Sender<Pod>> = BTreeMap::new();
        let mut listed: BTreeSet<String> = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(pod)) => self.observe(&mut pods, pod, &addresses),
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => {
                    listed.extend(pod.uid());
                    self.observe(&mut pods, pod, &addresses);
                }
                // Pods that went away while the watch was down. A task ends when its sender is dropped.
                Ok(Event::InitDone) => pods.retain(|uid, _| listed.contains(uid)),
                Ok(Event::Delete(pod)) => {
                    pods.remove(&pod.uid().unwrap_or_default());
                }
                // The stream tries again by itself, with backoff.
                Err(_) => {}
            }
        }
    }

    fn observe(&self, pods: &mut BTreeMap<String, channel::Sender<Pod>>, pod: Pod, addresses: &Addresses) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(known) = pods.get(&uid) {
            known.send_replace(pod);
            return;
        }
        let (sender, receiver) = channel::channel(pod);
        tokio::spawn(simulate(self.client.clone(), self.ip.clone(), receiver, Arc::clone(addresses)));
        pods.insert(uid, sender);
    }
}

fn ready_since(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready =
        conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// The API's form of a time, in whole seconds.
pub(super) fn seconds(time: Timestamp) -> serde_json::Value {
    json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time))
}
