//! The command line: parsed without side effects, one definition for parsing, help, completion and documents.

mod connect;
mod insert;
mod values;

use clap::{CommandFactory as _, Parser, Subcommand};

pub(crate) use self::connect::ConnectArgs;
pub(crate) use self::insert::{Inserted, with_start};
pub(crate) use self::values::{duration, output, printable};
use crate::commands::{cancel, completion, diff, history, list, signature, start, status, version};

/// Roll a service back to a release that was healthy
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-rollback",
    bin_name = "kubectl rollback",
    version,
    override_usage = "kubectl rollback TARGET --reason WHY [flags]\n       kubectl rollback COMMAND [flags]",
    after_help = "Examples:\n  \
        kubectl rollback payments --reason \"5xx since 14:02, INC-311\"\n  \
        kubectl rollback history payments\n  \
        kubectl rollback status payments --watch\n\n\
        Exit codes: 0 done, 1 usage or API error, 2 refused, 3 the rollback failed, 4 still running, 5 superseded, cancelled or not needed.\n\
        Flags come after `kubectl rollback`, never before it.",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Where to connect to.
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Roll a target back (may be left out unless the target is called like a command)
    Start(Box<start::Args>),
    /// Show the releases of a target: state, health, when deployed and left
    History(history::Args),
    /// Show a rollback, or the newest one of a target
    Status(status::Args),
    /// Show every target: active release, health, what is running now
    #[command(visible_alias = "ls")]
    List(list::Args),
    /// Show what a rollback would change; exit code 0 nothing, 1 something, 2 error
    Diff(diff::Args),
    /// Stop a rollback
    Cancel(cancel::Args),
    /// Print signature and name of the releases in a manifest, offline
    Signature(signature::Args),
    /// Print a completion script, or install completion for `kubectl rollback`
    Completion(completion::Args),
    /// Print the version
    Version(version::Args),
    /// Candidates for a shell; what kubectl_complete-rollback runs
    #[command(name = "__complete", hide = true)]
    Complete(crate::complete::Args),
}

/// The definition, for everything that is made from it.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests;
