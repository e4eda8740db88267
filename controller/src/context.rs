//! What every pass may use.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use rollback_api::{Release, Rollback};
use rollback_core::rollback::observed;

use crate::deployers::Deployers;
use crate::events::Events;
use crate::fence::Fence;
use crate::index::{self, Index};
use crate::metrics::Metrics;
use crate::queue::{Queue, Requests};
use crate::rollback::Pacing;
use crate::target::TargetKey;

/// What every pass may use. Always behind an [`Arc`].
pub struct Context {
    /// The API client.
    pub client: Client,
    /// What the watches show.
    pub stores: Stores,
    /// How the controller is set up.
    pub settings: Settings,
    /// Ask it right before every effect outside the process.
    pub fence: Fence,
    /// Kubernetes events.
    pub events: Events,
    /// Metrics.
    pub metrics: Metrics,
    /// The queues of passes.
    pub queues: Queues,
    /// The backends that are enabled.
    pub deployers: Deployers,
    /// When which deployment is asked about.
    pub pacing: Pacing,
}

/// What the watches show of our own kinds; without `managedFields`.
#[derive(Clone, Debug)]
pub struct Stores {
    /// All Releases.
    pub releases: Arc<Index<Release>>,
    /// All Rollbacks.
    pub rollbacks: Arc<Index<Rollback>>,
    /// All target pointers.
    pub pointers: Arc<Index<ConfigMap>>,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            releases: Index::new(index::of_release),
            rollbacks: Index::new(index::of_rollback),
            pointers: Index::new(index::of_pointer),
        }
    }
}

/// How the controller is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the decisions about Rollbacks ask for.
    pub rollback: observed::Settings,
    /// How long a backend may take to answer one call.
    pub backend_timeout: Duration,
    /// Ended Rollbacks to keep for each target.
    pub rollback_history_limit: usize,
    /// How long the set of workloads must have been quiet before it is recorded.
    pub recording_quiet_period: Duration,
    /// How long a release must have been ready before it counts as healthy.
    pub minimum_active_time: Duration,
    /// How long pods may stay unready before the rollout counts as failed.
    pub rollout_failure_after: Duration,
}

/// One queue for each kind of pass. A request for a controller that does not run goes nowhere.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Passes of the release controller.
    pub release: Queue,
    /// Passes of the rollback controller.
    pub rollback: Queue,
    /// Passes of the recording controller.
    pub recording: Queue,
}

/// The other ends of [`Queues`].
#[derive(Debug)]
pub struct AllRequests {
    /// For the release controller.
    pub release: Requests,
    /// For the rollback controller.
    pub rollback: Requests,
    /// For the recording controller.
    pub recording: Requests,
}

impl Queues {
    /// New queues.
    pub fn new() -> (Self, AllRequests) {
        let (release, release_requests) = Queue::new();
        let (rollback, rollback_requests) = Queue::new();
        let (recording, recording_requests) = Queue::new();
        (
            Self { release, rollback, recording },
            AllRequests {
                release: release_requests,
                rollback: rollback_requests,
                recording: recording_requests,
            },
        )
    }

    /// Asks all controllers to look at the target.
    pub fn all_now(&self, key: &TargetKey) {
        self.release.now(key);
        self.rollback.now(key);
        self.recording.now(key);
    }
}

impl Context {
    /// Something happened to what is being deployed for the target: the deployment is asked about at once. For backends
    /// that can be watched.
    pub fn wake(&self, key: &TargetKey) {
        self.pacing.wake(key);
        self.queues.rollback.now(key);
    }
}
