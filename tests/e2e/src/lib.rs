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

use std::sync::OnceLock;
use std::time::Duration;

use rollback_rig::{ControlPlane, Options, eventually};

/// Longest wait for anything that should happen soon. Generous: the machine is shared.
pub const SOON: Duration = Duration::from_secs(60);

static KINDS: OnceLock<Result<ControlPlane, String>> = OnceLock::new();

/// A control plane of its own with our custom resource definitions served and nothing else of ours: what their rules
/// say must not be hidden by a webhook.
pub async fn with_kinds() -> &'static ControlPlane {
    let started = tokio::task::spawn_blocking(|| KINDS.get_or_init(start_kinds)).await;
    started.expect("the start does not panic").as_ref().unwrap_or_else(|error| panic!("{error}"))
}

/// On a runtime of its own: the caller's ends with its test.
fn start_kinds() -> Result<ControlPlane, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let started = runtime.block_on(async {
        let cp = ControlPlane::launch(Options::default()).await?;
        cp.install_kinds().await?;
        anyhow::Ok(cp)
    });
    started.map_err(|error| format!("{error:#}"))
}

/// Waits until `look` succeeds; its error says why the condition does not hold yet. Fails the test after [`SOON`].
pub async fn soon<T, F, Fut>(what: &str, look: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = anyhow::Result<T>>,
{
    eventually(SOON, what, look).await.unwrap_or_else(|error| panic!("{error:#}"))
}
