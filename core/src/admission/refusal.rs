//! The sentences of refusals: the object first, then what is wrong, then the next command to type.

use std::fmt::Write as _;

use k8s_openapi::jiff::Timestamp;
use rollback_api::conditions::Status;

use super::age::age;
use super::state::TargetState;
use super::verdict::Denial;
use crate::release::ReleaseView;
use crate::release::select::{Ineligible, eligibility, select};
use crate::rollback::RollbackView;

/// Most releases that a refusal lists.
const LISTED: usize = 5;
/// Most targets that a refusal lists.
const TARGETS_LISTED: usize = 10;

/// There is nothing of that target in the namespace.
pub(super) fn no_releases(state: &TargetState) -> Denial {
    let TargetState { namespace, target, other_targets, .. } = state;
    // Writing to a String cannot fail, here and below.
    let mut message = format!("no releases of {target:?} in namespace {namespace}.");
    if other_targets.is_empty() {
        message.push_str(" Look at other namespaces: kubectl rollback list --all-namespaces");
    } else {
        let shown = other_targets.iter().take(TARGETS_LISTED).map(String::as_str);
        let _ = write!(message, " Targets here: {}", shown.collect::<Vec<_>>().join(", "));
        let more = other_targets.len().saturating_sub(TARGETS_LISTED);
        if more > 0 {
            let _ = write!(message, " and {more} more");
        }
        message.push('.');
    }
    Denial::forbidden(message)
}

/// There are releases, but none is live.
pub(super) fn none_active(state: &TargetState) -> Denial {
    let TargetState { namespace, target, .. } = state;
    Denial::forbidden(format!(
        "no release of {target} is active, so there is nothing to roll back from.\n\
         If one is deployed, say so: kubectl -n {namespace} annotate release NAME theatre.gocardless.com/active=true"
    ))
}

/// Another Rollback is under way.
pub(super) fn in_the_way(state: &TargetState, other: &RollbackView, now: Timestamp) -> Denial {
    let target = &state.target;
    let by = if other.by.is_empty() { "unknown user" } else { &other.by };
    let since = other.created.map(|created| format!(", {} ago", age(now, created))).unwrap_or_default();
    let name = &other.name;
    let to = if other.to.is_empty() { "an earlier release" } else { &other.to };
    Denial::forbidden(format!(
        "rollback/{name} ({by}{since}) is already rolling {target} back to {to}.\n\
         Follow: kubectl rollback status {name} --watch    Cancel: kubectl rollback cancel {name}"
    ))
}

/// Nothing may be chosen without being named.
pub(super) fn nothing_to_choose(state: &TargetState, from: &str, now: Timestamp) -> Denial {
    let target = &state.target;
    let skipped = select(from, &state.views).skipped;
    let Some((first, _)) = skipped.first() else {
        return Denial::forbidden(format!(
            "no earlier release of {target} to go back to: {from} is the only one.\n\
             Look: kubectl rollback history {target}"
        ));
    };
    let first = &first.name;
    let list = lines(skipped.iter().map(|(view, why)| (*view, Some(why))), now);
    Denial::forbidden(format!(
        "no healthy release of {target} to go back to.\n{list}\
         Name one to use it anyway: kubectl rollback {target} --to {first} --reason …"
    ))
}

/// The named release is not one of the target's.
pub(super) fn not_a_release(state: &TargetState, name: &str, from: &str, now: Timestamp) -> Denial {
    let TargetState { namespace, target, .. } = state;
    let mut message = match &state.stranger {
        Some(stranger) if stranger.name == name => {
            format!("Release {name} belongs to target {}, not to {target}.\n", stranger.target)
        }
        Some(_) | None => format!("Release {name} does not exist in namespace {namespace}.\n"),
    };
    let mut others: Vec<_> = state.views.iter().filter(|view| view.name != from).collect();
    others.sort_by(|a, b| b.deployed().cmp(&a.deployed()).then_with(|| b.name.cmp(&a.name)));
    if others.is_empty() {
        let _ = write!(message, "{target} has no other release than {from}.");
    } else {
        let _ = writeln!(message, "Releases of {target} to go back to:");
        let why: Vec<_> = others.iter().map(|view| eligibility(view, from).err()).collect();
        message.push_str(&lines(others.into_iter().zip(why.iter().map(Option::as_ref)), now));
        let _ = write!(message, "All of them: kubectl rollback history {target}");
    }
    Denial::forbidden(message)
}

/// The named release must not be chosen (rule 22).
pub(super) fn blocked(state: &TargetState, name: &str, reason: &str) -> Denial {
    let target = &state.target;
    Denial::forbidden(format!(
        "Release {name} is blocked: {reason}.\n\
         To use it anyway: kubectl rollback {target} --to {name} --force --reason …\n\
         (in a manifest: the annotation theatre.gocardless.com/force: \"true\")"
    ))
}

/// A given signature is not the release's.
pub(super) fn other_signature(field: &str, name: &str, given: &str, actual: &str) -> Denial {
    Denial::invalid(format!(
        "spec.{field}.signature is {given:?}, but the signature of Release {name} is {actual:?}: \
         it is not the release that was meant. Leave the field out, or name the release that has it: \
         kubectl get releases --field-selector status.signature={given}"
    ))
}

/// One line for each release.
fn lines<'a>(
    releases: impl ExactSizeIterator<Item = (&'a ReleaseView, Option<&'a Ineligible>)>,
    now: Timestamp,
) -> String {
    let more = releases.len().saturating_sub(LISTED);
    let mut list = String::new();
    for (view, why) in releases.take(LISTED) {
        let name = &view.name;
        let _ = writeln!(list, "  {name}   {}   {}", health(view, why), when(view, now));
    }
    if more > 0 {
        let _ = writeln!(list, "  … and {more} more");
    }
    list
}

fn health(view: &ReleaseView, why: Option<&Ineligible>) -> String {
    match why {
        Some(Ineligible::Active) => "active".to_owned(),
        Some(Ineligible::Blocked(reason)) => format!("blocked: {reason}"),
        Some(Ineligible::LeftByRollback(rollback)) => format!("rolled back from by rollback/{rollback}"),
        Some(Ineligible::Unhealthy) => "unhealthy".to_owned(),
        Some(Ineligible::HealthUnknown) => "health unknown".to_owned(),
        None => match view.healthy {
            Status::True => "healthy".to_owned(),
            Status::False => "unhealthy".to_owned(),
            Status::Unknown => "health unknown".to_owned(),
        },
    }
}

fn when(view: &ReleaseView, now: Timestamp) -> String {
    match (view.left, &view.activation, view.deployed()) {
        (Some(left), _, _) => format!("left {} ago", age(now, left)),
        (None, None, _) if view.deployment_end.is_none() => "never active".to_owned(),
        (None, _, Some(deployed)) => format!("deployed {} ago", age(now, deployed)),
        (None, _, None) => "never deployed".to_owned(),
    }
}
