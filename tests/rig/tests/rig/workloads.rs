//! Manifests and looks that several tests share.

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A Deployment `web` whose only container has this image.
pub(crate) fn deployment(image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}

/// A pod `web` with this image.
pub(crate) fn pod(image: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "web" },
        "spec": { "containers": [{ "name": "web", "image": image }] },
    })
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(manifest: Value) -> T {
    serde_json::from_value(manifest).unwrap()
}

pub(crate) async fn pods(client: &Client, namespace: &str) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    Ok(pods.list(&ListParams::default()).await?.items)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The status of the pod's only container.
pub(crate) fn container(pod: &Pod) -> Result<&ContainerStatus> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.and_then(|statuses| statuses.first()).context("the pod has no container status yet")
}

/// Fails unless the container waits for `reason`; returns the message.
pub(crate) fn waits_for(pod: &Pod, reason: &str) -> Result<String> {
    let container = container(pod)?;
    let Some(waiting) = container.state.as_ref().and_then(|state| state.waiting.as_ref()) else {
        bail!("the container does not wait: {:?}", container.state)
    };
    ensure!(waiting.reason.as_deref() == Some(reason), "it waits for {:?}", waiting.reason);
    Ok(waiting.message.clone().unwrap_or_default())
}
