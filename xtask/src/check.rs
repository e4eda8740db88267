//! `cargo xtask check`: what a compiler cannot check about this repository.

mod drift;
mod layering;
mod purity;
mod size;

use crate::output::line;

/// A broken rule: where, and what to do.
type Findings = Vec<String>;

/// Runs all checks; an error names every broken rule.
pub fn run() -> anyhow::Result<()> {
    let mut findings = Findings::new();
    for (name, check) in [
        ("layering", layering::check as fn() -> anyhow::Result<Findings>),
        ("purity of core", purity::check),
        ("generated files", drift::check),
        ("file sizes", size::check),
    ] {
        let found = check()?;
        line(&format!("{} {name}", if found.is_empty() { "ok  " } else { "FAIL" }));
        findings.extend(found);
    }
    anyhow::ensure!(findings.is_empty(), "{}", findings.join("\n"));
    Ok(())
}
