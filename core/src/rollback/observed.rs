//! Everything a decision about a Rollback may look at.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Backend, Plan, Rollback};

use super::RollbackView;
use crate::backend::{BackendError, Cancellation, Deployment};
use crate::pointer::Pointer;
use crate::release::ReleaseView;

/// What is known when the next step is decided.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Now.
    pub now: Timestamp,
    /// The Rollback as it was last read or written by us.
    pub rollback: &'a Rollback,
    /// All other Rollbacks of the target in the namespace. The one that holds the pointer's lock is
    /// among them whenever it exists: read live if the cache does not have it.
    pub others: &'a [RollbackView],
    /// The target's pointer as it was last read or written by us.
    pub pointer: &'a Pointer,
    /// The two releases, once they were read live in this pass.
    pub releases: Option<&'a Releases>,
    /// The answer to the last `Call`, `Activate` or attempt-adding `Persist` of this pass. Any later
    /// `Persist` clears it; reads, pointer writes and finalizer changes keep it.
    pub evidence: Option<&'a Evidence>,
    /// How the controller is set up.
    pub settings: &'a Settings,
    /// Between 0 and 1, new for each pass: jitter of the back-off.
    pub jitter: f64,
    /// Polls of the current deployment that failed in a row for a reason that asking again cannot mend.
    pub failed_polls: u32,
    /// Whether a poll (or another try of a call that was put off) is due; a watchable backend makes it due at once.
    pub poll_due: bool,
}

/// How the controller is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Backends that may be used; the first is the default.
    pub backends: Vec<Backend>,
    /// Whether a Rollback that the webhook never saw may be resolved by the controller (rule 9).
    pub adopt_unadmitted: bool,
    /// Shortest wait before another attempt.
    pub backoff_base: Duration,
    /// Longest wait before another attempt.
    pub backoff_cap: Duration,
}

/// The two releases as read live.
#[derive(Clone, Debug, PartialEq)]
pub struct Releases {
    /// The release to leave; `None` if it does not exist.
    pub from: Option<ReleaseView>,
    /// The release to deploy; `None` if it does not exist.
    pub to: Option<ReleaseView>,
    /// All releases of the target; read only when a choice has to be made without the webhook (rule 9).
    pub all: Vec<ReleaseView>,
}

/// The answer to a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// The `Persist` before added the attempt: it was persisted in this very pass, so nothing carries its key yet.
    NewAttempt,
    /// To `Plan`.
    Planned(Result<Plan, BackendError>),
    /// To `Find`: the deployment that carries the key.
    Found(Result<Option<Deployment>, BackendError>),
    /// To `Trigger`.
    Triggered(Result<Deployment, BackendError>),
    /// To `Poll`.
    Polled(Result<Deployment, BackendError>),
    /// To `Cancel`.
    Cancelled(Result<Cancellation, BackendError>),
    /// To `PollAbandoned`: the deployment that an ended Rollback left behind.
    AbandonedPolled(Result<Deployment, BackendError>),
    /// To `CancelAbandoned`.
    AbandonedCancelled(Result<Cancellation, BackendError>),
    /// To `Activate`: the request is on the release.
    ActivationRequested,
}
