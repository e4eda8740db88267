//! Changing a Rollback: its spec never changes, only its metadata does (rules 7 and 8).

use rollback_api::{FromReleaseRef, InitiatedBy, ReleaseRef, Rollback, RollbackSpec, annotations};

use super::canonical::changed_fields;
use super::checks::annotation;
use super::resolve::given;
use super::rollback_validate::not_ours;
use super::submitted::hash_without_dry_run;
use super::verdict::{Allowed, Denial, Verdict};

/// The annotations that only admission writes.
const OURS: [&str; 3] =
    [annotations::AUTHENTICATED_AS, annotations::SUBMITTED_HASH, annotations::CANCELLED_BY];

/// Puts back what an update may not change or does not know, and stamps who asks for cancellation.
pub fn restore(user: &str, old: &Rollback, new: &Rollback) -> Rollback {
    let mut restored = new.clone();
    for key in OURS {
        let value = expected(key, user, old, new);
        if annotation(new, key) != value.as_deref() || (value.is_none() && has(new, key)) {
            let all = restored.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => all.insert(key.to_owned(), value),
                None => all.remove(key),
            };
        }
    }
    restored.spec = restore_spec(&old.spec, &new.spec);
    restored
}

/// Refuses a changed spec, and annotations that only admission writes. What [`restore`] gives back passes unless
/// the spec was really changed.
pub fn validate(user: &str, old: &Rollback, new: &Rollback) -> Verdict<()> {
    for key in OURS {
        if annotation(new, key) != expected(key, user, old, new).as_deref() {
            return Err(not_ours(key, "was changed"));
        }
    }
    if old.spec.dry_run != Some(true) && new.spec.dry_run == Some(true) {
        return Err(Denial::invalid(
            "spec.dryRun cannot be enabled after creation: to stop this Rollback, cancel it: kubectl rollback cancel NAME"
                .replace("NAME", new.metadata.name.as_deref().unwrap_or_default()),
        ));
    }
    let comparable = RollbackSpec {
        // Unsetting it is how a dormant Rollback is started.
        dry_run: old.spec.dry_run,
        from_release_ref: once(&old.spec, &new.spec),
        to_release_ref: to_once(&old.spec.to_release_ref, &new.spec.to_release_ref),
        ..new.spec.clone()
    };
    let changed = changed_fields(&old.spec, &comparable);
    if changed.is_empty() {
        return Ok(Allowed::silently(()));
    }
    let name = new.metadata.name.as_deref().unwrap_or_default();
    Err(Denial::invalid(format!(
        "{} of rollback/{name} cannot change: the spec is immutable. To ask for something else, create a new Rollback; \
         to stop this one: kubectl rollback cancel {name}",
        changed.join(" and ")
    )))
}

/// What an annotation of ours must say after the update.
fn expected(key: &str, user: &str, old: &Rollback, new: &Rollback) -> Option<String> {
    let before = annotation(old, key).map(str::to_owned);
    if key == annotations::CANCELLED_BY {
        return match annotation(new, annotations::CANCEL) {
            None => None,
            same if same == annotation(old, annotations::CANCEL) => before,
            Some(_) => Some(user.to_owned()),
        };
    }
    let started = old.spec.dry_run == Some(true) && new.spec.dry_run != Some(true);
    if key == annotations::SUBMITTED_HASH && started {
        // The manifest without dryRun is the same manifest, started: it must be found in the ledger.
        return before.map(|hash| hash_without_dry_run(&old.spec, &hash).unwrap_or(hash));
    }
    before
}

fn has(rollback: &Rollback, key: &str) -> bool {
    rollback.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key))
}

/// The new spec with absent fields put back that only admission filled in, or that an older client does not know.
fn restore_spec(old: &RollbackSpec, new: &RollbackSpec) -> RollbackSpec {
    let mut spec = new.clone();
    spec.from_release_ref = match (&old.from_release_ref, &new.from_release_ref) {
        (Some(old), None) => Some(old.clone()),
        (Some(old), Some(new)) => Some(FromReleaseRef {
            target: new.target.clone(),
            name: or(new.name.as_ref(), old.name.as_ref()),
            signature: or(new.signature.as_ref(), old.signature.as_ref()),
            activation: or(new.activation.as_ref(), old.activation.as_ref()),
        }),
        (None, new) => new.clone(),
    };
    spec.to_release_ref = ReleaseRef {
        target: new.to_release_ref.target.clone(),
        name: or(new.to_release_ref.name.as_ref(), old.to_release_ref.name.as_ref()),
        signature: or(new.to_release_ref.signature.as_ref(), old.to_release_ref.signature.as_ref()),
    };
    spec.initiated_by = match (&old.initiated_by, &new.initiated_by) {
        (Some(old), None) => Some(old.clone()),
        (Some(old), Some(new)) => Some(InitiatedBy {
            principal: or(new.principal.as_ref(), old.principal.as_ref()),
            type_: or(new.type_.as_ref(), old.type_.as_ref()),
        }),
        (None, new) => new.clone(),
    };
    spec.backend = new.backend.or(old.backend);
    spec.progress_deadline_seconds = new.progress_deadline_seconds.or(old.progress_deadline_seconds);
    spec.max_attempts = new.max_attempts.or(old.max_attempts);
    spec.hold = new.hold.or(old.hold);
    spec.ttl_seconds_after_finished = new.ttl_seconds_after_finished.or(old.ttl_seconds_after_finished);
    // The schema compares this one literally, where `""` is not the same as nothing.
    if !changed_fields(old, &spec).iter().any(|field| field == "spec.fromReleaseRef") {
        spec.from_release_ref.clone_from(&old.from_release_ref);
    }
    spec
}

/// A value that is there, else the old one.
fn or(new: Option<&String>, old: Option<&String>) -> Option<String> {
    new.filter(|text| !text.is_empty()).or(old).cloned()
}

/// The reference to leave may be set once, on a Rollback that admission never saw (rule 9).
fn once(old: &RollbackSpec, new: &RollbackSpec) -> Option<FromReleaseRef> {
    if old.from_release_ref.is_none() { None } else { new.from_release_ref.clone() }
}

/// Likewise name and signature of the release to deploy.
fn to_once(old: &ReleaseRef, new: &ReleaseRef) -> ReleaseRef {
    let once = |old: &Option<String>, new: &Option<String>| {
        if given(old.as_ref()).is_none() { old.clone() } else { new.clone() }
    };
    ReleaseRef {
        target: new.target.clone(),
        name: once(&old.name, &new.name),
        signature: once(&old.signature, &new.signature),
    }
}

#[cfg(test)]
mod tests;
