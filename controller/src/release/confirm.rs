//! What a decision rests on, read live where a watch that lags behind could do harm.

use kube::Api;
use kube::api::ListParams;
use rollback_api::Rollback;
use rollback_core::release::pass::TargetDecision;

use super::gather::{Target, in_use};
use crate::error::PassError;

/// Before the pointer moves, the releases that decide it are read live: the one that becomes active, and the one
/// that would stop being active without a later one. Says whether they are as they were known.
pub(super) async fn activity(target: &mut Target<'_>, decision: &TargetDecision) -> Result<bool, PassError> {
    let Some(wanted) = &decision.pointer else { return Ok(true) };
    let new = wanted.active.clone();
    let old = target.pointer.pointer.active.clone();
    if new == old {
        return Ok(true);
    }
    let mut same = true;
    if let Some(new) = &new {
        // A release that was stamped in this very pass was just written as it was known.
        let stamped = decision.stamps.iter().any(|stamp| stamp.release == new.release);
        same &= stamped || target.look(&new.release).await?;
    }
    if let Some(old) = old {
        let succeeded = new.is_some_and(|new| new.activation.time >= old.activation.time);
        same &= succeeded || target.look(&old.release).await?;
    }
    Ok(same)
}

/// Before anything is deleted, the Rollbacks are read live: one that was just created may name it.
/// Says whether they name what was known.
pub(super) async fn deletions(target: &mut Target<'_>, decision: &TargetDecision) -> Result<bool, PassError> {
    if decision.deletions.is_empty() {
        return Ok(true);
    }
    let rollbacks: Api<Rollback> = Api::namespaced(target.ctx.client.clone(), &target.key.namespace);
    let of_target = format!("spec.toReleaseRef.target={}", target.key.target);
    let live = rollbacks
        .list(&ListParams::default().fields(&of_target))
        .await
        .map_err(PassError::api(|| format!("list the Rollbacks of target {}", target.key)))?;
    let live =
        in_use(live.items.iter().filter(|rollback| rollback.spec.to_release_ref.target == target.key.target));
    let same = live == target.in_use;
    target.in_use = live;
    Ok(same)
}
