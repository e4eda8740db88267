//! From where to where: what an absent reference means, and whether there is anything to do (rules 6 and 11).

use k8s_openapi::jiff::Timestamp;
use rollback_api::{FromReleaseRef, ReleaseRef, RollbackSpec};

use super::age::age;
use super::refusal;
use super::state::{ActiveNow, TargetState};
use super::verdict::Denial;
use crate::pointer::LedgerEntry;
use crate::release::select;
use crate::signature;

/// The references of a spec with everything filled in that can be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resolved {
    /// The release to leave; `None` only if an earlier outcome does not say it.
    pub(super) from: Option<FromReleaseRef>,
    /// The release to deploy.
    pub(super) to: ReleaseRef,
    /// What is to become of the Rollback.
    pub(super) course: Course,
}

/// What is to become of a Rollback.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Course {
    /// It ends at once as `NotNeeded`, for this reason; nothing else is checked (rule 6).
    NotNeeded(String),
    /// It is to be carried out.
    Needed,
}

/// What is asked about.
pub(super) struct Question<'a> {
    /// The spec, filled in or not.
    pub(super) spec: &'a RollbackSpec,
    /// Name of the Rollback; empty if the server will make one.
    pub(super) name: &'a str,
    /// Hash of the spec as submitted.
    pub(super) hash: &'a str,
    /// Whether the submitted spec named the release to leave.
    pub(super) pinned: bool,
    /// Now.
    pub(super) now: Timestamp,
}

/// Checks the target's name before anything is read for it: nothing else could be asked of the API server.
pub(super) fn target_name(spec: &RollbackSpec) -> Result<(), Denial> {
    let target = &spec.to_release_ref.target;
    if !signature::is_target(target) {
        return Err(Denial::invalid(format!(
            "spec.toReleaseRef.target {target:?} is not the name of a target: use lower-case letters, digits, '-' and \
             '.', beginning and ending with a letter or digit, at most {} characters",
            signature::MAX_TARGET
        )));
    }
    match &spec.from_release_ref {
        Some(from) if from.target != *target => Err(Denial::invalid(format!(
            "spec.fromReleaseRef.target is {:?} and spec.toReleaseRef.target is {target:?}: a rollback moves one target",
            from.target
        ))),
        Some(from) if given(from.name.as_ref()).is_none() && given(from.activation.as_ref()).is_some() => {
            Err(Denial::invalid(
                "spec.fromReleaseRef.activation is given without spec.fromReleaseRef.name: name the release that is \
                 to be left",
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// Fills in the references and says what is to become of the Rollback.
pub(super) fn resolve(question: &Question<'_>, state: &TargetState) -> Result<Resolved, Denial> {
    let Question { spec, name, hash, pinned, now } = *question;
    let earlier = state.pointer.as_ref().filter(|_| !name.is_empty());
    if let Some(entry) = earlier.and_then(|pointer| pointer.carried_out(name, hash, "")) {
        return Ok(carried_out(spec, entry, now));
    }
    let active = state.active();
    let from_name = given(spec.from_release_ref.as_ref().and_then(|from| from.name.as_ref()));
    let to_name = given(spec.to_release_ref.name.as_ref());
    if let Some((from, why)) = from_name.and_then(|from| Some((from, not_live(spec, from, state)?))) {
        let to = match (to_name, active) {
            (Some(to), _) => to,
            // Nothing will be deployed; the active release is the one name that cannot do harm.
            (None, Some(active)) => active.release,
            (None, None) => choose(from, state, now)?,
        };
        return Ok(filled(spec, state, from, to, Course::NotNeeded(why)));
    }
    let only_active = |active: &ActiveNow<'_>| state.live() == Some(active.release);
    if let (Some(to), Some(active)) = (to_name, active.filter(only_active)) {
        let from = from_name.unwrap_or(active.release);
        if to == active.release && from == to {
            if pinned {
                return Err(Denial::invalid(format!(
                    "spec.fromReleaseRef and spec.toReleaseRef both name {to}, which is active: name an earlier \
                     release to go back to, or leave spec.toReleaseRef.name out"
                )));
            }
            let why = format!("{to} is already active");
            return Ok(filled(spec, state, from, to, Course::NotNeeded(why)));
        }
    }
    if state.views.is_empty() {
        return Err(refusal::no_releases(state));
    }
    let Some(from) = from_name.or_else(|| state.live()) else { return Err(refusal::none_active(state)) };
    if let Some(other) = state.in_flight() {
        return Err(refusal::in_the_way(state, other, now));
    }
    let to = to_name.map_or_else(|| choose(from, state, now), Ok)?;
    Ok(filled(spec, state, from, to, Course::Needed))
}

/// Why a named release to leave is not live, if it is not: another one is, another activation of it is, or the
/// named activation is over and none is known to be active yet.
fn not_live(spec: &RollbackSpec, from: &str, state: &TargetState) -> Option<String> {
    let target = &state.target;
    let pinned = given(spec.from_release_ref.as_ref().and_then(|from| from.activation.as_ref()));
    if state.deploying() == Some(from) {
        return None;
    }
    let over = format!("{target} is no longer on {from}, which this rollback was to leave");
    match state.active() {
        Some(active) if active.release != from => Some(format!("{over}; {} is active", active.release)),
        Some(active) => match (pinned, active.activation) {
            (Some(pinned), Some(now)) if pinned != now => Some(format!(
                "{target} was deployed again since: {from} is active, but by another activation than the one this \
                 rollback was to leave"
            )),
            (Some(_) | None, Some(_) | None) => None,
        },
        None => pinned.map(|_| format!("{over}; no release of {target} is known to be active")),
    }
}

/// The release to go back to when none is named.
fn choose<'a>(from: &str, state: &'a TargetState, now: Timestamp) -> Result<&'a str, Denial> {
    // What is live never became active: back to what is (rule 11).
    if state.deploying() == Some(from) {
        let active = state.active().and_then(|active| state.view(active.release));
        if let Some(active) = active.filter(|active| active.blocked.is_none()) {
            return Ok(&active.name);
        }
    }
    let chosen = select::select(from, &state.views).chosen;
    chosen.map(|release| release.name.as_str()).ok_or_else(|| refusal::nothing_to_choose(state, from, now))
}

/// The spec's references with empty fields filled, given fields untouched.
fn filled(spec: &RollbackSpec, state: &TargetState, from: &str, to: &str, course: Course) -> Resolved {
    let signature = |name: &str| state.view(name).map(|view| view.signature.clone());
    let activation = state
        .active()
        .filter(|active| active.release == from)
        .and_then(|active| active.activation.map(str::to_owned));
    let sent = spec.from_release_ref.clone().unwrap_or_default();
    let from = FromReleaseRef {
        target: state.target.clone(),
        name: Some(from.to_owned()),
        signature: keep(sent.signature, || signature(from)),
        activation: keep(sent.activation, || activation),
    };
    let sent = spec.to_release_ref.clone();
    let to = ReleaseRef {
        target: sent.target,
        name: Some(to.to_owned()),
        signature: keep(sent.signature, || signature(to)),
    };
    Resolved { from: Some(from), to, course }
}

/// The names that the earlier outcome of the same manifest knows.
fn carried_out(spec: &RollbackSpec, entry: &LedgerEntry, now: Timestamp) -> Resolved {
    let known = |name: &String| (!name.is_empty()).then(|| name.clone());
    let from = match (spec.from_release_ref.clone(), known(&entry.from)) {
        (None, None) => None,
        (sent, from) => {
            let sent = sent.unwrap_or_default();
            let target = spec.to_release_ref.target.clone();
            Some(FromReleaseRef { target, name: keep(sent.name, || from), ..sent })
        }
    };
    let sent = spec.to_release_ref.clone();
    let to = ReleaseRef { name: keep(sent.name.clone(), || known(&entry.to)), ..sent };
    let why = format!(
        "rollback/{} was carried out before with the same spec ({}, {} ago); give it another name to roll back again",
        entry.name,
        entry.outcome,
        age(now, entry.time.0)
    );
    Resolved { from, to, course: Course::NotNeeded(why) }
}

/// A given value, else what would be filled in.
fn keep(sent: Option<String>, fill: impl FnOnce() -> Option<String>) -> Option<String> {
    sent.filter(|text| !text.is_empty()).or_else(fill)
}

/// A value that is there and not empty.
pub(super) fn given(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|text| !text.is_empty())
}
