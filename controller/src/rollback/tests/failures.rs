//! Crashes, stale watches, conflicts and time-outs: one key is never deployed twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use rollback_core::backend::DeploymentState;
use serde_json::json;

use super::world::{World, key, pointer_path, rollback_path};
use crate::error::PassError;

/// The process dies, in turn, before and after every request that changes something; the next one goes on.
#[tokio::test]
async fn a_crash_at_any_write_leads_to_one_deployment_and_the_right_end() {
    let mut crashes = 0;
    for after in [false, true] {
        for number in 1.. {
            let mut world = World::new();
            world.create("rb", "c", "b", |_| {});
            world.show();
            // The process is dead from the crash on: none of its requests arrives any more.
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            world.api.hook(move |method, _, _| {
                if method != Method::GET {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                let writes = counted.load(Ordering::SeqCst);
                let dead = if after { writes > number } else { writes >= number };
                dead.then_some(StatusCode::INTERNAL_SERVER_ERROR)
            });
            for round in 0..4 {
                let _ = world.pass().await;
                if count.load(Ordering::SeqCst) <= number {
                    world.release_controller();
                }
                world.show();
                if round == 1 {
                    world.backend.all_become(&DeploymentState::Succeeded(None));
                    world.ctx.wake(&key());
                }
            }
            let dead = count.load(Ordering::SeqCst) >= number;
            world.api.hook(|_, _, _| None);
            world.restart();
            world.settle().await;
            world.backend.all_become(&DeploymentState::Succeeded(None));
            world.ctx.wake(&key());
            world.settle().await;
            assert_eq!(world.condition("rb", "Succeeded").0, "True", "crash at write {number}");
            assert_eq!(world.backend.calls().deployments.len(), 1, "crash at write {number}");
            let pointer = world.pointer();
            assert!(pointer.is_active("b") && pointer.lock.is_none() && pointer.ledger.len() == 1);
            if !dead {
                break;
            }
            crashes += 1;
        }
    }
    assert!(crashes >= 16, "only {crashes} crashes were tried");
}

/// H-3: a watch that shows an older state leads to no second deployment.
#[tokio::test]
async fn a_stale_watch_is_caught_before_the_backend_is_called() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.show();
    let created = world.rollback("rb");
    // The watch goes on showing the Rollback as it was created, and what we wrote is not remembered.
    for _ in 0..4 {
        let rollbacks = &world.ctx.stores.rollbacks;
        rollbacks.apply(kube::runtime::watcher::Event::Delete(created.clone()));
        rollbacks.apply(kube::runtime::watcher::Event::Apply(created.clone()));
        world.pass().await.unwrap();
    }
    let triggers = world.backend.take_log().iter().filter(|call| call.starts_with("trigger")).count();
    assert_eq!(triggers, 1);
    assert_eq!(world.backend.calls().deployments.len(), 1);
    world.backend.all_become(&DeploymentState::Succeeded(None));
    world.ctx.wake(&key());
    world.pass().await.unwrap();
    world.settle().await;
    assert_eq!(world.condition("rb", "Succeeded").0, "True");
}

#[tokio::test]
async fn a_change_between_reading_and_writing_is_not_lost() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.show();
    // Somebody asks for cancellation right before the attempt is stored.
    world.api.hook(|method, path, objects| {
        if *method == Method::PUT && path.ends_with("/rb/status") {
            let object = objects.get_mut(path.strip_suffix("/status").unwrap()).unwrap();
            if object["metadata"]["annotations"]["theatre.gocardless.com/cancel"].is_null() {
                object["metadata"]["annotations"]["theatre.gocardless.com/cancel"] = json!("stop");
                object["metadata"]["resourceVersion"] = json!("1000");
            }
        }
        None
    });
    world.settle().await;
    assert_eq!(world.condition("rb", "Succeeded").1, "Cancelled");
    assert_eq!(world.backend.calls().deployments.len(), 0);
}

#[tokio::test]
async fn endless_conflicts_end_the_pass_with_a_sentence() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.show();
    world.api.hook(|method, path, _| {
        (*method == Method::PUT && path.ends_with("/status")).then_some(StatusCode::CONFLICT)
    });
    let error = world.pass().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot write Rollback shop/rb: somebody else changed it each time; trying again later"
    );
}

/// H-6: a backend that never answers holds up one pass for as long as the time-out, and what it did is found later.
#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_is_cut_off() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.backend.calls().hang = true;
    let begun = tokio::time::Instant::now();
    world.settle().await;
    assert!(begun.elapsed() >= world.ctx.settings.backend_timeout);
    let message = world.rollback("rb").status.unwrap().message.unwrap();
    assert!(message.contains("backend github did not answer within 30s (trigger)"), "{message}");
    world.backend.take_log();
    world.api.edit(&rollback_path("rb"), |object| {
        object["status"]["nextAttemptTime"] = json!("2026-01-01T00:00:00Z");
    });
    world.settle().await;
    let log = world.backend.take_log();
    assert!(log[0].starts_with("find "), "{log:?}");
    assert_eq!(world.condition("rb", "InProgress").1, "DeploymentTriggered");
    assert_eq!(world.backend.calls().deployments.len(), 1);
}

#[tokio::test]
async fn without_leadership_nothing_is_done() {
    let mut world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.fenced_off();
    world.api.take_log();
    assert!(matches!(world.pass().await, Err(PassError::Stopped(_))));
    assert!(world.api.take_log().iter().all(|line| line.starts_with("GET")));
    assert_eq!(world.backend.take_log(), Vec::<String>::new());
}

#[tokio::test]
async fn an_unreadable_pointer_stops_the_target_with_a_sentence() {
    let world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.api.edit(&pointer_path(), |object| object["data"]["lock"] = json!("{"));
    world.show();
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.contains("is not a readable target pointer: data.lock"), "{error}");
    assert_eq!(world.backend.take_log(), Vec::<String>::new());
}

/// A Rollback goes on waiting, with the reason in its status, when its backend was switched off under it.
#[tokio::test]
async fn a_backend_that_is_not_enabled_any_more_is_an_outage() {
    let mut world = World::new();
    world.create("rb", "c", "b", |_| {});
    world.settle().await;
    world.without_backend();
    let crate::queue::Next::After(wait) = world.settle().await else { panic!("nothing is due") };
    assert!(wait > std::time::Duration::from_secs(1), "asked again at once: {wait:?}");
    let message = world.rollback("rb").status.unwrap().message.unwrap();
    assert!(message.contains("backend github is not enabled in the controller; add it to"), "{message}");
    world.restart();
    world.backend.all_become(&DeploymentState::Succeeded(None));
    world.settle().await;
    assert_eq!(world.condition("rb", "Succeeded").0, "True");
}

/// The holder of the lock is asked for live when the watch does not show it.
#[tokio::test]
async fn the_lock_of_a_rollback_that_the_watch_does_not_show_is_respected() {
    let world = World::new();
    world.create("first", "c", "b", |_| {});
    world.settle().await;
    world.create("second", "c", "a", |_| {});
    world.show();
    let first = world.rollback("first");
    world.ctx.stores.rollbacks.apply(kube::runtime::watcher::Event::Delete(first));
    world.pass().await.unwrap();
    assert_eq!(world.condition("second", "InProgress").1, "Queued");
    // Gone without a trace (its finalizer removed by hand): the lock is taken over.
    world.api.remove(&rollback_path("first"));
    world.show();
    world.settle().await;
    assert_eq!(world.condition("second", "InProgress").1, "DeploymentTriggered");
}
