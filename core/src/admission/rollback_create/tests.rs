//! Filling in, as tables.

mod filling;
mod refusals;

use rollback_api::{Release, Rollback, RollbackSpec};
use serde_json::{Value, json};

use super::fill;
use crate::admission::TargetState;
use crate::admission::testing::{active, condition, pointer, release, request, rollback};

pub(super) fn filled(more: &Value, state: &TargetState) -> Rollback {
    fill(&request(), &rollback(more), state).unwrap().object
}

pub(super) fn refused(more: &Value, state: &TargetState) -> (u16, String) {
    let denial = fill(&request(), &rollback(more), state).unwrap_err();
    (denial.code.status(), denial.message)
}

pub(super) fn references(spec: &RollbackSpec) -> Value {
    let from = spec.from_release_ref.as_ref();
    json!([
        from.and_then(|from| from.name.clone()),
        from.and_then(|from| from.activation.clone()),
        spec.to_release_ref.name,
    ])
}

/// `payments-c` is being deployed and never was active.
pub(super) fn c() -> Release {
    release(
        "payments-c",
        &json!({"status": {"conditions": [condition("Active", "Unknown"), condition("Healthy", "Unknown")]}}),
    )
}

pub(super) fn b_active(ledger: &Value) -> crate::pointer::Pointer {
    pointer(&active("payments-b", "act-b"), None, ledger)
}
