//! Fixtures: the target `payments` in namespace `shop`, at noon.
//!
//! `payments-a` (healthy, 2 days) → `payments-b` (active for an hour, unhealthy).

use k8s_openapi::jiff::Timestamp;
use rollback_api::{Backend, Release, Rollback};
use serde_json::{Value, json};

use super::{Request, TargetState};
use crate::pointer::Pointer;

pub(super) const BACKENDS: &[Backend] = &[Backend::Workload, Backend::Github];

pub(super) fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub(super) fn request() -> Request<'static> {
    Request { user: "alice", now: now(), backends: BACKENDS }
}

/// A release; `more` is merged over it.
pub(super) fn release(name: &str, more: &Value) -> Release {
    let mut object = json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1",
        "kind": "Release",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": {"team": "money"}},
        "config": {"targetName": "payments", "revisions": [{"name": "application", "id": name}]},
        "status": {"signature": "set", "conditions": [condition("Active", "False"), condition("Healthy", "True")]},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

pub(super) fn condition(type_: &str, status: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "Test", "message": "", "lastTransitionTime": "2026-02-01T00:00:00Z"})
}

pub(super) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

pub(super) fn a() -> Release {
    release(
        "payments-a",
        &json!({"status": {
            "activation": {"id": "act-a", "time": "2026-02-27T12:00:00.000000Z"},
            "deactivationTime": "2026-03-01T11:00:00Z",
        }}),
    )
}

pub(super) fn b() -> Release {
    release(
        "payments-b",
        &json!({"status": {
            "activation": {"id": "act-b", "time": "2026-03-01T11:00:00.000000Z"},
            "previousRelease": {"releaseRef": "payments-a"},
            "conditions": [condition("Active", "True"), condition("Healthy", "False")],
        }}),
    )
}

pub(super) fn active(name: &str, activation: &str) -> Value {
    json!({"release": name, "uid": format!("uid-{name}"), "activation": {"id": activation, "time": "2026-03-01T11:00:00.000000Z"}})
}

/// The pointer: what is active, what is being deployed, the ledger.
pub(super) fn pointer(active: &Value, deploying: Option<&str>, ledger: &Value) -> Pointer {
    Pointer {
        active: serde_json::from_value(active.clone()).unwrap(),
        deploying: deploying.map(|name| {
            serde_json::from_value(
                json!({"release": name, "uid": format!("uid-{name}"), "since": "2026-03-01T11:30:00Z"}),
            )
            .unwrap()
        }),
        lock: None,
        ledger: serde_json::from_value(ledger.clone()).unwrap(),
    }
}

/// `payments-a`, then `payments-b`, which is active.
pub(super) fn state() -> TargetState {
    with(vec![a(), b()], Some(pointer(&active("payments-b", "act-b"), None, &json!([]))), &[])
}

pub(super) fn with(releases: Vec<Release>, pointer: Option<Pointer>, rollbacks: &[Rollback]) -> TargetState {
    TargetState::new("shop", "payments", pointer, releases, rollbacks)
}

/// A Rollback of `payments`; `more` is merged over it.
pub(super) fn rollback(more: &Value) -> Rollback {
    let mut object = json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1",
        "kind": "Rollback",
        "metadata": {"name": "back", "namespace": "shop"},
        "spec": {"toReleaseRef": {"target": "payments"}, "reason": "INC-311"},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

/// An object with `more` merged over it; `null` takes a field away.
pub(super) fn patched(rollback: &Rollback, more: &Value) -> Rollback {
    let mut object = serde_json::to_value(rollback).unwrap();
    merge(&mut object, more);
    drop_nulls(&mut object);
    serde_json::from_value(object).unwrap()
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}
