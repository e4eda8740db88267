//! The ways a rollback can go.

use std::time::Duration;

use rollback_api::AttemptState;
use rollback_core::backend::{BackendError, DeploymentState, ErrorClass};
use rollback_core::rollback::has_finalizer;
use serde_json::json;

use super::world::{World, key, release_path, rollback_path};
use crate::queue::Next;

fn of(pair: &(String, String)) -> (&str, &str) {
    (&pair.0, &pair.1)
}

#[tokio::test]
async fn from_creation_to_the_active_release() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.settle().await;
    assert_eq!(of(&world.condition("rb", "InProgress")), ("True", "DeploymentTriggered"));
    assert_eq!(of(&world.condition("rb", "Succeeded")), ("Unknown", "Pending"));
    assert!(has_finalizer(&world.rollback("rb")));
    let uid = world.rollback("rb").metadata.uid.unwrap();
    let attempt = format!("{uid}-1");
    // A new attempt is not looked for: nothing can carry its key yet.
    assert_eq!(world.backend.take_log(), [format!("trigger {attempt}"), format!("poll {attempt}")]);

    world.backend.all_become(&DeploymentState::Succeeded(None));
    world.ctx.wake(&key());
    world.settle().await;
    assert_eq!(of(&world.condition("rb", "Succeeded")), ("True", "DeploymentSucceeded"));
    let pointer = world.pointer();
    assert_eq!(pointer.active.as_ref().map(|active| active.release.as_str()), Some("b"));
    assert_eq!(pointer.active.unwrap().activation.id, attempt);
    assert_eq!(pointer.lock, None);
    assert!(pointer.ledger.iter().any(|entry| entry.uid == uid && entry.outcome == "DeploymentSucceeded"));
    assert!(!has_finalizer(&world.rollback("rb")));
    let release: rollback_api::Release = world.api.get(&release_path("b")).unwrap();
    assert_eq!(release.metadata.annotations.unwrap()["theatre.gocardless.com/active"], "true");
    let count = r#"theatre_rollback_terminal_total{status="succeeded",namespace="shop",target="payments",initiator_type=""} 1"#;
    assert!(world.metrics().contains(count), "{}", world.metrics());

    // Nothing is left to do: a pass makes no request at all.
    world.show();
    world.api.take_log();
    assert_eq!(world.pass().await.unwrap(), Next::Idle);
    assert_eq!(world.api.take_log(), Vec::<String>::new());
}

/// The attempt is stored before the backend hears of it (H-1).
#[tokio::test]
async fn the_attempt_is_persisted_first() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    let backend = world.backend.clone();
    world.api.hook(move |method, path, objects| {
        if method == http::Method::PUT && path.ends_with("/rb/status") {
            let calls = backend.calls().log.len();
            let attempts = &objects[path.strip_suffix("/status").unwrap()]["status"]["attempts"];
            assert!(calls == 0 || attempts.is_array(), "a call before an attempt was stored");
        }
        None
    });
    world.settle().await;
    assert_eq!(world.rollback("rb").status.unwrap().attempts.len(), 1);
}

#[tokio::test]
async fn a_failed_deployment_is_tried_again_later_then_given_up() {
    let world = World::new();
    world.create("rb", "c", "b", |spec| spec.max_attempts = Some(2));
    world.settle().await;
    world.backend.all_become(&DeploymentState::Failed);
    world.ctx.wake(&key());
    let Next::After(wait) = world.settle().await else { panic!("nothing is due") };
    assert!(wait <= Duration::from_secs(10) && wait >= Duration::from_secs(3), "{wait:?}");
    assert_eq!(of(&world.condition("rb", "InProgress")), ("False", "Waiting"));
    world.backend.take_log();
    // H-4: our own writes wake us, and nothing happens before its time.
    world.settle().await;
    assert_eq!(world.backend.take_log(), Vec::<String>::new());

    world.api.edit(&rollback_path("rb"), |object| {
        object["status"]["nextAttemptTime"] = json!("2026-01-01T00:00:00Z");
    });
    world.settle().await;
    world.backend.all_become(&DeploymentState::Failed);
    world.ctx.wake(&key());
    world.settle().await;
    assert_eq!(of(&world.condition("rb", "Succeeded")), ("False", "DeploymentFailed"));
    let status = world.rollback("rb").status.unwrap();
    assert_eq!(status.attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(world.backend.calls().deployments.len(), 2);
    assert_eq!(world.pointer().lock, None);
    assert!(world.metrics().contains(r#"theatre_rollback_retry_count_sum{status="failed","#));
}

#[tokio::test]
async fn an_outage_spends_no_attempt() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    let outage = BackendError::new(ErrorClass::Unavailable(None), "503 from the backend");
    world.backend.calls().triggers.push_back((outage, false));
    world.settle().await;
    let status = world.rollback("rb").status.unwrap();
    assert_eq!(status.attempts.len(), 1);
    assert_eq!(status.attempts[0].state, AttemptState::Triggering);
    assert!(status.message.unwrap().contains("503 from the backend"));
    assert!(status.next_attempt_time.is_some());
}

#[tokio::test]
async fn cancelling_stops_the_deployment_and_frees_the_target() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.settle().await;
    world.cancel("rb");
    world.settle().await;
    assert_eq!(of(&world.condition("rb", "Succeeded")), ("False", "Cancelled"));
    assert!(world.backend.take_log().iter().any(|call| call.starts_with("cancel ")));
    assert_eq!(world.pointer().lock, None);
    assert_eq!(world.pointer().ledger.len(), 1);
}

#[tokio::test]
async fn a_second_rollback_waits_for_the_first() {
    let world = World::new();
    world.create("first", "c", "b", |_| {});
    world.settle().await;
    world.create("second", "c", "a", |_| {});
    world.settle().await;
    assert_eq!(of(&world.condition("second", "InProgress")), ("False", "Queued"));
    world.create("third", "c", "b", |_| {});
    world.settle().await;
    assert_eq!(
        of(&world.condition("third", "Succeeded")),
        ("False", "NotNeeded"),
        "a duplicate of the first"
    );
    world.backend.all_become(&DeploymentState::Succeeded(None));
    world.ctx.wake(&key());
    world.settle().await;
    assert_eq!(of(&world.condition("first", "Succeeded")), ("True", "DeploymentSucceeded"));
    assert_eq!(
        of(&world.condition("second", "Succeeded")),
        ("False", "NotNeeded"),
        "c is not active any more"
    );
    assert_eq!(world.backend.calls().deployments.len(), 1);
}

/// H-14: the same manifest, applied again after the object is gone, deploys nothing.
#[tokio::test]
async fn a_manifest_is_carried_out_once() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.settle().await;
    world.backend.all_become(&DeploymentState::Succeeded(None));
    world.ctx.wake(&key());
    world.settle().await;
    for _ in 0..3 {
        world.api.remove(&rollback_path("rb"));
        world.settle().await;
        world.create("rb", "c", "b", |_| {});
        world.settle().await;
        assert_eq!(of(&world.condition("rb", "Succeeded")), ("False", "NotNeeded"));
    }
    assert_eq!(world.backend.calls().deployments.len(), 1);
}

#[tokio::test]
async fn the_history_is_limited_and_the_ledger_is_not() {
    let world = World::new();
    for number in 0..6 {
        world.create(&format!("rb-{number}"), "a", "b", |_| {});
        world.settle().await;
    }
    assert_eq!(world.api.all::<rollback_api::Rollback>("/rollbacks/").len(), 3);
    assert_eq!(world.pointer().ledger.len(), 6);
}

/// H-15: deletion while it runs stops the deployment, records the outcome and only then lets the object go.
#[tokio::test]
async fn deletion_while_running_is_a_cancellation() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.settle().await;
    world.api.edit(&rollback_path("rb"), |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-12-01T12:00:00Z");
    });
    world.settle().await;
    assert!(world.api.get::<rollback_api::Rollback>(&rollback_path("rb")).is_none());
    assert!(world.backend.take_log().iter().any(|call| call.starts_with("cancel ")));
    let pointer = world.pointer();
    assert_eq!(pointer.lock, None);
    assert_eq!(pointer.ledger[0].outcome, "Cancelled");
}

#[tokio::test]
async fn options_are_resolved_against_the_release_that_is_deployed() {
    let world = World::new();
    world.create("rb", "c", "b", |spec| {
        let options = serde_json::from_value(json!({ "tag": "{.config.revisions[0].id}", "n": 3 })).unwrap();
        spec.deployment_options = Some(options);
    });
    world.settle().await;
    let plan = world.rollback("rb").status.unwrap().plan.unwrap();
    assert_eq!(serde_json::to_value(plan.options).unwrap(), json!({ "tag": "b", "n": 3 }));

    let world = World::new();
    world.create("rb", "c", "b", |spec| {
        let options = serde_json::from_value(json!({ "tag": "{.config.revisions[7].id}" })).unwrap();
        spec.deployment_options = Some(options);
    });
    world.settle().await;
    assert_eq!(of(&world.condition("rb", "Succeeded")), ("False", "PreconditionFailed"));
    assert!(world.rollback("rb").status.unwrap().message.unwrap().contains("spec.deploymentOptions.tag"));
    assert_eq!(world.backend.take_log(), Vec::<String>::new());
}
