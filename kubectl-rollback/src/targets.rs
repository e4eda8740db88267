//! Targets and rollbacks by what people call them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use kube::api::ListParams;
use rollback_api::{Release, Rollback};
use rollback_core::rollback::{Phase, RollbackView};
use rollback_core::suggest::nearest;

use crate::failure::Failure;
use crate::session::Session;

/// Most targets that an error lists.
const LISTED: usize = 10;

/// The names of all targets of some releases, sorted.
pub(crate) fn names(releases: &[Release]) -> Vec<&str> {
    let all: BTreeSet<&str> =
        releases.iter().map(|release| release.spec.config.target_name.as_str()).collect();
    all.into_iter().collect()
}

/// The sentence about a target without releases, with what was likely meant.
pub(crate) fn unknown(target: &str, namespace: &str, known: &[&str]) -> String {
    let mut text = format!("no releases of {target:?} in namespace {namespace}.");
    if let Some(near) = nearest(target, known.iter().copied()) {
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, " Did you mean {near}?");
    }
    if known.is_empty() {
        text.push_str(
            " No other target is here either: look elsewhere with kubectl rollback list --all-namespaces",
        );
        return text;
    }
    let _ = write!(text, " Targets here: {}", known[..known.len().min(LISTED)].join(", "));
    if known.len() > LISTED {
        let _ = write!(text, " and {} more", known.len() - LISTED);
    }
    text.push('.');
    text
}

/// The releases of a target, of which there is at least one; otherwise the sentence of [`unknown`].
pub(crate) async fn releases(
    session: &Session,
    target: &str,
) -> Result<Vec<Release>, Result<Failure, String>> {
    let found = session.releases(target).await.map_err(Ok)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let all = session.list_releases(&session.releases_api(), &ListParams::default()).await.map_err(Ok)?;
    Err(Err(unknown(target, session.namespace(), &names(&all))))
}

/// What a command on a rollback is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// Of a target's Rollbacks the newest.
    Newest,
    /// Of a target's Rollbacks the one under way, else the newest.
    UnderWay,
}

/// The Rollback that a person calls `name`: a Rollback of that name, else one of the target of that name.
pub(crate) async fn rollback(session: &Session, name: &str, prefer: Prefer) -> Result<Rollback, Failure> {
    let bare = ["rollback/", "rollbacks/", "rb/", "rollback.deploy.crd.gocardless.com/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    let looked_for = bare.unwrap_or(name);
    if let Some(found) = session.rollback(looked_for).await? {
        return Ok(found);
    }
    let all = if bare.is_some() { Vec::new() } else { session.rollbacks(name).await? };
    if let Some(found) = pick(all, prefer) {
        return Ok(found);
    }
    let everything = session.list_rollbacks(&session.rollbacks_api(), &ListParams::default()).await?;
    Err(Failure::error(no_rollback(looked_for, session.namespace(), &everything)))
}

fn pick(all: Vec<Rollback>, prefer: Prefer) -> Option<Rollback> {
    all.into_iter().max_by_key(|rollback| {
        let view = RollbackView::of(rollback);
        let under_way = prefer == Prefer::UnderWay && !view.phase.is_ended();
        // Of several under way the one that has the lock is meant, not one that waits behind it.
        let holds = prefer == Prefer::UnderWay && view.phase.holds_lock();
        (under_way, holds, view.created, view.name)
    })
}

fn no_rollback(name: &str, namespace: &str, all: &[Rollback]) -> String {
    let views: Vec<RollbackView> = all.iter().map(RollbackView::of).collect();
    let mut known: BTreeSet<&str> = views.iter().map(|view| view.name.as_str()).collect();
    known.extend(views.iter().map(|view| view.target.as_str()));
    let hint = nearest(name, known).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    let running: Vec<&str> = views
        .iter()
        .filter(|view| view.phase != Phase::Pending || !view.dormant)
        .filter(|view| !view.phase.is_ended())
        .map(|view| view.name.as_str())
        .collect();
    let running = match running.as_slice() {
        [] => "None is running here.".to_owned(),
        some => format!("Running here: {}.", some.join(", ")),
    };
    format!(
        "no rollback {name:?}, and no rollback of a target of that name, in namespace {namespace}.{hint} {running} All: kubectl get rollbacks -n {namespace}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rollback(name: &str, created: &str, status: &serde_json::Value) -> Rollback {
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"toReleaseRef": {"target": "payments"}, "reason": "r"},
            "status": status,
        }))
        .unwrap()
    }

    fn ended() -> serde_json::Value {
        json!({"conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-03-01T13:00:00Z"}]})
    }

    fn running() -> serde_json::Value {
        json!({"attempts": [{"number": 1, "key": "k-1", "state": "Running"}]})
    }

    #[test]
    fn of_a_target_the_newest_or_the_one_under_way() {
        let all = || {
            vec![
                rollback("b-running", "2026-03-01T13:00:00Z", &running()),
                rollback("c-queued", "2026-03-01T13:01:00Z", &json!({})),
                rollback("a-ended", "2026-03-01T13:02:00Z", &ended()),
            ]
        };
        let name = |prefer| pick(all(), prefer).unwrap().metadata.name.unwrap();
        assert_eq!(name(Prefer::Newest), "a-ended");
        assert_eq!(name(Prefer::UnderWay), "b-running");
        assert_eq!(pick(Vec::new(), Prefer::Newest), None);
    }

    #[test]
    fn says_what_there_is() {
        assert_eq!(
            unknown("payment", "shop", &["checkout", "payments"]),
            "no releases of \"payment\" in namespace shop. Did you mean payments? Targets here: checkout, payments."
        );
        assert_eq!(
            unknown("payment", "shop", &[]),
            "no releases of \"payment\" in namespace shop. No other target is here either: look elsewhere with kubectl rollback list --all-namespaces"
        );
        let many: Vec<String> = (0..12).map(|n| format!("t{n:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(unknown("x", "shop", &many).ends_with("t08, t09 and 2 more."));
        let all = [
            rollback("payments-x7k2p", "2026-03-01T13:00:00Z", &running()),
            rollback("old", "2026-03-01T12:00:00Z", &ended()),
        ];
        assert_eq!(
            no_rollback("paymets", "shop", &all),
            "no rollback \"paymets\", and no rollback of a target of that name, in namespace shop. Did you mean payments? \
             Running here: payments-x7k2p. All: kubectl get rollbacks -n shop"
        );
    }
}
