//! The whole system on the shared control plane, started once for all tests.

use std::sync::OnceLock;

use crate::scripted::ScriptedBackend;
use rollback_rig::ControlPlane;
use rollback_rig::install::{Install, Installed};

static SYSTEM: OnceLock<Result<Installed, String>> = OnceLock::new();

/// The shared control plane with the webhook and the controller running under their shipped service accounts.
/// The default backend is `workload`; `noop` is enabled too, and `github` is the scripted backend of debug builds.
pub async fn with_system() -> (&'static ControlPlane, &'static Installed) {
    let cp = rollback_rig::shared().await.expect("the control plane starts");
    let started = tokio::task::spawn_blocking(move || SYSTEM.get_or_init(|| start(cp))).await;
    match started.expect("the start does not panic") {
        Ok(installed) => (cp, installed),
        Err(error) => panic!("{error}"),
    }
}

/// On a runtime of its own: the caller's ends with its test.
fn start(cp: &ControlPlane) -> Result<Installed, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(cp.install(&quick())).map_err(|error| format!("{error:#}"))
}

/// Backends and timings that suit tests.
pub fn quick() -> Install {
    let arguments = |all: &[&str]| all.iter().map(|&argument| argument.to_owned()).collect();
    Install {
        backends: arguments(&["workload", "noop", "github"]),
        controller: arguments(&[
            "--recording-quiet-period=1s",
            "--minimum-active-time=2s",
            "--rollout-failure-after=5s",
            "--backoff-base=1s",
            "--backend-timeout=3s",
        ]),
        webhook: Vec::new(),
        controller_env: vec![(
            "ROLLBACK_SCRIPTED_BACKEND".to_owned(),
            ScriptedBackend::shared().url().to_owned(),
        )],
    }
}
