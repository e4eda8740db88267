//! What the simulated nodes make of pods.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt};
use rollback_rig::nodes::{COUNT, configmap_digest, configmaps_seen};
use rollback_rig::{TestNamespace, eventually, namespace, shared};
use serde_json::{Value, json};

use crate::workloads::{DEADLINE, container, deployment, is_ready, parse, pod, pods, waits_for};

async fn start() -> (Client, TestNamespace) {
    let control_plane = shared().await.unwrap();
    (control_plane.client().unwrap(), namespace(control_plane).await.unwrap())
}

async fn create_pod(client: &Client, namespace: &str, manifest: Value) -> Api<Pod> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    pods.create(&PostParams::default(), &parse(manifest)).await.unwrap();
    pods
}

/// Waits until `look` accepts the pod `web`.
async fn until<T>(pods: &Api<Pod>, what: &str, look: impl Fn(&Pod) -> Result<T>) -> T {
    eventually(DEADLINE, what, || async { look(&pods.get("web").await?) }).await.unwrap()
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

#[tokio::test]
async fn a_deployment_becomes_available_and_its_pods_have_addresses() {
    let (client, namespace) = start().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace.name());
    deployments.create(&PostParams::default(), &parse(deployment("example/web:1", 3))).await.unwrap();
    eventually(DEADLINE, "three available replicas", || async {
        let status = deployments.get("web").await?.status.unwrap_or_default();
        ensure!(status.available_replicas == Some(3), "{status:?}");
        Ok(())
    })
    .await
    .unwrap();

    let pods = pods(&client, namespace.name()).await.unwrap();
    let mut addresses: Vec<String> =
        pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 3, "{pods:?}");
    assert!(pods.iter().all(|pod| is_ready(pod) && phase(pod) == Some("Running")), "{pods:?}");
}

#[tokio::test]
async fn a_deleted_deployment_leaves_no_pods() {
    let (client, namespace) = start().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace.name());
    deployments.create(&PostParams::default(), &parse(deployment("example/web:1", 2))).await.unwrap();
    eventually(DEADLINE, "two ready pods", || async {
        let ready = pods(&client, namespace.name()).await?.iter().filter(|pod| is_ready(pod)).count();
        ensure!(ready == 2, "{ready} ready");
        Ok(())
    })
    .await
    .unwrap();

    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    eventually(DEADLINE, "the end of the pods", || async {
        let left = pods(&client, namespace.name()).await?;
        ensure!(left.is_empty(), "{} left", left.len());
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_daemon_set_runs_on_every_node() {
    let (client, namespace) = start().await;
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client.clone(), namespace.name());
    let daemon_set = parse(json!({
        "metadata": { "name": "agent" },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": {
                "metadata": { "labels": { "app": "agent" } },
                "spec": { "containers": [{ "name": "agent", "image": "example/agent:1" }] },
            },
        },
    }));
    daemon_sets.create(&PostParams::default(), &daemon_set).await.unwrap();
    eventually(DEADLINE, "a ready pod on every node", || async {
        let status = daemon_sets.get("agent").await?.status.context("no status yet")?;
        ensure!(usize::try_from(status.number_ready)? == COUNT, "{status:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn never_ready_runs_and_stays_unready() {
    let (client, namespace) = start().await;
    let pods = create_pod(&client, namespace.name(), pod("example/web:v2-never-ready")).await;
    let pod = until(&pods, "a running container", |pod| {
        ensure!(container(pod)?.state.as_ref().is_some_and(|state| state.running.is_some()), "not running");
        Ok(pod.clone())
    })
    .await;
    assert_eq!(phase(&pod), Some("Running"));
    assert!(!is_ready(&pod) && !container(&pod).unwrap().ready);
    let conditions = pod.status.unwrap().conditions.unwrap();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.reason.as_deref(), Some("ContainersNotReady"));
}

#[tokio::test]
async fn crash_loop_restarts_again_and_again() {
    let (client, namespace) = start().await;
    let pods = create_pod(&client, namespace.name(), pod("example/web:v2-crash-loop")).await;
    let first = until(&pods, "the back-off", |pod| {
        waits_for(pod, "CrashLoopBackOff")?;
        Ok(container(pod)?.clone())
    })
    .await;
    let crash = first.last_state.and_then(|state| state.terminated).unwrap();
    assert_eq!(crash.exit_code, 1);
    assert!(!first.ready && first.restart_count >= 1);
    until(&pods, "another restart", |pod| {
        let restarts = container(pod)?.restart_count;
        ensure!(restarts > first.restart_count, "{restarts} restarts");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn image_missing_waits_for_its_image() {
    let (client, namespace) = start().await;
    let pods = create_pod(&client, namespace.name(), pod("example/web:image-missing")).await;
    let message = until(&pods, "ImagePullBackOff", |pod| {
        ensure!(phase(pod) == Some("Pending"), "{:?}", phase(pod));
        waits_for(pod, "ImagePullBackOff")
    })
    .await;
    assert!(message.contains("example/web:image-missing"), "{message}");
}

#[tokio::test]
async fn bad_config_cannot_be_created() {
    let (client, namespace) = start().await;
    let pods = create_pod(&client, namespace.name(), pod("example/web:bad-config")).await;
    until(&pods, "CreateContainerConfigError", |pod| waits_for(pod, "CreateContainerConfigError")).await;
}

#[tokio::test]
async fn a_job_completes() {
    let (client, namespace) = start().await;
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace.name());
    let job = parse(json!({
        "metadata": { "name": "once" },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never", "containers": [{ "name": "once", "image": "example/once:1" }],
        } } },
    }));
    jobs.create(&PostParams::default(), &job).await.unwrap();
    eventually(DEADLINE, "the end of the job", || async {
        let status = jobs.get("once").await?.status.unwrap_or_default();
        ensure!(status.succeeded == Some(1), "{status:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_pod_waits_for_the_configmap_of_its_environment_and_records_what_it_saw() {
    let (client, namespace) = start().await;
    let mut manifest = pod("example/web:1");
    manifest["spec"]["containers"][0]["envFrom"] = json!([{ "configMapRef": { "name": "web-config" } }]);
    let pods = create_pod(&client, namespace.name(), manifest).await;
    let message =
        until(&pods, "CreateContainerConfigError", |pod| waits_for(pod, "CreateContainerConfigError")).await;
    assert_eq!(message, "configmap \"web-config\" not found");
    assert!(configmaps_seen(&pods.get("web").await.unwrap()).unwrap().is_empty());

    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace.name());
    let blue: ConfigMap =
        parse(json!({ "metadata": { "name": "web-config" }, "data": { "colour": "blue" } }));
    let blue = config_maps.create(&PostParams::default(), &blue).await.unwrap();
    until(&pods, "readiness", |pod| {
        ensure!(is_ready(pod), "{:?}", pod.status);
        Ok(())
    })
    .await;

    // A change after the start is not what the pod saw.
    let mut red = blue.clone();
    red.data = parse(json!({ "colour": "red" }));
    config_maps.replace("web-config", &PostParams::default(), &red).await.unwrap();
    let seen = configmaps_seen(&pods.get("web").await.unwrap()).unwrap();
    assert_eq!(seen["web-config"].sha256, configmap_digest(&blue));
    assert_eq!(Some(&seen["web-config"].resource_version), blue.resource_version().as_ref());
    assert_ne!(seen["web-config"].sha256, configmap_digest(&red));
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let (client, namespace) = start().await;
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace.name());
    let config = parse(json!({ "metadata": { "name": "web-config" }, "data": { "colour": "blue" } }));
    config_maps.create(&PostParams::default(), &config).await.unwrap();
    let mut manifest = pod("example/web:1");
    manifest["spec"]["containers"][0]["env"] = json!([
        { "name": "SIZE", "valueFrom": { "configMapKeyRef": { "name": "web-config", "key": "size" } } },
    ]);
    let pods = create_pod(&client, namespace.name(), manifest).await;
    let message =
        until(&pods, "CreateContainerConfigError", |pod| waits_for(pod, "CreateContainerConfigError")).await;
    assert_eq!(message, format!("couldn't find key size in ConfigMap {}/web-config", namespace.name()));
}

#[tokio::test]
async fn a_pod_waits_for_the_configmap_of_a_volume_unless_it_is_optional() {
    let (client, namespace) = start().await;
    let mut manifest = pod("example/web:1");
    manifest["spec"]["volumes"] = json!([
        { "name": "must", "configMap": { "name": "web-config" } },
        { "name": "may", "configMap": { "name": "absent", "optional": true } },
    ]);
    let pods = create_pod(&client, namespace.name(), manifest).await;
    until(&pods, "ContainerCreating", |pod| waits_for(pod, "ContainerCreating")).await;

    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace.name());
    let config = parse(json!({ "metadata": { "name": "web-config" } }));
    config_maps.create(&PostParams::default(), &config).await.unwrap();
    until(&pods, "readiness", |pod| {
        ensure!(is_ready(pod), "{:?}", pod.status);
        Ok(())
    })
    .await;
}
