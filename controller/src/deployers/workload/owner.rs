//! The running Rollback owns the snapshots that it needs beside their Release, so that they outlive it (rule 17).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource as _;
use rollback_api::Rollback;
use rollback_core::backend::{BackendError, ErrorClass};
use serde_json::json;

use super::objects::{Objects, WriteError};
use crate::deployers::DeployTarget;

/// Tries for one snapshot while somebody else changes it.
const TRIES: u32 = 4;

/// Adds the Rollback to the owners of these snapshots. It stays there: the garbage collector forgets owners that are gone.
pub(super) async fn own(
    objects: &Objects<'_>,
    target: &DeployTarget,
    snapshots: &[String],
) -> Result<(), BackendError> {
    for name in snapshots {
        own_one(objects, target, name).await?;
    }
    Ok(())
}

async fn own_one(objects: &Objects<'_>, target: &DeployTarget, name: &str) -> Result<(), BackendError> {
    for _ in 0..TRIES {
        let Some(snapshot) = objects.revision(name).await? else {
            let message =
                format!("nothing was touched: ControllerRevision {name}, which holds {}, is gone", target.to);
            return Err(BackendError::new(ErrorClass::NotFound, message));
        };
        let mut owners = snapshot.metadata.owner_references.unwrap_or_default();
        if owners.iter().any(|owner| owner.uid == target.rollback_uid) {
            return Ok(());
        }
        owners.push(OwnerReference {
            api_version: Rollback::api_version(&()).into_owned(),
            kind: Rollback::kind(&()).into_owned(),
            name: target.rollback.clone(),
            uid: target.rollback_uid.clone(),
            controller: None,
            block_owner_deletion: None,
        });
        let patch = json!({"metadata": {
            "resourceVersion": snapshot.metadata.resource_version,
            "ownerReferences": owners,
        }});
        match objects.patch_revision(name, &patch).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Conflict) => {}
            Err(WriteError::Failed(error)) => {
                let message = format!("nothing was touched: {}", error.message);
                return Err(BackendError::new(error.class, message));
            }
        }
    }
    let message = format!("somebody else keeps changing ControllerRevision {name}");
    Err(BackendError::new(ErrorClass::Busy, message))
}
