//! The recording controller: labelled workloads become Releases, their rollouts become health.

use std::sync::Arc;

use crate::context::Context;
use crate::error::PassError;
use crate::queue::Next;
use crate::target::TargetKey;
use crate::watch::Watches;

/// The recording controller.
pub struct Recording {
    ctx: Arc<Context>,
}

impl Recording {
    /// Begins to watch what is to be recorded.
    pub fn start(ctx: Arc<Context>, watches: &mut Watches) -> Arc<Self> {
        let _ = watches;
        Arc::new(Self { ctx })
    }

    /// Records what changed about the target, and how healthy it is.
    pub async fn pass(self: Arc<Self>, key: TargetKey) -> Result<Next, PassError> {
        let _ = (&self.ctx, key);
        Ok(Next::Idle)
    }
}
