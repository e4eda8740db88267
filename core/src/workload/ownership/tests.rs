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
    assert_eq!(of(&after, "helm"), &json!({"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {}}}));
    assert_eq!(after.len(), 1);
}

fn any_entries() -> impl Strategy<Value = Vec<ManagedFieldsEntry>> {
    let managers = prop::sample::subsequence(vec!["kubectl", "helm", "vpa", FIELD_MANAGER], 0..=4);
    managers.prop_flat_map(|managers| {
        let count = managers.len();
        prop::collection::vec((any_set(), any::<bool>()), count).prop_map(move |sets| {
            let all = managers.iter().zip(sets);
            all.map(|(manager, (set, apply))| {
                entry(manager, if apply { "Apply" } else { "Update" }, "2026-11-01T10:00:00Z", &set.to_json())
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
