//! Filling in a new Rollback (DESIGN 3, rules 6, 7, 9, 11 and 13).

use rollback_api::{InitiatedBy, Rollback, annotations};

use super::Request;
use super::checks::{annotation, check};
use super::resolve::{Course, Question, Resolved, given, resolve, target_name};
use super::state::TargetState;
use super::submitted::{submitted, submitted_hash};
use super::tracking::is_tracking_label;
use super::verdict::{Allowed, Denial, Verdict};
use crate::conditions::cut;

/// Longest `spec.initiatedBy.principal`, in characters (schema).
const MAX_PRINCIPAL: usize = 256;

/// The target of a Rollback, if its name is one: what to read before anything else is asked.
pub fn target(rollback: &Rollback) -> Result<&str, Denial> {
    target_name(&rollback.spec)?;
    Ok(&rollback.spec.to_release_ref.target)
}

/// Name of the release to deploy, if one is named.
pub fn named_release(rollback: &Rollback) -> Option<&str> {
    given(rollback.spec.to_release_ref.name.as_ref())
}

/// Fills in what the author left out, once, and never over the author's words. Refuses what cannot be filled in
/// or would be refused afterwards anyway. Filling in what was filled in before changes nothing.
pub fn fill(request: &Request<'_>, rollback: &Rollback, state: &TargetState) -> Verdict<Rollback> {
    target_name(&rollback.spec)?;
    let mut filled = rollback.clone();
    let name = rollback.metadata.name.as_deref().unwrap_or_default();
    let (hash, pinned) = match annotation(rollback, annotations::SUBMITTED_HASH)
        .and_then(|hash| submitted(&rollback.spec, hash).map(|sent| (hash.to_owned(), sent)))
    {
        Some((hash, sent)) => (hash, is_pinned(&sent)),
        None => (submitted_hash(&rollback.spec), is_pinned(&rollback.spec)),
    };
    stamp(&mut filled, request.user, &hash);
    if state.has_rollback(name) {
        // The API server knows better words for it: the name is taken.
        return Ok(Allowed::silently(filled));
    }
    let question = Question { spec: &rollback.spec, name, hash: &hash, pinned, now: request.now };
    let Resolved { from, to, course } = resolve(&question, state)?;
    if let (Course::Needed, Some(from)) = (&course, &from) {
        check(request, rollback, from, &to, state)?;
    }
    copy_labels(&mut filled, given(to.name.as_ref()), state);
    filled.spec.from_release_ref = from;
    filled.spec.to_release_ref = to;
    filled.spec.initiated_by = Some(initiated_by(rollback.spec.initiated_by.clone(), request.user));
    Ok(Allowed::silently(filled))
}

/// Whether a spec as submitted names the release to leave.
pub(super) fn is_pinned(spec: &rollback_api::RollbackSpec) -> bool {
    spec.from_release_ref.as_ref().is_some_and(|from| given(from.name.as_ref()).is_some())
}

/// The annotations that only admission writes.
fn stamp(rollback: &mut Rollback, user: &str, hash: &str) {
    let cancelled = annotation(rollback, annotations::CANCEL).is_some();
    let all = rollback.metadata.annotations.get_or_insert_default();
    all.insert(annotations::AUTHENTICATED_AS.to_owned(), user.to_owned());
    all.insert(annotations::SUBMITTED_HASH.to_owned(), hash.to_owned());
    if cancelled {
        all.insert(annotations::CANCELLED_BY.to_owned(), user.to_owned());
    } else {
        all.remove(annotations::CANCELLED_BY);
    }
}

/// Who asked for it, as the author says, else as the API server does.
fn initiated_by(sent: Option<InitiatedBy>, user: &str) -> InitiatedBy {
    let sent = sent.unwrap_or_default();
    let type_ = || if is_machine(user) { "system" } else { "user" }.to_owned();
    InitiatedBy {
        principal: sent.principal.filter(|text| !text.is_empty()).or_else(|| Some(cut(user, MAX_PRINCIPAL))),
        type_: sent.type_.filter(|text| !text.is_empty()).or_else(|| Some(type_())),
    }
}

/// Service accounts, nodes and the control plane itself.
fn is_machine(user: &str) -> bool {
    ["system:serviceaccount:", "system:node:", "system:kube-"].iter().any(|prefix| user.starts_with(prefix))
}

/// Labels of the release to deploy that the author did not set, but none by which a tool would take the Rollback
/// for one of its own.
fn copy_labels(rollback: &mut Rollback, to: Option<&str>, state: &TargetState) {
    let Some(labels) =
        to.and_then(|to| state.release(to)).and_then(|release| release.metadata.labels.as_ref())
    else {
        return;
    };
    let missing: Vec<_> = labels
        .iter()
        .filter(|(key, _)| !is_tracking_label(key))
        .filter(|(key, _)| !rollback.metadata.labels.as_ref().is_some_and(|own| own.contains_key(*key)))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !missing.is_empty() {
        rollback.metadata.labels.get_or_insert_default().extend(missing);
    }
}

#[cfg(test)]
mod tests;
