//! `history`: the releases of a target.

use std::collections::BTreeSet;

use kube::api::ListParams;
use rollback_api::conditions::Status;
use rollback_api::{Release, Revision};
use rollback_core::diff::short_id;
use rollback_core::history::{Row, rows};
use rollback_core::rollback::RollbackView;

use super::Context;
use crate::args::output;
use crate::clock::Clock;
use crate::columns::table;
use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::targets;

/// More names of revisions than this share one column.
const REVISION_COLUMNS: usize = 4;
/// Longest text of a column in wide output, in characters.
const LONGEST: usize = 60;

/// Show the releases of a target
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The target: a service in the namespace
    pub(crate) target: String,
    /// Only releases with these labels, such as team=payments
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Output: wide, json, yaml, name or jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Shows the history.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.unwrap_or_default();
    let mut releases = targets::releases(session, &args.target)
        .await
        .map_err(|why| why.unwrap_or_else(|unknown| Failure::new(Kind::Error, unknown)))?;
    if let Some(selector) = &args.selector {
        let params = ListParams::default().labels(selector);
        let selected = session.list_releases(&session.releases_api(), &params).await?;
        let uids: BTreeSet<_> = selected.iter().filter_map(|release| release.metadata.uid.clone()).collect();
        releases.retain(|release| release.metadata.uid.as_ref().is_some_and(|uid| uids.contains(uid)));
    }
    let rollbacks: Vec<RollbackView> = if output.is_for_people() {
        session.rollbacks(&args.target).await?.iter().map(RollbackView::of).collect()
    } else {
        Vec::new()
    };
    let rows = rows(&releases, &rollbacks);
    if !output.is_for_people() {
        return output.list(printer, rows.iter().map(|row| row.release));
    }
    if rows.is_empty() {
        return printer.note(&format!("No releases of {} have these labels.", args.target));
    }
    printer.data(&text(&rows, output == Output::Wide, clock))
}

/// The table.
pub(crate) fn text(rows: &[Row<'_>], wide: bool, clock: &Clock) -> String {
    let names = revision_names(rows);
    let mut header: Vec<String> =
        ["RELEASE", "STATE", "HEALTH", "DEPLOYED", "LEFT"].map(str::to_owned).into();
    let in_columns = names.len() <= REVISION_COLUMNS;
    if in_columns {
        header.extend(names.iter().map(|name| name.to_uppercase()));
    } else {
        header.push("REVISIONS".to_owned());
    }
    if wide {
        header.extend(["SOURCE", "AUTHOR", "MESSAGE", "SIGNATURE", "HEALTH REASON"].map(str::to_owned));
    }
    header.push("NOTE".to_owned());
    let body = rows
        .iter()
        .map(|row| {
            let age = |time| clock.age(time);
            let mut cells = vec![
                row.view.name.clone(),
                row.state.as_str().to_owned(),
                health(row.view.healthy).to_owned(),
                row.deployed.map(age).unwrap_or_default(),
                row.left.map(age).unwrap_or_default(),
            ];
            if in_columns {
                cells.extend(names.iter().map(|name| revision(row.release, name)));
            } else {
                let all = row.release.spec.config.revisions.iter();
                cells.push(
                    all.map(|revision| format!("{}={}", revision.name, short_id(&revision.id)))
                        .collect::<Vec<_>>()
                        .join(" "),
                );
            }
            if wide {
                cells.extend(details(row));
            }
            cells.push(row.note.clone());
            cells
        })
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, body)
}

/// The word for a health condition.
pub(crate) const fn health(status: Status) -> &'static str {
    match status {
        Status::True => "Healthy",
        Status::False => "Unhealthy",
        Status::Unknown => "Unknown",
    }
}

/// Names of all revisions, in the order in which the newest release has them.
fn revision_names<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for revision in rows.iter().flat_map(|row| &row.release.spec.config.revisions) {
        if !names.contains(&revision.name.as_str()) {
            names.push(&revision.name);
        }
    }
    names
}

fn revision(release: &Release, name: &str) -> String {
    let found = release.spec.config.revisions.iter().find(|revision| revision.name == name);
    found.map(|revision| short_id(&revision.id).into_owned()).unwrap_or_default()
}

fn metadata(revision: &Revision) -> Option<&rollback_api::RevisionMetadata> {
    revision.metadata.as_ref()
}

/// What only wide output shows.
fn details(row: &Row<'_>) -> [String; 5] {
    let revisions = &row.release.spec.config.revisions;
    let each = |of: fn(&Revision) -> Option<&String>| {
        let mut all: Vec<&str> = Vec::new();
        for text in revisions.iter().filter_map(of).filter(|text| !text.is_empty()) {
            if !all.contains(&text.as_str()) {
                all.push(text);
            }
        }
        rollback_core::conditions::cut(&all.join(", "), LONGEST)
    };
    [
        each(|revision| revision.source.as_ref()),
        each(|revision| metadata(revision)?.author.as_ref()),
        each(|revision| metadata(revision)?.message.as_ref()),
        row.view.signature.clone(),
        rollback_core::conditions::cut(&row.health, LONGEST),
    ]
}

#[cfg(test)]
mod tests;
