//! What the end-to-end tests share: the control plane with our kinds, roles and programs installed.
//!
//! Everything here may fail a test by panicking; it is not part of any program.
#![expect(clippy::missing_panics_doc, reason = "a test helper that cannot go on fails the test")]
#![expect(clippy::expect_used, clippy::panic, reason = "a test helper that cannot go on fails the test")]

pub mod bench;
pub mod json_api;
pub mod objects;
pub mod scripted;
pub mod service;
pub mod system;

use std::time::Duration;

use rollback_rig::{ControlPlane, eventually};

/// Longest wait for anything that should happen soon. Generous: the machine is shared.
pub const SOON: Duration = Duration::from_secs(60);

/// The shared control plane with our custom resource definitions served.
pub async fn with_kinds() -> &'static ControlPlane {
    let cp = rollback_rig::shared().await.expect("the control plane starts");
    cp.install_kinds().await.expect("the definitions are served");
    cp
}

/// Waits until `look` succeeds; its error says why the condition does not hold yet. Fails the test after [`SOON`].
pub async fn soon<T, F, Fut>(what: &str, look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    eventually(SOON, what, look).await.unwrap_or_else(|error| panic!("{error:#}"))
}
