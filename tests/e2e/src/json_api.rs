//! Our kinds as plain JSON: what a client sends that does not know our types.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

/// An API of one of our kinds that takes any JSON.
pub fn api(client: &Client, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(rollback_api::GROUP, rollback_api::VERSION, kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk_with_plural(&gvk, plural))
}

/// Creates an object from JSON; the error is the API server's sentence.
pub async fn create(api: &Api<DynamicObject>, object: Value) -> Result<DynamicObject, String> {
    let object = serde_json::from_value(object).map_err(|error| error.to_string())?;
    api.create(&PostParams::default(), &object).await.map_err(sentence)
}

/// Merge-patches an object; the error is the API server's sentence.
pub async fn patch(api: &Api<DynamicObject>, name: &str, patch: Value) -> Result<DynamicObject, String> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(sentence)
}

/// What the API server said.
fn sentence(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
