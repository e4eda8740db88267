//! Who owns which field after a restored object (rules 15 and 19).
//!
//! A PUT of an old template makes the writer the owner of every field whose value changed; the next server-side
//! apply then fails with a conflict, or leaves stale fields behind. So a second PUT changes only `managedFields`:
//! below the content (the pod template, a ConfigMap's data) ownership is again what the snapshot says, everywhere
//! else it stays what it is now. Taking it all from the snapshot would give `spec.replicas` back to whoever
//! had it before an autoscaler took over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use k8s_openapi::jiff::Timestamp;

use super::fieldset::FieldSet;
use super::object::WorkloadKind;

/// The field manager under which the controller writes.
pub const FIELD_MANAGER: &str = "rollback-controller";

/// Where a kind keeps the content that a rollback restores, as paths of managedFields.
pub fn content_paths(kind: WorkloadKind) -> &'static [&'static [&'static str]] {
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
            &[&["f:spec", "f:template"]]
        }
        WorkloadKind::ConfigMap => &[&["f:data"], &["f:binaryData"], &["f:immutable"]],
    }
}

/// The ownership of an object that we have just written: `current` is what the server made of the write,
/// `snapshot` what it was when the content was recorded.
///
/// - Below the content: what the snapshot says, except for us.
/// - Elsewhere: what `current` says. Fields that our write took (all of an object that was created again, or the
///   last-applied annotation) go back to their owners of the snapshot.
/// - Ours is the annotation with the attempt's key and nothing else.
pub fn hand_back(
    kind: WorkloadKind,
    current: &[ManagedFieldsEntry],
    snapshot: &[ManagedFieldsEntry],
) -> Vec<ManagedFieldsEntry> {
    let mut taken = FieldSet::default();
    let mut owned: Vec<(ManagedFieldsEntry, FieldSet)> = Vec::new();
    for entry in current {
        let mut set = fields(entry);
        if is_ours(entry) {
            taken.add(&set);
            set = set.only(KEY_PATH);
        }
        for path in content_paths(kind) {
            set.remove(path);
        }
        owned.push((entry.clone(), set));
    }
    for path in content_paths(kind) {
        taken.remove(path);
    }
    for entry in snapshot.iter().filter(|entry| !is_ours(entry) && subresource(entry).is_empty()) {
        let before = fields(entry);
        let mut back = before.and(&taken);
        for path in content_paths(kind) {
            back.add(&before.only(path));
        }
        match owned.iter_mut().find(|(other, _)| same_owner(other, entry)) {
            Some((_, set)) => set.add(&back),
            None => owned.push((entry.clone(), back)),
        }
    }
    let kept = owned.into_iter().filter(|(_, set)| !set.is_empty());
    kept.map(|(entry, set)| ManagedFieldsEntry { fields_v1: Some(FieldsV1(set.to_json())), ..entry })
        .collect()
}

/// Whether we own more of an object than the annotation with the attempt's key: the ownership is not handed back.
pub fn is_owed(current: &[ManagedFieldsEntry]) -> bool {
    current.iter().filter(|entry| is_ours(entry)).any(|entry| {
        let mut set = fields(entry);
        set.remove(KEY_PATH);
        // The map of annotations itself came with the key.
        set != FieldSet::parse(&serde_json::json!({"f:metadata": {"f:annotations": {}}})) && !set.is_empty()
    })
}

/// Who wrote the content last, other than us: for the sentence that says who undid a rollback.
pub fn last_writer(kind: WorkloadKind, current: &[ManagedFieldsEntry]) -> Option<&str> {
    let writers = current.iter().filter(|entry| {
        let set = fields(entry);
        !is_ours(entry) && content_paths(kind).iter().any(|path| !set.only(path).is_empty())
    });
    writers
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
        .and_then(|entry| entry.manager.as_deref())
}

/// When the content was written last, by anybody, as far as the server keeps it.
pub fn last_write(kind: WorkloadKind, current: &[ManagedFieldsEntry]) -> Option<Timestamp> {
    let writes = current.iter().filter(|entry| {
        let set = fields(entry);
        // What we wrote is not ours any more, but the key came with it.
        is_ours(entry) || content_paths(kind).iter().any(|path| !set.only(path).is_empty())
    });
    writes.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// The annotation with the attempt's key ([`rollback_api::annotations::ATTEMPT_KEY`]).
const KEY_PATH: &[&str] = &["f:metadata", "f:annotations", "f:theatre.gocardless.com/attempt-key"];

fn fields(entry: &ManagedFieldsEntry) -> FieldSet {
    entry.fields_v1.as_ref().map(|fields| FieldSet::parse(&fields.0)).unwrap_or_default()
}

fn subresource(entry: &ManagedFieldsEntry) -> &str {
    entry.subresource.as_deref().unwrap_or_default()
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER) && subresource(entry).is_empty()
}

/// As the server tells owners apart: by manager, operation and subresource, and by version for updates alone.
fn same_owner(a: &ManagedFieldsEntry, b: &ManagedFieldsEntry) -> bool {
    a.manager == b.manager
        && a.operation == b.operation
        && subresource(a) == subresource(b)
        && (a.operation.as_deref() == Some("Apply") || a.api_version == b.api_version)
}

#[cfg(test)]
mod tests;
