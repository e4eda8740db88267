use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::clock::tests::clock;
use crate::testing::{attempt, attempts, condition, merged, rollback};

fn lines(more: &Value) -> Vec<String> {
    events(&rollback(more), &clock()).iter().map(|event| event.line(&clock())).collect()
}

const URL: &str = "https://github.com/gocardless/payments-service/deployments";

fn running(message: &Value) -> Value {
    attempt(1, "Running", &json!({"deploymentID": "4711", "deploymentURL": URL, "message": message}))
}

#[test]
fn before_anything_was_tried() {
    assert_eq!(lines(&json!({})), ["14:09:12  waits for the controller"]);
    assert_eq!(lines(&json!({"spec": {"dryRun": true}})), ["14:09:12  waits for spec.dryRun to be unset"]);
    let queued = json!({"status": {"message": "queued: rollback/a is rolling payments back to payments-1", "conditions": [condition("InProgress", "False", "")]}});
    assert_eq!(lines(&queued), ["14:09:12  queued: rollback/a is rolling payments back to payments-1"]);
}

#[test]
fn while_an_attempt_is_under_way() {
    assert_eq!(
        lines(&attempts(&json!([attempt(1, "Triggering", &json!({}))]), &json!({}))),
        ["14:09:12  attempt 1 of 3   triggering the deployment"]
    );
    assert_eq!(
        lines(&attempts(
            &json!([attempt(1, "Triggering", &json!({"message": "GitHub is down"}))]),
            &json!({})
        )),
        ["14:09:12  attempt 1 of 3   GitHub is down; trying again"]
    );
    let created = format!("14:09:12  attempt 1 of 3   deployment 4711 created   {URL}");
    assert_eq!(
        lines(&attempts(&json!([running(&json!(null))]), &json!({}))),
        [created.clone(), "14:09:12  attempt 1 of 3   in progress".to_owned()]
    );
    assert_eq!(
        lines(&attempts(&json!([running(&json!("waiting for runner"))]), &json!({}))),
        [created, "14:09:12  attempt 1 of 3   in progress: \"waiting for runner\"".to_owned()]
    );
}

#[test]
fn our_own_deployers_are_not_quoted_and_keys_are_not_shown() {
    let attempt = attempt(
        1,
        "Running",
        &json!({"deploymentID": "u1-1", "message": "deployment/web: 1 of 2 pods are ready"}),
    );
    let workload = attempts(&json!([attempt]), &json!({"plan": {"backend": "workload"}}));
    assert_eq!(
        lines(&workload),
        [
            "14:09:12  attempt 1 of 3   deployment started",
            "14:09:12  attempt 1 of 3   in progress: deployment/web: 1 of 2 pods are ready"
        ]
    );
}

#[test]
fn between_attempts() {
    let failed = attempt(
        1,
        "Failed",
        &json!({"deploymentID": "4711", "message": "image not found", "completionTime": "2026-03-01T13:09:40Z"}),
    );
    assert_eq!(
        lines(&attempts(&json!([failed]), &json!({"nextAttemptTime": "2026-03-01T13:09:50Z"}))),
        [
            "14:09:12  attempt 1 of 3   deployment 4711 created",
            "14:09:40  attempt 1 of 3   failed: \"image not found\"",
            "14:09:12  the next attempt begins at 14:09:50",
        ]
    );
}

#[test]
fn the_number_of_attempts_is_the_rollbacks_own() {
    let one = merged(
        attempts(&json!([attempt(1, "Triggering", &json!({}))]), &json!({})),
        &json!({"spec": {"maxAttempts": 1}}),
    );
    assert_eq!(lines(&one), ["14:09:12  attempt 1 of 1   triggering the deployment"]);
}

fn ended(reason: &str, message: &str, more: &Value) -> Rollback {
    let status = if reason == "DeploymentSucceeded" { "True" } else { "False" };
    let condition = json!({"type": "Succeeded", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-03-01T13:10:41Z"});
    let status = merged(json!({"conditions": [condition], "completionTime": "2026-03-01T13:10:41Z"}), more);
    rollback(&attempts(
        &json!([attempt(
            1,
            "Failed",
            &json!({"deploymentID": "4713", "message": "x", "completionTime": "2026-03-01T13:10:41Z"})
        )]),
        &status,
    ))
}

#[test]
fn a_success_says_how_long_it_took() {
    let end = end(&ended("DeploymentSucceeded", "payments-3978d50 is active", &json!({}))).unwrap();
    assert_eq!(end.event().line(&clock()), "14:10:41  payments-3978d50 is active and was deployed in 1m29s");
    assert_eq!(end.kind, None);
}

#[rstest]
#[case(
    "DeploymentFailed",
    "attempt 3 of 3: image not found",
    "Failed: attempt 3 of 3: image not found (https://ci/4713).",
    3
)]
#[case("DeploymentFailed", "see https://ci/4713", "Failed: see https://ci/4713.", 3)]
#[case(
    "DeadlineExceeded",
    "not finished within its deadline of 1800s",
    "Failed: not finished within its deadline of 1800s (https://ci/4713).",
    3
)]
#[case(
    "PreconditionFailed",
    "Release x does not exist any more",
    "Failed: Release x does not exist any more (https://ci/4713).",
    3
)]
#[case("NotAdmitted", "never admitted", "Failed: never admitted (https://ci/4713).", 3)]
#[case("SomethingNewer", "odd", "Failed: odd (https://ci/4713).", 3)]
#[case(
    "DeploymentSuperseded",
    "payments-a01f3c2 was deployed while the rollback was running",
    "Superseded: payments-a01f3c2 was deployed while the rollback was running.",
    5
)]
#[case("Cancelled", "cancelled by alice: wrong one", "Cancelled: by alice: wrong one.", 5)]
#[case(
    "NotNeeded",
    "payments is no longer on payments-9c01d2e, which this rollback was to leave; payments-b77d210 is active",
    "Not needed: payments is no longer on payments-9c01d2e, which this rollback was to leave; payments-b77d210 is active.",
    5
)]
fn every_other_end_has_its_word_and_code(
    #[case] reason: &str,
    #[case] message: &str,
    #[case] text: &str,
    #[case] code: u8,
) {
    let end = end(&ended(reason, message, &json!({"deploymentURL": "https://ci/4713"}))).unwrap();
    assert_eq!((end.event().text.as_str(), end.kind.map(Kind::code)), (text, Some(code)));
}

#[test]
fn the_last_failure_is_told_once() {
    let rollback = ended("DeploymentFailed", "attempt 3 of 3: image not found", &json!({}));
    let told: Vec<String> = events(&rollback, &clock()).iter().map(|event| event.text.clone()).collect();
    assert_eq!(told, ["attempt 1 of 3   deployment 4713 created"]);
}

#[test]
fn what_has_not_ended_has_no_end() {
    assert_eq!(end(&rollback(&json!({}))), None);
}

#[test]
fn a_redrawn_line_counts() {
    let later = Clock { now: "2026-03-01T13:10:00Z".parse().unwrap(), ..clock() };
    assert_eq!(live(&rollback(&json!({})), &later), "waiting, 50s so far");
    let running = rollback(&attempts(&json!([running(&json!(null))]), &json!({})));
    assert_eq!(live(&running, &later), "attempt 1 of 3, 48s so far, deadline in 29m");
    assert_eq!(standing_with_deadline(&running, &later), "attempt 1 of 3, deadline in 29m");
    assert_eq!(standing_with_deadline(&rollback(&json!({})), &later), "not started yet");
    let late = Clock { now: "2026-03-01T13:39:00Z".parse().unwrap(), ..clock() };
    assert_eq!(deadline_in(&running, &late).as_deref(), Some("12s"));
}
