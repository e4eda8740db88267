//! Annotation keys. All share one prefix; who may write each is part of its meaning.

/// On a Release: exactly `true` asks for activation (an input edge); the
/// release controller removes it from a release that another one replaced.
pub const ACTIVE: &str = "theatre.gocardless.com/active";
/// On a Release: RFC 3339, becomes `status.deploymentStartTime`.
pub const DEPLOYMENT_START_TIME: &str = "theatre.gocardless.com/deployment-start-time";
/// On a Release: RFC 3339, becomes `status.deploymentEndTime` and orders activations.
pub const DEPLOYMENT_END_TIME: &str = "theatre.gocardless.com/deployment-end-time";
/// On a Release: name of the release it replaced, becomes `status.previousRelease.releaseRef`.
pub const PREVIOUS_RELEASE: &str = "theatre.gocardless.com/previous-release";
/// On a Release: label selector text for extra analysis templates.
pub const ANALYSIS_SELECTOR: &str = "theatre.gocardless.com/analysis-selector";
/// On a Release: `true` opts out of global cluster analysis templates.
pub const NO_GLOBAL_ANALYSIS: &str = "theatre.gocardless.com/no-global-analysis";
/// On a Namespace: how many releases to keep for each target (default 30, at least 1).
pub const RELEASE_LIMIT: &str = "theatre.gocardless.com/release-limit";

/// Added. On a Release, with [`ACTIVE`]: JSON of [`crate::Activation`], written
/// by whoever knows exactly which deployment activates the release (a finished
/// Rollback, the recorder). Without it the controller makes the activation itself.
pub const ACTIVATION: &str = "theatre.gocardless.com/activation";
/// Added. On a Release: why it must not be chosen; naming it needs `--force` (rule 22).
pub const ROLLBACK_BLOCKED: &str = "theatre.gocardless.com/rollback-blocked";
/// Added. On a Release: the signature its author expects; must match (rule 22).
pub const SIGNATURE: &str = "theatre.gocardless.com/signature";
/// Added. On a Release: JSON of the health verdict of its current activation, written
/// by a health source (rollout health). Becomes the conditions Healthy and RollbackRequired.
pub const HEALTH: &str = "theatre.gocardless.com/health";

/// Added. On a Rollback: why it should stop. Asks for cancellation.
pub const CANCEL: &str = "theatre.gocardless.com/cancel";
/// Added. On a Rollback: ends its hold (rule 14).
pub const RELEASE_HOLD: &str = "theatre.gocardless.com/release-hold";
/// Added. On a Rollback, written by the webhook alone: the authenticated user who created it (rule 7).
pub const AUTHENTICATED_AS: &str = "theatre.gocardless.com/authenticated-as";
/// Added. On a Rollback, written by the webhook alone: the authenticated user who asked for cancellation.
pub const CANCELLED_BY: &str = "theatre.gocardless.com/cancelled-by";
/// Added. On a Rollback, written by the webhook alone: SHA-256 (hex) of the spec as submitted,
/// in canonical form, before anything was filled in (rule 6).
pub const SUBMITTED_HASH: &str = "theatre.gocardless.com/submitted-hash";
/// Added. On a Rollback: `true` goes on although a check that only warns of harm failed
/// (a blocked or unhealthy release named on purpose).
pub const FORCE: &str = "theatre.gocardless.com/force";

/// Added. On a workload or ConfigMap: the key of the attempt that wrote it last (workload backend).
pub const ATTEMPT_KEY: &str = "theatre.gocardless.com/attempt-key";
