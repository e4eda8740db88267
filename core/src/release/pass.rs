//! What one pass over a target's releases does: pure, total, and nothing once everything is as it should be.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Activation, Release, ReleaseStatus, annotations};

use super::activation::{self, Outcome};
use super::annotations::Note;
use super::culling::{self, Deletion};
use super::facts::Facts;
use super::{deploying, settle, status};
use crate::pointer::Pointer;

/// What is known about a target.
#[derive(Clone, Copy, Debug)]
pub struct TargetObserved<'a> {
    /// The time.
    pub now: Timestamp,
    /// All its releases.
    pub releases: &'a [&'a Release],
    /// Its pointer; empty when there is none.
    pub pointer: &'a Pointer,
    /// Names of the releases that unfinished Rollbacks leave or deploy.
    pub in_use: &'a BTreeSet<String>,
    /// How many releases to keep; see [`culling::limit`].
    pub limit: usize,
}

/// What to do, in the order of the fields. Each write carries the resourceVersion of what was seen; after a conflict,
/// or when `again` is set, look and decide again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetDecision {
    /// Persist these events on their releases.
    pub stamps: Vec<Stamp>,
    /// Write the pointer.
    pub pointer: Option<Pointer>,
    /// The release that became active with it.
    pub activated: Option<Activated>,
    /// Annotations to remove before the statuses are written: without an event on the release, the old request would
    /// look like a new one afterwards.
    pub early_removals: Vec<Removal>,
    /// Replace these statuses (release name, status).
    pub statuses: Vec<(String, ReleaseStatus)>,
    /// Annotations to remove after the statuses are written.
    pub late_removals: Vec<Removal>,
    /// Delete these releases.
    pub deletions: Vec<Deletion>,
    /// Whether there is more to decide once this is done.
    pub again: bool,
    /// Annotations that were not understood.
    pub notes: Vec<Note>,
}

/// An event to persist in the annotation `activation` of a release (rule 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The release (name).
    pub release: String,
    /// The event.
    pub activation: Activation,
    /// Whether the annotation `health` goes too: it is about an earlier deployment (H-18).
    pub drops_health: bool,
}

/// A release that became the active one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activated {
    /// The release (name).
    pub release: String,
    /// The event.
    pub activation: Activation,
    /// The release that was active before (name).
    pub replaced: Option<String>,
}

/// Annotations to remove from a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The release (name).
    pub release: String,
    /// The annotation keys.
    pub keys: Vec<&'static str>,
}

impl TargetDecision {
    /// Whether there is nothing to write.
    pub fn is_idle(&self) -> bool {
        self.stamps.is_empty()
            && self.pointer.is_none()
            && self.early_removals.is_empty()
            && self.statuses.is_empty()
            && self.late_removals.is_empty()
            && self.deletions.is_empty()
    }
}

/// Decides what to do about a target.
pub fn decide(observed: &TargetObserved<'_>) -> TargetDecision {
    let TargetObserved { now, releases, pointer: old, in_use, limit } = *observed;
    let mut notes = Vec::new();
    let facts: Vec<Facts<'_>> = releases.iter().map(|release| Facts::of(release, &mut notes)).collect();
    let settled = settle::is_settled(&facts, old);
    let outcome =
        if settled { activation::decide(&facts, old, now) } else { activation::postpone(&facts, old) };
    let mut pointer = Pointer { active: outcome.active.clone(), ..old.clone() };

    let lost: BTreeMap<usize, _> = outcome.lost.iter().map(|(index, lost)| (*index, lost)).collect();
    let mut statuses: Vec<ReleaseStatus> = facts
        .iter()
        .enumerate()
        .map(|(index, fact)| status::of(fact, &pointer, lost.get(&index).copied(), now))
        .collect();
    pointer.deploying = deploying::find(&facts, &statuses, pointer.active.as_ref());
    let waiting: BTreeSet<usize> = outcome.waiting.iter().copied().collect();
    let stamps = stamps(&facts, &outcome);
    let dropped: BTreeSet<&str> =
        stamps.iter().filter(|stamp| stamp.drops_health).map(|stamp| stamp.release.as_str()).collect();
    for (fact, status) in facts.iter().zip(&mut statuses) {
        let report = fact.inputs.health.as_ref().filter(|_| !dropped.contains(fact.name));
        status::measure(status, fact, report, &pointer, now);
    }
    let (deletions, more) = culling::find(&facts, &statuses, &pointer, &waiting, in_use, limit);

    let (early_removals, late_removals) = removals(&facts, &statuses, &pointer, &outcome.stamps, &waiting);
    TargetDecision {
        stamps,
        activated: activated(old, &pointer),
        early_removals,
        late_removals,
        deletions,
        again: !settled || !waiting.is_empty() || more,
        statuses: facts
            .iter()
            .zip(statuses)
            .filter(|(fact, status)| !fact.leaving && fact.status != status)
            .map(|(fact, status)| (fact.name.to_owned(), status))
            .collect(),
        pointer: (pointer != *old).then_some(pointer),
        notes,
    }
}

fn stamps(facts: &[Facts<'_>], outcome: &Outcome) -> Vec<Stamp> {
    outcome
        .stamps
        .iter()
        .map(|(index, activation)| Stamp {
            release: facts[*index].name.to_owned(),
            activation: activation.clone(),
            drops_health: facts[*index].inputs.has_health && facts[*index].status.activation.is_some(),
        })
        .collect()
}

fn activated(old: &Pointer, new: &Pointer) -> Option<Activated> {
    let active = new.active.as_ref()?;
    let event = |pointer: &Pointer| {
        pointer.active.as_ref().map(|active| (active.uid.clone(), active.activation.id.clone()))
    };
    (event(old) != event(new)).then(|| Activated {
        release: active.release.clone(),
        activation: active.activation.clone(),
        replaced: active.replaced.clone(),
    })
}

/// A release that is not active must not ask to be; what was asked and answered goes too.
fn removals(
    facts: &[Facts<'_>],
    statuses: &[ReleaseStatus],
    pointer: &Pointer,
    stamps: &[(usize, Activation)],
    waiting: &BTreeSet<usize>,
) -> (Vec<Removal>, Vec<Removal>) {
    let stamped: BTreeSet<usize> = stamps.iter().map(|(index, _)| *index).collect();
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for (index, (fact, status)) in facts.iter().zip(statuses).enumerate() {
        if fact.leaving || fact.is(pointer.active.as_ref()) || waiting.contains(&index) {
            continue;
        }
        // An unreadable event is none: it would not be recognised as answered.
        let has_event = fact.inputs.activation.is_some() || stamped.contains(&index);
        let answered = match (&fact.inputs.activation, &status.activation) {
            (Some(asked), Some(known)) => asked.id == known.id,
            (Some(_) | None, Some(_) | None) => false,
        };
        let keys = if fact.inputs.wants {
            let event = (has_event || fact.inputs.has_activation).then_some(annotations::ACTIVATION);
            std::iter::once(annotations::ACTIVE).chain(event).collect()
        } else if answered {
            vec![annotations::ACTIVATION]
        } else {
            continue;
        };
        let removal = Removal { release: fact.name.to_owned(), keys };
        if has_event { late.push(removal) } else { early.push(removal) }
    }
    (early, late)
}
