//! The writes: each one guarded by what was read, so that nobody's change is lost.

use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use rollback_api::{Activation, FromReleaseRef, ReleaseRef, Rollback, RollbackStatus, annotations};
use rollback_core::rollback::FINALIZER;
use serde_json::{Value, json};

use super::gather::{releases, rollbacks};
use crate::context::Context;
use crate::error::{PassError, is_conflict, is_not_found};
use crate::events::CONTROLLER;
use crate::failpoint;
use crate::target::TargetKey;

/// What came of a write to a Rollback.
pub(super) enum Written {
    /// It is stored: this is how.
    Stored(Box<Rollback>),
    /// Somebody else wrote first.
    Conflict,
    /// The object does not exist any more.
    Gone,
}

fn name(rollback: &Rollback) -> &str {
    rollback.metadata.name.as_deref().unwrap_or_default()
}

fn outcome(answer: kube::Result<Rollback>, doing: impl FnOnce() -> String) -> Result<Written, PassError> {
    match answer {
        Ok(rollback) => Ok(Written::Stored(Box::new(rollback))),
        Err(error) if is_conflict(&error) => Ok(Written::Conflict),
        Err(error) if is_not_found(&error) => Ok(Written::Gone),
        Err(error) => Err(PassError::api(doing)(error)),
    }
}

/// Replaces the status.
pub(super) async fn status(
    ctx: &Context,
    key: &TargetKey,
    rollback: &Rollback,
    status: RollbackStatus,
) -> Result<Written, PassError> {
    let wanted = Rollback { status: Some(status), ..rollback.clone() };
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    ctx.fence.check()?;
    failpoint::write("rollback status");
    let answer = rollbacks(ctx, key).replace_status(name(rollback), &params, &wanted).await;
    failpoint::written("rollback status");
    outcome(answer, || format!("write the status of Rollback {}/{}", key.namespace, name(rollback)))
}

/// Adds or removes our finalizer.
pub(super) async fn finalizer(
    ctx: &Context,
    key: &TargetKey,
    rollback: &Rollback,
    wanted: bool,
) -> Result<Written, PassError> {
    let others = rollback.metadata.finalizers.iter().flatten().filter(|name| *name != FINALIZER).cloned();
    let finalizers: Vec<String> = others.chain(wanted.then(|| FINALIZER.to_owned())).collect();
    patch(ctx, key, rollback, "rollback finalizer", json!({ "metadata": { "finalizers": finalizers } })).await
}

/// Fills in what the webhook would have (rule 9).
pub(super) async fn adopt(
    ctx: &Context,
    key: &TargetKey,
    rollback: &Rollback,
    from: &FromReleaseRef,
    to: &ReleaseRef,
) -> Result<Written, PassError> {
    let spec = json!({ "spec": { "fromReleaseRef": from, "toReleaseRef": to } });
    patch(ctx, key, rollback, "rollback adoption", spec).await
}

/// Merge-patches the very object that was read.
async fn patch(
    ctx: &Context,
    key: &TargetKey,
    rollback: &Rollback,
    what: &str,
    mut body: Value,
) -> Result<Written, PassError> {
    body["metadata"]["resourceVersion"] = json!(rollback.metadata.resource_version);
    body["metadata"]["uid"] = json!(rollback.metadata.uid);
    let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
    ctx.fence.check()?;
    failpoint::write(what);
    let answer = rollbacks(ctx, key).patch(name(rollback), &params, &Patch::Merge(&body)).await;
    failpoint::written(what);
    outcome(answer, || format!("write the {what} of Rollback {}/{}", key.namespace, name(rollback)))
}

/// Deletes the very object that was read.
pub(super) async fn delete(
    ctx: &Context,
    key: &TargetKey,
    rollback: &Rollback,
) -> Result<Written, PassError> {
    let preconditions = Preconditions {
        uid: rollback.metadata.uid.clone(),
        resource_version: rollback.metadata.resource_version.clone(),
    };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    ctx.fence.check()?;
    failpoint::write("rollback deletion");
    let answer = rollbacks(ctx, key).delete(name(rollback), &params).await;
    failpoint::written("rollback deletion");
    match answer {
        Ok(_) => Ok(Written::Gone),
        Err(error) if is_not_found(&error) => Ok(Written::Gone),
        Err(error) if is_conflict(&error) => Ok(Written::Conflict),
        Err(error) => {
            Err(PassError::api(|| format!("delete Rollback {}/{}", key.namespace, name(rollback)))(error))
        }
    }
}

/// Asks the release controller for an activation, unless the watch shows that it was asked already: when it takes the
/// request away, that is a change, and the next pass asks again.
pub(super) async fn activate(
    ctx: &Context,
    key: &TargetKey,
    release: &str,
    activation: &Activation,
) -> Result<(), PassError> {
    let error = |why: String| {
        PassError::Other(format!("cannot make Release {}/{release} active: {why}", key.namespace))
    };
    let text = serde_json::to_string(activation).map_err(|json| error(json.to_string()))?;
    let asked = ctx.stores.releases.get(key, release).is_some_and(|release| {
        let annotation = |key: &str| release.meta().annotations.as_ref()?.get(key);
        annotation(annotations::ACTIVE).is_some_and(|active| active == "true")
            && annotation(annotations::ACTIVATION) == Some(&text)
    });
    if asked {
        return Ok(());
    }
    // Whole seconds, as other writers of this annotation have it; the activation holds the exact time.
    let ended = format!("{:.0}", activation.time.0);
    let body = json!({ "metadata": { "annotations": {
        annotations::ACTIVE: "true",
        annotations::ACTIVATION: text,
        annotations::DEPLOYMENT_END_TIME: ended,
    } } });
    let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
    ctx.fence.check()?;
    failpoint::write("activation");
    let answer = releases(ctx, key).patch_metadata(release, &params, &Patch::Merge(&body)).await;
    failpoint::written("activation");
    match answer {
        Ok(_) => Ok(()),
        Err(gone) if is_not_found(&gone) => {
            Err(error("it does not exist any more, although it has just been deployed".to_owned()))
        }
        Err(other) => {
            Err(PassError::api(|| format!("make Release {}/{release} active", key.namespace))(other))
        }
    }
}
