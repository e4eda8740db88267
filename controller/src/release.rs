//! The release controller: one pass over all releases of a target.

use std::sync::Arc;

use crate::context::Context;
use crate::error::PassError;
use crate::queue::Next;
use crate::target::TargetKey;

/// Brings the target's pointer and the status of its releases up to date.
pub async fn pass(ctx: Arc<Context>, key: TargetKey) -> Result<Next, PassError> {
    let _ = (ctx, key);
    Ok(Next::Idle)
}
