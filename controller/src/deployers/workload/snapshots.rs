//! What was recorded of the release that comes back, verified.

use rollback_api::Plan;
use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::snapshot::{Snapshot, object_name};

use super::item::{Item, Part, sort};
use super::objects::Objects;

/// The objects of a release.
#[derive(Debug)]
pub(super) struct Loaded {
    /// In the order in which they are written.
    pub items: Vec<Item>,
    /// Names of the ControllerRevisions that hold them.
    pub names: Vec<String>,
}

/// Reads the snapshots of the plan's revisions. Fails when one is gone or does not hold what was recorded.
pub(super) async fn load(objects: &Objects<'_>, release: &str, plan: &Plan) -> Result<Loaded, BackendError> {
    let mut loaded = Loaded { items: Vec::new(), names: Vec::new() };
    for revision in &plan.revisions {
        let name = object_name(release, revision);
        let Some(stored) = objects.revision(&name).await? else {
            let message = format!(
                "ControllerRevision {name}, which holds {} of Release {release}, does not exist any more; roll back to another release",
                revision.name
            );
            return Err(BackendError::new(ErrorClass::NotFound, message));
        };
        let snapshot = Snapshot::parse(revision, &stored)
            .map_err(|error| BackendError::new(ErrorClass::Invalid, error.to_string()))?;
        for (object, kept) in snapshot.keyed() {
            let references = snapshot.references.clone();
            loaded.items.push(Item { object, snapshot: kept.clone(), part: Part::Recorded { references } });
        }
        loaded.names.push(name);
    }
    sort(&mut loaded.items);
    Ok(loaded)
}
