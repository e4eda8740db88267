//! The cache of built programs: one folder for each content of a module and each platform.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::hex::hex;

use super::go::{Module, say};

/// The folder with the programs of `module`, built when it does not exist yet.
///
/// Several processes may ask at once: one builds, the others wait for its lock.
pub(super) fn built(module: &Module) -> Result<PathBuf> {
    let root = root()?;
    let folder = root.join(key(module)?);
    if folder.is_dir() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&root)
        .with_context(|| format!("cannot create the cache folder {}", root.display()))?;
    let _lock = lock(&root.join(format!("{}.lock", module.folder)), module)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    // Built beside its place and renamed, so that a build that is cut short leaves no half folder.
    let unfinished = tempfile::Builder::new().prefix("building-").tempdir_in(&root)?;
    let out = unfinished.path().join("bin");
    std::fs::create_dir(&out)?;
    module.build(&out)?;
    std::fs::rename(&out, &folder)
        .with_context(|| format!("cannot move the built programs to {}", folder.display()))?;
    Ok(folder)
}

/// Held until the file is dropped; the system releases it when the process dies.
fn lock(path: &Path, module: &Module) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot open the lock file {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another process that builds {}", module.folder));
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the cache of programs"),
    }
    Ok(file)
}

fn root() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("no place to keep the programs of the control plane: set XDG_CACHE_HOME or HOME")?;
    Ok(cache.join("kubectl-rollback").join("control-plane"))
}

/// For example `kubernetes-v1.37.2-linux-x86_64-1a2b3c4d`: the last part stands for go.mod and
/// go.sum, so that a bumped dependency is built as well.
fn key(module: &Module) -> Result<String> {
    let mut hash = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let content = std::fs::read(module.path().join(file))
            .with_context(|| format!("cannot read tests/control-plane/{}/{file}", module.folder))?;
        hash.update(content);
    }
    let digest = hex(&hash.finalize()[..4]);
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    Ok(format!("{}-{}-{os}-{arch}-{digest}", module.folder, module.version()?))
}
