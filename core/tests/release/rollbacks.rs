//! What a Rollback's activation means for the release that it left (rules 1 and 4).

use rollback_api::annotations as keys;
use rollback_core::pointer::Pointer;

use crate::world::{Fate, World, event, event_of, rfc3339};

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
fn a_rollback_marks_what_it_left() {
    let mut world = world();
    world.later(10);
    world.set_active("b");
    world.settle();
    world.lock("rb1", "b", "a");
    world.later(10);
    world.ask("a", &event_of("rb1-1", 30, "rb1"));
    world.settle();
    world.check_settled();
    assert_eq!(world.is("b", "Active"), "False/Rollback");
    assert_eq!(world.status("b").message.as_deref(), Some("Release was left by rollback rb1"));
    assert_eq!(world.status("b").left_by_rollback.as_deref(), Some("rb1"));
    let active = world.pointer().active.unwrap();
    assert_eq!((active.release.as_str(), active.left.as_deref()), ("a", Some("b")));
    assert_eq!(active.activation.rollback_uid.as_deref(), Some("uid-rb1"));
    assert!(world.pointer().lock.is_some(), "the lock is the rollback controller's");
    // A newer release: the mark stays, the history is kept.
    world.unlock();
    world.later(10);
    world.set_active("c");
    world.settle();
    assert_eq!(world.status("b").left_by_rollback.as_deref(), Some("rb1"));
    // Deployed again: it goes.
    world.later(10);
    world.set_active("b");
    world.settle();
    world.check_settled();
    assert_eq!(world.status("b").left_by_rollback, None);
}

#[test]
fn starting_to_deploy_it_again_takes_the_mark_away() {
    let mut world = world();
    world.later(10);
    world.ask("b", &event_of("k", 20, "rb1"));
    world.settle();
    assert_eq!(world.status("a").left_by_rollback.as_deref(), Some("rb1"));
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(5)));
    world.settle();
    assert_eq!(world.status("a").left_by_rollback.as_deref(), Some("rb1"), "that was before");
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(21)));
    world.settle();
    assert_eq!(
        (world.status("a").left_by_rollback, world.is("a", "Active")),
        (None, "False/Rollback".into())
    );
    assert_eq!(world.pointer().deploying.unwrap().release, "a");
}

#[test]
fn an_activation_under_way_belongs_to_the_rollback_whoever_reports_it() {
    let mut world = world();
    world.later(10);
    world.set_active("b");
    world.settle();
    world.lock("rb1", "b", "a");
    world.later(10);
    world.ask("a", &event("argocd-17", 30));
    world.settle();
    world.check_settled();
    let active = world.pointer().active.unwrap();
    assert_eq!(active.activation.id, "argocd-17");
    assert_eq!(active.activation.rollback_ref.as_deref(), Some("rb1"));
    assert_eq!(
        (active.activation.rollback_uid.as_deref(), active.left.as_deref()),
        (Some("uid-rb1"), Some("b"))
    );
    assert_eq!(world.status("b").left_by_rollback.as_deref(), Some("rb1"));
    // The Rollback itself reports it too: the same event.
    let writes = world.writes;
    world.ask("a", &event_of("rb1-1", 31, "rb1"));
    world.settle();
    assert_eq!((world.writes, world.pointer().active.unwrap().activation.id.as_str()), (writes, "argocd-17"));
    // Of another release, or once the Rollback gave up, it does not.
    world.later(10);
    world.ask("c", &event("other", 40));
    world.settle();
    assert_eq!(world.pointer().active.unwrap().activation.rollback_ref, None);
    assert_eq!(world.is("a", "Active"), "False/Superseded");
}

#[test]
fn what_a_rollback_left_is_written_down_before_the_next_release_counts() {
    let mut world = world();
    world.later(90);
    world.ask("b", &event_of("k", 20, "rb1"));
    world.ask("c", &event("c", 30));
    let first = world.decide();
    assert!(first.again);
    assert_eq!(first.pointer.clone().unwrap().active.unwrap().release, "b");
    // It dies right after the pointer is written; the next process finishes the move before it makes another.
    let cache = world.clone();
    assert!(!world.apply(&cache, &first, Fate::CrashAfter(1)));
    let second = world.decide();
    assert_eq!((second.pointer.as_ref().map(|pointer| &pointer.active), second.again), (None, true));
    world.settle();
    world.check_settled();
    assert_eq!(
        (world.active().as_deref(), world.status("a").left_by_rollback.as_deref()),
        (Some("c"), Some("rb1"))
    );
}

#[test]
fn the_ledger_and_the_lock_are_not_ours() {
    let mut world = world();
    world.lock("rb", "x", "y");
    let before = world.pointer();
    world.later(10);
    world.set_active("b");
    world.settle();
    let after = world.pointer();
    assert_eq!((&after.lock, &after.ledger), (&before.lock, &before.ledger));
    assert_eq!(Pointer { active: before.active.clone(), ..after }, before);
}
