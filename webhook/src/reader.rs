//! What admission reads: live, never from a cache, since it decides about "now" (H-11, H-56).

mod live;

use rollback_api::AutomatedRollbackPolicy;
use rollback_core::admission::TargetState;
use rollback_core::pointer::PointerError;

pub use live::Live;

/// Reads what a decision needs.
pub trait Reader: Send + Sync + 'static {
    /// The state of a target. `named` is a release that the Rollback names, if it does; names may be anything.
    fn target(
        &self,
        namespace: &str,
        target: &str,
        named: Option<&str>,
    ) -> impl Future<Output = Result<TargetState, ReadError>> + Send;

    /// The policies of a target.
    fn policies(
        &self,
        namespace: &str,
        target: &str,
    ) -> impl Future<Output = Result<Vec<AutomatedRollbackPolicy>, ReadError>> + Send;
}

/// Why nothing could be decided. Nothing is admitted then.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The API server took too long.
    #[error("the API server did not answer in time")]
    Timeout,
    /// The webhook lacks a permission.
    #[error(
        "the webhook may not read {what} in namespace {namespace}: bind its service account to the ClusterRole rollback-webhook"
    )]
    Forbidden {
        /// What was to be read.
        what: String,
        /// Where.
        namespace: String,
    },
    /// The kind is not installed.
    #[error("the API server does not know {what}: install the custom resource definitions")]
    NotInstalled {
        /// What was to be read.
        what: String,
    },
    /// The target's pointer is damaged.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// Anything else.
    #[error("{what} could not be read: {why}")]
    Other {
        /// What was to be read.
        what: String,
        /// What the client said.
        why: String,
    },
}
