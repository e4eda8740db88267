//! How things go wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use rollback_core::workload::snapshot::MAX_BYTES;
use serde_json::json;

use super::world::{World, name, path, started};
use crate::queue::Next;

/// A process that dies before any of its writes leaves nothing that the next one does not mend.
#[tokio::test]
async fn a_crash_before_any_write_is_mended() {
    let mut crashes = 0;
    for dies_at in 0.. {
        let mut world = World::new();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        world.api.hook(move |method, _, _| {
            let counts = *method != Method::GET && counted.fetch_add(1, Ordering::SeqCst) >= dies_at;
            counts.then_some(StatusCode::INTERNAL_SERVER_ERROR)
        });
        world.pass().await.unwrap();
        world.later(5);
        let mut died = false;
        for _ in 0..6 {
            world.show();
            died |= world.pass().await.is_err();
            world.show();
            died |= crate::release::pass(Arc::clone(&world.ctx), super::world::key()).await.is_err();
        }
        world.api.hook(|_, _, _| None);
        world.restart();
        world.quiet().await;
        let releases = world.releases();
        assert_eq!(releases.len(), 1, "died at write {dies_at}");
        assert_eq!(world.active(), Some(name(&releases[0])), "died at write {dies_at}");
        assert_eq!(world.snapshots(&releases[0]).len(), 2, "died at write {dies_at}");
        if !died {
            break;
        }
        crashes += 1;
    }
    assert!(crashes >= 6, "only {crashes} writes");
}

/// A release is half recorded when the process dies and the objects change before the next one begins.
#[tokio::test]
async fn a_half_recorded_release_is_never_live() {
    let mut world = World::new();
    world.pass().await.unwrap();
    world.later(5);
    world.api.hook(|method, path, _| {
        (*method == Method::POST && path.ends_with("/controllerrevisions")).then_some(StatusCode::BAD_GATEWAY)
    });
    assert!(world.pass().await.is_err());
    world.api.hook(|_, _, _| None);
    world.web("2.0");
    world.restart();
    world.quiet().await;
    assert_eq!(world.releases().len(), 2);
    assert_eq!(world.active(), Some(name(&world.release("2.0"))));
    let half = world.releases().into_iter().find(|release| started(release).is_none()).unwrap();
    assert_eq!(World::condition(&half, "Active").0, "Unknown");
    // Its content comes back: now it is recorded whole.
    world.web("1.0");
    world.quiet().await;
    assert_eq!(world.active(), Some(name(&half)));
    assert_eq!(world.snapshots(&half).len(), 2);
}

#[tokio::test]
async fn lost_snapshots_are_stored_again() {
    let mut world = World::new();
    world.quiet().await;
    let release = world.release("1.0");
    let lost = world.snapshots(&release)[0].metadata.name.clone().unwrap();
    world.api.remove(&path("controllerrevisions", &lost));
    world.restart();
    world.settle().await;
    assert_eq!(world.snapshots(&release).len(), 2);
}

/// The garbage collector has not yet taken what an earlier release of the same name owned.
#[tokio::test]
async fn snapshots_of_a_deleted_release_are_taken_over() {
    let mut world = World::new();
    world.quiet().await;
    let before = world.release("1.0");
    world.api.remove(&path("releases", &name(&before)));
    world.restart();
    world.quiet().await;
    let after = world.release("1.0");
    assert_ne!(after.metadata.uid, before.metadata.uid);
    assert_eq!(world.snapshots(&after).len(), 2);
    assert_eq!(world.snapshots(&before).len(), 0);
}

/// Somebody wrote something else into a snapshot's place: nothing is recorded on it, and the sentence says what to do.
#[tokio::test]
async fn a_snapshot_that_holds_something_else_is_not_trusted() {
    let mut world = World::new();
    world.quiet().await;
    let release = world.release("1.0");
    let mut snapshots = world.snapshots(&release).into_iter();
    let stored = snapshots.find(|stored| stored.data.0["objects"][0]["kind"] == "ConfigMap").unwrap();
    let stored_path = path("controllerrevisions", stored.metadata.name.as_deref().unwrap());
    world.api.edit(&stored_path, |object| object["data"]["objects"][0]["data"] = json!({"rate": "99"}));
    world.api.remove(&path("releases", &name(&release)));
    world.restart();
    world.pass().await.unwrap();
    world.later(5);
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.contains("does not hold what was recorded as configmap/config"), "{error}");
}

#[tokio::test]
async fn what_is_too_big_is_refused_once_and_recorded_when_it_is_not() {
    let mut world = World::new();
    world.config(&"x".repeat(MAX_BYTES));
    world.pass().await.unwrap();
    world.later(5);
    assert_eq!(world.pass().await.unwrap(), Next::Idle);
    assert!(world.releases().is_empty());
    let complaint = world.recording.memories.of(&super::world::key()).complaint.unwrap();
    assert!(complaint.contains("target payments is not recorded: configmap/config takes"), "{complaint}");
    world.api.take_log();
    world.later(100);
    world.pass().await.unwrap();
    assert_eq!(world.api.take_log(), Vec::<String>::new(), "it is not read again until it changes");
    world.config("1");
    world.quiet().await;
    assert_eq!(world.releases().len(), 1);
}

/// References are a help, not a condition.
#[tokio::test]
async fn references_that_do_not_fit_are_left_out() {
    let mut world = World::new();
    let big = json!({"metadata": {"name": "shared"}, "data": {"x": "x".repeat(MAX_BYTES)}});
    world.api.put(&path("configmaps", "shared"), big);
    world.quiet().await;
    let release = world.release("1.0");
    let snapshots = world.snapshots(&release);
    assert!(snapshots.iter().all(|stored| stored.data.0["references"].is_null()), "{:?}", snapshots.len());
}

#[tokio::test]
async fn a_release_of_the_same_name_and_other_revisions_is_in_the_way() {
    let mut world = World::new();
    world.quiet().await;
    let release = world.release("1.0");
    world.api.edit(&path("releases", &name(&release)), |object| {
        object["config"]["revisions"][0]["id"] = json!("other");
    });
    world.restart();
    world.pass().await.unwrap();
    world.later(5);
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.contains(&format!("kubectl delete release {} -n shop", name(&release))), "{error}");
}

#[tokio::test]
async fn what_the_server_refuses_is_said_with_its_reason() {
    let mut world = World::new();
    world.pass().await.unwrap();
    world.later(5);
    world.api.hook(|method, _, _| (*method == Method::POST).then_some(StatusCode::FORBIDDEN));
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot create Release shop/payments-"), "{error}");
    assert!(error.ends_with(": the test says so"), "{error}");
}

#[tokio::test]
async fn objects_that_change_while_they_are_read_wait_for_the_watch() {
    let mut world = World::new();
    world.pass().await.unwrap();
    world.later(5);
    // The watch lags behind.
    world.api.edit(&path("configmaps", "config"), |object| object["data"]["rate"] = json!("12"));
    world.api.take_log();
    assert_eq!(world.pass().await.unwrap(), Next::After(super::super::SOON));
    assert_eq!(world.writes(), Vec::<String>::new());
    world.config("12");
    world.quiet().await;
    assert_eq!(world.releases().len(), 1);
}
