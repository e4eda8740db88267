//! Environment variables that must not reach a program of the rig.

/// Proxy settings: everything the rig talks to is on the loopback interface.
pub(crate) const PROXIES: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Whether cargo sets this variable for the programs it runs. A second cargo must not inherit it:
/// build scripts that watch such a variable would run again and rebuild half the tree.
pub(crate) fn set_by_cargo(name: &str) -> bool {
    const EXACT: [&str; 6] = [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_MANIFEST_LINKS",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
    ];
    EXACT.contains(&name)
        || name == "CARGO_TARGET_TMPDIR"
        || name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_BIN_EXE_")
}
