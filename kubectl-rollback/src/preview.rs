//! What a rollback would do, before anybody says yes: made from the server's answer to a dry run.

use std::fmt::Write as _;

use jiff::Timestamp;
use rollback_api::conditions::Status;
use rollback_api::rollback::{DeploymentOptions, Hold};
use rollback_api::{Release, ReleaseConfig, Revision, Rollback, annotations};
use rollback_core::diff::{self, RevisionChange, short_id};
use rollback_core::history::{Row, State, rows};
use rollback_core::options;
use rollback_core::release::ReleaseView;
use rollback_core::release::select::{self, Ineligible};
use serde_json::Value;

use crate::clock::Clock;
use crate::columns::aligned;
use crate::session::Place;

/// Most passed-over releases and options that are named.
const LISTED: usize = 5;

/// What a preview is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preview<'a> {
    /// Where.
    pub(crate) place: &'a Place,
    /// The server's answer: the Rollback with everything filled in.
    pub(crate) answer: &'a Rollback,
    /// The releases of the target.
    pub(crate) releases: &'a [Release],
    /// Whether the release to go back to was chosen by the server.
    pub(crate) chosen: bool,
}

impl Preview<'_> {
    /// Name of the release that is left.
    pub(crate) fn from(&self) -> &str {
        self.answer.spec.from_release_ref.as_ref().and_then(|from| from.name.as_deref()).unwrap_or_default()
    }

    /// Name of the release that is deployed.
    pub(crate) fn to(&self) -> &str {
        self.answer.spec.to_release_ref.name.as_deref().unwrap_or_default()
    }

    fn release(&self, name: &str) -> Option<&Release> {
        self.releases.iter().find(|release| release.metadata.name.as_deref() == Some(name))
    }

    /// The whole text.
    pub(crate) fn text(&self, clock: &Clock) -> String {
        let views: Vec<ReleaseView> = self.releases.iter().map(ReleaseView::of).collect();
        let place = place(self.place);
        let sides = sides(self.releases, self.from(), self.to(), clock);
        let mut details = Vec::new();
        if let (Some(from), Some(to)) = (self.release(self.from()), self.release(self.to())) {
            details.push(indent(&indent(&changes(&from.spec.config, &to.spec.config))));
        }
        if self.chosen {
            details.extend(skipped(&views, self.from(), self.to(), clock));
        }
        let paragraphs = [place, indent(&sides), details.join("\n"), self.how()];
        paragraphs.into_iter().filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// By what and by whom.
    fn how(&self) -> String {
        let spec = &self.answer.spec;
        let mut text = match spec.backend {
            Some(backend) => format!("Deployer {backend}"),
            None => "Deployer: the cluster's default".to_owned(),
        };
        let given = spec.deployment_options.clone().unwrap_or_default();
        let resolved = self.release(self.to()).and_then(|release| options::resolve(&given, release).ok());
        for option in option_texts(&resolved.unwrap_or(given)) {
            let _ = write!(text, ", {option}");
        }
        text.push('.');
        match spec.hold {
            Some(Hold::UntilNewerRelease) => text.push_str(" Held until a newer release is deployed."),
            Some(Hold::UntilReleased) => text.push_str(" Held until somebody ends the hold."),
            Some(Hold::None) | None => {}
        }
        let who =
            self.answer.metadata.annotations.as_ref().and_then(|all| all.get(annotations::AUTHENTICATED_AS));
        if let Some(who) = who {
            let _ = write!(text, " You are {who}.");
        }
        text
    }
}

/// `Cluster prod-eu-1 (context prod-eu), namespace shop`.
pub(crate) fn place(place: &Place) -> String {
    let context =
        if place.context.is_empty() { String::new() } else { format!(" (context {})", place.context) };
    format!("Cluster {}{context}, namespace {}", place.cluster, place.namespace)
}

/// Both releases, one under the other.
pub(crate) fn sides(releases: &[Release], from: &str, to: &str, clock: &Clock) -> String {
    let history = rows(releases, &[]);
    let find = |name: &str| history.iter().find(|row| row.view.name == name);
    let from_side = match find(from) {
        Some(row) if row.state == State::Deploying => (being_deployed(row, clock), health(&row.view)),
        Some(row) => (past(&row.view, clock), health(&row.view)),
        None => ("not among the releases".to_owned(), String::new()),
    };
    let to_side = match find(to) {
        Some(row) => (past(&row.view, clock), health(&row.view)),
        None => ("not among the releases".to_owned(), String::new()),
    };
    let row = |mark: &str, name: &str, (standing, health)| vec![format!("{mark} {name}"), standing, health];
    aligned(vec![row(" ", from, from_side), row("→", to, to_side)])
}

fn active_for(view: &ReleaseView, clock: &Clock) -> String {
    view.deployed().map_or_else(|| "active".to_owned(), |since| format!("active for {}", clock.age(since)))
}

fn being_deployed(row: &Row<'_>, clock: &Clock) -> String {
    row.deployed.map_or_else(
        || "being deployed".to_owned(),
        |since| format!("being deployed for {}", clock.age(since)),
    )
}

/// What a release was before.
fn past(view: &ReleaseView, clock: &Clock) -> String {
    if view.is_active() {
        return active_for(view, clock);
    }
    match (view.deployed(), view.left) {
        (Some(deployed), Some(left)) if left > deployed => {
            format!("was active for {} until {}", span_of(deployed, left), clock.moment(left))
        }
        (_, Some(left)) => format!("was active until {}", clock.moment(left)),
        (Some(deployed), None) if view.activation.is_some() || view.deployment_end.is_some() => {
            format!("deployed {} ago", clock.age(deployed))
        }
        (Some(_) | None, None) => "never active".to_owned(),
    }
}

/// In one unit, as ages are.
fn span_of(from: Timestamp, to: Timestamp) -> String {
    rollback_core::admission::age(to, from)
}

fn health(view: &ReleaseView) -> String {
    let word = match view.healthy {
        Status::True => return "Healthy".to_owned(),
        Status::False => "Unhealthy",
        Status::Unknown => "health unknown",
    };
    if view.health_message.is_empty() { word.to_owned() } else { format!("{word}: {}", view.health_message) }
}

/// Each revision's change, one under the other.
pub(crate) fn changes(from: &ReleaseConfig, to: &ReleaseConfig) -> String {
    aligned(diff::revisions(from, to).iter().map(change).collect())
}

fn change(change: &RevisionChange<'_>) -> Vec<String> {
    let id = |revision: Option<&Revision>| {
        revision.map_or_else(|| "none".to_owned(), |revision| short_id(&revision.id).into_owned())
    };
    let (from, to) = (id(change.from), id(change.to));
    if !change.is_change() {
        return vec![change.name.to_owned(), to, "unchanged".to_owned()];
    }
    let note = match (change.from, change.to) {
        (Some(_), None) => "not part of the release to go back to".to_owned(),
        (None, Some(_)) => "not part of the release that is left".to_owned(),
        (Some(_) | None, Some(_) | None) => source(change),
    };
    vec![change.name.to_owned(), format!("{from} → {to}"), note]
}

/// Where a revision comes from, as something to look at.
fn source(change: &RevisionChange<'_>) -> String {
    let source = change.source();
    let of_github =
        change.to.or(change.from).and_then(|revision| revision.type_.as_deref()) == Some("github");
    if of_github && source.split('/').count() == 2 {
        format!("github.com/{source}")
    } else {
        source.to_owned()
    }
}

/// The line about newer releases that were passed over, if there are any.
fn skipped(views: &[ReleaseView], from: &str, to: &str, clock: &Clock) -> Option<String> {
    let selection = select::select(from, views);
    // What the server chose by another rule (back to the active release) passes nothing over.
    if selection.chosen.is_none_or(|chosen| chosen.name != to) || selection.skipped.is_empty() {
        return None;
    }
    let mut all: Vec<String> = selection
        .skipped
        .iter()
        .take(LISTED)
        .map(|(view, why)| format!("{} ({})", view.name, why_not(view, why, clock)))
        .collect();
    let more = selection.skipped.len().saturating_sub(LISTED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    Some(format!("  skipped: {}", all.join(", ")))
}

/// Why a release was passed over.
pub(crate) fn why_not(view: &ReleaseView, why: &Ineligible, clock: &Clock) -> String {
    match why {
        Ineligible::Active => "active".to_owned(),
        Ineligible::Blocked(reason) => format!("blocked: {reason}"),
        Ineligible::LeftByRollback(_) => {
            let when = view.left.map(|left| format!(" {}", clock.on(left))).unwrap_or_default();
            format!("rolled back from{when}")
        }
        Ineligible::Unhealthy => "unhealthy".to_owned(),
        Ineligible::HealthUnknown => "health unknown".to_owned(),
    }
}

fn option_texts(options: &DeploymentOptions) -> Vec<String> {
    let mut all: Vec<String> = options
        .0
        .iter()
        .take(LISTED)
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {text}"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                format!("{name} {value}")
            }
        })
        .collect();
    let more = options.0.len().saturating_sub(LISTED);
    if more > 0 {
        all.push(format!("{more} more options"));
    }
    all
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// How a release was active, for an offer: `active for 2d, health unknown`.
pub(crate) fn offer(view: &ReleaseView, clock: &Clock) -> String {
    format!("{}, {}", past(view, clock), health(view).to_lowercase())
}

#[cfg(test)]
mod tests;
