//! Starting, breaking and mending a control plane.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use rollback_rig::{Component, ControlPlane, eventually, namespace, shared};
use serde_json::json;

use crate::workloads::{DEADLINE, deployment, parse, pods};

#[tokio::test]
async fn the_server_reports_a_version_that_clients_can_parse() {
    let control_plane = shared().await.unwrap();
    let version = control_plane.client().unwrap().apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
    assert!(version.minor.parse::<u32>().is_ok_and(|minor| minor >= 37), "{version:?}");
}

#[tokio::test]
async fn manifests_are_applied_and_kubectl_talks_to_this_server() {
    let control_plane = shared().await.unwrap();
    let namespace = namespace(control_plane).await.unwrap();
    let manifests = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {0}}}\ndata: {{colour: blue}}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b, namespace: {0}}}\n",
        namespace.name()
    );
    control_plane.apply(&manifests).unwrap();
    let output = control_plane
        .kubectl()
        .args(["get", "configmap", "a", "-o", "jsonpath={.data.colour}", "-n", namespace.name()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "blue", "{output:?}");
    let error = control_plane.apply("apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n").unwrap_err();
    assert!(error.to_string().contains("Nonsense"), "{error:#}");
}

#[tokio::test]
async fn a_service_account_has_its_own_rights_and_no_more() {
    let control_plane = shared().await.unwrap();
    let namespace = namespace(control_plane).await.unwrap();
    let name = namespace.name();
    control_plane
        .apply(&format!(
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: reader, namespace: {name}}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: reader, namespace: {name}}}\n\
             rules: [{{apiGroups: [\"\"], resources: [configmaps], verbs: [list]}}]\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
             metadata: {{name: reader, namespace: {name}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}\n\
             subjects: [{{kind: ServiceAccount, name: reader, namespace: {name}}}]\n"
        ))
        .unwrap();
    let kubeconfig = control_plane.kubeconfig_for_service_account(name, "reader").await.unwrap();
    let client = control_plane.client_for(&kubeconfig).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
    eventually(DEADLINE, "the right to list", || async {
        Ok(config_maps.list(&ListParams::default()).await?)
    })
    .await
    .unwrap();
    let secrets: Api<Secret> = Api::namespaced(client, name);
    match secrets.list(&ListParams::default()).await {
        Err(kube::Error::Api(answer)) => assert_eq!(answer.code, 403),
        other => panic!("{other:?}"),
    }
    assert!(control_plane.kubeconfig_for_service_account(name, "nobody").await.is_err());
}

#[tokio::test]
async fn a_dropped_namespace_goes_away() {
    let control_plane = shared().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(control_plane.client().unwrap());
    let namespace = namespace(control_plane).await.unwrap();
    let name = namespace.name().to_owned();
    drop(namespace);
    eventually(DEADLINE, "the end of the namespace", || async {
        let found = namespaces.get_opt(&name).await?;
        ensure!(found.is_none(), "{:?}", found.and_then(|namespace| namespace.status));
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_killed_server_and_database_come_back_with_their_data() {
    let control_plane = ControlPlane::private().await.unwrap();
    let namespace = namespace(&control_plane).await.unwrap();
    let client = control_plane.client().unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, namespace.name());
    deployments.create(&PostParams::default(), &parse(deployment("example/web:1", 1))).await.unwrap();

    control_plane.kill(Component::Apiserver).unwrap();
    assert!(deployments.get("web").await.is_err(), "the API server answers after it was killed");
    control_plane.kill(Component::Etcd).unwrap();
    control_plane.start(&[Component::Etcd, Component::Apiserver]).await.unwrap();

    // Not only does the object live on: the controllers and nodes go on with it.
    scale(&deployments, 2).await;
    let before = pod_names(&control_plane, namespace.name()).await;

    // Nodes that come back go on with the pods they had.
    control_plane.kill(Component::Nodes).unwrap();
    control_plane.start(&[Component::Nodes]).await.unwrap();
    scale(&deployments, 3).await;
    let after = pod_names(&control_plane, namespace.name()).await;
    assert!(after.is_superset(&before), "{before:?} became {after:?}");
}

async fn pod_names(control_plane: &ControlPlane, namespace: &str) -> BTreeSet<String> {
    pods(&control_plane.client().unwrap(), namespace)
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect()
}

async fn scale(deployments: &Api<Deployment>, replicas: i32) {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    deployments.patch("web", &PatchParams::default(), &patch).await.unwrap();
    eventually(Duration::from_secs(120), "the available replicas", || async {
        let status = deployments.get("web").await?.status.unwrap_or_default();
        ensure!(status.available_replicas == Some(replicas), "{status:?}");
        Ok(())
    })
    .await
    .unwrap();
}
