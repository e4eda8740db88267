//! Who owns which field after a restored object (rules 15 and 19).
//!
//! A PUT of an old template makes the writer the owner of every field whose value changed; the next server-side
//! apply then fails with a conflict, or leaves stale fields behind. So a second PUT changes only `managedFields`:
//! below the content (the pod template, a ConfigMap's data) ownership is again what the snapshot says, everywhere
//! else it stays what it is now. Taking it all from the snapshot would give `spec.replicas` back to whoever
//! had it before an autoscaler took over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};

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
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::fieldset::tests::any_set;
    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, fields: &Value) -> ManagedFieldsEntry {
        serde_json::from_value(json!({
            "manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        }))
        .unwrap()
    }

    fn of<'a>(entries: &'a [ManagedFieldsEntry], manager: &str) -> &'a Value {
        let found = entries.iter().find(|entry| entry.manager.as_deref() == Some(manager));
        found.and_then(|entry| entry.fields_v1.as_ref()).map_or(&Value::Null, |fields| &fields.0)
    }

    fn template(container: &Value) -> Value {
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": container}}})
    }

    fn key_only() -> Value {
        json!({"f:metadata": {"f:annotations": {"f:theatre.gocardless.com/attempt-key": {}}}})
    }

    /// Server-side apply by kubectl; an autoscaler took the replicas over after the snapshot; somebody set an image by
    /// hand in the bad version; then our PUT took what it changed.
    #[test]
    fn server_side_apply_gets_its_template_back_and_the_autoscaler_keeps_its_replicas() {
        let snapshot = [entry(
            "kubectl",
            "Apply",
            "2026-11-01T10:00:00Z",
            &json!({"f:spec": {"f:replicas": {}, "f:template": template(&json!({".": {}, "f:image": {}, "f:env": {}}))}}),
        )];
        let current = [
            entry(
                "kubectl",
                "Apply",
                "2026-11-02T10:00:00Z",
                &json!({"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:template": template(&json!({".": {}, "f:name": {}}))}}),
            ),
            entry(
                "kubectl-set",
                "Update",
                "2026-11-02T11:00:00Z",
                &json!({"f:spec": {"f:template": template(&json!({"f:resources": {}}))}}),
            ),
            entry("vpa", "Update", "2026-11-02T11:00:00Z", &json!({"f:spec": {"f:replicas": {}}})),
            entry(
                FIELD_MANAGER,
                "Update",
                "2026-11-02T12:00:00Z",
                &json!({
                    "f:metadata": {"f:annotations": {".": {}, "f:theatre.gocardless.com/attempt-key": {}}},
                    "f:spec": {"f:template": template(&json!({"f:image": {}}))},
                }),
            ),
        ];
        assert!(is_owed(&current));
        assert_eq!(last_writer(WorkloadKind::Deployment, &current), Some("kubectl-set"));
        let after = hand_back(WorkloadKind::Deployment, &current, &snapshot);
        assert_eq!(
            of(&after, "kubectl"),
            &json!({
                "f:metadata": {"f:labels": {"f:team": {}}},
                "f:spec": {"f:template": template(&json!({".": {}, "f:image": {}, "f:env": {}}))},
            })
        );
        assert_eq!(of(&after, "vpa"), &json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(of(&after, "kubectl-set"), &Value::Null, "owned nothing in the snapshot and nothing else");
        assert_eq!(of(&after, FIELD_MANAGER), &key_only());
        assert!(!is_owed(&after));
    }

    /// Client-side apply: our PUT also took the last-applied annotation, which goes back to its owner.
    #[test]
    fn client_side_apply_gets_its_annotation_back() {
        let applied = json!({"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}}});
        let mut before = applied.clone();
        before["f:spec"] = json!({"f:template": template(&json!({"f:image": {}}))});
        let snapshot = [
            entry("kubectl-client-side-apply", "Update", "2026-11-01T10:00:00Z", &before),
            entry(
                "kube-controller-manager",
                "Update",
                "2026-11-01T10:01:00Z",
                &json!({"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}}}),
            ),
        ];
        let current = [
            entry(
                "kubectl-client-side-apply",
                "Update",
                "2026-11-02T10:00:00Z",
                &json!({"f:metadata": {"f:annotations": {".": {}}}}),
            ),
            entry(
                FIELD_MANAGER,
                "Update",
                "2026-11-02T12:00:00Z",
                &json!({
                    "f:metadata": {"f:annotations": {
                        "f:kubectl.kubernetes.io/last-applied-configuration": {}, "f:theatre.gocardless.com/attempt-key": {},
                    }},
                    "f:spec": {"f:template": template(&json!({"f:image": {}}))},
                }),
            ),
        ];
        let after = hand_back(WorkloadKind::Deployment, &current, &snapshot);
        assert_eq!(of(&after, "kubectl-client-side-apply"), &before);
        assert_eq!(of(&after, FIELD_MANAGER), &key_only());
        assert_eq!(after.len(), 2, "an owner of nothing is no owner");
    }

    /// An object that was created again belongs to whom it belonged, not to us; its status to its controller.
    #[test]
    fn an_object_created_again_goes_back_whole() {
        let helm = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:template": template(&json!({"f:image": {}}))}});
        let mut status = entry(
            "kube-controller-manager",
            "Update",
            "2026-11-01T10:00:00Z",
            &json!({"f:status": {"f:replicas": {}}}),
        );
        status.subresource = Some("status".into());
        let snapshot = [entry("helm", "Apply", "2026-11-01T10:00:00Z", &helm), status];
        let current = [entry(
            FIELD_MANAGER,
            "Update",
            "2026-11-02T12:00:00Z",
            &json!({
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:annotations": {".": {}, "f:theatre.gocardless.com/attempt-key": {}}},
                "f:spec": {"f:replicas": {}, "f:progressDeadlineSeconds": {}, "f:template": template(&json!({"f:image": {}, "f:imagePullPolicy": {}}))},
            }),
        )];
        let after = hand_back(WorkloadKind::Deployment, &current, &snapshot);
        assert_eq!(of(&after, "helm"), &helm);
        assert_eq!(of(&after, FIELD_MANAGER), &key_only(), "defaults belong to nobody");
        assert_eq!(after.len(), 2);
    }

    #[test]
    fn a_configmap_gets_its_data_back() {
        let snapshot =
            [entry("helm", "Update", "2026-11-01T10:00:00Z", &json!({"f:data": {".": {}, "f:a": {}}}))];
        let current = [
            entry(
                "helm",
                "Update",
                "2026-11-02T10:00:00Z",
                &json!({"f:data": {".": {}, "f:b": {}}, "f:metadata": {"f:labels": {}}}),
            ),
            entry(FIELD_MANAGER, "Update", "2026-11-02T12:00:00Z", &json!({"f:data": {"f:a": {}}})),
        ];
        let after = hand_back(WorkloadKind::ConfigMap, &current, &snapshot);
        assert_eq!(
            of(&after, "helm"),
            &json!({"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {}}})
        );
        assert_eq!(after.len(), 1);
    }

    fn any_entries() -> impl Strategy<Value = Vec<ManagedFieldsEntry>> {
        let managers = prop::sample::subsequence(vec!["kubectl", "helm", "vpa", FIELD_MANAGER], 0..=4);
        managers.prop_flat_map(|managers| {
            let count = managers.len();
            prop::collection::vec((any_set(), any::<bool>()), count).prop_map(move |sets| {
                let all = managers.iter().zip(sets);
                all.map(|(manager, (set, apply))| {
                    entry(
                        manager,
                        if apply { "Apply" } else { "Update" },
                        "2026-11-01T10:00:00Z",
                        &set.to_json(),
                    )
                })
                .collect()
            })
        })
    }

    /// All that others own outside the content.
    fn outside(entries: &[ManagedFieldsEntry], manager: &str, operation: &str) -> FieldSet {
        let mut all = FieldSet::default();
        for entry in entries {
            if entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(operation) {
                all.add(&fields(entry));
            }
        }
        all.remove(&["f:spec", "f:template"]);
        all
    }

    proptest! {
        #[test]
        fn handing_back_twice_is_handing_back_once(current in any_entries(), snapshot in any_entries()) {
            let once = hand_back(WorkloadKind::Deployment, &current, &snapshot);
            prop_assert_eq!(hand_back(WorkloadKind::Deployment, &once, &snapshot), once);
        }

        #[test]
        fn we_own_no_content_afterwards(current in any_entries(), snapshot in any_entries()) {
            let after = hand_back(WorkloadKind::Deployment, &current, &snapshot);
            prop_assert!(!is_owed(&after));
            for entry in after.iter().filter(|entry| is_ours(entry)) {
                prop_assert!(fields(entry).only(&["f:spec", "f:template"]).is_empty());
            }
        }

        #[test]
        fn nothing_outside_the_content_is_taken_from_others(current in any_entries(), snapshot in any_entries()) {
            let after = hand_back(WorkloadKind::Deployment, &current, &snapshot);
            for manager in ["kubectl", "helm", "vpa"] {
                for operation in ["Apply", "Update"] {
                    let before = outside(&current, manager, operation);
                    prop_assert_eq!(&before.and(&outside(&after, manager, operation)), &before);
                    if !current.iter().any(is_ours) {
                        prop_assert_eq!(&outside(&after, manager, operation), &before);
                    }
                }
            }
        }
    }
}
