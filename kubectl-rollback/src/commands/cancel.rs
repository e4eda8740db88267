//! `cancel`: stop a rollback.

use std::time::Duration;

use rollback_api::{Rollback, annotations};
use rollback_core::rollback::Phase;
use serde_json::json;

use super::Context;
use crate::args::{duration, output, printable};
use crate::failure::{Failure, Kind};
use crate::follow::{self, Options};
use crate::output::Output;
use crate::printer::Sink;
use crate::progress::{self, End};
use crate::targets::{self, Prefer};

/// Stop a rollback
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A rollback, or a target that is being rolled back
    #[arg(value_name = "ROLLBACK|TARGET")]
    pub(crate) name: String,
    /// Why, for the record
    #[arg(long, value_name = "WHY", default_value = "no reason given", value_parser = printable)]
    pub(crate) reason: String,
    /// Wait until it has ended
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub(crate) wait: bool,
    /// Longest time to wait, such as 10m; 0 for no limit
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Output: json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Asks for cancellation and waits for the end.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.unwrap_or_default();
    let rollback = targets::rollback(session, &args.name, Prefer::UnderWay).await?;
    let name = rollback.metadata.name.clone().unwrap_or_default();
    refuse_ended(&rollback)?;
    let patch = json!({"metadata": {"annotations": {annotations::CANCEL: args.reason}}});
    let patched = session.patch(&name, &patch).await?;
    session.show_warnings(printer)?;
    if output.is_for_people() {
        printer.data(&format!("rollback/{name} is asked to stop"))?;
    }
    if !args.wait {
        return output.object(printer, &patched);
    }
    let options = Options { timeout: args.timeout.filter(|limit| !limit.is_zero()), sink: Sink::Err };
    let (ended, end) = follow::follow(session, printer, clock, patched, options).await?;
    output.object(printer, &ended)?;
    match ending(&end) {
        Ok(text) => printer.note(&text),
        Err(failure) => Err(failure),
    }
}

/// What has ended cannot be stopped.
fn refuse_ended(rollback: &Rollback) -> Result<(), Failure> {
    if !Phase::of(rollback).is_ended() {
        return Ok(());
    }
    let name = rollback.metadata.name.as_deref().unwrap_or_default();
    let target = &rollback.spec.to_release_ref.target;
    let how = progress::end(rollback).map(|end| end.event().text).unwrap_or_default();
    Err(Failure::refused(format!(
        "rollback/{name} has already ended. {how}\nTo go back to another release: kubectl rollback {target} --to RELEASE --reason …"
    )))
}

/// A cancelled rollback is what was asked for; every other end came first.
fn ending(end: &End) -> Result<String, Failure> {
    match end.kind {
        Some(Kind::Cancelled) => Ok(end.event().text),
        Some(kind) => Err(Failure::new(kind, format!("it ended before it could be stopped: {}", end.text))),
        None => Err(Failure::new(Kind::NotNeeded, format!("too late to stop it: {}", end.text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cancelled_rollback_is_what_was_asked_for() {
        let end = |kind| End { kind, text: "x.".to_owned(), time: None };
        assert_eq!(ending(&end(Some(Kind::Cancelled))), Ok("Cancelled: x.".to_owned()));
        assert_eq!(ending(&end(None)).unwrap_err().kind.code(), 5);
        let failed = ending(&end(Some(Kind::Failed))).unwrap_err();
        assert_eq!(
            (failed.kind.code(), failed.text.as_str()),
            (3, "it ended before it could be stopped: x.")
        );
    }

    #[test]
    fn what_has_ended_is_not_touched() {
        let rollback: Rollback = serde_json::from_value(json!({
            "metadata": {"name": "payments-x7k2p"},
            "spec": {"toReleaseRef": {"target": "payments", "name": "payments-3978d50"}, "reason": "r"},
            "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-03-01T13:00:00Z"}]},
        }))
        .unwrap();
        let failure = refuse_ended(&rollback).unwrap_err();
        assert_eq!(
            failure.text,
            "rollback/payments-x7k2p has already ended. payments-3978d50 is active and was deployed\n\
             To go back to another release: kubectl rollback payments --to RELEASE --reason …"
        );
    }
}
