use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::admission::rollback_create::fill;
use crate::admission::submitted_hash;
use crate::admission::testing::{patched, request, rollback, state};

/// A Rollback as it is stored.
fn stored(more: &Value) -> Rollback {
    fill(&request(), &rollback(more), &state()).unwrap().object
}

fn key(name: &str) -> String {
    format!("theatre.gocardless.com/{name}")
}

#[rstest]
// Metadata only.
#[case(json!({"metadata": {"labels": {"a": "b"}, "annotations": {"note": "x"}, "finalizers": ["f"]}}))]
// theatre's typed client: empty strings, empty objects, nothing it does not know.
#[case(json!({"spec": {
    "fromReleaseRef": null, "backend": null, "maxAttempts": null, "hold": null, "progressDeadlineSeconds": null,
    "ttlSecondsAfterFinished": null, "toReleaseRef": {"signature": null},
}}))]
#[case(json!({"spec": {"fromReleaseRef": {"target": "payments", "signature": "", "activation": ""}}}))]
// The manifest as it was submitted, put again (kubectl replace).
#[case(json!({"metadata": {"annotations": null}, "spec": {
    "fromReleaseRef": null, "initiatedBy": null, "toReleaseRef": {"name": null, "signature": null},
}}))]
#[case(json!({"spec": {"toReleaseRef": {"name": ""}, "initiatedBy": {"principal": "", "type": ""}}}))]
#[case(json!({"spec": {"dryRun": false, "deploymentOptions": {}}}))]
fn a_client_that_changes_nothing_changes_nothing(#[case] more: Value) {
    let old = stored(&json!({"spec": {"backend": "github", "maxAttempts": 2, "hold": "UntilReleased",
        "progressDeadlineSeconds": 60, "ttlSecondsAfterFinished": 600}}));
    let new = patched(&old, &more);
    let restored = restore("bob", &old, &new);
    assert_eq!(changed_fields(&old.spec, &restored.spec), Vec::<String>::new());
    // The schema compares this one literally.
    assert_eq!(restored.spec.from_release_ref, old.spec.from_release_ref);
    for name in ["authenticated-as", "submitted-hash"] {
        let all = restored.metadata.annotations.as_ref().unwrap();
        assert_eq!(all.get(&key(name)), old.metadata.annotations.as_ref().unwrap().get(&key(name)));
    }
    validate("bob", &old, &restored).unwrap();
}

#[rstest]
#[case(json!({"reason": "another"}), "spec.reason of rollback/back cannot change: the spec is immutable")]
#[case(json!({"initiatedBy": {"principal": "mallory"}}), "spec.initiatedBy of rollback/back cannot change: the spec is immutable")]
#[case(json!({"deploymentOptions": {"environment": "staging"}}), "spec.deploymentOptions of rollback/back cannot change: the spec is immutable")]
#[case(json!({"deploymentOptions": null}), "spec.deploymentOptions of rollback/back cannot change: the spec is immutable")]
#[case(json!({"toReleaseRef": {"name": "payments-z"}}), "spec.toReleaseRef of rollback/back cannot change: the spec is immutable")]
#[case(json!({"toReleaseRef": {"target": "checkout"}}), "spec.toReleaseRef of rollback/back cannot change: the spec is immutable")]
#[case(json!({"fromReleaseRef": {"activation": "act-z"}}), "spec.fromReleaseRef of rollback/back cannot change: the spec is immutable")]
#[case(json!({"backend": "github"}), "spec.backend of rollback/back cannot change: the spec is immutable")]
#[case(json!({"maxAttempts": 9}), "spec.maxAttempts of rollback/back cannot change: the spec is immutable")]
#[case(json!({"progressDeadlineSeconds": 31}), "spec.progressDeadlineSeconds of rollback/back cannot change: the spec is immutable")]
#[case(json!({"hold": "UntilReleased"}), "spec.hold of rollback/back cannot change: the spec is immutable")]
#[case(json!({"ttlSecondsAfterFinished": 601}), "spec.ttlSecondsAfterFinished of rollback/back cannot change: the spec is immutable")]
#[case(json!({"dryRun": true}), "spec.dryRun cannot be enabled after creation")]
#[case(json!({"reason": "another", "maxAttempts": 9}), "spec.maxAttempts and spec.reason of rollback/back cannot change: the spec is immutable")]
fn the_spec_never_changes(#[case] spec: Value, #[case] says: &str) {
    // H-16.
    let old = stored(&json!({"spec": {"deploymentOptions": {"environment": "production"}}}));
    let restored = restore("bob", &old, &patched(&old, &json!({"spec": spec})));
    let denial = validate("bob", &old, &restored).unwrap_err();
    assert_eq!(denial.code.status(), 422);
    assert!(denial.message.starts_with(says), "{denial}");
}

#[test]
fn the_name_cannot_be_cleared_and_set_anew() {
    let old = stored(&json!({}));
    let cleared = restore("bob", &old, &patched(&old, &json!({"spec": {"toReleaseRef": {"name": null}}})));
    assert_eq!(cleared.spec.to_release_ref.name.as_deref(), Some("payments-a"));
}

#[rstest]
#[case("authenticated-as")]
#[case("submitted-hash")]
#[case("cancelled-by")]
fn our_annotations_cannot_be_written(#[case] name: &str) {
    let old = stored(&json!({}));
    let forged = patched(&old, &json!({"metadata": {"annotations": {key(name): "forged"}}}));
    validate("bob", &old, &forged).unwrap_err();
    let restored = restore("bob", &old, &forged);
    assert_eq!(restored.metadata.annotations, old.metadata.annotations);
    validate("bob", &old, &restored).unwrap();
}

#[test]
fn a_rollback_that_was_never_admitted_gets_no_user_by_an_update() {
    let old = rollback(&json!({}));
    let forged = patched(&old, &json!({"metadata": {"annotations": {key("authenticated-as"): "root"}}}));
    let restored = restore("bob", &old, &forged);
    assert!(!restored.metadata.annotations.unwrap_or_default().contains_key(&key("authenticated-as")));
}

#[test]
fn its_references_may_be_set_once() {
    // Rule 9: the controller resolves it with --adopt-unadmitted.
    let old = rollback(&json!({}));
    let adopted = patched(
        &old,
        &json!({"spec": {
            "fromReleaseRef": {"target": "payments", "name": "payments-b"}, "toReleaseRef": {"name": "payments-a"},
        }}),
    );
    let restored = restore("controller", &old, &adopted);
    assert_eq!(restored.spec, adopted.spec);
    validate("controller", &old, &restored).unwrap();
    let again = patched(&adopted, &json!({"spec": {"toReleaseRef": {"name": "payments-z"}}}));
    validate("controller", &adopted, &again).unwrap_err();
}

#[test]
fn cancellation_is_stamped_with_who_asks_for_it() {
    let old = stored(&json!({}));
    let asked = patched(&old, &json!({"metadata": {"annotations": {key("cancel"): "wrong one"}}}));
    validate("bob", &old, &asked).unwrap_err();
    let stamped = restore("bob", &old, &asked);
    validate("bob", &old, &stamped).unwrap();
    assert_eq!(annotation(&stamped, annotations::CANCELLED_BY), Some("bob"));

    // Somebody else touches it: still bob's.
    let touched = restore("eve", &stamped, &patched(&stamped, &json!({"metadata": {"labels": {"a": "b"}}})));
    assert_eq!(annotation(&touched, annotations::CANCELLED_BY), Some("bob"));
    // Somebody else asks for another reason: theirs.
    let other = patched(&stamped, &json!({"metadata": {"annotations": {key("cancel"): "other"}}}));
    assert_eq!(annotation(&restore("eve", &stamped, &other), annotations::CANCELLED_BY), Some("eve"));
    // Taken back.
    let back = patched(&stamped, &json!({"metadata": {"annotations": {key("cancel"): null}}}));
    let back = restore("bob", &stamped, &back);
    assert_eq!(annotation(&back, annotations::CANCELLED_BY), None);
    validate("bob", &stamped, &back).unwrap();
}

#[test]
fn a_dormant_rollback_is_started_by_unsetting_dry_run() {
    let old = stored(&json!({"spec": {"dryRun": true}}));
    for started in [json!({"dryRun": false}), json!({"dryRun": null})] {
        let restored = restore("bob", &old, &patched(&old, &json!({"spec": started})));
        assert_ne!(restored.spec.dry_run, Some(true));
        assert_eq!(
            annotation(&restored, annotations::SUBMITTED_HASH),
            Some(submitted_hash(&rollback(&json!({})).spec).as_str())
        );
        validate("bob", &old, &restored).unwrap();
    }
}
