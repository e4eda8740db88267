//! From the process's arguments to an exit code.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;
use rollback_core::suggest::nearest;

use crate::args::{Cli, Command, Inserted, command, with_start};
use crate::clock::Clock;
use crate::commands::completion::HELPER;
use crate::commands::{
    self, Context, cancel, completion, diff, history, list, signature, start, status, version,
};
use crate::connect::{Environment, connect};
use crate::failure::Failure;
use crate::printer::{Printer, Sink};
use crate::{complete, exit};

/// Runs the plugin; everything that goes wrong ends here, with its exit code.
pub(crate) fn run(arguments: Vec<OsString>) -> u8 {
    let mut printer = Printer::system();
    let Inserted { arguments, target } = with_start(as_helper(arguments), &command());
    if let Some(failure) = target.as_deref().and_then(mistyped) {
        printer.failure(&failure);
        return failure.kind.code();
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, begins_with_diff(&arguments), &mut printer),
    };
    let is_diff = matches!(cli.command, Command::Diff(_));
    match dispatch(cli, &mut printer) {
        Ok(code) => code,
        Err(failure) => {
            printer.failure(&failure);
            match failure.kind.code() {
                // diff(1): 1 says that there are differences.
                exit::ERROR if is_diff => exit::REFUSED,
                code => code,
            }
        }
    }
}

/// Called as kubectl_complete-rollback (a link to the plugin, say), the words are to be completed.
fn as_helper(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_stem()).map(OsString::from);
    if name.as_deref() == Some(HELPER.as_ref()) {
        arguments.splice(1..1, ["__complete".into(), "--".into()]);
    }
    arguments
}

/// Whether the first command among the arguments is `diff`: of a line that is wrong, the best guess.
fn begins_with_diff(arguments: &[OsString]) -> bool {
    let command = command();
    let first = arguments
        .iter()
        .skip(1)
        .find(|argument| argument.to_str().is_some_and(|text| command.find_subcommand(text).is_some()));
    first.is_some_and(|first| first == "diff")
}

/// What clap has to say: help on stdout is no failure, everything else is wrong usage.
fn usage(error: &clap::Error, is_diff: bool, printer: &mut Printer) -> u8 {
    let text = error.render().ansi().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            printer.rendered(&text, Sink::Out);
            exit::DONE
        }
        _ => {
            printer.rendered(&text, Sink::Err);
            if is_diff { exit::REFUSED } else { exit::ERROR }
        }
    }
}

/// Shortest word that is taken for the beginning of a command, in letters.
const BEGINNING: usize = 4;

/// A target that looks like a mistyped command (rule 22).
fn mistyped(target: &str) -> Option<Failure> {
    let command = command();
    let names = command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
    // Longer words are taken for the beginning of a command too: kubectl completes those itself elsewhere.
    let begun = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .find(|name| target.len() >= BEGINNING && name.starts_with(target));
    let near = begun.or_else(|| nearest(target, names))?;
    Some(Failure::refused(format!(
        "{target} looks like a mistyped {near}: kubectl rollback {near}\n\
         If the target is really called {target}: kubectl rollback start {target} --reason …"
    )))
}

fn dispatch(cli: Cli, printer: &mut Printer) -> Result<u8, Failure> {
    let Cli { connect: connection, command } = cli;
    match &command {
        Command::Signature(args) => return signature::run(args, printer).map(|()| exit::DONE),
        Command::Completion(args) => return completion::run(args, printer).map(|()| exit::DONE),
        Command::Version(args) => return version::run(args, printer).map(|()| exit::DONE),
        Command::Start(_)
        | Command::History(_)
        | Command::Status(_)
        | Command::List(_)
        | Command::Diff(_)
        | Command::Cancel(_)
        | Command::Complete(_) => {}
    }
    // The one provider of cryptography; whoever installed it before us installed the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::error(format!("the plugin cannot start: {error}")))?;
    let environment = Environment::system();
    let result = runtime.block_on(async {
        if let Command::Complete(args) = &command {
            return complete::run(args, &environment, printer).await.map(|()| exit::DONE);
        }
        let session = connect(&connection, &environment).await?;
        let clock = Clock::system();
        let result = talk(command, Context { session: &session, printer, clock: &clock }).await;
        session.show_warnings(printer)?;
        result
    });
    // A connection that hangs must not keep the process.
    runtime.shutdown_background();
    result
}

/// The commands that talk to the cluster.
async fn talk(command: Command, context: commands::Context<'_>) -> Result<u8, Failure> {
    match command {
        Command::Start(args) => start::run(*args, context).await?,
        Command::History(args) => history::run(args, context).await?,
        Command::Status(args) => status::run(args, context).await?,
        Command::List(args) => list::run(args, context).await?,
        Command::Diff(args) => return diff::run(args, context).await,
        Command::Cancel(args) => cancel::run(args, context).await?,
        // Done before a connection was made.
        Command::Signature(_) | Command::Completion(_) | Command::Version(_) | Command::Complete(_) => {}
    }
    Ok(exit::DONE)
}

#[cfg(test)]
mod tests;
