//! Releases that theatre left behind, and pointers that were lost: rebuilt from what the releases say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use rollback_api::{ReleaseStatus, annotations as keys};

use crate::world::{World, at, rfc3339};

/// A release as theatre leaves it: no event, no generation.
fn theatre(world: &mut World, name: &str, active: bool, end: i64) {
    world.create(name);
    world.annotate(name, keys::DEPLOYMENT_END_TIME, Some(&rfc3339(end)));
    if active {
        world.set_active(name);
    }
    let condition = |type_: &str, status: &str, reason: &str| Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        observed_generation: None,
        last_transition_time: Time(at(end)),
    };
    let release = world.releases.get_mut(name).unwrap();
    release.status = Some(ReleaseStatus {
        conditions: vec![
            if active {
                condition("Active", "True", "Deployed")
            } else {
                condition("Active", "False", "Superseded")
            },
            condition("Healthy", "True", "AnalysisSucceeded"),
            condition("RollbackRequired", "False", "AnalysisSucceeded"),
        ],
        deployment_end_time: Some(Time(at(end))),
        signature: Some("0123456789".into()),
        ..ReleaseStatus::default()
    });
}

#[test]
fn theatres_active_release_stays_active() {
    let mut world = World::new();
    world.later(100);
    theatre(&mut world, "a", false, 1);
    theatre(&mut world, "b", true, 2);
    assert_eq!(world.settle(), 1);
    world.check_settled();
    assert_eq!(
        (world.active().as_deref(), world.pointer().active.unwrap().activation.time.0),
        (Some("b"), at(2))
    );
    assert_eq!(
        (world.is("a", "Healthy"), world.is("b", "Healthy")),
        ("True/AnalysisSucceeded".into(), "True/AnalysisSucceeded".into())
    );
    assert_eq!(world.status("b").signature.as_deref(), Some("0123456789"), "a signature is never rewritten");
}

#[test]
fn of_two_active_releases_the_later_one_stays() {
    let mut world = World::new();
    world.later(100);
    theatre(&mut world, "a", true, 3);
    theatre(&mut world, "b", true, 2);
    world.settle();
    world.check_settled();
    assert_eq!(world.active().as_deref(), Some("a"));
    assert_eq!(world.is("b", "Active"), "False/Superseded");
}

#[test]
fn a_crash_while_the_other_one_is_taken_back_does_not_revive_it() {
    for writes in 0..6 {
        let mut world = World::new();
        world.later(100);
        theatre(&mut world, "a", true, 3);
        theatre(&mut world, "b", true, 2);
        let (decision, cache) = (world.decide(), world.clone());
        world.apply(&cache, &decision, crate::world::Fate::CrashAfter(writes));
        world.later(100);
        world.settle();
        world.check_settled();
        assert_eq!(world.active().as_deref(), Some("a"), "after {writes} writes");
    }
}

#[test]
fn a_deleted_pointer_is_rebuilt() {
    let mut world = World::new();
    world.create("a");
    world.create("b");
    world.set_active("a");
    world.settle();
    world.later(10);
    world.set_active("b");
    world.settle();
    let before = world.pointer();
    world.later(10);
    world.pointer = None;
    world.settle();
    world.check_settled();
    assert_eq!(world.pointer(), before);
}

#[test]
fn a_deactivation_is_not_undone_after_a_crash() {
    let mut world = World::new();
    world.create("a");
    world.set_active("a");
    world.settle();
    world.later(10);
    world.annotate("a", keys::ACTIVE, None);
    let (decision, cache) = (world.decide(), world.clone());
    // The pointer is written, the status is not.
    assert!(!world.apply(&cache, &decision, crate::world::Fate::CrashAfter(1)));
    assert_eq!((world.active(), world.is("a", "Active")), (None, "True/Deployed".into()));
    world.settle();
    world.check_settled();
    assert_eq!(world.active(), None);
}

#[test]
fn only_the_status_says_active() {
    // Its annotation was taken away while no controller ran.
    let mut world = World::new();
    theatre(&mut world, "a", true, 1);
    world.annotate("a", keys::ACTIVE, None);
    world.settle();
    world.check_settled();
    assert_eq!((world.active(), world.is("a", "Active")), (None, "False/Superseded".into()));
}
