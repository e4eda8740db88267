//! `status`: one rollback.

use std::time::Duration;

use rollback_api::Rollback;
use rollback_core::rollback::RollbackView;

use super::Context;
use crate::args::{duration, output};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::follow::{self, Options};
use crate::output::Output;
use crate::printer::Sink;
use crate::progress::{self, End};
use crate::targets::{self, Prefer};

/// Show a rollback, or the newest one of a target
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A rollback, or a target
    #[arg(value_name = "ROLLBACK|TARGET")]
    pub(crate) name: String,
    /// Follow it to its end; the exit code then says how it ended
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Longest time to follow, such as 10m; 0 for no limit
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "watch")]
    pub(crate) timeout: Option<Duration>,
    /// Output: json, yaml, name or jsonpath=TEMPLATE; with --watch printed at the end
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Shows or follows a rollback.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.unwrap_or_default();
    let rollback = targets::rollback(session, &args.name, Prefer::Newest).await?;
    if !args.watch {
        return if output.is_for_people() {
            printer.progress(Sink::Out, &text(&rollback, clock))
        } else {
            output.object(printer, &rollback)
        };
    }
    let sink = if output.is_for_people() { Sink::Out } else { Sink::Err };
    printer.progress(sink, &heading(&rollback, clock))?;
    let options = Options { timeout: args.timeout.filter(|limit| !limit.is_zero()), sink };
    let (rollback, end) = follow::follow(session, printer, clock, rollback, options).await?;
    output.object(printer, &rollback)?;
    match end {
        End { kind: None, .. } => Ok(()),
        End { kind: Some(kind), text, .. } => Err(Failure::new(kind, text)),
    }
}

/// What a rollback is about: which releases, who, why.
pub(crate) fn heading(rollback: &Rollback, clock: &Clock) -> String {
    let view = RollbackView::of(rollback);
    let known = |name: &str| if name.is_empty() { "?".to_owned() } else { name.to_owned() };
    let by = if view.by.is_empty() { String::new() } else { format!(" by {}", view.by) };
    let ago = view.created.map(|created| format!(" {} ago", clock.age(created))).unwrap_or_default();
    format!(
        "rollback/{}   {}: {} → {}\nasked for{by}{ago}: {}",
        view.name,
        view.target,
        known(&view.from),
        known(&view.to),
        view.reason
    )
}

/// Everything at once.
pub(crate) fn text(rollback: &Rollback, clock: &Clock) -> String {
    let mut lines = vec![heading(rollback, clock)];
    let events =
        progress::events(rollback, clock).into_iter().chain(progress::end(rollback).as_ref().map(End::event));
    lines.extend(events.map(|event| event.line(clock)));
    if let (None, Some(left)) = (progress::end(rollback), progress::deadline_in(rollback, clock)) {
        lines.push(format!("deadline in {left}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
