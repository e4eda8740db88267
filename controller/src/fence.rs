//! Whether this process may still act. Asked right before every effect outside the process.

use rollback_runtime::lease::Leadership;
use tokio_util::sync::CancellationToken;

use crate::error::Stopped;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fence {
    leadership: Leadership,
    stop: CancellationToken,
}

impl Fence {
    /// `stop` is cancelled when no new work may begin.
    pub fn new(leadership: Leadership, stop: CancellationToken) -> Self {
        Self { leadership, stop }
    }

    /// A fence that lets everything pass, for tests.
    pub fn open() -> Self {
        Self::new(Leadership::always(), CancellationToken::new())
    }

    /// Fails when this process must not begin another effect.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.stop.is_cancelled() {
            return Err(Stopped::ShuttingDown);
        }
        if self.leadership.is_leader_now() { Ok(()) } else { Err(Stopped::NotLeading) }
    }

    /// Cancelled when no new work may begin.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}
