//! The API of the rollback system: the three kinds of group
//! `deploy.crd.gocardless.com/v1alpha1`, their constants and the generation of
//! their custom resource definitions. Types only: no I/O, no decisions.
//!
//! Field names, condition types, reasons, annotations, labels and printer
//! columns are those of gocardless/theatre, so that existing objects and tools
//! work unchanged; what we add is optional and marked "added" in its doc comment.
#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn of #[kube] has the same keys; clippy reads them as one list"
)]

pub mod annotations;
pub mod conditions;
mod crd;
pub mod labels;
pub mod policy;
pub mod release;
pub mod rollback;

pub use crd::{all as crds, yaml_name};
pub use policy::{AutomatedRollbackPolicy, AutomatedRollbackPolicySpec, AutomatedRollbackPolicyStatus};
pub use release::{
    Activation, Release, ReleaseConfig, ReleaseFields, ReleaseStatus, Revision, RevisionMetadata,
};
pub use rollback::{
    Attempt, AttemptState, Backend, FromReleaseRef, Hold, InitiatedBy, Plan, ReleaseRef, Rollback,
    RollbackSpec, RollbackStatus,
};

/// The API group of all three kinds.
pub const GROUP: &str = "deploy.crd.gocardless.com";
/// The one version, served and stored.
pub const VERSION: &str = "v1alpha1";
