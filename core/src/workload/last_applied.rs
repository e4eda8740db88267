//! The annotation in which client-side apply keeps what it applied last, from which the next apply computes what to
//! delete (rule 15).

use serde_json::Value;

use super::object::WorkloadKind;

/// The annotation of `kubectl apply`.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where a kind keeps its content, as the keys of JSON.
pub(super) fn content_keys(kind: WorkloadKind) -> &'static [&'static [&'static str]] {
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
            &[&["spec", "template"]]
        }
        WorkloadKind::ConfigMap => &[&["data"], &["binaryData"], &["immutable"]],
    }
}

/// The annotation after a restored object: the content is what the snapshot's annotation says, the rest is live.
/// `None`: leave the live annotation alone, because one of the two is missing or is no JSON object.
pub fn restored(kind: WorkloadKind, live: &str, snapshot: &str) -> Option<String> {
    let mut applied: Value = serde_json::from_str(live).ok().filter(Value::is_object)?;
    let before: Value = serde_json::from_str(snapshot).ok().filter(Value::is_object)?;
    for path in content_keys(kind) {
        copy(&mut applied, &before, path);
    }
    // kubectl writes it with this end of line, and compares nothing else.
    Some(format!("{applied}\n"))
}

/// Makes the value at `path` that of `from`: absent when it is absent there.
pub(super) fn copy(to: &mut Value, from: &Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let source = path.iter().try_fold(from, |value, key| value.get(key)).filter(|value| !value.is_null());
    let mut place = to;
    for key in parents {
        let Some(object) = place.as_object_mut() else { return };
        if source.is_none() && !object.contains_key(*key) {
            return;
        }
        place = object.entry(*key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    let Some(object) = place.as_object_mut() else { return };
    match source {
        Some(value) => {
            object.insert((*last).to_owned(), value.clone());
        }
        None => {
            object.remove(*last);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_template_comes_back() {
        let live =
            json!({"metadata": {"labels": {"team": "b"}}, "spec": {"replicas": 3, "template": {"x": "b"}}});
        let snapshot =
            json!({"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 1, "template": {"x": "a"}}});
        let text = restored(WorkloadKind::Deployment, &live.to_string(), &snapshot.to_string()).unwrap();
        assert!(text.ends_with("}\n"));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"metadata": {"labels": {"team": "b"}}, "spec": {"replicas": 3, "template": {"x": "a"}}})
        );
    }

    #[test]
    fn data_of_a_configmap_comes_back_whole() {
        let live = json!({"data": {"a": "2", "new": "x"}, "immutable": true});
        let snapshot = json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}});
        let text = restored(WorkloadKind::ConfigMap, &live.to_string(), &snapshot.to_string()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}})
        );
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        for (live, snapshot) in [("", "{}"), ("{}", "no"), ("[]", "{}"), ("{}", "7")] {
            assert_eq!(restored(WorkloadKind::Deployment, live, snapshot), None, "{live} {snapshot}");
        }
    }

    #[test]
    fn what_the_snapshot_lacks_goes() {
        let mut to = json!({"spec": {"template": {}, "replicas": 1}});
        copy(&mut to, &json!({}), &["spec", "template"]);
        assert_eq!(to, json!({"spec": {"replicas": 1}}));
        let mut to = json!({});
        copy(&mut to, &json!({}), &["spec", "template"]);
        assert_eq!(to, json!({}));
        copy(&mut to, &json!({"spec": {"template": {"a": 1}}}), &["spec", "template"]);
        assert_eq!(to, json!({"spec": {"template": {"a": 1}}}));
    }
}
