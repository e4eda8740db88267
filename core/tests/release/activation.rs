//! Which release is active: rules 1, 2 and 4, H-12, H-19, H-34.

use rollback_api::annotations as keys;
use rstest::rstest;

use crate::world::{World, at, event, event_of, rfc3339};

/// Releases a, b and c; a is active since second 10.
fn world() -> World {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.create(name);
    }
    world.later(10);
    world.set_active("a");
    world.settle();
    world.check_settled();
    world
}

#[test]
fn the_newcomer_wins_and_the_loser_is_superseded() {
    let mut world = world();
    world.later(50);
    world.set_active("b");
    let activated = world.decide().activated.unwrap();
    assert_eq!((activated.release.as_str(), activated.replaced.as_deref()), ("b", Some("a")));
    world.settle();
    world.check_settled();
    assert_eq!(
        (world.is("a", "Active"), world.is("b", "Active")),
        ("False/Superseded".into(), "True/Deployed".into())
    );
    let (a, b) = (world.status("a"), world.status("b"));
    assert_eq!((a.activation.unwrap().time.0, a.deactivation_time.unwrap().0), (at(10), at(60)));
    assert_eq!(a.left_by_rollback, None);
    assert_eq!(b.previous_release.unwrap().release_ref.as_deref(), Some("a"));
    let pointer = world.pointer().active.unwrap();
    assert_eq!((pointer.replaced.as_deref(), pointer.left), (Some("a"), None));
    assert_eq!(Some(pointer.activation), b.activation);
    assert_eq!(world.annotation("a", keys::ACTIVE), None);
    assert_eq!(world.annotation("a", keys::ACTIVATION), None);
}

#[rstest]
#[case::earlier(9, "a")]
#[case::tie(10, "b")]
#[case::later(11, "b")]
fn the_time_of_the_deployment_decides_not_of_the_report(#[case] second: i64, #[case] wins: &str) {
    let mut world = world();
    world.later(50);
    world.ask("b", &event("late", second));
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some(wins));
    if wins == "a" {
        // It was deployed, though not for long, and asks no more.
        assert_eq!(world.is("b", "Active"), "False/Superseded");
        let status = world.status("b");
        assert_eq!(
            (status.activation.unwrap().id.as_str(), status.deactivation_time.unwrap().0),
            ("late", at(10))
        );
    }
}

#[rstest]
#[case::end_earlier(5, "a")]
#[case::end_later(40, "b")]
fn the_deployment_end_time_is_the_time_of_a_first_activation(#[case] second: i64, #[case] wins: &str) {
    let mut world = world();
    world.later(50);
    world.annotate("b", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(second)));
    world.set_active("b");
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some(wins));
    assert_eq!(world.status("b").activation.unwrap().time.0, at(second));
}

#[test]
fn an_old_end_time_does_not_date_a_new_activation() {
    let mut world = World::new();
    world.create("a");
    world.create("b");
    world.annotate("a", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(1)));
    world.set_active("a");
    world.later(10);
    world.settle();
    world.set_active("b");
    world.settle();
    world.later(10);
    // The end time is that of the first deployment, so this means: now.
    world.set_active("a");
    world.settle();
    world.check_settled();
    assert_eq!(
        (world.active().as_deref(), world.status("a").activation.unwrap().time.0),
        (Some("a"), at(20))
    );
    // With a new end time it is dated by it.
    world.later(10);
    world.set_active("b");
    world.settle();
    world.annotate("a", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(35)));
    world.later(10);
    world.set_active("a");
    world.settle();
    assert_eq!(world.status("a").activation.unwrap().time.0, at(35));
}

#[test]
fn a_time_in_the_future_cannot_lock_everybody_out() {
    let mut world = world();
    world.later(50);
    world.ask("b", &event("2099", 2_000_000_000));
    world.settle();
    assert_eq!(world.pointer().active.unwrap().activation.time.0, at(60));
    world.later(1);
    world.ask("c", &event("next", 61));
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some("c"));
}

#[test]
fn a_clock_that_was_set_back_does_not_refuse_what_is_new() {
    let mut world = world();
    world.later(-1000);
    world.set_active("b");
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some("b"));
    // A Rollback's event comes a microsecond after what it leaves.
    let mut activation = event_of("key", 10, "rb");
    activation.time.0 =
        activation.time.0.checked_add(k8s_openapi::jiff::SignedDuration::from_micros(1)).unwrap();
    world.ask("c", &activation);
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some("c"));
}

#[test]
fn the_same_event_again_is_no_event() {
    let mut world = world();
    world.later(10);
    world.ask("b", &event("x", 20));
    world.settle();
    let writes = world.writes;
    world.ask("b", &event("x", 20));
    world.settle();
    assert_eq!(world.writes, writes);
    // Another one of the active release is: it was deployed again.
    world.later(10);
    world.ask("b", &event("y", 30));
    world.settle();
    world.check_settled();
    let active = world.pointer().active.unwrap();
    assert_eq!(
        (active.activation.id.as_str(), active.replaced.as_deref()),
        ("y", Some("a")),
        "b did not replace itself"
    );
    assert_eq!(world.status("b").previous_release.unwrap().release_ref.as_deref(), Some("a"));
    // An older one of the active release changes nothing, and its request stays.
    world.ask("b", &event("w", 15));
    world.settle();
    world.check_settled();
    assert_eq!(world.status("b").activation.unwrap().id, "y");
}

#[test]
fn of_several_at_once_the_latest_wins_and_the_others_are_history() {
    let mut world = world();
    world.later(90);
    world.create("d");
    world.ask("d", &event("d", 40));
    world.ask("b", &event("b", 20));
    world.ask("c", &event("c", 30));
    assert_eq!(world.settle(), 1);
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some("d"));
    let history = |name: &str| {
        let status = world.status(name);
        let previous = status.previous_release.and_then(|previous| previous.release_ref);
        (world.is(name, "Active"), previous, status.deactivation_time.map(|time| time.0))
    };
    assert_eq!(history("c"), ("False/Superseded".into(), Some("b".into()), Some(at(40))));
    assert_eq!(history("b"), ("False/Superseded".into(), Some("a".into()), Some(at(30))));
    assert_eq!(history("d"), ("True/Deployed".into(), Some("c".into()), None));
}

#[test]
fn removing_the_old_request_before_the_new_one_is_made_loses_nothing() {
    // The order that theatre's own pipeline may take: a moment without an active release.
    let mut world = world();
    world.later(10);
    world.annotate("a", keys::ACTIVE, None);
    world.settle();
    assert_eq!(world.active(), None);
    world.set_active("b");
    world.settle();
    world.check_settled();
    assert_eq!(world.status("b").previous_release.unwrap().release_ref.as_deref(), Some("a"));
    assert_eq!(world.pointer().active.unwrap().replaced.as_deref(), Some("a"));
}

#[test]
fn a_deleted_active_release_is_no_longer_pointed_at() {
    let mut world = world();
    world.releases.remove("a");
    let decision = world.decide();
    assert_eq!(decision.pointer.unwrap().active, None);
    // While a Rollback leaves it, what was live is still what was live.
    world.lock("rb", "a", "b");
    assert!(world.decide().is_idle());
    world.unlock();
    world.settle();
    assert_eq!(world.active(), None);
    // Made again under the same name it is another object.
    world.create("a");
    world.settle();
    assert_eq!((world.active(), world.is("a", "Active")), (None, "Unknown/Initialised".into()));
}

#[test]
fn nothing_is_written_to_a_release_that_is_being_deleted() {
    let mut world = world();
    let going = world.releases.get_mut("b").unwrap();
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(10)));
    world.later(10);
    world.set_active("b");
    assert!(world.decide().is_idle());
    let going = world.releases.get_mut("a").unwrap();
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(20)));
    assert!(world.decide().is_idle(), "it is active until it is gone");
}
