use serde_json::json;

use super::*;
use crate::clock::tests::clock;
use crate::testing::{attempt, attempts, incident, merged, release, rollback};

fn of(target: &str, namespace: &str, more: &serde_json::Value) -> Release {
    release(
        target,
        &merged(json!({"metadata": {"namespace": namespace}, "config": {"targetName": target}}), more),
    )
}

#[test]
fn every_target_in_a_line() {
    let mut releases = incident();
    releases.push(of("checkout", "shop", &json!({})));
    releases.push(of("api", "infra", &json!({"status": {"deploymentStartTime": "2026-03-01T13:05:00Z"}})));
    let running = rollback(&attempts(&json!([attempt(2, "Running", &json!({}))]), &json!({})));
    let ended = rollback(
        &json!({"metadata": {"name": "old"}, "status": {"conditions": [crate::testing::condition("Succeeded", "True", "")]}}),
    );
    let elsewhere = rollback(&json!({"metadata": {"name": "x", "namespace": "other"}}));
    let targets = targets(releases, vec![running, ended, elsewhere]);
    insta::assert_snapshot!(text(&targets, true, false, &clock()));
    insta::assert_snapshot!(text(&targets, false, true, &clock()));
}

#[test]
fn a_target_is_on_its_active_release() {
    let releases = incident();
    let history = rows(&releases, &[]);
    assert_eq!(live(&history).map(|row| row.view.name.as_str()), Some("payments-9c01d2e"));
    assert_eq!(live(&[]), None);
}
