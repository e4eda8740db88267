use rstest::rstest;
use serde_json::{Value, json};

use super::{b_active, filled, references, refused};
use crate::admission::TargetState;
use crate::admission::testing::{a, b, condition, merge, release, rollback, state, with};

#[rstest]
#[case(json!({"toReleaseRef": {"target": ""}}), 422)]
#[case(json!({"toReleaseRef": {"target": "a,metadata.name=b"}}), 422)]
#[case(json!({"fromReleaseRef": {"target": "checkout", "name": "x"}}), 422)]
#[case(json!({"fromReleaseRef": {"target": "payments", "activation": "act-b"}}), 422)]
#[case(json!({"toReleaseRef": {"name": "nope"}}), 403)]
#[case(json!({"toReleaseRef": {"name": "payments-a", "signature": "0000000000"}}), 422)]
#[case(json!({"fromReleaseRef": {"target": "payments", "name": "payments-b", "signature": "0000000000"}}), 422)]
#[case(json!({"fromReleaseRef": {"target": "payments", "name": "payments-b"}, "toReleaseRef": {"name": "payments-b"}}), 422)]
#[case(json!({"backend": "argocd"}), 403)]
fn refuses_what_is_wrong_with_the_object(#[case] spec: Value, #[case] code: u16) {
    let (actual, message) = refused(&json!({"spec": spec}), &state());
    assert_eq!(actual, code, "{message}");
}

#[test]
fn a_release_of_another_target_is_named_as_such() {
    let mut state = state();
    let stranger = release("checkout-1", &json!({"config": {"targetName": "checkout"}}));
    state.stranger = Some(crate::release::ReleaseView::of(&stranger));
    let (_, message) = refused(&json!({"spec": {"toReleaseRef": {"name": "checkout-1"}}}), &state);
    assert_eq!(
        message,
        "Release checkout-1 belongs to target checkout, not to payments.\n\
         Releases of payments to go back to:\n  payments-a   healthy   left 1h ago\n\
         All of them: kubectl rollback history payments"
    );
}

#[test]
fn a_blocked_release_needs_force() {
    let blocked = release(
        "payments-a",
        &json!({"metadata": {"annotations": {
            "theatre.gocardless.com/rollback-blocked": "bad schema",
        }}}),
    );
    let state = with(vec![blocked, b()], Some(b_active(&json!([]))), &[]);
    let mut more = json!({"spec": {"toReleaseRef": {"name": "payments-a"}}});
    let (code, message) = refused(&more, &state);
    assert_eq!(code, 403);
    assert!(message.starts_with("Release payments-a is blocked: bad schema."), "{message}");
    merge(&mut more, &json!({"metadata": {"annotations": {"theatre.gocardless.com/force": "true"}}}));
    assert_eq!(references(&filled(&more, &state).spec), json!(["payments-b", "act-b", "payments-a"]));
    // Force names a release; it does not make the selection choose one.
    assert_eq!(
        refused(&json!({"metadata": {"annotations": {"theatre.gocardless.com/force": "true"}}}), &state).0,
        403
    );
}

#[test]
fn an_unfinished_rollback_is_in_the_way_and_a_finished_or_dormant_one_is_not() {
    let other = |more: &Value| {
        let mut object = json!({
            "metadata": {"name": "other", "uid": "u-other", "creationTimestamp": "2026-03-01T11:59:20Z",
                "annotations": {"theatre.gocardless.com/authenticated-as": "oncall"}},
            "spec": {"toReleaseRef": {"name": "payments-a"}},
        });
        merge(&mut object, more);
        rollback(&object)
    };
    let state = |rollback| with(vec![a(), b()], Some(b_active(&json!([]))), &[rollback]);
    let (code, message) = refused(&json!({}), &state(other(&json!({}))));
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "rollback/other (oncall, 40s ago) is already rolling payments back to payments-a.\n\
         Follow: kubectl rollback status other --watch    Cancel: kubectl rollback cancel other"
    );
    let ended = json!({"status": {"conditions": [condition("Succeeded", "False")]}});
    for harmless in [ended, json!({"spec": {"dryRun": true}})] {
        filled(&json!({}), &state(other(&harmless)));
    }
}

#[test]
fn of_several_unfinished_rollbacks_the_one_that_runs_is_named() {
    let queued = rollback(
        &json!({"metadata": {"name": "q", "uid": "1", "creationTimestamp": "2026-03-01T10:00:00Z"}}),
    );
    let running = rollback(&json!({
        "metadata": {"name": "r", "uid": "2", "creationTimestamp": "2026-03-01T11:00:00Z"},
        "status": {"attempts": [{"number": 1, "key": "2-1", "state": "Running"}]},
    }));
    let state = with(vec![a(), b()], Some(b_active(&json!([]))), &[queued, running]);
    assert!(refused(&json!({}), &state).1.starts_with("rollback/r "));
}

#[test]
fn names_the_candidates_when_none_is_healthy() {
    let unknown = release(
        "payments-77e10b2",
        &json!({"status": {
            "conditions": [condition("Active", "False")], "deactivationTime": "2026-02-27T12:00:00Z",
            "activation": {"id": "x", "time": "2026-02-27T10:00:00.000000Z"},
        }}),
    );
    let left = release(
        "payments-51aa0c7",
        &json!({"status": {
            "leftByRollback": "payments-m2m4z", "deactivationTime": "2026-02-26T12:00:00Z",
            "activation": {"id": "y", "time": "2026-02-26T10:00:00.000000Z"},
        }}),
    );
    let state = with(vec![unknown, left, b()], Some(b_active(&json!([]))), &[]);
    assert_eq!(
        refused(&json!({}), &state),
        (
            403,
            "no healthy release of payments to go back to.\n  \
             payments-77e10b2   health unknown   left 2d ago\n  \
             payments-51aa0c7   rolled back from by rollback/payments-m2m4z   left 3d ago\n\
             Name one to use it anyway: kubectl rollback payments --to payments-77e10b2 --reason …"
                .to_owned()
        )
    );
}

#[test]
fn says_what_is_missing_before_anything_can_be_rolled_back() {
    let mut empty = with(vec![], None, &[]);
    let says = |state: &TargetState| refused(&json!({}), state);
    assert_eq!(
        says(&empty),
        (403, "no releases of \"payments\" in namespace shop. Look at other namespaces: kubectl rollback list --all-namespaces".into())
    );
    empty.other_targets = vec!["checkout".into(), "payment".into()];
    assert_eq!(
        says(&empty),
        (403, "no releases of \"payments\" in namespace shop. Targets here: checkout, payment.".into())
    );
    empty.other_targets = (0..12).map(|n| format!("t{n}")).collect();
    assert!(says(&empty).1.ends_with("t9 and 2 more."));
    let (code, message) = says(&with(vec![a()], None, &[]));
    assert_eq!(
        (code, message.lines().next()),
        (403, Some("no release of payments is active, so there is nothing to roll back from."))
    );
    let alone = with(vec![b()], Some(b_active(&json!([]))), &[]);
    assert_eq!(
        says(&alone),
        (403, "no earlier release of payments to go back to: payments-b is the only one.\nLook: kubectl rollback history payments".into())
    );
}

#[test]
fn a_long_list_of_candidates_is_cut() {
    let mut releases: Vec<_> = (0..8)
        .map(|n| {
            release(
                &format!("payments-{n}"),
                &json!({"status": {"conditions": [condition("Active", "False")]}}),
            )
        })
        .collect();
    releases.push(b());
    let (_, message) = refused(&json!({}), &with(releases, Some(b_active(&json!([]))), &[]));
    assert_eq!(message.lines().filter(|line| line.starts_with("  payments-")).count(), 5);
    assert!(message.contains("\n  … and 3 more\n"), "{message}");
}
