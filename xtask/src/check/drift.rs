//! Generated files are what the code generates.

use super::Findings;
use crate::generate;
use crate::output::root;

pub(super) fn check() -> anyhow::Result<Findings> {
    let mut findings = Findings::new();
    for (path, wanted) in generate::files()? {
        if std::fs::read_to_string(root().join(&path)).ok().as_deref() != Some(wanted.as_str()) {
            findings.push(format!(
                "{}: differs from what the code generates; run `cargo xtask gen`",
                path.display()
            ));
        }
    }
    Ok(findings)
}
