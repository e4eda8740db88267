//! The files of `manifests/`, applied to the test control plane.

use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use rollback_rig::ControlPlane;

use crate::soon;

/// The folder with the manifests that we ship.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../manifests")
}

/// Applies the custom resource definitions and waits until they are served.
pub async fn apply_kinds(cp: &ControlPlane) {
    cp.apply_path(&folder().join("crds")).expect("the definitions are accepted");
    let crds: Api<CustomResourceDefinition> = Api::all(cp.client().expect("an admin client"));
    for crd in rollback_api::crds() {
        let name = crd.metadata.name.unwrap_or_default();
        soon(&format!("CustomResourceDefinition {name} is established"), || async {
            let status = crds.get(&name).await?.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            anyhow::ensure!(conditions.iter().any(|c| c.type_ == "Established" && c.status == "True"), "{conditions:?}");
            Ok(())
        })
        .await;
    }
}
