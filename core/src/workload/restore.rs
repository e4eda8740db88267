//! What an object needs so that its content is the snapshot's again: one write after the other, each worked out from
//! what is live, so that a crash between any two of them changes nothing (rules 15 and 18).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use rollback_api::annotations;
use serde_json::{Map, Value, json};

use super::content;
use super::last_applied::{self, LAST_APPLIED};
use super::object::{ObjectKey, WorkloadKind};
use super::ownership;

/// The next write to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// It is gone: create it again.
    Create(Value),
    /// Its content differs: replace it.
    Restore(Value),
    /// Its content is right; the attempt's key is missing.
    Mark(Value),
    /// We own fields that belong to others: replace it with only `managedFields` changed.
    HandBack(Value),
    /// Nothing.
    Nothing,
}

/// The next write to the object. All but [`Need::Create`] carry the resourceVersion of `live`, so that somebody
/// else's change in between is a conflict and not lost.
pub fn need(object: &ObjectKey, live: Option<&Value>, snapshot: &Value, attempt: &str) -> Need {
    let Some(live) = live else { return Need::Create(created(object.kind, snapshot, attempt)) };
    if !same_content(object.kind, live, snapshot) {
        return Need::Restore(marked(restored(object.kind, live, snapshot), attempt));
    }
    if !carries(live, attempt) {
        return Need::Mark(marked(live.clone(), attempt));
    }
    handed_back(object.kind, live, snapshot).map_or(Need::Nothing, Need::HandBack)
}

/// Whether two objects of a kind have the same content.
pub fn same_content(kind: WorkloadKind, a: &Value, b: &Value) -> bool {
    content::id(kind, a) == content::id(kind, b)
}

/// Where the content of two objects of a kind first differs, as a JSONPath below the object; `None`: nowhere.
pub fn first_difference(kind: WorkloadKind, a: &Value, b: &Value) -> Option<String> {
    let at = match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => ".spec.template",
        WorkloadKind::ConfigMap => "",
    };
    difference(at, Some(&content::content(kind, a)), Some(&content::content(kind, b)))
}

fn difference(at: &str, a: Option<&Value>, b: Option<&Value>) -> Option<String> {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter().find_map(|key| difference(&format!("{at}.{key}"), a.get(key), b.get(key)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => (0..a.len().max(b.len()))
            .find_map(|index| difference(&format!("{at}[{index}]"), a.get(index), b.get(index))),
        (a, b) => (a != b).then(|| at.to_owned()),
    }
}

/// Whether the object was last written by that attempt.
pub fn carries(object: &Value, attempt: &str) -> bool {
    object["metadata"]["annotations"][annotations::ATTEMPT_KEY] == attempt
}

/// The live object with the snapshot's content; all else is live, replicas above all.
fn restored(kind: WorkloadKind, live: &Value, snapshot: &Value) -> Value {
    let mut object = live.clone();
    for path in last_applied::content_keys(kind) {
        last_applied::copy(&mut object, snapshot, path);
    }
    let applied = |of: &Value| of["metadata"]["annotations"][LAST_APPLIED].as_str().map(str::to_owned);
    if let (Some(now), Some(before)) = (applied(live), applied(snapshot))
        && let Some(text) = last_applied::restored(kind, &now, &before)
    {
        object["metadata"]["annotations"][LAST_APPLIED] = Value::String(text);
    }
    object
}

fn marked(mut object: Value, attempt: &str) -> Value {
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[annotations::ATTEMPT_KEY] = attempt.into();
    object
}

/// The object as a client would create it. What the server or a controller wrote stays away, and so do owners: one
/// that is gone would have the garbage collector delete the object again.
fn created(kind: WorkloadKind, snapshot: &Value, attempt: &str) -> Value {
    let mut object = snapshot.clone();
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.as_str().into();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let old = &snapshot["metadata"];
    let mut metadata = Map::new();
    for key in ["name", "namespace", "labels", "annotations"] {
        if !old[key].is_null() {
            metadata.insert(key.to_owned(), old[key].clone());
        }
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    object["metadata"] = Value::Object(metadata);
    marked(object, attempt)
}

/// The object with only its ownership changed; `None` when nothing is owed.
fn handed_back(kind: WorkloadKind, live: &Value, snapshot: &Value) -> Option<Value> {
    let current = managed_fields(live);
    if !ownership::is_owed(&current) {
        return None;
    }
    let after = ownership::hand_back(kind, &current, &managed_fields(snapshot));
    let entries = serde_json::to_value(&after).ok()?;
    // The server reads an empty list as "leave it alone".
    if after.is_empty() || after == current {
        return None;
    }
    let mut object = live.clone();
    object["metadata"]["managedFields"] = entries;
    Some(object)
}

/// Who owns which field of the object. An entry that cannot be read is dropped: the server writes none such.
pub fn managed_fields(object: &Value) -> Vec<ManagedFieldsEntry> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter_map(|entry| serde_json::from_value(entry.clone()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ownership::FIELD_MANAGER;
    use super::*;

    fn deployment(image: &str, replicas: u32, manager: &str, fields: &Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": {"app": "web"}, "annotations": {"deployment.kubernetes.io/revision": "4"},
                "managedFields": [{"manager": manager, "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields}],
            },
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}},
            },
        })
    }

    fn fields() -> Value {
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}})
    }

    fn web() -> ObjectKey {
        ObjectKey::new(WorkloadKind::Deployment, "web")
    }

    /// The whole way: content and key, then ownership, then nothing.
    #[test]
    fn restores_in_two_writes_and_rests() {
        let snapshot = deployment("web:a", 1, "kubectl", &fields());
        let live = deployment("web:b", 4, "kubectl", &json!({}));
        let Need::Restore(mut first) = need(&web(), Some(&live), &snapshot, "u-1") else { panic!() };
        let mut expected = live.clone();
        expected["spec"]["template"] = snapshot["spec"]["template"].clone();
        expected["metadata"]["annotations"][annotations::ATTEMPT_KEY] = "u-1".into();
        assert_eq!(first, expected, "replicas, labels and resourceVersion are live");
        // The server makes us the owner of what changed.
        first["metadata"]["managedFields"] = json!([
            {"manager": FIELD_MANAGER, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:metadata": {"f:annotations": {"f:theatre.gocardless.com/attempt-key": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}}},
        ]);
        let Need::HandBack(second) = need(&web(), Some(&first), &snapshot, "u-1") else { panic!() };
        let managers: Vec<_> =
            managed_fields(&second).into_iter().filter_map(|entry| entry.manager).collect();
        assert_eq!(managers, [FIELD_MANAGER, "kubectl"]);
        let mut rest = second.clone();
        rest["metadata"]["managedFields"] = first["metadata"]["managedFields"].clone();
        assert_eq!(rest, first, "only managedFields differ");
        assert_eq!(need(&web(), Some(&second), &snapshot, "u-1"), Need::Nothing);
        // Another attempt only has to put its own key there.
        assert!(matches!(need(&web(), Some(&second), &snapshot, "u-2"), Need::Mark(_)));
    }

    #[test]
    fn a_restart_by_hand_is_no_other_content() {
        let snapshot = deployment("web:a", 1, "kubectl", &fields());
        let mut live = snapshot.clone();
        live["spec"]["template"]["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/restartedAt": "now"});
        assert!(matches!(need(&web(), Some(&live), &snapshot, "u-1"), Need::Mark(_)));
    }

    #[test]
    fn what_is_gone_is_created_as_a_client_would() {
        let mut snapshot = deployment("web:a", 3, "kubectl", &fields());
        snapshot["metadata"]["ownerReferences"] = json!([{"kind": "Shop", "name": "shop", "uid": "x"}]);
        snapshot["metadata"]["finalizers"] = json!(["example.com/x"]);
        let Need::Create(object) = need(&web(), None, &snapshot, "u-1") else { panic!() };
        assert_eq!(
            object["metadata"],
            json!({"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {annotations::ATTEMPT_KEY: "u-1"}})
        );
        assert_eq!(object["spec"], snapshot["spec"], "replicas come from the snapshot only here");
    }

    #[test]
    fn a_configmap_loses_what_the_bad_version_added() {
        let key = ObjectKey::new(WorkloadKind::ConfigMap, "c");
        let snapshot = json!({"metadata": {"name": "c"}, "data": {"a": "1"}});
        let live = json!({"metadata": {"name": "c", "resourceVersion": "9"}, "data": {"a": "2", "b": "3"}, "binaryData": {"x": "AA=="}});
        let Need::Restore(object) = need(&key, Some(&live), &snapshot, "u-1") else { panic!() };
        assert_eq!(
            object,
            json!({"metadata": {"name": "c", "resourceVersion": "9", "annotations": {annotations::ATTEMPT_KEY: "u-1"}}, "data": {"a": "1"}})
        );
    }

    #[test]
    fn says_where_content_differs() {
        let a = deployment("web:a", 1, "kubectl", &fields());
        let mut b = deployment("web:a", 2, "helm", &json!({}));
        assert_eq!(first_difference(WorkloadKind::Deployment, &a, &b), None);
        b["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "X"}]);
        let at = first_difference(WorkloadKind::Deployment, &a, &b);
        assert_eq!(at.as_deref(), Some(".spec.template.spec.containers[0].env"));
        let at = first_difference(
            WorkloadKind::ConfigMap,
            &json!({"data": {"a": "1"}}),
            &json!({"data": {"a": "2"}}),
        );
        assert_eq!(at.as_deref(), Some(".data.a"));
    }

    /// Only the content of what client-side apply keeps comes back, whole as one write with the content.
    #[test]
    fn the_last_applied_content_comes_back() {
        let with = |image: &str, replicas: u32| {
            let mut object = deployment(image, replicas, "kubectl-client-side-apply", &fields());
            object["metadata"]["annotations"][LAST_APPLIED] =
                json!({"spec": {"replicas": replicas, "template": image}}).to_string().into();
            object
        };
        let Need::Restore(object) = need(&web(), Some(&with("web:b", 4)), &with("web:a", 1), "u-1") else {
            panic!()
        };
        let text = object["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            json!({"spec": {"replicas": 4, "template": "web:a"}})
        );
    }
}
