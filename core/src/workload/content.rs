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
