//! What counts as the content of an object: what a rollback restores, and what makes a new release when it changes.

use serde_json::{Map, Value};

use super::object::WorkloadKind;
use crate::signature::sha256_hex;

/// The annotation that `kubectl rollout restart` writes into a template: a restart is no other content (rule 16).
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The content of an object in canonical form: the pod template of a workload, the data of a ConfigMap. Absent, null and
/// empty maps at its top are the same.
pub fn content(kind: WorkloadKind, object: &Value) -> Value {
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
            let mut template = object["spec"]["template"].clone();
            if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("creationTimestamp");
                if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                    annotations.remove(RESTARTED_AT);
                    if annotations.is_empty() {
                        metadata.remove("annotations");
                    }
                }
            }
            template
        }
        WorkloadKind::ConfigMap => {
            let mut content = Map::new();
            for key in ["data", "binaryData"] {
                if let Some(Value::Object(data)) = object.get(key)
                    && !data.is_empty()
                {
                    content.insert(key.to_owned(), Value::Object(data.clone()));
                }
            }
            if object["immutable"] == true {
                content.insert("immutable".to_owned(), Value::Bool(true));
            }
            Value::Object(content)
        }
    }
}

/// SHA-256 (hex) of the content: the id of the object's revision.
pub fn id(kind: WorkloadKind, object: &Value) -> String {
    // serde_json writes the keys of an object in order.
    sha256_hex(content(kind, object).to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TEXT: &str = r#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"name":"app","env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}]}]}}"#;

    fn of_template(template: &Value) -> String {
        let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "template": template}});
        id(WorkloadKind::Deployment, &object)
    }

    fn template() -> Value {
        serde_json::from_str(TEXT).unwrap()
    }

    #[test]
    fn only_the_template_of_a_workload_counts() {
        for kind in [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet] {
            let object = json!({"spec": {"template": template()}});
            let before = id(kind, &object);
            assert_eq!(before.len(), 64);
            let mut other = object.clone();
            for (key, value) in
                [("replicas", json!(5)), ("paused", json!(true)), ("updateStrategy", json!({}))]
            {
                other["spec"][key] = value;
            }
            other["metadata"] = json!({"generation": 3, "labels": {"x": "y"}, "managedFields": []});
            other["status"] = json!({"replicas": 1});
            assert_eq!(id(kind, &other), before);
            other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("app:2");
            assert_ne!(id(kind, &other), before);
        }
    }

    #[test]
    fn the_order_of_keys_is_nothing_and_that_of_lists_is_something() {
        let other = r#"{"spec":{"containers":[{"env":[{"value":"1","name":"X"},{"name":"Y","value":"2"}],"name":"app"}]},"metadata":{"labels":{"b":"2","a":"1"}}}"#;
        let other: Value = serde_json::from_str(other).unwrap();
        assert_eq!(of_template(&other), of_template(&template()));
        let mut swapped = template();
        swapped["spec"]["containers"][0]["env"].as_array_mut().unwrap().swap(0, 1);
        assert_ne!(of_template(&swapped), of_template(&template()), "later variables may use earlier ones");
    }

    #[test]
    fn a_restart_is_no_other_content() {
        let mut restarted = template();
        restarted["metadata"]["creationTimestamp"] = Value::Null;
        restarted["metadata"]["annotations"] = json!({RESTARTED_AT: "2026-11-01T10:00:00Z"});
        assert_eq!(of_template(&restarted), of_template(&template()));
        restarted["metadata"]["annotations"]["checksum/config"] = json!("1");
        assert_ne!(of_template(&restarted), of_template(&template()));
    }

    #[test]
    fn the_data_of_a_configmap_counts() {
        let of = |object: Value| id(WorkloadKind::ConfigMap, &object);
        let empty = of(json!({"metadata": {"name": "c"}}));
        assert_eq!(of(json!({"data": {}, "binaryData": null, "immutable": false})), empty);
        let one = of(json!({"data": {"a": "1"}}));
        assert_ne!(one, empty);
        assert_ne!(of(json!({"data": {"a": "2"}})), one);
        assert_ne!(of(json!({"binaryData": {"a": "1"}})), one);
        assert_ne!(of(json!({"data": {"a": "1"}, "immutable": true})), one);
    }

    #[test]
    fn odd_objects_have_an_id_too() {
        for object in [
            json!(null),
            json!([]),
            json!({"spec": 1}),
            json!({"spec": {"template": {"metadata": "x"}}}),
            json!({"data": 1}),
        ] {
            for kind in WorkloadKind::ALL {
                assert_eq!(id(*kind, &object).len(), 64);
            }
        }
    }

    /// Golden: an id that changed would make every recorded release a different one.
    #[test]
    fn ids_never_change() {
        assert_eq!(
            id(WorkloadKind::ConfigMap, &json!({"data": {"b": "2", "a": "1"}})),
            sha256_hex(br#"{"data":{"a":"1","b":"2"}}"#)
        );
        assert_eq!(of_template(&template()), sha256_hex(br#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}],"name":"app"}]}}"#));
    }

    proptest! {
        /// Same data, same id, and only then.
        #[test]
        fn same_content_same_id(
            a in proptest::collection::btree_map("[a-c]{1,2}", "[xy]{0,2}", 0..4),
            b in proptest::collection::btree_map("[a-c]{1,2}", "[xy]{0,2}", 0..4),
        ) {
            let of = |data: &std::collections::BTreeMap<String, String>| {
                id(WorkloadKind::ConfigMap, &json!({"metadata": {"name": "c"}, "data": data}))
            };
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
