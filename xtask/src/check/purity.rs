//! core decides and does nothing else: no clock, randomness, environment, files, client or async runtime.

use std::path::Path;

use anyhow::Context as _;

use super::Findings;
use crate::output::root;

/// Texts that give an effect away.
const FORBIDDEN: &[&str] = &[
    "tokio",
    "kube::Client",
    "kube::Api",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand::",
    "async fn",
    "println!",
];

/// Crates that would bring effects in.
const FORBIDDEN_CRATES: &[&str] = &["tokio", "rand", "hyper", "futures", "tracing", "reqwest"];

pub(super) fn check() -> anyhow::Result<Findings> {
    let mut findings = Findings::new();
    let manifest =
        std::fs::read_to_string(root().join("core/Cargo.toml")).context("cannot read core/Cargo.toml")?;
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
    for name in FORBIDDEN_CRATES {
        if dependencies.lines().any(|text| text.split(['.', ' ', '=']).next() == Some(name)) {
            findings.push(format!("core/Cargo.toml: core may not depend on {name}"));
        }
    }
    each_source(&root().join("core/src"), &mut |path, text| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, code) in
            code.lines().enumerate().filter(|(_, code)| !code.trim_start().starts_with("//"))
        {
            for forbidden in FORBIDDEN.iter().filter(|forbidden| code.contains(**forbidden)) {
                findings.push(format!("{}:{}: core may not use {forbidden}", path.display(), number + 1));
            }
        }
    })?;
    Ok(findings)
}

/// Calls `look` with each Rust file below a folder.
pub(super) fn each_source(folder: &Path, look: &mut dyn FnMut(&Path, &str)) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            each_source(&path, look)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            look(&path, &text);
        }
    }
    Ok(())
}
