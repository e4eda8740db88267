//! One control plane for all tests of a test binary.

use std::sync::OnceLock;

use anyhow::{Result, anyhow};

use crate::control_plane::{ControlPlane, Options};

static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();

/// The control plane of this process, started by the first caller; the others wait. When it does
/// not start, every caller gets the same error.
///
/// Tests on different runtimes may use it: it holds no connection, and [`ControlPlane::client`]
/// makes new ones. It is killed when the process ends.
pub async fn shared() -> Result<&'static ControlPlane> {
    let shared = tokio::task::spawn_blocking(|| SHARED.get_or_init(start)).await?;
    shared.as_ref().map_err(|error| anyhow!("{error}"))
}

/// On a runtime of its own: the caller's ends with its test.
fn start() -> Result<ControlPlane, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime to start the control plane: {error}"))?;
    runtime.block_on(ControlPlane::launch(Options::default())).map_err(|error| format!("{error:#}"))
}
