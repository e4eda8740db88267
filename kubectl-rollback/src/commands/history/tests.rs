use serde_json::json;

use super::*;
use crate::clock::tests::clock;
use crate::testing::{deployed, incident, release, rollback};

fn shown(releases: &[Release], rollbacks: &[RollbackView], wide: bool) -> String {
    text(&rows(releases, rollbacks), wide, &clock())
}

#[test]
fn after_the_incident() {
    let mut releases = incident();
    releases[0] = release(
        "3978d50",
        &deployed(
            "True",
            ("True", ""),
            "2026-03-01T13:07:00Z",
            &json!({"activation": {"rollbackRef": "payments-x7k2p", "rollbackUid": "u1"}}),
        ),
    );
    releases[1] = release(
        "9c01d2e",
        &deployed(
            "False",
            ("False", "error-rate failed"),
            "2026-03-01T13:00:00Z",
            &json!({"deactivationTime": "2026-03-01T13:07:00Z", "leftByRollback": "payments-x7k2p"}),
        ),
    );
    let done =
        rollback(&json!({"status": {"conditions": [crate::testing::condition("Succeeded", "True", "")]}}));
    let rollbacks = [RollbackView::of(&done)];
    insta::assert_snapshot!(shown(&releases, &rollbacks, false));
    insta::assert_snapshot!(shown(&releases, &rollbacks, true));
}

#[test]
fn many_revisions_share_a_column() {
    let mut one = release("a", &json!({}));
    one.spec.config.revisions = (0..5)
        .map(|n| Revision {
            name: format!("deployment/web-{n}"),
            id: format!("{n:064x}"),
            ..Revision::default()
        })
        .collect();
    insta::assert_snapshot!(shown(&[one], &[], false));
}

#[test]
fn revisions_of_older_releases_get_columns_too() {
    let mut old = release("old", &deployed("False", ("True", ""), "2026-02-20T13:00:00Z", &json!({})));
    old.spec.config.revisions[1].name = "chart".into();
    insta::assert_snapshot!(shown(
        &[release("new", &deployed("True", ("Unknown", ""), "2026-02-21T13:00:00Z", &json!({}))), old],
        &[],
        false
    ));
}
