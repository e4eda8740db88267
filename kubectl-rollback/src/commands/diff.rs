//! `diff`: what a rollback would change.

use rollback_api::Release;
use rollback_core::diff::revisions;
use rollback_core::history::{State, rows};
use rollback_core::release::ReleaseView;
use rollback_core::release::select;
use serde_json::{Value, json};

use super::Context;
use super::start::To;
use crate::args::output;
use crate::clock::Clock;
use crate::exit;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::preview;
use crate::targets;

/// Show what a rollback would change; exit code 0 nothing, 1 something, 2 error
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The target: a service in the namespace
    pub(crate) target: String,
    /// Where to: a release, `previous` (whatever its health), or `healthy` (the newest one that was)
    #[arg(long, value_name = "RELEASE|previous|healthy", default_value = "healthy", value_parser = To::parse)]
    pub(crate) to: To,
    /// Output: json, yaml or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Compares. The exit code is 0 or 1 as in diff(1); the caller turns every failure into 2.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<u8, Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.unwrap_or_default();
    let releases = targets::releases(session, &args.target)
        .await
        .map_err(|why| why.unwrap_or_else(|unknown| Failure::new(Kind::Error, unknown)))?;
    let (from, to) = ends(&args.target, &releases, &args.to).map_err(Failure::error)?;
    let differs = revisions(&from.spec.config, &to.spec.config)
        .iter()
        .any(rollback_core::diff::RevisionChange::is_change);
    if output.is_for_people() {
        printer.data(&text(&releases, from, to, clock))?;
    } else {
        output.object(printer, &value(from, to))?;
    }
    Ok(if differs { exit::ERROR } else { exit::DONE })
}

/// The release that would be left and the one that would be deployed.
pub(crate) fn ends<'a>(
    target: &str,
    releases: &'a [Release],
    to: &To,
) -> Result<(&'a Release, &'a Release), String> {
    let find = |name: &str| releases.iter().find(|release| release.metadata.name.as_deref() == Some(name));
    let history = rows(releases, &[]);
    let with =
        |state: State| history.iter().find(move |row| row.state == state).map(|row| row.view.name.clone());
    let active = with(State::Active);
    let live = with(State::Deploying).or_else(|| active.clone());
    let Some(live) = live else {
        return Err(format!(
            "no release of {target} is active, so there is nothing to compare with. Look: kubectl rollback history {target}"
        ));
    };
    let views: Vec<ReleaseView> = releases.iter().map(ReleaseView::of).collect();
    let chosen = match to {
        To::Release(name) => Some(name.clone()),
        To::Previous => select::previous(&live, &views).map(|view| view.name.clone()),
        // What is being deployed never was active: back to what is.
        To::Healthy if active.as_ref().is_some_and(|active| *active != live) => active,
        To::Healthy => select::select(&live, &views).chosen.map(|view| view.name.clone()),
    };
    let Some(chosen) = chosen else {
        let what = if *to == To::Previous { "earlier" } else { "healthy" };
        return Err(format!(
            "no {what} release of {target} to compare {live} with. Name one with --to: kubectl rollback history {target}"
        ));
    };
    let to = find(&chosen).ok_or_else(|| {
        format!("Release {chosen} is not one of {target}'s. All of them: kubectl rollback history {target}")
    })?;
    let from = find(&live).ok_or_else(|| format!("Release {live} is gone; try again"))?;
    Ok((from, to))
}

/// Both releases and each revision.
pub(crate) fn text(releases: &[Release], from: &Release, to: &Release, clock: &Clock) -> String {
    let name = |release: &Release| release.metadata.name.clone().unwrap_or_default();
    let sides = preview::sides(releases, &name(from), &name(to), clock);
    let changes = preview::changes(&from.spec.config, &to.spec.config);
    let changes: Vec<String> = changes.lines().map(|line| format!("  {line}")).collect();
    format!("{sides}\n\n{}", changes.join("\n"))
}

fn value(from: &Release, to: &Release) -> Value {
    let changes: Vec<Value> = revisions(&from.spec.config, &to.spec.config)
        .iter()
        .map(|change| json!({"name": change.name, "changed": change.is_change(), "from": change.from, "to": change.to}))
        .collect();
    json!({"from": from.metadata.name, "to": to.metadata.name, "revisions": changes})
}

#[cfg(test)]
mod tests;
