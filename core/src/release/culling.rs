//! Which releases are deleted when a target has too many (reference B.1.2, invariant 9, H-27).

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::{ReleaseCondition, Status};
use rollback_api::{Release, ReleaseStatus};

use super::facts::Facts;
use super::{ReleaseView, select};
use crate::conditions;
use crate::pointer::Pointer;

/// Releases to keep for each target when the namespace does not say.
pub const DEFAULT_LIMIT: usize = 30;

/// A release to delete, and only as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The version that was looked at.
    pub resource_version: String,
}

/// The limit that a namespace's annotation `release-limit` sets: at least 1; 30 without one. The second part
/// is a sentence about a value that cannot be used.
pub fn limit(annotation: Option<&str>) -> (usize, Option<String>) {
    let Some(text) = annotation.filter(|text| !text.is_empty()) else { return (DEFAULT_LIMIT, None) };
    let note = |used: usize| {
        format!(
            "annotation {}={:?} is not a whole number of at least 1; {used} releases are kept for each target",
            rollback_api::annotations::RELEASE_LIMIT,
            conditions::cut(text, 64),
        )
    };
    match text.parse::<i64>() {
        Ok(number) if number < 1 => (1, Some(note(1))),
        Ok(number) => (usize::try_from(number).unwrap_or(usize::MAX), None),
        Err(_) => (DEFAULT_LIMIT, Some(note(DEFAULT_LIMIT))),
    }
}

/// The oldest releases above the limit, without those that somebody still needs; and whether there will be more to
/// delete once the others are initialised.
///
/// `statuses` are those that the releases are to have, in the same order; the releases in `waiting` (by index) may
/// yet become active.
pub(super) fn find(
    facts: &[Facts<'_>],
    statuses: &[ReleaseStatus],
    pointer: &Pointer,
    waiting: &BTreeSet<usize>,
    in_use: &BTreeSet<String>,
    limit: usize,
) -> (Vec<Deletion>, bool) {
    let here: Vec<(&Facts<'_>, &ReleaseStatus)> =
        facts.iter().zip(statuses).filter(|(fact, _)| !fact.leaving).collect();
    let waiting: BTreeSet<&str> = waiting.iter().map(|index| facts[*index].name).collect();
    let excess = here.len().saturating_sub(limit.max(1));
    if excess == 0 {
        return (Vec::new(), false);
    }
    let needed = needed(&here, pointer);
    let unused = |fact: &Facts<'_>| {
        !waiting.contains(fact.name) && !needed.contains(fact.name) && !in_use.contains(fact.name)
    };
    let mut candidates: Vec<(Option<Timestamp>, &Facts<'_>)> = here
        .iter()
        .filter(|(fact, _)| unused(fact) && is_initialised(fact))
        .map(|(fact, status)| (deployed(fact, status), *fact))
        .collect();
    candidates.sort_by_key(|(deployed, fact)| (*deployed, fact.name));
    let deletions: Vec<Deletion> = candidates
        .into_iter()
        .take(excess)
        .filter_map(|(_, fact)| {
            Some(Deletion {
                name: fact.name.to_owned(),
                uid: fact.uid.to_owned(),
                resource_version: fact.release.metadata.resource_version.clone()?,
            })
        })
        .collect();
    let more = deletions.len() < excess && here.iter().any(|(fact, _)| !is_initialised(fact));
    (deletions, more)
}

/// What the pointer names, the newest object (recorded, and about to be deployed), the newest healthy release, and the one that a rollback would choose (they differ
/// when the newest healthy one is blocked or was left).
fn needed(here: &[(&Facts<'_>, &ReleaseStatus)], pointer: &Pointer) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    let active = pointer.active.as_ref().map(|active| active.release.as_str());
    needed.extend(active.map(str::to_owned));
    needed.extend(pointer.deploying.as_ref().map(|deploying| deploying.release.clone()));
    if let Some(lock) = &pointer.lock {
        needed.extend([lock.from.clone(), lock.to.clone()]);
    }
    let newest = here.iter().max_by_key(|(fact, status)| {
        // Creation times are whole seconds.
        (fact.created(), status.activation.is_none(), fact.name)
    });
    needed.extend(newest.map(|(fact, _)| fact.name.to_owned()));
    let views: Vec<ReleaseView> = here
        .iter()
        .map(|(fact, status)| {
            let release = Release { status: Some((*status).clone()), ..fact.release.clone() };
            ReleaseView::of(&release)
        })
        .collect();
    let healthy = views
        .iter()
        .filter(|view| view.healthy == Status::True && Some(view.name.as_str()) != active)
        .max_by(|a, b| (a.deployed(), &a.name).cmp(&(b.deployed(), &b.name)));
    needed.extend(healthy.map(|view| view.name.clone()));
    needed.extend(select::select(active.unwrap_or_default(), &views).chosen.map(|view| view.name.clone()));
    needed
}

fn is_initialised(fact: &Facts<'_>) -> bool {
    conditions::find(&fact.status.conditions, ReleaseCondition::Active.as_str()).is_some()
        && fact.status.signature.as_ref().is_some_and(|signature| !signature.is_empty())
}

fn deployed(fact: &Facts<'_>, status: &ReleaseStatus) -> Option<Timestamp> {
    status.deployment_end_time.as_ref().map(|time| time.0).or_else(|| fact.created())
}
