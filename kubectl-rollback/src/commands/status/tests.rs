use serde_json::json;

use super::*;
use crate::clock::tests::clock;
use crate::testing::{attempt, attempts, condition, rollback};

#[test]
fn a_running_rollback() {
    let failed = attempt(
        1,
        "Failed",
        &json!({"deploymentID": "4711", "message": "image not found", "completionTime": "2026-03-01T13:09:30Z"}),
    );
    let running = attempt(
        2,
        "Running",
        &json!({"deploymentID": "4712", "deploymentURL": "https://ci/4712", "message": "queued", "startTime": "2026-03-01T13:09:40Z"}),
    );
    insta::assert_snapshot!(text(&rollback(&attempts(&json!([failed, running]), &json!({}))), &clock()));
}

#[test]
fn an_ended_rollback() {
    let done =
        attempt(1, "Succeeded", &json!({"deploymentID": "4711", "completionTime": "2026-03-01T13:10:40Z"}));
    let status =
        json!({"conditions": [condition("Succeeded", "True", "")], "completionTime": "2026-03-01T13:10:41Z"});
    insta::assert_snapshot!(text(&rollback(&attempts(&json!([done]), &status)), &clock()));
    let superseded = json!({"type": "Succeeded", "status": "False", "reason": "DeploymentSuperseded", "message": "payments-a01f3c2 was deployed while the rollback was running", "lastTransitionTime": "2026-03-01T13:10:41Z"});
    let status = json!({"conditions": [superseded], "completionTime": "2026-03-01T13:10:41Z"});
    insta::assert_snapshot!(text(
        &rollback(&attempts(&json!([attempt(1, "Superseded", &json!({}))]), &status)),
        &clock()
    ));
}

#[test]
fn one_that_nobody_has_looked_at() {
    let text = text(
        &rollback(
            &json!({"spec": {"fromReleaseRef": null, "toReleaseRef": {"name": null}}, "metadata": {"annotations": null}}),
        ),
        &clock(),
    );
    assert_eq!(
        text,
        "rollback/payments-x7k2p   payments: ? → ?\nasked for 2s ago: 5xx since 14:02, INC-311\n14:09:12  waits for the controller"
    );
}
