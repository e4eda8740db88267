//! The canonical form of a Rollback's spec (rule 8): what is absent and what is empty, or
//! equal to its default, are the same; the order of keys is fixed.
//!
//! It tells a change from a re-apply by a client that writes `""` or drops fields.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rollback_api::rollback::{DEFAULT_MAX_ATTEMPTS, DEFAULT_PROGRESS_DEADLINE_SECONDS, DeploymentOptions};
use rollback_api::{FromReleaseRef, InitiatedBy, ReleaseRef, RollbackSpec};
use serde_json::Value;

/// The spec, field by field, as text: equal texts mean the same.
pub(super) fn fields(spec: &RollbackSpec) -> BTreeMap<&'static str, String> {
    // Destructured completely: a new field must be thought of here.
    let RollbackSpec {
        to_release_ref,
        from_release_ref,
        reason,
        initiated_by,
        deployment_options,
        backend,
        progress_deadline_seconds,
        max_attempts,
        hold,
        ttl_seconds_after_finished,
        dry_run,
    } = spec;
    let options = deployment_options.as_ref().filter(|options| !options.0.is_empty());
    BTreeMap::from([
        ("toReleaseRef", to_text(to_release_ref)),
        ("fromReleaseRef", from_release_ref.as_ref().map(from_text).unwrap_or_default()),
        ("reason", reason.clone()),
        ("initiatedBy", initiated_by.as_ref().map(by_text).unwrap_or_default()),
        ("deploymentOptions", options.map(options_text).unwrap_or_default()),
        ("backend", backend.map(|backend| backend.as_str().to_owned()).unwrap_or_default()),
        (
            "progressDeadlineSeconds",
            number(progress_deadline_seconds.filter(|n| *n != DEFAULT_PROGRESS_DEADLINE_SECONDS)),
        ),
        ("maxAttempts", number(max_attempts.filter(|n| *n != DEFAULT_MAX_ATTEMPTS).map(i64::from))),
        ("hold", hold.map(|hold| format!("{hold:?}")).unwrap_or_default()),
        ("ttlSecondsAfterFinished", number(*ttl_seconds_after_finished)),
        ("dryRun", if *dry_run == Some(true) { "true".to_owned() } else { String::new() }),
    ])
}

fn number(value: Option<i64>) -> String {
    value.map(|number| number.to_string()).unwrap_or_default()
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

/// Key and value of each part that is not empty, as JSON strings: no two lists of parts share a text.
fn parts(parts: &[(&str, &str)]) -> String {
    parts.iter().filter(|(_, value)| !value.is_empty()).fold(String::new(), |mut all, (key, value)| {
        // Writing to a String cannot fail.
        let _ = write!(all, "{key}={};", Value::from(*value));
        all
    })
}

pub(super) fn to_text(to: &ReleaseRef) -> String {
    let ReleaseRef { target, name, signature } = to;
    parts(&[("target", target), ("name", text(name.as_ref())), ("signature", text(signature.as_ref()))])
}

pub(super) fn from_text(from: &FromReleaseRef) -> String {
    let FromReleaseRef { target, name, signature, activation } = from;
    parts(&[
        ("target", target),
        ("name", text(name.as_ref())),
        ("signature", text(signature.as_ref())),
        ("activation", text(activation.as_ref())),
    ])
}

pub(super) fn by_text(by: &InitiatedBy) -> String {
    let InitiatedBy { principal, type_ } = by;
    parts(&[("principal", text(principal.as_ref())), ("type", text(type_.as_ref()))])
}

/// Values are the user's own: nothing in them counts as absent, only the order of keys is fixed.
fn options_text(options: &DeploymentOptions) -> String {
    options.0.iter().fold(String::new(), |mut all, (key, value)| {
        let _ = write!(all, "{}=", Value::from(key.as_str()));
        json_text(value, &mut all);
        all.push(';');
        all
    })
}

/// Compact JSON with sorted keys, whatever order the parser kept.
fn json_text(value: &Value, into: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            into.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    into.push(',');
                }
                let _ = write!(into, "{}:", Value::from(key.as_str()));
                json_text(value, into);
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    into.push(',');
                }
                json_text(item, into);
            }
            into.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(into, "{value}");
        }
    }
}

/// Names of the spec's fields in which two specs differ, as `spec.<name>`, sorted.
pub fn changed_fields(old: &RollbackSpec, new: &RollbackSpec) -> Vec<String> {
    let (old, new) = (fields(old), fields(new));
    old.iter()
        .filter(|(name, value)| new.get(*name) != Some(value))
        .map(|(name, _)| format!("spec.{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use rollback_api::rollback::Hold;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> RollbackSpec {
        serde_json::from_value(value).unwrap()
    }

    fn bare() -> RollbackSpec {
        spec(json!({"toReleaseRef": {"target": "payments"}, "reason": "r"}))
    }

    #[rstest]
    #[case(json!({"toReleaseRef": {"target": "payments", "name": "", "signature": ""}, "reason": "r"}))]
    #[case(json!({"toReleaseRef": {"target": "payments", "name": null}, "reason": "r", "initiatedBy": {}}))]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "deploymentOptions": {}, "dryRun": false}))]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "progressDeadlineSeconds": 1800, "maxAttempts": 3}))]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "initiatedBy": {"principal": "", "type": ""}}))]
    fn absent_empty_and_default_are_the_same(#[case] other: Value) {
        let other = spec(other);
        assert_eq!(changed_fields(&bare(), &other), Vec::<String>::new());
    }

    #[rstest]
    #[case(json!({"toReleaseRef": {"target": "payments", "name": "x"}, "reason": "r"}), "spec.toReleaseRef")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "R"}), "spec.reason")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "fromReleaseRef": {"target": "payments"}}), "spec.fromReleaseRef")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "initiatedBy": {"type": "user"}}), "spec.initiatedBy")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "deploymentOptions": {"a": ""}}), "spec.deploymentOptions")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "deploymentOptions": {"a": null}}), "spec.deploymentOptions")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "backend": "noop"}), "spec.backend")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "progressDeadlineSeconds": 1801}), "spec.progressDeadlineSeconds")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "maxAttempts": 1}), "spec.maxAttempts")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "hold": "None"}), "spec.hold")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "ttlSecondsAfterFinished": 600}), "spec.ttlSecondsAfterFinished")]
    #[case(json!({"toReleaseRef": {"target": "payments"}, "reason": "r", "dryRun": true}), "spec.dryRun")]
    fn every_field_counts(#[case] other: Value, #[case] field: &str) {
        let other = spec(other);
        assert_eq!(changed_fields(&bare(), &other), vec![field.to_owned()]);
    }

    #[test]
    fn the_order_of_option_keys_does_not_count_and_their_nesting_does() {
        let options = |text: &str| RollbackSpec {
            deployment_options: Some(serde_json::from_str(text).unwrap()),
            ..bare()
        };
        let same = |one: &str, other: &str| changed_fields(&options(one), &options(other)).is_empty();
        assert!(same(r#"{"a":{"x":1,"y":2},"b":[1,2]}"#, r#"{"b":[1,2],"a":{"y":2,"x":1}}"#));
        assert!(!same(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#));
        assert!(!same(r#"{"a":"1"}"#, r#"{"a":1}"#));
    }

    #[test]
    fn hold_is_written_as_in_the_api() {
        let hold = |hold| serde_json::to_value(hold).unwrap();
        for value in [Hold::None, Hold::UntilNewerRelease, Hold::UntilReleased] {
            assert_eq!(hold(value), json!(format!("{value:?}")));
        }
    }
}
