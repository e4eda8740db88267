//! A file can be read in one sitting.

use super::Findings;
use super::purity::each_source;
use crate::output::root;

/// Most lines of a source file.
const MOST_LINES: usize = 450;
/// Folders with our sources.
const FOLDERS: &[&str] = &[
    "api",
    "core",
    "runtime",
    "certs",
    "webhook",
    "controller",
    "recorder",
    "kubectl-rollback",
    "tests/rig",
    "xtask",
];

pub(super) fn check() -> anyhow::Result<Findings> {
    let mut findings = Findings::new();
    for folder in FOLDERS {
        each_source(&root().join(folder).join("src"), &mut |path, text| {
            let lines = text.lines().count();
            if lines > MOST_LINES {
                findings.push(format!(
                    "{}: {lines} lines, more than {MOST_LINES}; is there a second idea in it?",
                    path.display()
                ));
            }
        })?;
    }
    Ok(findings)
}
