//! The only place of xtask that prints.

use std::io::Write as _;
use std::path::PathBuf;

/// A line on standard output. A closed pipe is not an error.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// The repository's root.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.clone(), PathBuf::from)
}
