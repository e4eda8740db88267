//! Which crate may depend on which (DESIGN 10): api ← core ← the programs, api ← core ← runtime ← the servers.

use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use super::Findings;
use crate::output::root;

/// Each crate and the crates of ours that it may depend on. Tests may see all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("rollback-api", &[]),
    ("rollback-core", &["rollback-api"]),
    ("rollback-runtime", &["rollback-api", "rollback-core"]),
    ("rollback-certs", &[]),
    ("rollback-webhook", &["rollback-api", "rollback-core", "rollback-runtime", "rollback-certs"]),
    ("rollback-controller", &["rollback-api", "rollback-core", "rollback-runtime"]),
    ("rollback-recorder", &["rollback-api", "rollback-core", "rollback-runtime"]),
    ("kubectl-rollback", &["rollback-api", "rollback-core"]),
    ("rollback-rig", &["rollback-api", "rollback-certs"]),
];

/// Crates that may see all others.
const FREE: &[&str] = &["rollback-e2e", "xtask"];

pub(super) fn check() -> anyhow::Result<Findings> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Findings::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if FREE.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            findings.push(format!(
                "{name}: a new crate; say in xtask/src/check/layering.rs what it may depend on"
            ));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        for dependency in dependencies.filter_map(|dependency| dependency["name"].as_str()) {
            if names.contains(&dependency) && !allowed.contains(&dependency) && dependency != name {
                findings
                    .push(format!("{name} may not depend on {dependency} (allowed: {})", allowed.join(", ")));
            }
        }
    }
    Ok(findings)
}
