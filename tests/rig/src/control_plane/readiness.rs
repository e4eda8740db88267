//! When a control plane is of use.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::ListParams;
use kube::{Api, Client};

use super::{Component, ControlPlane};
use crate::eventually;
use crate::nodes;
use crate::protocol::Reply;

/// Generous: it takes a few seconds, and more on a machine that compiles at the same time.
pub(super) const DEADLINE: Duration = Duration::from_secs(180);

/// Lines of a log that an error repeats.
const LOG_LINES: usize = 25;

impl ControlPlane {
    /// Waits until the API server says that it is ready.
    pub(super) async fn apiserver_ready(&self) -> Result<()> {
        let client = self.client()?;
        self.up(&[Component::Etcd, Component::Apiserver], "the API server to be ready", || async {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            let answer = client.request_text(request).await?;
            ensure!(answer == "ok", "/readyz answers {answer}");
            Ok(())
        })
        .await
    }

    /// Waits until pods can be made and run.
    pub(super) async fn usable(&self) -> Result<()> {
        let client = self.client()?;
        let components = [
            Component::Etcd,
            Component::Apiserver,
            Component::ControllerManager,
            Component::Scheduler,
            Component::Nodes,
        ];
        self.up(&components, "the default service account and the nodes", || async {
            default_service_account(&client, "default").await?;
            let nodes: Vec<Node> = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items;
            let schedulable = nodes.iter().filter(|node| is_schedulable(node)).count();
            ensure!(schedulable == nodes::COUNT, "{schedulable} of {} nodes are schedulable", nodes::COUNT);
            Ok(())
        })
        .await
    }

    /// Like [`eventually`], but ends at once when one of `components` has ended.
    async fn up<F, Fut>(&self, components: &[Component], what: &str, mut look: F) -> Result<()>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let waited = eventually(DEADLINE, what, || {
            let dead = components.iter().find_map(|component| self.stays_up(*component).err());
            let looked = look();
            async move {
                match dead {
                    // Success of the wait, failure of the start.
                    Some(error) => Ok(Err(error)),
                    None => looked.await.map(Ok),
                }
            }
        });
        match waited.await {
            Ok(started) => started,
            Err(error) => {
                let logs: Vec<String> =
                    components.iter().map(|component| self.log_tail(*component)).collect();
                Err(anyhow!("{error:#}\n{}", logs.join("\n")))
            }
        }
    }

    /// Fails with the end of its log when the component has ended.
    pub(super) fn stays_up(&self, component: Component) -> Result<()> {
        match self.parts.supervisor.status(component.name())? {
            Reply::Running(_) => Ok(()),
            other @ (Reply::Exited { .. } | Reply::Error(_)) => {
                bail!("{} did not stay up ({other:?})\n{}", component.name(), self.log_tail(component))
            }
        }
    }

    fn log_tail(&self, component: Component) -> String {
        format!("the end of the log of {}:\n{}", component.name(), tail(&self.log(component)))
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Pods are refused until the namespace has it.
pub(crate) async fn default_service_account(client: &Client, namespace: &str) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    accounts.get("default").await.map(drop).with_context(|| format!("service account {namespace}/default"))
}

fn is_schedulable(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let ready = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    taints.is_none_or(Vec::is_empty)
        && ready.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
