//! The objects of recorded releases.

use std::sync::Arc;

use rollback_api::Release;
use rollback_core::workload::content;
use rollback_core::workload::set::{self, Set};
use rollback_core::workload::snapshot::{Snapshot, object_name};

use super::live;
use super::memory::Memories;
use crate::context::Context;
use crate::error::PassError;
use crate::target::TargetKey;

/// The objects of a release; `None` when they cannot be known: it was not recorded from workloads, or its snapshots are
/// gone.
pub(super) async fn of(
    ctx: &Context,
    key: &TargetKey,
    memories: &Memories,
    release: &Release,
) -> Result<Option<Arc<Set>>, PassError> {
    if let Some(named) = set::named(release) {
        return Ok(Some(Arc::new(named)));
    }
    if !set::is_recorded(release) {
        return Ok(None);
    }
    let uid = release.metadata.uid.as_deref().unwrap_or_default();
    if let Some(known) = memories.set(uid) {
        return Ok(Some(known));
    }
    let mut all = Set::new();
    for revision in &release.spec.config.revisions {
        let name = object_name(release.metadata.name.as_deref().unwrap_or_default(), revision);
        let stored = live::revisions(ctx, key)
            .get_opt(&name)
            .await
            .map_err(PassError::api(|| format!("read ControllerRevision {}/{name}", key.namespace)))?;
        let Some(snapshot) = stored.and_then(|stored| Snapshot::parse(revision, &stored).ok()) else {
            return Ok(None);
        };
        let ids = snapshot.keyed().into_iter().map(|(key, object)| {
            let id = content::id(key.kind, object);
            (key, id)
        });
        all.extend(ids);
    }
    let all = Arc::new(all);
    memories.keep_set(uid, &all);
    Ok(Some(all))
}
