//! Single decisions about a Rollback that random trouble does not reach.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use rollback_api::{AttemptState, Backend, Rollback, annotations};
use rollback_core::backend::{Deployment, DeploymentState};
use rollback_core::pointer::Pointer;
use rollback_core::rollback::FINALIZER;
use rollback_core::rollback::decide::decide;
use rollback_core::rollback::observed::{Evidence, Observed, Settings};
use rollback_core::rollback::step::{Call, Step};
use serde_json::json;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn next(rollback: &Rollback, pointer: &Pointer, evidence: Option<&Evidence>) -> Step {
    let settings = Settings {
        backends: vec![Backend::Github],
        adopt_unadmitted: false,
        backoff_base: Duration::from_secs(2),
        backoff_cap: Duration::from_secs(20),
    };
    decide(&Observed {
        now: now(),
        rollback,
        others: &[],
        pointer,
        releases: None,
        evidence,
        settings: &settings,
        jitter: 0.5,
        failed_polls: 0,
        poll_due: true,
    })
}

/// A rollback that theatre began: an id in the status, no attempts.
fn begun_by_theatre() -> Rollback {
    serde_json::from_value(json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
        "metadata": {"name": "r", "uid": "u"},
        "spec": {"toReleaseRef": {"target": "t", "name": "a"}, "reason": "x"},
        "status": {
            "fromReleaseRef": {"target": "t", "name": "b"}, "deploymentID": "https://github.com/o/r/deployments/1",
            "conditions": [{"type": "InProgress", "status": "True", "reason": "DeploymentTriggered", "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }))
    .unwrap()
}

#[test]
fn a_rollback_that_theatre_began_is_followed_to_its_end() {
    let mut rollback = begun_by_theatre();
    let pointer = Pointer::default();
    let Step::Persist(status) = next(&rollback, &pointer, None) else { panic!("it is taken over") };
    assert_eq!(status.attempts.len(), 1);
    assert!(status.deadline.is_some(), "it has an end");
    rollback.status = Some(*status);
    let Step::Call(Backend::Github, Call::Poll { id, .. }) = next(&rollback, &pointer, None) else {
        panic!("it is asked about")
    };
    assert_eq!(id, "https://github.com/o/r/deployments/1");
    let state = DeploymentState::Succeeded(None);
    let done = Evidence::Polled(Ok(Deployment { id, url: None, state, message: String::new() }));
    let Step::Persist(status) = next(&rollback, &pointer, Some(&done)) else {
        panic!("its success is persisted")
    };
    assert_eq!(status.attempts[0].state, AttemptState::Succeeded);
    rollback.status = Some(*status);
    assert!(matches!(next(&rollback, &pointer, None), Step::Activate { .. }));
}

/// In a namespace that is being deleted the pointer goes first; the finalizer must not wait for it.
#[test]
fn a_finalizer_does_not_hold_up_the_end_of_a_namespace() {
    let mut rollback = begun_by_theatre();
    rollback.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    rollback.metadata.deletion_timestamp = Some(Time(now()));
    let status = rollback.status.as_mut().unwrap();
    status.conditions[0].type_ = "Succeeded".to_owned();
    status.conditions[0].status = "False".to_owned();
    assert_eq!(next(&rollback, &Pointer::default(), None), Step::RemoveFinalizer);
}

/// `kubectl annotate … cancel=` asks for nothing: admission stamps nobody for it either.
#[test]
fn an_empty_cancel_annotation_is_none() {
    let mut rollback = begun_by_theatre();
    rollback.metadata.annotations = Some(BTreeMap::from([(annotations::CANCEL.to_owned(), String::new())]));
    let Step::Persist(status) = next(&rollback, &Pointer::default(), None) else { panic!("it goes on") };
    assert_eq!(status.attempts[0].state, AttemptState::Running);
}
