//! The requests that each situation takes, one by one.

use rollback_api::annotations as keys;
use serde_json::json;

use super::world::{World, rollback_path};

#[tokio::test]
async fn new_releases_are_initialised_and_then_left_alone() {
    let world = World::new();
    let log = world.run().await;
    assert_eq!(
        log,
        [
            "GET namespace",
            "GET configmaps/POINTER",
            "PUT releases/a/status",
            "PUT releases/b/status",
            "PUT releases/c/status",
        ]
    );
    assert_eq!(world.is("a"), "Unknown/Initialised");
    assert_eq!(world.run().await, Vec::<String>::new(), "a pass that finds nothing to do makes no call");
}

#[tokio::test]
async fn an_activation_in_the_order_that_survives_a_crash() {
    let world = World::new();
    world.set_active("a");
    world.run().await;
    assert_eq!(world.active().as_deref(), Some("a"));
    world.set_active("b");
    assert_eq!(
        world.run().await,
        [
            "GET namespace",
            "GET configmaps/POINTER",
            // The event is persisted, then the pointer moves, then the statuses follow, then the old request goes.
            "PATCH releases/b",
            "PUT configmaps/POINTER",
            "PUT releases/a/status",
            "PUT releases/b/status",
            "PATCH releases/a",
        ]
    );
    assert_eq!((world.is("a"), world.is("b")), ("False/Superseded".into(), "True/Deployed".into()));
    assert_eq!(world.annotation("a", keys::ACTIVE), None);
    assert_eq!(world.annotation("a", keys::ACTIVATION), None);
    assert_eq!(world.run().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_given_event_needs_no_stamp_but_a_live_look() {
    let world = World::new();
    world.run().await;
    let event = json!({ "id": "k-1", "time": "2026-12-01T10:00:00.000000Z" }).to_string();
    world.annotate("a", keys::ACTIVATION, Some(&event));
    world.set_active("a");
    assert_eq!(
        world.run().await,
        [
            "GET namespace",
            "GET configmaps/POINTER",
            "GET releases/a",
            "POST configmaps",
            "PUT releases/a/status",
        ]
    );
    assert_eq!(world.release("a").status.unwrap().activation.unwrap().id, "k-1");
}

#[tokio::test]
async fn culling_keeps_to_the_limit_of_the_namespace() {
    let world = World::new();
    world.set_active("c");
    world.run().await;
    world.limit("2");
    world.set_active("b");
    let log = world.run().await;
    let rest: Vec<&String> = log.iter().skip_while(|line| *line != "PATCH releases/c").skip(1).collect();
    assert_eq!(rest, ["DELETE releases/a"]);
    assert!(log.contains(&"GET rollbacks".to_owned()), "Rollbacks are read live first: {log:?}");
}

#[tokio::test]
async fn a_rollback_that_the_watch_does_not_show_yet_protects_what_it_names() {
    let world = World::new();
    world.run().await;
    world.limit("2");
    world.set_active("c");
    world.show();
    let rollback = json!({
        "metadata": { "name": "rb", "namespace": "shop" },
        "spec": { "toReleaseRef": { "target": "payments", "name": "a" }, "reason": "x" },
    });
    world.api.put(&rollback_path("rb"), rollback);
    world.pass().await.unwrap();
    assert_eq!(world.is("a"), "Unknown/Initialised");
    assert_eq!(world.api.get::<rollback_api::Release>(&super::world::release_path("b")), None);
}

#[tokio::test]
async fn two_releases_that_theatre_calls_active_become_one() {
    let world = World::new();
    for (name, time) in [("a", "2026-12-01T10:00:02Z"), ("b", "2026-12-01T10:00:01Z")] {
        world.set_active(name);
        world.api.edit(&super::world::release_path(name), |object| {
            object["status"] = json!({
                "signature": "0123456789",
                "conditions": [{ "type": "Active", "status": "True", "reason": "Deployed", "message": "",
                    "lastTransitionTime": time }],
                "previousRelease": { "transitionTime": null },
            });
        });
    }
    let log = world.run().await;
    // Without an event on b its request goes first: afterwards it would look like a new one.
    let at = |wanted: &str| log.iter().position(|line| line == wanted).unwrap();
    assert!(at("PATCH releases/b") < at("PUT releases/b/status"), "{log:?}");
    assert_eq!((world.is("a"), world.is("b")), ("True/Deployed".into(), "False/Superseded".into()));
    assert_eq!(world.run().await, Vec::<String>::new());
}
