//! Crashes, watches that lag behind, and others that are faster.

use http::{Method, StatusCode};
use rollback_api::annotations as keys;
use serde_json::json;

use super::world::{World, pointer_path, release_path};
use crate::error::PassError;

#[tokio::test]
async fn a_crash_after_any_write_heals_in_the_next_process() {
    for writes in 0.. {
        let mut world = World::new();
        world.set_active("a");
        world.run().await;
        world.set_active("b");
        world.show();
        world.dies_after(writes);
        let died = world.pass().await.is_err();
        world.lives();
        world.restart();
        world.run().await;
        assert_eq!(world.active().as_deref(), Some("b"), "after {writes} writes");
        assert_eq!((world.is("a"), world.is("b")), ("False/Superseded".into(), "True/Deployed".into()));
        assert_eq!(
            (world.annotation("a", keys::ACTIVE), world.annotation("b", keys::ACTIVE)),
            (None, Some("true".into()))
        );
        assert_eq!(world.run().await, Vec::<String>::new());
        if !died {
            assert_eq!(writes, 5, "all writes were tried");
            break;
        }
    }
}

#[tokio::test]
async fn a_stale_watch_costs_a_look_and_nothing_else() {
    let world = World::new();
    world.set_active("a");
    world.run().await;
    world.set_active("b");
    world.show();
    world.pass().await.unwrap();
    // The watches still show a as active and b as asking.
    let pointer: serde_json::Value = world.api.get(&pointer_path()).unwrap();
    world.pass().await.unwrap();
    world.pass().await.unwrap();
    assert_eq!(
        world.api.get::<serde_json::Value>(&pointer_path()).unwrap(),
        pointer,
        "the pointer did not move"
    );
    assert_eq!((world.is("a"), world.is("b")), ("False/Superseded".into(), "True/Deployed".into()));
}

#[tokio::test]
async fn a_watch_that_does_not_show_the_request_yet_deactivates_nobody() {
    let mut world = World::new();
    world.run().await;
    world.show();
    let old = world.release("a");
    world.set_active("a");
    world.run().await;
    // Another process, whose pointer watch is ahead of its release watch.
    world.restart();
    world.show();
    world.ctx.stores.releases.apply(kube::runtime::watcher::Event::Apply(old));
    world.pass().await.unwrap();
    assert_eq!((world.active().as_deref(), world.is("a")), (Some("a"), "True/Deployed".into()));
    // Nor does one that does not show the release at all.
    let gone = world.release("a");
    world.ctx.stores.releases.apply(kube::runtime::watcher::Event::Delete(gone));
    world.pass().await.unwrap();
    assert_eq!(world.active().as_deref(), Some("a"));
}

#[tokio::test]
async fn a_request_that_was_taken_back_meanwhile_is_not_followed() {
    let world = World::new();
    world.run().await;
    let event = json!({ "id": "k-1", "time": "2026-12-01T10:00:00.000000Z" }).to_string();
    world.annotate("a", keys::ACTIVATION, Some(&event));
    world.set_active("a");
    world.show();
    world.annotate("a", keys::ACTIVE, None);
    world.pass().await.unwrap();
    assert_eq!((world.active(), world.is("a")), (None, "Unknown/Initialised".into()));
    // The same without an event: the stamp meets the newer version.
    world.set_active("b");
    world.show();
    world.annotate("b", keys::ACTIVE, Some("no"));
    world.pass().await.unwrap();
    assert_eq!((world.active(), world.annotation("b", keys::ACTIVATION)), (None, None));
}

#[tokio::test]
async fn a_pointer_that_the_rollback_controller_wrote_meanwhile_keeps_its_lock() {
    let world = World::new();
    world.set_active("a");
    world.run().await;
    world.set_active("b");
    world.show();
    let mut done = false;
    let lock = json!({ "rollback": "rb", "uid": "u", "to": "b", "from": "a" }).to_string();
    world.api.hook(move |method, path, objects| {
        if *method == Method::PUT && path == pointer_path() && !std::mem::replace(&mut done, true) {
            let object = objects.get_mut(path).unwrap();
            object["data"]["lock"] = json!(lock);
            object["metadata"]["resourceVersion"] = json!("1000000");
        }
        None
    });
    world.pass().await.unwrap();
    let pointer: serde_json::Value = world.api.get(&pointer_path()).unwrap();
    assert!(pointer["data"]["lock"].is_string());
    // Decided again with the lock in sight, the activation is the Rollback's (rule 1).
    assert_eq!(world.is("a"), "False/Rollback");
    assert_eq!(world.release("a").status.unwrap().left_by_rollback.as_deref(), Some("rb"));
}

#[tokio::test]
async fn a_release_that_was_changed_meanwhile_is_not_deleted() {
    let world = World::new();
    world.set_active("c");
    world.run().await;
    world.limit("2");
    world.set_active("b");
    world.show();
    world.api.hook(|method, path, objects| {
        if *method == Method::DELETE && path == release_path("a") {
            let object = objects.get_mut(path).unwrap();
            object["metadata"]["annotations"][keys::ACTIVE] = json!("true");
            object["metadata"]["resourceVersion"] = json!("1000000");
        }
        None
    });
    world.pass().await.unwrap();
    assert_eq!(world.active().as_deref(), Some("a"), "it was activated in the last moment");
}

#[tokio::test]
async fn an_error_names_the_object_and_ends_the_pass() {
    let world = World::new();
    world.show();
    world.api.hook(|method, _, _| (*method == Method::PUT).then_some(StatusCode::INTERNAL_SERVER_ERROR));
    let error = world.pass().await.unwrap_err().to_string();
    assert_eq!(error, "cannot write the status of Release shop/a: the test says so");
}

#[tokio::test]
async fn endless_conflicts_end_the_pass_with_a_sentence() {
    let world = World::new();
    world.show();
    world.api.hook(|method, _, _| (*method == Method::PUT).then_some(StatusCode::CONFLICT));
    let error = world.pass().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot bring the releases of target shop/payments up to date: somebody else changed it each time; trying again later"
    );
}

#[tokio::test]
async fn without_leadership_nothing_is_written() {
    let mut world = World::new();
    world.set_active("a");
    world.fenced_off();
    world.show();
    world.api.take_log();
    assert!(matches!(world.pass().await, Err(PassError::Stopped(_))));
    assert!(world.api.take_log().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn an_unreadable_pointer_stops_the_target_with_a_sentence() {
    let world = World::new();
    world.set_active("a");
    world.run().await;
    world.api.edit(&pointer_path(), |object| object["data"]["active"] = json!("{"));
    world.set_active("b");
    world.show();
    let error = world.pass().await.unwrap_err().to_string();
    assert!(error.contains("is not a readable target pointer: data.active"), "{error}");
    assert_eq!(world.is("a"), "True/Deployed");
}
