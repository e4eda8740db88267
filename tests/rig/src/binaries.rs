//! The programs of the control plane: built from the Go modules in `tests/control-plane` into a
//! cache, or taken from the folder that `KUBEBUILDER_ASSETS` names.

mod cache;
mod go;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Result, anyhow, bail};

use go::{Module, Program};

/// A folder with ready programs; set, it replaces the build.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Where the programs of a control plane are.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd
    pub etcd: PathBuf,
    /// kube-apiserver
    pub apiserver: PathBuf,
    /// kube-controller-manager
    pub controller_manager: PathBuf,
    /// kube-scheduler
    pub scheduler: PathBuf,
    /// kubectl
    pub kubectl: PathBuf,
}

const KUBERNETES: Module = Module {
    folder: "kubernetes",
    requirement: "k8s.io/kubernetes",
    // Unstamped they report v0.0.0-master, and clients that parse the version stumble.
    version_package: Some("k8s.io/component-base/version"),
    duration: "about five minutes",
    programs: &[
        Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
        Program { name: "kube-controller-manager", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
        Program { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler" },
        Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
    ],
};

const ETCD: Module = Module {
    folder: "etcd",
    requirement: "go.etcd.io/etcd/server/v3",
    version_package: None,
    duration: "about half a minute",
    programs: &[Program { name: "etcd", package: "go.etcd.io/etcd/server/v3" }],
};

const HELM: Module = Module {
    folder: "helm",
    requirement: "helm.sh/helm/v4",
    version_package: None,
    duration: "about two minutes",
    programs: &[Program { name: "helm", package: "helm.sh/helm/v4/cmd/helm" }],
};

/// The programs of the control plane and kubectl. Builds them when they are not in the cache:
/// minutes, the first time. Blocks; later calls in the same process return at once.
///
/// Fails when Go is missing or the build fails, or when `KUBEBUILDER_ASSETS` is set and lacks one.
pub fn control_plane() -> Result<&'static Binaries> {
    static FOUND: OnceLock<Result<Binaries, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let find = || {
            let etcd = find(&ETCD)?;
            let kubernetes = find(&KUBERNETES)?;
            Ok::<_, anyhow::Error>(Binaries {
                etcd: etcd.join("etcd"),
                apiserver: kubernetes.join("kube-apiserver"),
                controller_manager: kubernetes.join("kube-controller-manager"),
                scheduler: kubernetes.join("kube-scheduler"),
                kubectl: kubernetes.join("kubectl"),
            })
        };
        find().map_err(|error| format!("{error:#}"))
    });
    found.as_ref().map_err(|error| anyhow!("{error}"))
}

/// The helm program; built on its own because few tests need it. Blocks. Fails like [`control_plane`].
pub fn helm() -> Result<PathBuf> {
    Ok(find(&HELM)?.join("helm"))
}

/// The folder that holds all programs of `module`.
fn find(module: &Module) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(ASSETS).filter(|folder| !folder.is_empty()) {
        let folder = PathBuf::from(folder);
        check_assets(&folder, module)?;
        return Ok(folder);
    }
    cache::built(module)
}

fn check_assets(folder: &Path, module: &Module) -> Result<()> {
    let missing: Vec<&str> = module
        .programs
        .iter()
        .map(|program| program.name)
        .filter(|name| !folder.join(name).is_file())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "{ASSETS} is set, but its folder lacks {}: put them there, or unset {ASSETS} to build them from source",
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assets_folder_without_some_programs_is_refused_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kube-apiserver", "kubectl"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let error = check_assets(folder.path(), &KUBERNETES).unwrap_err().to_string();
        assert!(error.contains("lacks kube-controller-manager, kube-scheduler:"), "{error}");
        assert!(check_assets(folder.path(), &ETCD).is_err());
        std::fs::write(folder.path().join("etcd"), "").unwrap();
        check_assets(folder.path(), &ETCD).unwrap();
    }

    #[test]
    fn every_module_names_its_version() {
        for module in [KUBERNETES, ETCD, HELM] {
            let version = module.version().unwrap();
            assert!(version.starts_with('v') && version.split('.').count() == 3, "{version}");
        }
    }
}
