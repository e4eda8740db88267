//! The rollback controller: carries out what `rollback_core::rollback` decides, step by step.

mod pacing;

use std::sync::Arc;

pub use pacing::Pacing;

use crate::context::Context;
use crate::error::PassError;
use crate::queue::Next;
use crate::target::TargetKey;

/// Follows every Rollback of the target until it has to wait.
pub async fn pass(ctx: Arc<Context>, key: TargetKey) -> Result<Next, PassError> {
    let _ = (ctx, key);
    Ok(Next::Idle)
}
