//! Too many releases (reference B.1.2, invariant 9, H-27).

use rollback_api::annotations as keys;
use rollback_api::conditions::Status;
use rollback_core::release::culling::limit;
use rstest::rstest;

use crate::world::{World, event, event_of, report, rfc3339};

/// r00, r01, … deployed one after the other, each healthy if `healthy` says so; the last one is active.
fn history(count: i64, healthy: impl Fn(i64) -> Option<Status>) -> World {
    let mut world = World::new();
    world.limit = 1000;
    for number in 0..count {
        let name = format!("r{number:02}");
        world.later(10);
        world.create(&name);
        world.annotate(&name, keys::DEPLOYMENT_END_TIME, Some(&rfc3339(number * 10 + 10)));
        world.set_active(&name);
        world.settle();
        if let Some(status) = healthy(number) {
            world.annotate(&name, keys::HEALTH, Some(&report(status, number * 10 + 11)));
            world.settle();
        }
    }
    world
}

fn cull(mut world: World, limit: usize) -> Vec<String> {
    world.limit = limit;
    world.settle();
    world.check_settled();
    world.deleted
}

#[rstest]
#[case::absent(None, 30, false)]
#[case::empty(Some(""), 30, false)]
#[case::five(Some("5"), 5, false)]
#[case::one(Some("1"), 1, false)]
#[case::zero(Some("0"), 1, true)]
#[case::negative(Some("-3"), 1, true)]
#[case::words(Some("many"), 30, true)]
#[case::fraction(Some("2.5"), 30, true)]
#[case::huge(Some("99999999999999999999"), 30, true)]
fn limits(#[case] text: Option<&str>, #[case] expected: usize, #[case] noted: bool) {
    let (used, note) = limit(text);
    assert_eq!((used, note.is_some()), (expected, noted));
    if let Some(note) = note {
        assert!(
            note.starts_with("annotation theatre.gocardless.com/release-limit=")
                && note.contains(&format!("{used} releases"))
        );
    }
}

#[test]
fn the_oldest_go_first_by_the_end_of_their_deployment() {
    let mut world = history(6, |_| None);
    // Recorded first, deployed last but one.
    world.annotate("r00", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(55)));
    world.settle();
    assert_eq!(cull(world, 4), ["r01", "r02"]);
}

#[test]
fn at_the_limit_nothing_goes() {
    assert_eq!(cull(history(4, |_| None), 4), Vec::<String>::new());
}

#[test]
fn the_active_one_and_the_newest_healthy_one_stay() {
    // r01 is the newest healthy one that is not active.
    let deleted = cull(
        history(6, |number| Some(if number <= 1 || number == 5 { Status::True } else { Status::False })),
        1,
    );
    assert_eq!(deleted, ["r00", "r02", "r03", "r04"]);
}

#[test]
fn a_limit_of_zero_is_one() {
    assert_eq!(cull(history(3, |_| None), 0), ["r00", "r01"]);
}

#[test]
fn what_an_unfinished_rollback_or_the_lock_names_stays() {
    let mut world = history(6, |_| None);
    world.in_use.extend(["r00".into(), "r03".into()]);
    world.lock("rb", "r05", "r01");
    assert_eq!(cull(world, 1), ["r02", "r04"]);
}

#[test]
fn what_is_being_deployed_stays() {
    let mut world = history(3, |_| None);
    world.create("new");
    world.annotate("new", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(90)));
    assert_eq!(cull(world, 1), ["r00", "r01"]);
}

#[test]
fn what_was_just_recorded_stays() {
    // It is not active yet, and a pipeline that records and activates in two calls is about to make it so.
    let mut world = history(3, |_| Some(Status::True));
    world.later(10);
    world.create("new");
    assert_eq!(cull(world, 1), ["r00"]);
}

#[test]
fn what_a_rollback_would_choose_stays_too() {
    // The newest healthy one is blocked; the next one is what people would go back to.
    let mut world = history(5, |_| Some(Status::True));
    world.annotate("r03", keys::ROLLBACK_BLOCKED, Some("loses money"));
    assert_eq!(cull(world, 1), ["r00", "r01"]);
    // Left by a Rollback.
    let mut world = history(4, |_| Some(Status::True));
    world.lock("rb", "r03", "r02");
    world.later(10);
    world.ask("r02", &event_of("k", 50, "rb"));
    world.settle();
    world.unlock();
    assert_eq!(cull(world, 1), ["r00"], "r03 is the newest healthy one, r01 the eligible one");
}

#[test]
fn a_release_that_is_not_initialised_is_not_deleted() {
    let mut world = history(2, |_| None);
    world.limit = 1;
    world.create("a");
    let decision = world.decide();
    let deleted: Vec<_> = decision.deletions.iter().map(|deletion| deletion.name.as_str()).collect();
    assert_eq!(deleted, ["r00"]);
}

#[test]
fn one_that_asks_to_be_active_is_not_deleted() {
    let mut world = history(4, |_| None);
    world.limit = 1;
    world.later(10);
    // r03 is the newest object, which stays.
    world.set_active("r00");
    world.settle();
    world.check_settled();
    assert_eq!((world.active().as_deref(), world.deleted), (Some("r00"), vec!["r01".into(), "r02".into()]));
}

#[test]
fn twenty_thousand_requests_at_once_are_one_decision() {
    // Four hundred million steps, if each release were compared with each other one.
    let mut world = World::new();
    world.limit = 10;
    for number in 0..20_000 {
        let name = format!("r{number:05}");
        world.create(&name);
        world.ask(&name, &event(&name, number % 1000));
    }
    world.later(5_000);
    let decision = world.decide();
    assert_eq!(decision.activated.unwrap().release, "r19999");
    assert_eq!(decision.statuses.len(), 20_000);
}
