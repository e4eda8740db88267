//! What a rollback goes back to when nobody names a release (DESIGN 3, rules 11, 20, 22; H-26).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use rollback_api::conditions::Status;
use rollback_core::release::ReleaseView;
use rollback_core::release::select::{Ineligible, eligibility, previous, select};

use crate::world::{World, at, event, event_of, report};

/// A healthy release that was deployed at that second.
fn view(name: &str, second: i64, before: Option<&str>) -> ReleaseView {
    let mut world = World::new();
    world.create(name);
    ReleaseView {
        healthy: Status::True,
        activation: Some(event(name, second)),
        previous: before.map(Into::into),
        ..ReleaseView::of(&world.releases[name])
    }
}

fn chosen(active: &str, releases: &[ReleaseView]) -> Option<String> {
    select(active, releases).chosen.map(|release| release.name.clone())
}

/// Rolls back to what is chosen, as the rollback controller would.
fn roll_back(world: &mut World, rollback: &str) -> String {
    let from = world.pointer().live().unwrap().to_owned();
    let to = chosen(&from, &world.views()).unwrap();
    world.lock(rollback, &from, &to);
    world.later(60);
    let second = world.now.as_second() - at(0).as_second();
    world.ask(&to, &event_of(rollback, second, rollback));
    world.settle();
    world.unlock();
    world.check_settled();
    to
}

#[test]
fn two_rollbacks_in_a_row_walk_back() {
    let mut world = World::new();
    for (name, healthy) in [("a", Status::True), ("b", Status::True), ("c", Status::False)] {
        world.create(name);
        world.later(60);
        world.set_active(name);
        world.settle();
        let second = world.now.as_second() - at(0).as_second();
        world.annotate(name, rollback_api::annotations::HEALTH, Some(&report(healthy, second)));
        world.settle();
    }
    assert_eq!(roll_back(&mut world, "rb1"), "b");
    assert_eq!(world.is("c", "Active"), "False/Rollback");
    assert_eq!(world.status("c").left_by_rollback.as_deref(), Some("rb1"));
    assert_eq!(roll_back(&mut world, "rb2"), "a");
    assert_eq!(world.status("b").left_by_rollback.as_deref(), Some("rb2"));
    // Nothing is left: never back to c or b, never to the active one.
    let views = world.views();
    let selection = select("a", &views);
    assert_eq!(selection.chosen, None);
    let skipped: Vec<_> =
        selection.skipped.iter().map(|(release, why)| (release.name.as_str(), why)).collect();
    let left = |by: &str| Ineligible::LeftByRollback(by.into());
    assert_eq!(skipped, [("b", &left("rb2")), ("c", &left("rb1"))]);
}

#[test]
fn the_chain_comes_before_time() {
    // c replaced a; b was deployed between the two but is not in the chain.
    let releases = [view("a", 1, None), view("b", 2, None), view("c", 3, Some("a"))];
    assert_eq!(chosen("c", &releases).as_deref(), Some("a"));
}

#[test]
fn a_broken_chain_goes_on_by_time() {
    let releases = [view("a", 1, None), view("b", 2, None), view("d", 4, Some("gone"))];
    assert_eq!(chosen("d", &releases).as_deref(), Some("b"));
    // Broken further down: what the chain still tells comes first.
    let mut releases =
        [view("a", 1, None), view("b", 2, Some("gone")), view("c", 3, None), view("d", 4, Some("b"))];
    assert_eq!(chosen("d", &releases).as_deref(), Some("b"));
    releases[1].healthy = Status::Unknown;
    assert_eq!(chosen("d", &releases).as_deref(), Some("c"));
}

#[test]
fn cycles_end_and_never_choose_the_active_one() {
    let mut releases = [view("a", 3, Some("b")), view("b", 2, Some("a"))];
    assert_eq!(chosen("a", &releases).as_deref(), Some("b"));
    releases[1].healthy = Status::False;
    assert_eq!(chosen("a", &releases), None);
    // A release that replaced itself, and a cycle that does not go through the active one.
    let releases = [view("a", 9, Some("a")), view("b", 2, Some("c")), view("c", 1, Some("b"))];
    assert_eq!(chosen("a", &releases).as_deref(), Some("b"));
    let releases = [view("a", 9, Some("b")), view("b", 2, Some("c")), view("c", 1, Some("b"))];
    assert_eq!(chosen("a", &releases).as_deref(), Some("b"));
}

#[test]
fn every_reason_against_a_release() {
    let healthy = view("b", 1, None);
    assert_eq!(eligibility(&healthy, "a"), Ok(()));
    assert_eq!(eligibility(&healthy, "b"), Err(Ineligible::Active));
    let blocked = ReleaseView { blocked: Some("data loss".into()), ..healthy.clone() };
    assert_eq!(eligibility(&blocked, "a"), Err(Ineligible::Blocked("data loss".into())));
    let left = ReleaseView { left_by_rollback: Some("rb".into()), ..healthy.clone() };
    assert_eq!(eligibility(&left, "a"), Err(Ineligible::LeftByRollback("rb".into())));
    let unhealthy = ReleaseView { healthy: Status::False, ..healthy.clone() };
    assert_eq!(eligibility(&unhealthy, "a"), Err(Ineligible::Unhealthy));
    let unknown = ReleaseView { healthy: Status::Unknown, ..healthy };
    assert_eq!(eligibility(&unknown, "a"), Err(Ineligible::HealthUnknown));
}

#[test]
fn what_was_passed_over_is_told_newest_first() {
    let mut releases = [view("a", 1, None), view("b", 2, None), view("c", 3, None), view("d", 4, None)];
    releases[1].healthy = Status::Unknown;
    releases[2].blocked = Some("leaks".into());
    let selection = select("d", &releases);
    assert_eq!(selection.chosen.map(|release| release.name.as_str()), Some("a"));
    let skipped: Vec<_> = selection.skipped.iter().map(|(release, _)| release.name.as_str()).collect();
    assert_eq!(skipped, ["c", "b"]);
}

#[test]
fn a_deployment_that_failed_goes_back_to_the_active_release() {
    // Rule 11: c never became active, so what is left is c and the default is b, the active one.
    let releases =
        [view("a", 1, None), view("b", 2, Some("a")), ReleaseView { activation: None, ..view("c", 3, None) }];
    assert_eq!(chosen("c", &releases).as_deref(), Some("b"));
}

#[test]
fn previous_takes_any_health_but_only_what_was_deployed() {
    let mut releases = [view("a", 1, None), view("b", 2, None), view("c", 3, None), view("d", 4, None)];
    releases[2].activation = None;
    releases[1].healthy = Status::Unknown;
    assert_eq!(previous("d", &releases).map(|release| release.name.as_str()), Some("b"));
    releases[1].left_by_rollback = Some("rb".into());
    assert_eq!(previous("d", &releases).map(|release| release.name.as_str()), Some("a"));
    releases[0].blocked = Some("leaks".into());
    assert_eq!(previous("d", &releases), None);
}

#[test]
fn ties_in_time_are_settled_by_name() {
    let mut releases = [view("a", 1, None), view("b", 1, None), view("c", 2, None)];
    assert_eq!(chosen("c", &releases).as_deref(), Some("b"));
    releases.reverse();
    assert_eq!(chosen("c", &releases).as_deref(), Some("b"));
    releases[2].activation = Some(rollback_api::Activation { time: MicroTime(at(5)), ..event("a", 5) });
    assert_eq!(chosen("c", &releases).as_deref(), Some("a"));
}
