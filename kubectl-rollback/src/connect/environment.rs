//! What of the environment matters for connecting, read once.

use std::ffi::OsString;
use std::path::PathBuf;

/// Variables that kubectl-like tools honour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// `KUBECONFIG`: a list of files.
    pub(crate) kubeconfig: Option<OsString>,
    /// The home folder.
    pub(crate) home: Option<PathBuf>,
    /// `NO_PROXY`: hosts that are reached directly.
    pub(crate) no_proxy: Option<String>,
}

impl Environment {
    /// The process's environment.
    pub(crate) fn system() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()),
            home: std::env::home_dir(),
            no_proxy: text("NO_PROXY").or_else(|| text("no_proxy")),
        }
    }
}
