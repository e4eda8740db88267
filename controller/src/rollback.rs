//! The rollback controller: carries out what `rollback_core::rollback` decides, step by step.

mod announce;
mod apply;
mod call;
mod driver;
mod gather;
mod history;
mod pacing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use pacing::Pacing;
use rollback_api::Rollback;
use rollback_core::rollback::RollbackView;

use crate::context::Context;
use crate::error::PassError;
use crate::queue::Next;
use crate::target::TargetKey;
use gather::Target;

/// Follows every Rollback of the target until it has to wait.
pub async fn pass(ctx: Arc<Context>, key: TargetKey) -> Result<Next, PassError> {
    let mut rollbacks = ctx.stores.rollbacks.of(&key);
    if rollbacks.is_empty() {
        ctx.pacing.keep(&key, |_| false);
        return Ok(Next::Idle);
    }
    let mut target =
        Target::gather(&ctx, &key, &rollbacks).inspect_err(|error| unreadable(&ctx, &rollbacks, error))?;
    rollbacks.sort_by_cached_key(|rollback| {
        let view = RollbackView::of(rollback);
        (view.created, view.uid)
    });
    let mut next = Next::Idle;
    let mut failed = None;
    for rollback in &rollbacks {
        if target.at_rest(rollback) {
            continue;
        }
        match driver::follow(&mut target, Rollback::clone(rollback)).await {
            Ok(wait) => next = next.earlier(wait),
            Err(PassError::Stopped(why)) => return Err(why.into()),
            // One that cannot go on holds up only those that wait for it.
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    history::trim(&target, &rollbacks).await?;
    ctx.pacing
        .keep(&key, |uid| rollbacks.iter().any(|rollback| rollback.metadata.uid.as_deref() == Some(uid)));
    failed.map_or(Ok(next), Err)
}

/// Nothing can be decided about the target: who waits for a rollback should hear why.
fn unreadable(ctx: &Context, rollbacks: &[Arc<Rollback>], error: &PassError) {
    for rollback in rollbacks.iter().filter(|rollback| !RollbackView::of(rollback).phase.is_ended()) {
        ctx.events.warning(&**rollback, "TargetUnreadable", "Decide", &error.to_string());
    }
}
