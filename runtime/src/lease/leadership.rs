//! What the rest of the process knows about leading.

use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

/// This process led and does not any more. End the process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("leadership lost: {reason}")]
pub struct LeadershipLost {
    /// What happened.
    pub reason: String,
}

/// Whether this process leads. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leadership {
    state: watch::Receiver<State>,
}

#[derive(Debug, Clone)]
pub(super) enum State {
    /// Not leading yet.
    Waiting,
    /// Leading until the deadline passes.
    Leading(Trust),
    /// Led, and failed to keep the Lease.
    Lost(LeadershipLost),
    /// Gave the Lease back on purpose.
    Released,
    /// Election is off.
    Always,
}

/// How long a confirmed renewal is trusted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trust {
    pub(super) until: Instant,
    pub(super) began: SystemTime,
    pub(super) lasts: Duration,
}

impl Trust {
    fn holds(&self) -> bool {
        // The steady clock decides. It may stand still while a machine is
        // suspended, so the wall clock must not show more time either; one that
        // stepped back shows nothing.
        let wall_passed = SystemTime::now().duration_since(self.began).unwrap_or_default();
        Instant::now() < self.until && wall_passed < self.lasts
    }
}

impl Leadership {
    pub(super) fn new(state: watch::Receiver<State>) -> Self {
        Self { state }
    }

    /// Leadership without election.
    pub fn always() -> Self {
        Self::new(watch::channel(State::Always).1)
    }

    /// Whether this process leads at this moment. Ask right before every
    /// effect outside the process.
    pub fn is_leader_now(&self) -> bool {
        match &*self.state.borrow() {
            State::Always => true,
            State::Leading(trust) => trust.holds(),
            State::Waiting | State::Lost(_) | State::Released => false,
        }
    }

    /// Resolves when this process leads. Never, when it has lost or given back
    /// the Lease before.
    pub async fn wait_acquired(&self) {
        let leads = |state: &State| matches!(state, State::Leading(_) | State::Always);
        if self.state.clone().wait_for(leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when this process led and does not any more. Never after a
    /// release, or when election is off.
    pub async fn lost(&self) -> LeadershipLost {
        let mut state = self.state.clone();
        loop {
            if let State::Lost(lost) = &*state.borrow_and_update() {
                return lost.clone();
            }
            if state.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
