//! The kubectl plugin: looks at releases, rolls targets back and follows rollbacks to their end.
//!
//! Data goes to stdout, everything else to stderr; the exit code says how it ended (see [`exit`]).
//! Only `printer` writes, only `connect` reads the kubeconfig, and one file for each subcommand is under `commands`.

mod args;
mod clock;
mod columns;
mod commands;
mod complete;
mod connect;
mod explain;
mod failure;
mod follow;
mod output;
mod preview;
mod printer;
mod progress;
mod run;
mod session;
mod targets;
#[cfg(test)]
mod testing;
mod yaml;

/// The exit codes of the plugin.
pub mod exit {
    /// What was asked for is done.
    pub const DONE: u8 = 0;
    /// Wrong usage, or an error of the API server, the network or the kubeconfig. For `diff`: there are differences.
    pub const ERROR: u8 = 1;
    /// Refused: by admission, by a missing permission, or because a precondition does not hold. For `diff`: any error.
    pub const REFUSED: u8 = 2;
    /// The rollback failed.
    pub const FAILED: u8 = 3;
    /// The rollback was still running when the plugin stopped waiting.
    pub const STILL_RUNNING: u8 = 4;
    /// The rollback was superseded, cancelled or not needed.
    pub const NOT_CARRIED_OUT: u8 = 5;
}

/// The whole command line, for generating documents from it.
pub fn command() -> clap::Command {
    args::command()
}

/// Runs the plugin with the process's arguments (the first one is the program's name).
pub fn main(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    std::process::ExitCode::from(run::run(arguments.into_iter().collect()))
}
