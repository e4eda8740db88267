//! Label keys with a meaning to us.

/// On a workload or ConfigMap: the target it belongs to. Also on our own
/// bookkeeping objects (the target pointer, snapshots).
pub const TARGET: &str = "theatre.gocardless.com/target";
/// On our own bookkeeping objects: what they are (`pointer`, `snapshot`).
pub const COMPONENT: &str = "theatre.gocardless.com/component";
/// Value of [`COMPONENT`] on the one pointer ConfigMap of a target (rule 2).
pub const COMPONENT_POINTER: &str = "pointer";
/// Value of [`COMPONENT`] on the ControllerRevisions that hold a release's content (rule 17).
pub const COMPONENT_SNAPSHOT: &str = "snapshot";
