//! `list`: every target.

use std::collections::BTreeMap;

use kube::Api;
use kube::api::ListParams;
use rollback_api::{Release, Rollback};
use rollback_core::history::{Row, State, rows};
use rollback_core::rollback::RollbackView;

use super::Context;
use super::history::health;
use crate::args::output;
use crate::clock::Clock;
use crate::columns::table;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress;

/// Show every target: active release, health, what is running now
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets of all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only releases with these labels, such as team=payments
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Output: wide, json, yaml, name or jsonpath=TEMPLATE. All but wide print the release that each target is on
    #[arg(short, long, value_name = "FORMAT", value_parser = output)]
    pub(crate) output: Option<Output>,
}

/// Shows the targets.
pub(crate) async fn run(args: Args, context: Context<'_>) -> Result<(), Failure> {
    let Context { session, printer, clock } = context;
    let output = args.output.unwrap_or_default();
    let params = args
        .selector
        .as_ref()
        .map_or_else(ListParams::default, |labels| ListParams::default().labels(labels));
    let (releases, rollbacks) = if args.all_namespaces {
        (Api::all(session.client.clone()), Api::all(session.client.clone()))
    } else {
        (session.releases_api(), session.rollbacks_api())
    };
    let releases = session.list_releases(&releases, &params).await?;
    let rollbacks = session.list_rollbacks(&rollbacks, &ListParams::default()).await?;
    let targets = targets(releases, rollbacks);
    if !output.is_for_people() {
        let lists: Vec<Vec<Row<'_>>> =
            targets.values().map(|target| rows(&target.releases, &target.views())).collect();
        return output.list(printer, lists.iter().filter_map(|rows| live(rows)).map(|row| row.release));
    }
    if targets.is_empty() {
        return printer.note(&if args.all_namespaces {
            "No releases in any namespace.".to_owned()
        } else {
            format!(
                "No releases in namespace {}. All namespaces: kubectl rollback list -A",
                session.namespace()
            )
        });
    }
    printer.data(&text(&targets, args.all_namespaces, output == Output::Wide, clock))
}

/// What is known of one target.
#[derive(Debug, Default)]
pub(crate) struct Target {
    releases: Vec<Release>,
    rollbacks: Vec<Rollback>,
}

impl Target {
    fn views(&self) -> Vec<RollbackView> {
        self.rollbacks.iter().map(RollbackView::of).collect()
    }
}

/// Groups objects by namespace and target. A target without releases is none.
pub(crate) fn targets(
    releases: Vec<Release>,
    rollbacks: Vec<Rollback>,
) -> BTreeMap<(String, String), Target> {
    let mut all: BTreeMap<(String, String), Target> = BTreeMap::new();
    for release in releases {
        let key =
            (release.metadata.namespace.clone().unwrap_or_default(), release.spec.config.target_name.clone());
        all.entry(key).or_default().releases.push(release);
    }
    for rollback in rollbacks {
        let key = (
            rollback.metadata.namespace.clone().unwrap_or_default(),
            rollback.spec.to_release_ref.target.clone(),
        );
        if let Some(target) = all.get_mut(&key) {
            target.rollbacks.push(rollback);
        }
    }
    all
}

/// The release that a target is on: what is active, else what is being deployed, else the newest.
fn live<'a, 'b>(rows: &'a [Row<'b>]) -> Option<&'a Row<'b>> {
    let of = |state: State| rows.iter().find(move |row| row.state == state);
    of(State::Active).or_else(|| of(State::Deploying)).or_else(|| rows.first())
}

/// The table.
pub(crate) fn text(
    targets: &BTreeMap<(String, String), Target>,
    namespaces: bool,
    wide: bool,
    clock: &Clock,
) -> String {
    let mut header = if namespaces { vec!["NAMESPACE"] } else { Vec::new() };
    header.extend(["TARGET", "ACTIVE", "HEALTH", "SINCE", "RUNNING NOW"]);
    if wide {
        header.extend(["RELEASES", "HEALTH REASON"]);
    }
    let body = targets
        .iter()
        .map(|((namespace, name), target)| {
            let rows = rows(&target.releases, &target.views());
            let active = rows.iter().find(|row| row.state == State::Active);
            let mut cells = if namespaces { vec![namespace.clone()] } else { Vec::new() };
            cells.push(name.clone());
            cells.push(active.map_or_else(|| "none".to_owned(), |row| row.view.name.clone()));
            cells.push(active.map(|row| health(row.view.healthy).to_owned()).unwrap_or_default());
            cells.push(active.and_then(|row| row.deployed).map(|since| clock.age(since)).unwrap_or_default());
            cells.push(running(&rows, &target.rollbacks, clock));
            if wide {
                cells.push(rows.len().to_string());
                cells.push(active.map(|row| row.health.clone()).unwrap_or_default());
            }
            cells
        })
        .collect();
    table(&header, body)
}

/// Rollbacks under way, and a deployment that has not become the active release.
fn running(rows: &[Row<'_>], rollbacks: &[Rollback], clock: &Clock) -> String {
    let deploying = rows.iter().filter(|row| row.state == State::Deploying).map(|row| {
        let since = row.deployed.map(|since| format!(" for {}", clock.age(since))).unwrap_or_default();
        format!("{} is being deployed{since}", row.view.name)
    });
    let under_way = rollbacks.iter().filter_map(|rollback| {
        let view = RollbackView::of(rollback);
        (!view.phase.is_ended() && !view.dormant).then(|| {
            let standing = progress::standing_with_deadline(rollback, clock);
            format!(
                "rollback/{} to {} ({standing})",
                view.name,
                if view.to.is_empty() { "an earlier release" } else { &view.to }
            )
        })
    });
    under_way.chain(deploying).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
