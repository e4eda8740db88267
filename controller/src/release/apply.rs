//! Makes a decision's writes in its order, and stops at the first that somebody else overtook.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use rollback_api::{Release, ReleaseStatus, annotations};
use rollback_core::release::culling::Deletion;
use rollback_core::release::pass::{Stamp, TargetDecision};
use serde_json::{Map, Value, json};

use super::gather::{Target, api};
use super::{announce, confirm};
use crate::error::{PassError, is_conflict, is_not_found};
use crate::events::CONTROLLER;
use crate::failpoint;
use crate::pointer::{self, Written};

/// What came of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// All were made.
    All,
    /// Something is not as it was known; what is live is known now: decide again.
    Overtaken,
}

/// Makes the writes. `target` knows the result of each.
pub(super) async fn apply(target: &mut Target<'_>, decision: &TargetDecision) -> Result<Applied, PassError> {
    let TargetDecision {
        stamps,
        pointer,
        activated,
        early_removals,
        statuses,
        late_removals,
        deletions,
        again: _,
        notes: _,
    } = decision;
    for stamp in stamps {
        if !annotate(target, &stamp.release, stamp_edits(stamp)).await? {
            return Ok(Applied::Overtaken);
        }
    }
    if let Some(wanted) = pointer {
        if !confirm::activity(target, decision).await? {
            return Ok(Applied::Overtaken);
        }
        match pointer::write(target.ctx, target.key, &target.pointer, wanted).await? {
            Written::Stored(stored) => target.pointer = *stored,
            Written::Conflict => return Ok(Applied::Overtaken),
        }
        if let Some(activated) = activated {
            announce::activated(target, activated);
        }
    }
    for removal in early_removals {
        if !annotate(target, &removal.release, without(&removal.keys)).await? {
            return Ok(Applied::Overtaken);
        }
    }
    for (name, status) in statuses {
        if !write_status(target, name, status).await? {
            return Ok(Applied::Overtaken);
        }
    }
    for removal in late_removals {
        if !annotate(target, &removal.release, without(&removal.keys)).await? {
            return Ok(Applied::Overtaken);
        }
    }
    for deletion in deletions {
        if !delete(target, deletion).await? {
            return Ok(Applied::Overtaken);
        }
    }
    Ok(Applied::All)
}

fn stamp_edits(stamp: &Stamp) -> Map<String, Value> {
    let mut edits = without(if stamp.drops_health { &[annotations::HEALTH] } else { &[] });
    edits.insert(annotations::ACTIVATION.to_owned(), json!(json!(stamp.activation).to_string()));
    edits
}

fn without(keys: &[&str]) -> Map<String, Value> {
    keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect()
}

/// Changes annotations of the very object that is known; false if that is not what is stored.
async fn annotate(target: &mut Target<'_>, name: &str, edits: Map<String, Value>) -> Result<bool, PassError> {
    let Some(known) = target.releases.get(name) else { return Ok(false) };
    let patch = json!({ "metadata": {
        "resourceVersion": known.metadata.resource_version,
        "uid": known.metadata.uid,
        "annotations": edits,
    }});
    let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
    target.ctx.fence.check()?;
    failpoint::write("release annotations");
    let answer = api(target.ctx, target.key).patch(name, &params, &Patch::Merge(&patch)).await;
    failpoint::written("release annotations");
    took(target, name, answer, "annotations").await
}

/// Replaces the status of the very object that is known; false if that is not what is stored.
async fn write_status(
    target: &mut Target<'_>,
    name: &str,
    status: &ReleaseStatus,
) -> Result<bool, PassError> {
    let Some(known) = target.releases.get(name) else { return Ok(false) };
    let wanted = Release { status: Some(status.clone()), ..Release::clone(known) };
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    target.ctx.fence.check()?;
    failpoint::write("release status");
    let answer = api(target.ctx, target.key).replace_status(name, &params, &wanted).await;
    failpoint::written("release status");
    took(target, name, answer, "status").await
}

async fn took(
    target: &mut Target<'_>,
    name: &str,
    answer: kube::Result<Release>,
    what: &str,
) -> Result<bool, PassError> {
    match answer {
        Ok(stored) => {
            target.saw(name, Some(stored));
            Ok(true)
        }
        Err(error) if is_conflict(&error) || is_not_found(&error) => {
            target.look(name).await?;
            Ok(false)
        }
        Err(error) => {
            let doing = || format!("write the {what} of Release {}/{name}", target.key.namespace);
            Err(PassError::api(doing)(error))
        }
    }
}

/// Deletes the very object that is known, its status as just written included; false if that is not what is stored.
async fn delete(target: &mut Target<'_>, deletion: &Deletion) -> Result<bool, PassError> {
    let Deletion { name, uid, resource_version: _ } = deletion;
    let Some(known) = target.releases.get(name) else { return Ok(false) };
    let preconditions =
        Preconditions { uid: Some(uid.clone()), resource_version: known.metadata.resource_version.clone() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    target.ctx.fence.check()?;
    failpoint::write("release deletion");
    let answer = api(target.ctx, target.key).delete(name, &params).await;
    failpoint::written("release deletion");
    match answer {
        Ok(_) => {
            announce::culled(target, name);
            target.saw(name, None);
            Ok(true)
        }
        Err(error) if is_not_found(&error) => {
            target.saw(name, None);
            Ok(true)
        }
        Err(error) if is_conflict(&error) => {
            target.look(name).await?;
            Ok(false)
        }
        Err(error) => {
            Err(PassError::api(|| format!("delete Release {}/{name}", target.key.namespace))(error))
        }
    }
}
