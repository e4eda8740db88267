//! Objects for tests: the incident of the documentation, on a Sunday at 14:09.

use rollback_api::{Release, Rollback};
use serde_json::{Value, json};

use crate::session::Place;

/// Merges JSON over JSON, as a merge patch.
pub(crate) fn merged(mut base: Value, over: &Value) -> Value {
    merge(&mut base, over);
    base
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// A condition.
pub(crate) fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "Reason", "message": message, "lastTransitionTime": "2026-03-01T13:00:00Z"})
}

/// A release of payments, with more fields merged over it.
pub(crate) fn release(suffix: &str, more: &Value) -> Release {
    let base = json!({
        "metadata": {"name": format!("payments-{suffix}"), "namespace": "shop", "uid": format!("uid-{suffix}"), "creationTimestamp": "2026-02-20T10:00:00Z"},
        "config": {"targetName": "payments", "revisions": [
            {"name": "application", "id": suffix, "source": "gocardless/payments-service", "type": "github",
             "metadata": {"author": "Alice <alice@example.com>", "message": "Round amounts down"}},
            {"name": "infrastructure", "id": "9f8e7d6", "source": "gocardless/anu", "type": "github"},
        ]},
    });
    serde_json::from_value(merged(base, more)).unwrap()
}

/// Status of a release that was deployed at a time, with more merged over it.
pub(crate) fn deployed(active: &str, healthy: (&str, &str), at: &str, more: &Value) -> Value {
    let base = json!({
        "conditions": [condition("Active", active, ""), condition("Healthy", healthy.0, healthy.1)],
        "activation": {"id": format!("act-{at}"), "time": at.replace('Z', ".000000Z")},
        "signature": "0123456789",
    });
    json!({ "status": merged(base, more) })
}

/// The target in the incident: the bad release is active.
pub(crate) fn incident() -> Vec<Release> {
    vec![
        release(
            "3978d50",
            &deployed(
                "False",
                ("True", "3 of 3 AnalysisRuns"),
                "2026-02-27T13:02:00Z",
                &json!({"deactivationTime": "2026-03-01T13:02:00Z"}),
            ),
        ),
        release(
            "9c01d2e",
            &deployed(
                "True",
                ("False", "error-rate failed (2 of 3 AnalysisRuns)"),
                "2026-03-01T13:03:00Z",
                &json!({"previousRelease": {"releaseRef": "payments-77e10b2"}}),
            ),
        ),
        release(
            "51aa0c7",
            &deployed(
                "False",
                ("True", ""),
                "2026-02-23T09:00:00Z",
                &json!({"deactivationTime": "2026-02-23T10:00:00Z", "leftByRollback": "payments-m2m4z", "previousRelease": {"releaseRef": "payments-3978d50"}}),
            ),
        ),
        release(
            "77e10b2",
            &deployed(
                "False",
                ("Unknown", ""),
                "2026-02-23T11:00:00Z",
                &json!({"deactivationTime": "2026-02-23T12:00:00Z", "previousRelease": {"releaseRef": "payments-51aa0c7"}}),
            ),
        ),
    ]
}

/// The Rollback of the incident, with more fields merged over it.
pub(crate) fn rollback(more: &Value) -> Rollback {
    let base = json!({
        "metadata": {
            "name": "payments-x7k2p", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "creationTimestamp": "2026-03-01T13:09:10Z",
            "annotations": {"theatre.gocardless.com/authenticated-as": "oncall@example.com"},
        },
        "spec": {
            "fromReleaseRef": {"target": "payments", "name": "payments-9c01d2e", "signature": "9c01d2e000", "activation": "act-9c"},
            "toReleaseRef": {"target": "payments", "name": "payments-3978d50", "signature": "3978d50982"},
            "reason": "5xx since 14:02, INC-311",
        },
    });
    serde_json::from_value(merged(base, more)).unwrap()
}

/// Status with attempts.
pub(crate) fn attempts(attempts: &Value, more: &Value) -> Value {
    let base = json!({
        "startTime": "2026-03-01T13:09:12Z",
        "deadline": "2026-03-01T13:39:12Z",
        "plan": {"backend": "github", "revisions": [], "signature": "3978d50982", "releaseUid": "uid-3978d50"},
        "attempts": attempts,
        "conditions": [condition("Succeeded", "Unknown", "")],
    });
    json!({ "status": merged(base, more) })
}

/// An attempt, with more fields merged over it.
pub(crate) fn attempt(number: i32, state: &str, more: &Value) -> Value {
    merged(
        json!({"number": number, "key": format!("u1-{number}"), "state": state, "startTime": "2026-03-01T13:09:12Z"}),
        more,
    )
}

/// Where the incident is.
pub(crate) fn place() -> Place {
    Place {
        cluster: "prod-eu-1".into(),
        context: "prod-eu".into(),
        server: "https://prod-eu-1.example.com".into(),
        namespace: "shop".into(),
    }
}
