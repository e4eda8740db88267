//! The history of a target: one row for each release, the one that was deployed last first.

use k8s_openapi::jiff::Timestamp;
use rollback_api::Release;
use rollback_api::conditions::{ReleaseCondition, Status};

use crate::conditions;
use crate::release::ReleaseView;
use crate::rollback::RollbackView;

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is what is deployed.
    Active,
    /// Its deployment began and has not made it active (rule 11).
    Deploying,
    /// A Rollback left it and nobody deployed it since.
    RolledBack,
    /// Another release replaced it.
    Superseded,
    /// It was never active.
    NotDeployed,
}

impl State {
    /// As people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Deploying => "Deploying",
            Self::RolledBack => "Rolled back",
            Self::Superseded => "Superseded",
            Self::NotDeployed => "Not deployed",
        }
    }
}

/// A release in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The object.
    pub release: &'a Release,
    /// The same, parsed.
    pub view: ReleaseView,
    /// What became of it.
    pub state: State,
    /// When it was deployed last, or when its deployment began; `None` if neither is known.
    pub deployed: Option<Timestamp>,
    /// When it stopped being active, unless it is active (again).
    pub left: Option<Timestamp>,
    /// Reason and message of its health, for people; empty if nothing is known.
    pub health: String,
    /// What is worth knowing beside that; may be empty.
    pub note: String,
}

/// The history of one target from its releases and Rollbacks, each in any order.
pub fn rows<'a>(releases: &'a [Release], rollbacks: &[RollbackView]) -> Vec<Row<'a>> {
    let views: Vec<ReleaseView> = releases.iter().map(ReleaseView::of).collect();
    let deploying = deploying(releases, &views);
    let mut rows: Vec<Row<'a>> = releases
        .iter()
        .zip(&views)
        .map(|(release, view)| {
            let state = state(view, deploying == Some(view.name.as_str()));
            let deployed = match state {
                State::Deploying => started(release),
                State::NotDeployed => None,
                State::Active | State::RolledBack | State::Superseded => view.deployed(),
            };
            Row {
                release,
                view: view.clone(),
                state,
                deployed,
                left: view.left.filter(|_| state != State::Active),
                health: health(release),
                note: note(view, state, rollbacks),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row<'_>| (row.deployed.or(row.view.created), row.view.created);
        key(b).cmp(&key(a)).then_with(|| b.view.name.cmp(&a.view.name))
    });
    rows
}

fn state(view: &ReleaseView, deploying: bool) -> State {
    if view.is_active() {
        State::Active
    } else if deploying {
        State::Deploying
    } else if view.left_by_rollback.is_some() {
        State::RolledBack
    } else if view.activation.is_some() || view.deployment_end.is_some() || view.left.is_some() {
        State::Superseded
    } else {
        State::NotDeployed
    }
}

/// Name of the release whose deployment began last, after the active one was activated, and is not over.
fn deploying<'a>(releases: &[Release], views: &'a [ReleaseView]) -> Option<&'a str> {
    let active = views.iter().filter(|view| view.is_active()).filter_map(ReleaseView::deployed).max();
    let running = releases.iter().zip(views).filter(|(release, view)| {
        !view.is_active()
            && view.activation.is_none()
            && view.deployment_end.is_none()
            && view.left_by_rollback.is_none()
            && started(release) > active
    });
    running
        .filter_map(|(release, view)| Some((started(release)?, view.name.as_str())))
        .max()
        .map(|(_, name)| name)
}

fn started(release: &Release) -> Option<Timestamp> {
    release.status.as_ref()?.deployment_start_time.as_ref().map(|time| time.0)
}

fn health(release: &Release) -> String {
    let Some(status) = &release.status else { return String::new() };
    match conditions::find(&status.conditions, ReleaseCondition::Healthy.as_str()) {
        Some(found) if found.message.is_empty() => found.reason.clone(),
        Some(found) => format!("{}: {}", found.reason, found.message),
        None => String::new(),
    }
}

fn note(view: &ReleaseView, state: State, rollbacks: &[RollbackView]) -> String {
    let mut notes = Vec::new();
    if let Some(name) = view.activation.as_ref().and_then(|activation| activation.rollback_ref.as_ref()) {
        let uid = view.activation.as_ref().and_then(|activation| activation.rollback_uid.as_ref());
        let made = rollbacks
            .iter()
            .find(|rollback| rollback.name == *name && uid.is_none_or(|uid| *uid == rollback.uid));
        notes.push(match made {
            Some(made) => format!("back by rollback/{name} ({}): {}", by(made), made.reason),
            None => format!("back by rollback/{name}"),
        });
    }
    for running in rollbacks.iter().filter(|rollback| !rollback.phase.is_ended() && !rollback.dormant) {
        if running.to == view.name {
            notes.push(format!("rollback/{} is going back to it", running.name));
        }
        if running.from == view.name {
            notes.push(format!("rollback/{} is leaving it", running.name));
        }
    }
    if let (Some(rollback), State::RolledBack) = (&view.left_by_rollback, state) {
        notes.push(format!("left by rollback/{rollback}"));
    }
    if let Some(reason) = &view.blocked {
        notes.push(format!("blocked: {reason}"));
    }
    if view.rollback_required == Status::True && state == State::Active {
        notes.push("should be rolled back".to_owned());
    }
    notes.join("; ")
}

fn by(rollback: &RollbackView) -> &str {
    if rollback.by.is_empty() { "unknown user" } else { &rollback.by }
}

#[cfg(test)]
mod tests;
