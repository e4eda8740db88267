//! The programs of this workspace, built once so that a test always runs the current ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::environment::set_by_cargo;

/// A folder that holds the programs already; set, it replaces the build.
const BIN_DIR: &str = "ROLLBACK_BIN_DIR";

static BUILT: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();

/// The path of one of this workspace's programs, for example `rollback-webhook`.
///
/// The first call in a process builds all of them, with the features that `cargo test --workspace`
/// uses; with `ROLLBACK_BIN_DIR` set nothing is built and the program is taken from that folder.
/// Blocks while building. Fails when the build fails or when there is no such program.
pub fn workspace_binary(name: &str) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(BIN_DIR).filter(|folder| !folder.is_empty()) {
        let path = Path::new(&folder).join(name);
        if !path.is_file() {
            bail!("{name} is not in the folder that {BIN_DIR} names: build it there, or unset {BIN_DIR}");
        }
        return Ok(path.canonicalize()?);
    }
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let built = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    built.get(name).cloned().with_context(|| {
        let known: Vec<&str> = built.keys().map(String::as_str).collect();
        format!("this workspace has no program {name}; it has {}", known.join(", "))
    })
}

/// What cargo says about a finished target; other messages lack these fields.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: Option<PathBuf>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

fn build() -> Result<BTreeMap<String, PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    // Cargo chooses features by what is built: only with the same selection as the run we are part
    // of are the dependencies those that exist already.
    command.args(["build", "--workspace", "--bins", "--message-format=json-render-diagnostics"]);
    let exe = std::env::current_exe()?;
    if let Some(profile_dir) = exe.parent().filter(|dir| dir.ends_with("deps")).and_then(Path::parent) {
        command.arg("--tests");
        if let Some(profile) =
            profile_dir.file_name().and_then(|name| name.to_str()).filter(|name| *name != "debug")
        {
            command.args(["--profile", profile]);
        }
        if let Some(target_dir) = profile_dir.parent().filter(|dir| dir.join("CACHEDIR.TAG").is_file()) {
            command.arg("--target-dir").arg(target_dir);
        }
    }
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(set_by_cargo) {
            command.env_remove(name);
        }
    }
    let output = command
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {} to build the programs under test", cargo.display()))?;
    if !output.status.success() {
        bail!(
            "the programs under test do not build (cargo's errors are above); \
             to use programs that were built before, set {BIN_DIR} to their folder"
        );
    }
    Ok(executables(&output.stdout))
}

/// The programs among cargo's messages, by name.
fn executables(messages: &[u8]) -> BTreeMap<String, PathBuf> {
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Artifact>(line).ok())
        .filter(|artifact| !artifact.profile.test && artifact.target.kind.iter().any(|kind| kind == "bin"))
        .filter_map(|artifact| Some((artifact.target.name, artifact.executable?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_programs_and_leaves_tests_and_libraries() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"a","kind":["bin"]},"profile":{"test":false},"executable":"/t/a"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"b","kind":["bin"]},"profile":{"test":true},"executable":"/t/b-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"c","kind":["lib"]},"profile":{"test":false},"executable":null}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n",
        );
        let found = executables(messages.as_bytes());
        assert_eq!(found, BTreeMap::from([("a".to_owned(), PathBuf::from("/t/a"))]));
    }
}
