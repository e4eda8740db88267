use rollback_api::annotations;
use rstest::rstest;
use serde_json::{Value, json};

use super::{b_active, c, filled, references};
use crate::admission::rollback_create::fill;
use crate::admission::testing::{
    BACKENDS, a, active, b, condition, now, pointer, release, request, rollback, state, with,
};
use crate::admission::{Request, submitted_hash};

#[test]
fn fills_everything_that_was_left_out() {
    let object = filled(&json!({}), &state());
    let view = |name: &str| state().view(name).unwrap().signature.clone();
    assert_eq!(
        serde_json::to_value(&object.spec).unwrap(),
        json!({
            "fromReleaseRef": {
                "target": "payments", "name": "payments-b", "signature": view("payments-b"), "activation": "act-b",
            },
            "toReleaseRef": {"target": "payments", "name": "payments-a", "signature": view("payments-a")},
            "reason": "INC-311",
            "initiatedBy": {"principal": "alice", "type": "user"},
        })
    );
    let annotations = object.metadata.annotations.unwrap();
    assert_eq!(annotations[annotations::AUTHENTICATED_AS], "alice");
    assert_eq!(annotations[annotations::SUBMITTED_HASH], submitted_hash(&rollback(&json!({})).spec));
    assert_eq!(object.metadata.labels.unwrap(), [("team".to_owned(), "money".to_owned())].into());
}

#[test]
fn never_writes_over_what_was_given() {
    let given = json!({
        "metadata": {"labels": {"team": "oncall"}},
        "spec": {
            "fromReleaseRef": {"target": "payments", "name": "payments-b", "activation": "act-b"},
            "toReleaseRef": {"target": "payments", "name": "payments-a"},
            "initiatedBy": {"principal": "bot", "type": "pager"},
        },
    });
    let object = filled(&given, &state());
    assert_eq!(references(&object.spec), json!(["payments-b", "act-b", "payments-a"]));
    let by = object.spec.initiated_by.unwrap();
    assert_eq!((by.principal.as_deref(), by.type_.as_deref()), (Some("bot"), Some("pager")));
    assert_eq!(object.metadata.labels.unwrap()["team"], "oncall");
    assert_eq!(object.metadata.annotations.unwrap()[annotations::AUTHENTICATED_AS], "alice");
}

#[test]
fn filling_twice_changes_nothing() {
    for more in [
        json!({}),
        json!({"spec": {"toReleaseRef": {"name": "payments-a"}}}),
        json!({"spec": {"toReleaseRef": {"name": "payments-b"}}}),
        json!({"spec": {"fromReleaseRef": {"target": "payments", "name": "payments-z"}}}),
        json!({"metadata": {"annotations": {"theatre.gocardless.com/cancel": "no"}}}),
    ] {
        let once = filled(&more, &state());
        let twice = fill(&request(), &once, &state()).unwrap().object;
        assert_eq!(once, twice);
    }
}

#[test]
fn a_forged_annotation_is_replaced() {
    let object = filled(
        &json!({"metadata": {"annotations": {
            "theatre.gocardless.com/authenticated-as": "root",
            "theatre.gocardless.com/submitted-hash": "0".repeat(64),
            "theatre.gocardless.com/cancelled-by": "root",
        }}}),
        &state(),
    );
    let annotations = object.metadata.annotations.unwrap();
    assert_eq!(annotations[annotations::AUTHENTICATED_AS], "alice");
    assert_eq!(annotations[annotations::SUBMITTED_HASH], submitted_hash(&rollback(&json!({})).spec));
    assert!(!annotations.contains_key(annotations::CANCELLED_BY));
}

#[rstest]
#[case("alice", "alice", "user")]
#[case("system:admin", "system:admin", "user")]
#[case("system:serviceaccount:argocd:controller", "system:serviceaccount:argocd:controller", "system")]
#[case("system:node:n1", "system:node:n1", "system")]
fn says_who_by_the_verified_user(#[case] user: &str, #[case] principal: &str, #[case] type_: &str) {
    let request = Request { user, now: now(), backends: BACKENDS };
    let by = fill(&request, &rollback(&json!({})), &state()).unwrap().object.spec.initiated_by.unwrap();
    assert_eq!((by.principal.as_deref(), by.type_.as_deref()), (Some(principal), Some(type_)));
}

#[test]
fn a_very_long_user_name_still_fits_the_schema() {
    let user = "ž".repeat(300);
    let request = Request { user: &user, now: now(), backends: BACKENDS };
    let object = fill(&request, &rollback(&json!({})), &state()).unwrap().object;
    assert_eq!(object.spec.initiated_by.unwrap().principal.unwrap().chars().count(), 256);
    assert_eq!(object.metadata.annotations.unwrap()[annotations::AUTHENTICATED_AS], user);
}

#[test]
fn never_copies_a_label_by_which_a_tool_tracks_the_release() {
    let labelled = release(
        "payments-a",
        &json!({"metadata": {"labels": {
            "app.kubernetes.io/instance": "payments", "helm.sh/chart": "x", "tier": "gold",
        }}}),
    );
    let state = with(vec![labelled, b()], Some(b_active(&json!([]))), &[]);
    let labels = filled(&json!({}), &state).metadata.labels.unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["team", "tier"]);
}

#[test]
fn without_a_pointer_the_latest_active_release_counts() {
    // H-12: theatre may leave several active; the list's order must not decide.
    let older = release(
        "payments-o",
        &json!({"status": {
            "conditions": [condition("Active", "True")], "deploymentEndTime": "2026-02-01T00:00:00Z",
        }}),
    );
    for releases in [vec![older.clone(), a(), b()], vec![b(), a(), older]] {
        let state = with(releases, None, &[]);
        assert_eq!(
            references(&filled(&json!({}), &state).spec),
            json!(["payments-b", "act-b", "payments-a"])
        );
    }
}

#[rstest]
// Rule 11: what is live never became active, so the way back is the active release.
#[case(json!({}), json!(["payments-c", null, "payments-b"]))]
#[case(json!({"spec": {"toReleaseRef": {"name": "payments-b"}}}), json!(["payments-c", null, "payments-b"]))]
#[case(json!({"spec": {"toReleaseRef": {"name": "payments-a"}}}), json!(["payments-c", null, "payments-a"]))]
#[case(
    json!({"spec": {"fromReleaseRef": {"target": "payments", "name": "payments-b"}}}),
    json!(["payments-b", "act-b", "payments-a"])
)]
fn a_deployment_that_never_became_active_may_be_left(#[case] more: Value, #[case] expected: Value) {
    let pointer = pointer(&active("payments-b", "act-b"), Some("payments-c"), &json!([]));
    let state = with(vec![a(), b(), c()], Some(pointer), &[]);
    assert_eq!(references(&filled(&more, &state).spec), expected);
}

#[test]
fn a_blocked_active_release_is_not_the_way_back() {
    let mut blocked = b();
    blocked.metadata.annotations =
        Some([(annotations::ROLLBACK_BLOCKED.to_owned(), "leaks".to_owned())].into());
    let pointer = pointer(&active("payments-b", "act-b"), Some("payments-c"), &json!([]));
    let state = with(vec![a(), blocked, c()], Some(pointer), &[]);
    assert_eq!(references(&filled(&json!({}), &state).spec), json!(["payments-c", null, "payments-a"]));
}

#[rstest]
// A pinned release to leave that is not active, whatever else is wrong (rule 6).
#[case(json!({"fromReleaseRef": {"target": "payments", "name": "gone"}}), json!(["gone", null, "payments-b"]))]
#[case(
    json!({"fromReleaseRef": {"target": "payments", "name": "payments-b", "activation": "act-old"}}),
    json!(["payments-b", "act-old", "payments-b"])
)]
#[case(
    json!({"fromReleaseRef": {"target": "payments", "name": "gone"}, "toReleaseRef": {"name": "gone-too"}, "backend": "argocd"}),
    json!(["gone", null, "gone-too"])
)]
// An unpinned release to deploy that is active already.
#[case(json!({"toReleaseRef": {"name": "payments-b"}}), json!(["payments-b", "act-b", "payments-b"]))]
#[case(
    json!({"toReleaseRef": {"name": "payments-b", "signature": "other"}, "backend": "argocd"}),
    json!(["payments-b", "act-b", "payments-b"])
)]
fn what_is_not_needed_is_admitted_before_any_other_check(#[case] spec: Value, #[case] expected: Value) {
    let busy = rollback(&json!({"metadata": {"name": "other", "uid": "u-other"}}));
    let state = with(vec![a(), b()], Some(b_active(&json!([]))), &[busy]);
    assert_eq!(references(&filled(&json!({"spec": spec}), &state).spec), expected);
}

#[test]
fn a_pinned_manifest_is_admitted_even_while_nothing_is_active() {
    let spec = json!({
        "fromReleaseRef": {"target": "payments", "name": "payments-b", "activation": "act-b"},
        "toReleaseRef": {"name": "payments-a"},
    });
    let state = with(vec![], None, &[]);
    assert_eq!(
        references(&filled(&json!({"spec": spec}), &state).spec),
        json!(["payments-b", "act-b", "payments-a"])
    );
}

fn entry(hash: &str) -> Value {
    json!([{
        "name": "back", "uid": "u1", "hash": hash, "outcome": "DeploymentSucceeded",
        "from": "payments-b", "to": "payments-a", "time": "2026-02-28T12:00:00Z",
    }])
}

#[test]
fn a_manifest_in_the_ledger_is_admitted_and_names_what_it_did() {
    let hash = submitted_hash(&rollback(&json!({})).spec);
    let busy = rollback(&json!({"metadata": {"name": "other", "uid": "u-other"}}));
    let state = with(vec![], Some(b_active(&entry(&hash))), &[busy]);
    assert_eq!(references(&filled(&json!({}), &state).spec), json!(["payments-b", null, "payments-a"]));
}

#[test]
fn a_restored_copy_of_a_carried_out_rollback_is_in_the_ledger_too() {
    let stored = filled(&json!({}), &state());
    let hash = submitted_hash(&rollback(&json!({})).spec);
    let state = with(vec![a(), b()], Some(b_active(&entry(&hash))), &[]);
    let admitted = fill(&request(), &stored, &state).unwrap().object;
    assert_eq!(admitted.metadata.annotations.unwrap()[annotations::SUBMITTED_HASH], hash);
}

#[test]
fn another_name_or_another_spec_is_another_manifest() {
    let hash = submitted_hash(&rollback(&json!({})).spec);
    let state = with(vec![a(), b()], Some(b_active(&entry(&hash))), &[]);
    for more in [
        json!({"metadata": {"name": "again"}}),
        json!({"metadata": {"name": ""}}),
        json!({"spec": {"reason": "another incident"}}),
    ] {
        assert_eq!(references(&filled(&more, &state).spec), json!(["payments-b", "act-b", "payments-a"]));
    }
}

#[test]
fn a_name_that_is_taken_is_left_to_the_api_server() {
    let taken = rollback(&json!({"metadata": {"uid": "u-taken"}}));
    let state = with(vec![], None, &[taken]);
    assert_eq!(references(&filled(&json!({}), &state).spec), json!([null, null, null]));
}
