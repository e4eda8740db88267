//! A deployment that began and has not made its release active (rule 11).

use rollback_api::annotations as keys;

use crate::world::{World, at, event, event_of, rfc3339};

/// a is active since second 10; b and c are only recorded.
fn world() -> World {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.create(name);
    }
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(5)));
    world.later(10);
    world.set_active("a");
    world.settle();
    world
}

fn start(world: &mut World, name: &str, second: i64) {
    world.annotate(name, keys::DEPLOYMENT_START_TIME, Some(&rfc3339(second)));
    world.settle();
}

fn deploying(world: &World) -> Option<String> {
    world.pointer().deploying.map(|deploying| deploying.release)
}

#[test]
fn the_newest_that_started_after_the_active_one() {
    let mut world = world();
    assert_eq!(deploying(&world), None, "the active one itself is not meant");
    start(&mut world, "b", 9);
    assert_eq!(deploying(&world), None, "it started before");
    start(&mut world, "b", 20);
    assert_eq!(deploying(&world).as_deref(), Some("b"));
    assert_eq!(world.pointer().deploying.unwrap().since.0, at(20));
    start(&mut world, "c", 30);
    assert_eq!(deploying(&world).as_deref(), Some("c"));
    assert_eq!(
        (world.active().as_deref(), world.is("c", "Active")),
        (Some("a"), "Unknown/Initialised".into())
    );
}

#[test]
fn it_ends_with_its_activation_or_with_that_of_a_later_one() {
    let mut world = world();
    start(&mut world, "b", 20);
    world.later(20);
    world.set_active("b");
    world.settle();
    assert_eq!((world.active().as_deref(), deploying(&world)), (Some("b"), None));
    start(&mut world, "c", 40);
    assert_eq!(deploying(&world).as_deref(), Some("c"));
    world.later(20);
    world.ask("a", &event("again", 50));
    world.settle();
    assert_eq!((world.active().as_deref(), deploying(&world)), (Some("a"), None));
    // Superseded before it was active: Unknown, as in the reference.
    assert_eq!(world.is("c", "Active"), "Unknown/Initialised");
}

#[test]
fn an_end_without_activation_is_not_an_end() {
    let mut world = world();
    start(&mut world, "b", 20);
    world.annotate("b", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(25)));
    world.settle();
    assert_eq!(deploying(&world).as_deref(), Some("b"), "it failed; what runs may still be it");
}

#[test]
fn a_rollback_leaves_it() {
    let mut world = world();
    start(&mut world, "b", 20);
    // Back to a, which is the active one: what is live is b.
    world.lock("rb", "b", "a");
    world.later(20);
    world.ask("a", &event_of("k", 30, "rb"));
    world.settle();
    world.check_settled();
    assert_eq!((world.active().as_deref(), deploying(&world)), (Some("a"), None));
    let status = world.status("b");
    assert_eq!(world.is("b", "Active"), "False/Rollback");
    assert_eq!(
        (status.left_by_rollback.as_deref(), status.deactivation_time.unwrap().0),
        (Some("rb"), at(30))
    );
    assert_eq!(status.activation, None, "it never was active");
    world.unlock();
    // Deployed once more.
    start(&mut world, "b", 31);
    assert_eq!((deploying(&world).as_deref(), world.status("b").left_by_rollback), (Some("b"), None));
}

#[test]
fn a_rollback_leaves_it_also_when_the_clocks_disagree() {
    let mut world = world();
    start(&mut world, "b", 20);
    world.lock("rb", "b", "a");
    // By the clock of the backend it finished before the deployment that it left began.
    world.ask("a", &event_of("k", 15, "rb"));
    world.settle();
    world.check_settled();
    assert_eq!(world.status("b").left_by_rollback.as_deref(), Some("rb"));
    assert_eq!((world.active().as_deref(), deploying(&world)), (Some("a"), None));
}

#[test]
fn in_the_same_second_as_the_activation() {
    let mut world = world();
    // Whole seconds say no more than that.
    start(&mut world, "b", 10);
    assert_eq!(deploying(&world).as_deref(), Some("b"));
    // With a fraction it is known which came first.
    world.ask("a", &event("again", 12));
    world.later(5);
    world.settle();
    world.annotate("b", keys::DEPLOYMENT_START_TIME, Some("2027-01-15T08:00:11.999Z"));
    world.settle();
    assert_eq!(deploying(&world), None);
    world.annotate("b", keys::DEPLOYMENT_START_TIME, Some("2027-01-15T08:00:12.001Z"));
    world.settle();
    assert_eq!(deploying(&world).as_deref(), Some("b"));
}

#[test]
fn without_an_active_release_old_starts_do_not_count() {
    let mut world = world();
    start(&mut world, "b", 9);
    world.annotate("a", keys::ACTIVE, None);
    world.settle();
    assert_eq!((world.active(), deploying(&world)), (None, None));
    start(&mut world, "b", 20);
    assert_eq!(deploying(&world).as_deref(), Some("b"));
}

#[test]
fn an_unreadable_start_keeps_the_last_one() {
    let mut world = world();
    start(&mut world, "b", 20);
    world.annotate("b", keys::DEPLOYMENT_START_TIME, Some("?"));
    world.settle();
    assert_eq!(deploying(&world).as_deref(), Some("b"));
    world.annotate("b", keys::DEPLOYMENT_START_TIME, None);
    world.settle();
    assert_eq!(deploying(&world), None);
}
