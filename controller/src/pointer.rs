//! Reading and writing a target's pointer (rule 2).

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use rollback_core::pointer::{Pointer, object_name};

use crate::context::Context;
use crate::error::{PassError, is_conflict, is_not_found};
use crate::events::CONTROLLER;
use crate::failpoint;
use crate::target::TargetKey;

/// A pointer as it was read: what it says, and the object that a write has to replace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// What it says; nothing, if there is no object.
    pub pointer: Pointer,
    /// The object, if there is one.
    pub object: Option<ConfigMap>,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// It is stored: this is how.
    Stored(Box<Stored>),
    /// Somebody else wrote first: read again and decide again.
    Conflict,
}

/// The pointer as the watch shows it; may lag behind.
pub fn cached(ctx: &Context, key: &TargetKey) -> Result<Stored, PassError> {
    let object = ctx.stores.pointers.get(key, &object_name(&key.target));
    parsed(key, object.map(|object| ConfigMap::clone(&object)))
}

/// The pointer as it is now.
pub async fn live(ctx: &Context, key: &TargetKey) -> Result<Stored, PassError> {
    let object = api(ctx, key)
        .get_opt(&object_name(&key.target))
        .await
        .map_err(PassError::api(|| format!("read the pointer of target {key}")))?;
    parsed(key, object)
}

/// Writes the pointer if nobody changed it since `read`.
pub async fn write(
    ctx: &Context,
    key: &TargetKey,
    read: &Stored,
    wanted: &Pointer,
) -> Result<Written, PassError> {
    let object = wanted.to_object(&key.namespace, &key.target, read.object.as_ref());
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    let api = api(ctx, key);
    ctx.fence.check()?;
    failpoint::write("pointer");
    let answer = match &read.object {
        Some(_) => api.replace(&object_name(&key.target), &params, &object).await,
        None => api.create(&params, &object).await,
    };
    failpoint::written("pointer");
    match answer {
        Ok(object) => {
            ctx.stores.pointers.note(&object);
            Ok(Written::Stored(Box::new(parsed(key, Some(object))?)))
        }
        // Not found: it was deleted since. In a namespace that is gone the next read finds nothing to do.
        Err(error) if is_conflict(&error) || is_not_found(&error) => Ok(Written::Conflict),
        Err(error) => Err(PassError::api(|| format!("write the pointer of target {key}"))(error)),
    }
}

fn api(ctx: &Context, key: &TargetKey) -> Api<ConfigMap> {
    Api::namespaced(ctx.client.clone(), &key.namespace)
}

fn parsed(key: &TargetKey, object: Option<ConfigMap>) -> Result<Stored, PassError> {
    let pointer = match &object {
        Some(object) => Pointer::parse(&key.target, object)?,
        None => Pointer::default(),
    };
    Ok(Stored { pointer, object })
}
