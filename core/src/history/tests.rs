use rollback_api::Rollback;
use serde_json::{Value, json};

use super::*;

fn release(name: &str, status: &Value, annotations: &Value) -> Release {
    serde_json::from_value(json!({
        "metadata": {"name": name, "creationTimestamp": "2026-03-01T10:00:00Z", "annotations": annotations},
        "config": {"targetName": "payments", "revisions": [{"name": "application", "id": name}]},
        "status": status,
    }))
    .unwrap()
}

fn activated(active: bool, at: &str, more: &Value) -> Value {
    let mut status = json!({
        "conditions": [{
            "type": "Active", "status": if active { "True" } else { "False" }, "reason": "x", "message": "",
            "lastTransitionTime": at,
        }],
        "activation": {"id": "i", "time": at.replace('Z', ".000000Z")},
    });
    json_patch::merge(&mut status, more);
    status
}

fn rollback(name: &str, from: &str, to: &str, succeeded: &str) -> RollbackView {
    let rollback: Rollback = serde_json::from_value(json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "annotations": {"theatre.gocardless.com/authenticated-as": "oncall"}},
        "spec": {
            "toReleaseRef": {"target": "payments", "name": to},
            "fromReleaseRef": {"target": "payments", "name": from},
            "reason": "INC-311",
        },
        "status": {"conditions": [{
            "type": "Succeeded", "status": succeeded, "reason": "x", "message": "", "lastTransitionTime": "2026-03-01T10:00:00Z",
        }]},
    }))
    .unwrap();
    RollbackView::of(&rollback)
}

fn shown(
    releases: &[Release],
    rollbacks: &[RollbackView],
) -> Vec<(String, &'static str, bool, bool, String)> {
    rows(releases, rollbacks)
        .into_iter()
        .map(|row| (row.view.name, row.state.as_str(), row.deployed.is_some(), row.left.is_some(), row.note))
        .collect()
}

#[test]
fn tells_what_became_of_each_release() {
    let releases = [
        release(
            "old",
            &activated(false, "2026-03-01T11:00:00Z", &json!({"deactivationTime": "2026-03-01T12:00:00Z"})),
            &json!({}),
        ),
        release(
            "bad",
            &activated(
                false,
                "2026-03-01T13:00:00Z",
                &json!({"deactivationTime": "2026-03-01T13:10:00Z", "leftByRollback": "x7k2p"}),
            ),
            &json!({}),
        ),
        release(
            "good",
            &activated(
                true,
                "2026-03-01T13:10:00Z",
                &json!({"activation": {"rollbackRef": "x7k2p", "rollbackUid": "uid-x7k2p"}, "deactivationTime": "2026-03-01T13:00:00Z"}),
            ),
            &json!({}),
        ),
        release(
            "new",
            &json!({"deploymentStartTime": "2026-03-01T14:00:00Z"}),
            &json!({"theatre.gocardless.com/rollback-blocked": "drops a column"}),
        ),
        release("stale", &json!({"deploymentStartTime": "2026-03-01T09:00:00Z"}), &json!({})),
    ];
    let rollbacks = [rollback("x7k2p", "bad", "good", "True")];
    assert_eq!(
        shown(&releases, &rollbacks),
        [
            ("new".into(), "Deploying", true, false, "blocked: drops a column".into()),
            ("good".into(), "Active", true, false, "back by rollback/x7k2p (oncall): INC-311".into()),
            ("bad".into(), "Rolled back", true, true, "left by rollback/x7k2p".into()),
            ("old".into(), "Superseded", true, true, String::new()),
            ("stale".into(), "Not deployed", false, false, String::new()),
        ]
    );
}

#[test]
fn a_rollback_under_way_shows_on_both_ends() {
    let releases = [
        release("a", &activated(false, "2026-03-01T11:00:00Z", &json!({})), &json!({})),
        release(
            "b",
            &activated(
                true,
                "2026-03-01T12:00:00Z",
                &json!({"conditions": [
                    {"type": "Active", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"},
                    {"type": "RollbackRequired", "status": "True", "reason": "RolloutFailed", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"},
                ]}),
            ),
            &json!({}),
        ),
    ];
    assert_eq!(
        shown(&releases, &[rollback("r", "b", "a", "Unknown")]),
        [
            ("b".into(), "Active", true, false, "rollback/r is leaving it; should be rolled back".into()),
            ("a".into(), "Superseded", true, false, "rollback/r is going back to it".into()),
        ]
    );
}

#[test]
fn another_rollback_of_the_same_name_is_not_credited() {
    let status = activated(
        true,
        "2026-03-01T11:00:00Z",
        &json!({"activation": {"rollbackRef": "r", "rollbackUid": "gone"}}),
    );
    let releases = [release("a", &status, &json!({}))];
    let shown = shown(&releases, &[rollback("r", "x", "y", "True")]);
    assert_eq!(shown[0].4, "back by rollback/r");
}

#[test]
fn health_is_told_with_its_reason() {
    let healthy = |message: &str| json!({"conditions": [{"type": "Healthy", "status": "False", "reason": "RolloutFailed", "message": message, "lastTransitionTime": "2026-03-01T11:00:00Z"}]});
    for (message, expected) in
        [("pod web-1 crashes", "RolloutFailed: pod web-1 crashes"), ("", "RolloutFailed")]
    {
        let releases = [release("a", &healthy(message), &json!({}))];
        assert_eq!(rows(&releases, &[])[0].health, expected);
    }
    assert_eq!(rows(&[release("a", &json!({}), &json!({}))], &[])[0].health, "");
}
