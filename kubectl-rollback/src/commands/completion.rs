//! `completion`: scripts for shells, and the helper by which kubectl completes its plugins.

use std::path::{Path, PathBuf};

use clap_complete::Shell;

use crate::explain::plain;
use crate::failure::Failure;
use crate::printer::Printer;

/// What kubectl looks for in PATH.
pub(crate) const HELPER: &str = "kubectl_complete-rollback";

/// Print a completion script, or install completion for `kubectl rollback`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`kubectl rollback` is completed by kubectl itself (1.26 or newer, with its own completion loaded), which runs\nkubectl_complete-rollback: install it once with `kubectl rollback completion --install`.\nThe scripts complete `kubectl-rollback`."
)]
pub(crate) struct Args {
    /// The shell to print a script for
    #[arg(required_unless_present = "install", conflicts_with = "install")]
    pub(crate) shell: Option<Shell>,
    /// Put kubectl_complete-rollback next to the plugin
    #[arg(long)]
    pub(crate) install: bool,
    /// Another folder to put it into; it must be in PATH
    #[arg(long, value_name = "FOLDER", requires = "install")]
    pub(crate) dir: Option<PathBuf>,
}

/// Prints or installs.
pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<(), Failure> {
    let Some(shell) = args.shell else { return install(args.dir.as_deref(), printer) };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::args::command(), "kubectl-rollback", &mut script);
    printer.raw(&script)
}

fn install(folder: Option<&Path>, printer: &mut Printer) -> Result<(), Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::error(format!("the plugin does not know where it is: {error}")))?;
    let Some(folder) = folder.or(own.parent()) else {
        return Err(Failure::error("the plugin is in no folder: name one with --dir"));
    };
    let path = folder.join(if cfg!(windows) { format!("{HELPER}.cmd") } else { HELPER.to_owned() });
    let script = if cfg!(windows) {
        "@kubectl-rollback __complete -- %*\r\n"
    } else {
        "#!/bin/sh\n# Run by kubectl for completion; lives in PATH beside kubectl-rollback.\nexec kubectl-rollback __complete -- \"$@\"\n"
    };
    write(&path, script).map_err(|error| {
        Failure::error(format!(
            "{} cannot be written: {}. Name a folder of PATH that you may write to: --dir",
            path.display(),
            plain(&error)
        ))
    })?;
    printer.note(&format!("{} is written. kubectl completes `kubectl rollback` from the next shell on, if that folder is in PATH.", path.display()))
}

/// Writes beside and renames: a shell that completes meanwhile sees the old one or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755))?;
    }
    std::fs::rename(&beside, path)
}
