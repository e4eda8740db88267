//! The release controller: one pass over all releases of a target.
//!
//! Gathers what the watches show; if that calls for a write, reads the pointer live, decides (`rollback_core`), checks
//! live what the decision rests on, and applies it in its order. Every write names the version that was seen, so a pass
//! may be cut off anywhere and another one may be faster: the next pass goes on from what is stored.

mod announce;
mod apply;
mod confirm;
mod gather;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rollback_core::release::culling::DEFAULT_LIMIT;

use crate::context::Context;
use crate::error::PassError;
use crate::pointer;
use crate::queue::Next;
use crate::target::TargetKey;

use apply::Applied;
use gather::Target;

/// Decisions in one pass: each conflict takes one, and so does each Rollback whose activation was reported late.
const ROUNDS: usize = 20;

/// Brings the target's pointer and the status of its releases up to date.
pub async fn pass(ctx: Arc<Context>, key: TargetKey) -> Result<Next, PassError> {
    let mut target = Target::cached(&ctx, &key)?;
    let first = target.decide(usize::MAX);
    announce::notes(&target, &first.notes);
    // Nearly all passes end here, without a call.
    if first.is_idle() && target.releases.len() <= DEFAULT_LIMIT {
        return Ok(Next::Idle);
    }
    let limit = gather::limit(&ctx, &key, target.releases.len()).await?;
    for _ in 0..ROUNDS {
        target.pointer = pointer::live(&ctx, &key).await?;
        let decision = target.decide(limit);
        if decision.is_idle() {
            return Ok(Next::Idle);
        }
        if !confirm::deletions(&mut target, &decision).await? {
            continue;
        }
        match apply::apply(&mut target, &decision).await? {
            Applied::All if !decision.again => return Ok(Next::Idle),
            Applied::All | Applied::Overtaken => {}
        }
    }
    Err(PassError::Contended { doing: format!("bring the releases of target {key} up to date") })
}
