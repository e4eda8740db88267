//! The custom resource definitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The definitions of all three kinds.
pub fn all() -> [CustomResourceDefinition; 3] {
    [crate::Release::crd(), crate::Rollback::crd(), crate::AutomatedRollbackPolicy::crd()]
}

/// The name of the file that holds a definition, as controller-gen names them: `<group>_<plural>.yaml`.
pub fn yaml_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}
