//! Storing the snapshots of a release (rule 17).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::{Patch, PatchParams, PostParams};
use rollback_api::Release;
use rollback_core::workload::content;
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use rollback_core::workload::references::{self, ReferenceKind};
use rollback_core::workload::snapshot::{self, Recorded, Snapshot, SnapshotError, object_name};
use serde_json::{Value, json};

use super::live;
use super::watched::Seen;
use crate::context::Context;
use crate::error::{PassError, is_conflict};
use crate::events::CONTROLLER;
use crate::failpoint;
use crate::target::TargetKey;

/// What the objects of a target come to as snapshots.
pub(super) enum Taken {
    /// Exactly what the watches showed.
    All(Vec<Recorded>),
    /// They have changed since the watches showed them.
    Changed,
    /// One of them is too big to be kept: why, for people.
    Refused(String),
}

/// Reads the objects whole, and the ConfigMaps that their templates refer to.
pub(super) async fn take(ctx: &Context, key: &TargetKey, seen: &[Arc<Seen>]) -> Result<Taken, PassError> {
    let mut objects = Vec::new();
    for seen in seen {
        let found = live::object(ctx, key, &seen.key).await?;
        match found {
            Some(object) if content::id(seen.key.kind, &object) == seen.id => {
                objects.push((seen.key.clone(), object));
            }
            Some(_) | None => return Ok(Taken::Changed),
        }
    }
    let beside = referred(ctx, key, &objects).await?;
    let with = |object: &ObjectKey| -> Vec<Value> {
        beside.get(object).into_iter().flatten().map(|configmap| Value::clone(configmap)).collect()
    };
    let mut recorded = snapshot::record(&objects, with);
    for part in &mut recorded {
        // Its size does not depend on the release.
        if too_big(part).is_some() && !part.snapshot.references.is_empty() {
            tracing::warn!(
                target = %key,
                "{} is kept without the ConfigMaps that its template refers to: together they are too big",
                part.revision.name
            );
            part.snapshot.references.clear();
        }
        if let Some(why) = too_big(part) {
            return Ok(Taken::Refused(why.to_string()));
        }
    }
    Ok(Taken::All(recorded))
}

fn too_big(part: &Recorded) -> Option<SnapshotError> {
    part.snapshot.to_object(&Release::default(), &part.revision).err()
}

/// The ConfigMaps that each object's template refers to and that are none of the objects themselves (rule 18).
async fn referred(
    ctx: &Context,
    key: &TargetKey,
    objects: &[(ObjectKey, Value)],
) -> Result<BTreeMap<ObjectKey, Vec<Arc<Value>>>, PassError> {
    let mut read: BTreeMap<String, Option<Arc<Value>>> = BTreeMap::new();
    let mut all: BTreeMap<ObjectKey, Vec<Arc<Value>>> = BTreeMap::new();
    for (object, value) in objects {
        for reference in references::of_template(&value["spec"]["template"]) {
            let own = |name: &str| {
                objects
                    .iter()
                    .any(|(object, _)| object.kind == WorkloadKind::ConfigMap && object.name == name)
            };
            match reference.kind {
                ReferenceKind::ConfigMap if !own(&reference.name) => {}
                ReferenceKind::ConfigMap
                | ReferenceKind::Secret
                | ReferenceKind::ServiceAccount
                | ReferenceKind::PersistentVolumeClaim => continue,
            }
            let found = if let Some(known) = read.get(&reference.name) {
                known.clone()
            } else {
                let found = live::configmap(ctx, key, &reference.name).await?.map(Arc::new);
                read.insert(reference.name, found.clone());
                found
            };
            all.entry(object.clone()).or_default().extend(found);
        }
    }
    Ok(all)
}

/// Stores the snapshots that are not stored yet. Each is verified: one of that name may hold something else.
pub(super) async fn store(
    ctx: &Context,
    key: &TargetKey,
    release: &Release,
    recorded: &[Recorded],
) -> Result<(), PassError> {
    for part in recorded {
        let object = part
            .snapshot
            .to_object(release, &part.revision)
            .map_err(|error| PassError::Other(error.to_string()))?;
        store_one(ctx, key, release, part, &object).await?;
    }
    Ok(())
}

async fn store_one(
    ctx: &Context,
    key: &TargetKey,
    release: &Release,
    part: &Recorded,
    object: &ControllerRevision,
) -> Result<(), PassError> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let api = live::revisions(ctx, key);
    let params = PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() };
    ctx.fence.check()?;
    failpoint::write("snapshot");
    let created = api.create(&params, object).await;
    failpoint::written("snapshot");
    match created {
        Ok(_) => return Ok(()),
        Err(error) if is_conflict(&error) => {}
        Err(error) => {
            return Err(PassError::api(|| format!("store ControllerRevision {}/{name}", key.namespace))(
                error,
            ));
        }
    }
    let read = || format!("read ControllerRevision {}/{name}", key.namespace);
    let Some(stored) = api.get_opt(name).await.map_err(PassError::api(read))? else {
        return Err(PassError::Contended {
            doing: format!("store ControllerRevision {}/{name}", key.namespace),
        });
    };
    Snapshot::parse(&part.revision, &stored).map_err(|error| PassError::Other(error.to_string()))?;
    if owned(&stored, release) {
        return Ok(());
    }
    // An earlier release had the same name; what it left behind would be collected.
    let mut owners = stored.metadata.owner_references.clone().unwrap_or_default();
    owners.retain(|owner| owner.controller != Some(true));
    owners.extend(object.metadata.owner_references.clone().unwrap_or_default());
    let patch = json!({"metadata": {
        "resourceVersion": stored.metadata.resource_version,
        "ownerReferences": owners,
    }});
    let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
    ctx.fence.check()?;
    failpoint::write("snapshot owner");
    let patched = api.patch(name, &params, &Patch::Merge(&patch)).await;
    failpoint::written("snapshot owner");
    patched
        .map(|_| ())
        .map_err(PassError::api(|| format!("take over ControllerRevision {}/{name}", key.namespace)))
}

/// Whether all snapshots of the release are stored.
pub(super) async fn is_stored(ctx: &Context, key: &TargetKey, release: &Release) -> Result<bool, PassError> {
    let api = live::revisions(ctx, key);
    for revision in &release.spec.config.revisions {
        let name = object_name(release.metadata.name.as_deref().unwrap_or_default(), revision);
        let stored = api
            .get_metadata_opt(&name)
            .await
            .map_err(PassError::api(|| format!("read ControllerRevision {}/{name}", key.namespace)))?;
        let owners = stored.and_then(|stored| stored.metadata.owner_references).unwrap_or_default();
        if !owners.iter().any(|owner| Some(&owner.uid) == release.metadata.uid.as_ref()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn owned(stored: &ControllerRevision, release: &Release) -> bool {
    let owners = stored.metadata.owner_references.iter().flatten();
    owners
        .into_iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == release.metadata.uid.as_ref())
}
