//! What to do next about a Rollback.

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Activation, Backend, FromReleaseRef, Plan, ReleaseRef, RollbackStatus};

use crate::pointer::{Abandoned, Pointer};

/// The next step. Exactly one effect; each is idempotent.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write this status (compare-and-swap on resourceVersion), then decide again on the answer.
    Persist(Box<RollbackStatus>),
    /// Add our finalizer to the Rollback.
    AddFinalizer,
    /// Remove it.
    RemoveFinalizer,
    /// Write the pointer (compare-and-swap). On a conflict read it again and decide again.
    WritePointer(Box<Pointer>),
    /// GET both releases, the pointer and the Rollback itself live (H-3); with `all`, list the target's releases.
    /// If the Rollback differs from the one that was decided about, the evidence no longer counts: drop it.
    ReadReleases {
        /// Name of the release to leave; may be empty.
        from: String,
        /// Name of the release to deploy; may be empty.
        to: String,
        /// Whether a choice has to be made.
        all: bool,
    },
    /// Call a backend. Leadership is checked again right before.
    Call(Backend, Call),
    /// Ask the release controller to make the release active: annotate it.
    Activate {
        /// Name of the release.
        release: String,
        /// The event.
        activation: Activation,
    },
    /// Fill in what the webhook would have (rule 9): merge-patch these into the spec.
    Adopt {
        /// The release to leave.
        from: FromReleaseRef,
        /// The release to deploy.
        to: ReleaseRef,
    },
    /// Delete the Rollback: its time to live has passed.
    Delete,
    /// Nothing now. Look again then, or when something changes.
    Wait(Until),
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Only when something changes.
    Change,
    /// At this time, or when something changes.
    Time(Timestamp),
    /// When the next poll is due (the driver paces polls), or at this time, or when something changes.
    Poll(Timestamp),
}

/// A call to a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Work out what to deploy; touches nothing. `deployment_options` are resolved by the driver against the release.
    Plan,
    /// Look for the deployment that carries the key.
    Find {
        /// The attempt's key.
        key: String,
        /// What it deploys.
        plan: Box<Plan>,
    },
    /// Deploy, marked with the key.
    Trigger {
        /// The attempt's key.
        key: String,
        /// What to deploy.
        plan: Box<Plan>,
    },
    /// Ask how the deployment stands.
    Poll {
        /// The attempt's key.
        key: String,
        /// The backend's id.
        id: String,
        /// What it deploys, if that is known (a rollback begun by theatre has no plan).
        plan: Option<Box<Plan>>,
    },
    /// Stop the deployment.
    Cancel {
        /// The attempt's key.
        key: String,
        /// The backend's id.
        id: String,
    },
    /// Ask how a deployment stands that an ended Rollback left behind.
    PollAbandoned(Abandoned),
    /// Stop a deployment that an ended Rollback left behind.
    CancelAbandoned(Abandoned),
}
