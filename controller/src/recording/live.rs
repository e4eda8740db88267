//! Live reads of a target's objects, whole.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use rollback_api::Release;
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use serde_json::Value;

use crate::context::Context;
use crate::error::PassError;
use crate::target::TargetKey;

/// The object as it is now; `None` if there is none.
pub(super) async fn object(
    ctx: &Context,
    key: &TargetKey,
    object: &ObjectKey,
) -> Result<Option<Value>, PassError> {
    let doing = || format!("read {} {}/{}", object.kind.as_str(), key.namespace, object.name);
    let found = api(ctx, key, object.kind).get_opt(&object.name).await.map_err(PassError::api(doing))?;
    let json = found.map(serde_json::to_value).transpose();
    json.map_err(|error| PassError::Other(format!("cannot {}: {error}", doing())))
}

fn api(ctx: &Context, key: &TargetKey, kind: WorkloadKind) -> Api<DynamicObject> {
    let (group, version) = kind.api_version().rsplit_once('/').unwrap_or(("", kind.api_version()));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: kind.api_version().to_owned(),
        kind: kind.as_str().to_owned(),
        plural: format!("{}s", kind.prefix()),
    };
    Api::namespaced_with(ctx.client.clone(), &key.namespace, &resource)
}

/// A ConfigMap that a template refers to, as JSON; `None` if there is none.
pub(super) async fn configmap(
    ctx: &Context,
    key: &TargetKey,
    name: &str,
) -> Result<Option<Value>, PassError> {
    object(ctx, key, &ObjectKey::new(WorkloadKind::ConfigMap, name)).await
}

/// Snapshots.
pub(super) fn revisions(ctx: &Context, key: &TargetKey) -> Api<ControllerRevision> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}

/// Releases.
pub(super) fn releases(ctx: &Context, key: &TargetKey) -> Api<Release> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}
