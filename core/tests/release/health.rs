//! Health reports → Healthy and RollbackRequired (reference B.1.1, H-18, H-20).

use rollback_api::annotations as keys;
use rollback_api::conditions::{HealthReason, Status};
use rollback_core::release::health::{HealthReport, HealthReportError};
use rstest::rstest;

use crate::world::{World, at, event, event_of, report, rfc3339};

/// a is active since second 10.
fn world() -> World {
    let mut world = World::new();
    world.create("a");
    world.create("b");
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(5)));
    world.later(10);
    world.set_active("a");
    world.settle();
    world
}

fn tell(world: &mut World, name: &str, status: Status, second: i64) {
    world.annotate(name, keys::HEALTH, Some(&report(status, second)));
    world.settle();
}

fn both(world: &World, name: &str) -> (String, String) {
    (world.is(name, "Healthy"), world.is(name, "RollbackRequired"))
}

#[rstest]
#[case::good(Status::True, "True/RolloutSucceeded", "False/RolloutSucceeded")]
#[case::bad(Status::False, "False/RolloutFailed", "True/RolloutFailed")]
#[case::open(Status::Unknown, "Unknown/RolloutInProgress", "Unknown/RolloutInProgress")]
fn a_report_becomes_both_conditions(#[case] status: Status, #[case] healthy: &str, #[case] required: &str) {
    let mut world = world();
    assert_eq!(both(&world, "a"), ("-".into(), "-".into()));
    tell(&mut world, "a", status, 20);
    assert_eq!(both(&world, "a"), (healthy.into(), required.into()));
    assert_eq!(world.condition("a", "Healthy").unwrap().message, format!("it is {status}"));
    // Another verdict while it is live.
    tell(&mut world, "a", Status::False, 30);
    assert_eq!(both(&world, "a"), ("False/RolloutFailed".into(), "True/RolloutFailed".into()));
    // No report any more says nothing new.
    world.annotate("a", keys::HEALTH, None);
    assert!(world.decide().is_idle());
}

#[test]
fn a_release_that_is_not_live_is_not_judged() {
    let mut world = world();
    tell(&mut world, "b", Status::True, 20);
    assert_eq!(both(&world, "b"), ("-".into(), "-".into()), "it never was deployed");
}

#[test]
fn a_release_that_is_being_deployed_is_judged() {
    let mut world = world();
    world.annotate("b", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(20)));
    world.settle();
    tell(&mut world, "b", Status::False, 25);
    assert_eq!(both(&world, "b"), ("False/RolloutFailed".into(), "True/RolloutFailed".into()));
    // Left by a Rollback: the verdict is kept.
    world.lock("rb", "b", "a");
    world.later(20);
    world.ask("a", &event_of("k", 30, "rb"));
    world.settle();
    assert_eq!(
        (world.is("b", "Active"), world.is("b", "Healthy")),
        ("False/Rollback".into(), "False/RolloutFailed".into())
    );
}

#[test]
fn a_verdict_freezes_when_the_release_is_left() {
    let mut world = world();
    tell(&mut world, "a", Status::True, 15);
    world.later(20);
    world.set_active("b");
    world.settle();
    tell(&mut world, "a", Status::False, 40);
    assert_eq!(both(&world, "a"), ("True/RolloutSucceeded".into(), "False/RolloutSucceeded".into()));
}

#[test]
fn an_open_one_becomes_not_measured() {
    let mut world = world();
    tell(&mut world, "a", Status::Unknown, 15);
    world.later(20);
    world.set_active("b");
    world.settle();
    assert_eq!(both(&world, "a"), ("Unknown/NotMeasured".into(), "Unknown/NotMeasured".into()));
    assert_eq!(world.condition("a", "Healthy").unwrap().message, "it was left before a verdict was reached");
    tell(&mut world, "a", Status::True, 40);
    assert_eq!(world.is("a", "Healthy"), "Unknown/NotMeasured", "too late");
}

#[test]
fn the_last_word_before_it_was_left_counts_also_when_both_are_seen_at_once() {
    let mut world = world();
    tell(&mut world, "a", Status::Unknown, 15);
    world.later(20);
    world.annotate("a", keys::HEALTH, Some(&report(Status::False, 29)));
    world.set_active("b");
    world.settle();
    assert_eq!(world.is("a", "Healthy"), "False/RolloutFailed");
}

#[test]
fn deployed_again_means_measured_again() {
    let mut world = world();
    tell(&mut world, "a", Status::True, 15);
    world.later(20);
    world.set_active("b");
    world.settle();
    world.later(20);
    // By hand: the old report goes with the event.
    world.set_active("a");
    world.settle();
    assert_eq!(both(&world, "a"), ("Unknown/NotMeasured".into(), "Unknown/NotMeasured".into()));
    assert_eq!(world.condition("a", "Healthy").unwrap().message, "not measured since it was deployed again");
    assert_eq!(world.annotation("a", keys::HEALTH), None);
    tell(&mut world, "a", Status::True, 51);
    assert_eq!(world.is("a", "Healthy"), "True/RolloutSucceeded");
    // By a Rollback: the old report is there and is not about this deployment.
    world.later(20);
    world.set_active("b");
    world.settle();
    world.later(20);
    world.ask("a", &event_of("k", 90, "rb"));
    world.settle();
    assert_eq!(world.is("a", "Healthy"), "Unknown/NotMeasured");
    assert!(world.annotation("a", keys::HEALTH).is_some());
    tell(&mut world, "a", Status::False, 91);
    assert_eq!(world.is("a", "Healthy"), "False/RolloutFailed");
    // By the recorder, with a new start.
    world.later(20);
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(100)));
    world.ask("a", &event("k2", 105));
    world.settle();
    assert_eq!(world.is("a", "Healthy"), "Unknown/NotMeasured");
}

#[test]
fn a_verdict_from_before_the_activation_of_the_same_deployment_counts() {
    let mut world = world();
    world.annotate("b", keys::DEPLOYMENT_START_TIME, Some(&rfc3339(20)));
    world.settle();
    tell(&mut world, "b", Status::Unknown, 21);
    world.later(20);
    world.set_active("b");
    world.settle();
    assert_eq!(world.is("b", "Healthy"), "Unknown/RolloutInProgress");
}

#[rstest]
#[case::no_json("healthy")]
#[case::no_time(r#"{"status":"True","reason":"RolloutSucceeded"}"#)]
#[case::other_status(r#"{"status":"true","reason":"RolloutSucceeded","time":"2027-01-15T08:00:20.000000Z"}"#)]
#[case::other_reason(r#"{"status":"True","reason":"Fine","time":"2027-01-15T08:00:20.000000Z"}"#)]
#[case::null("null")]
fn what_cannot_be_read_is_no_verdict(#[case] text: &str) {
    let mut world = world();
    world.annotate("a", keys::HEALTH, Some(text));
    let notes = world.decide().notes;
    assert!(notes.len() == 1 && notes[0].text.contains("theatre.gocardless.com/health"), "{notes:?}");
    world.settle();
    assert_eq!(both(&world, "a"), ("-".into(), "-".into()));
}

#[test]
fn reports_survive_the_annotation() {
    let long = HealthReport {
        status: Status::False,
        reason: HealthReason::RolloutFailed,
        message: "é".repeat(5000),
        time: at(1),
    };
    let read = HealthReport::parse(&long.to_json()).unwrap();
    assert_eq!(read.message.chars().count(), 1024);
    assert_eq!(HealthReport::parse(&read.to_json()), Ok(read));
    assert_eq!(
        HealthReport::parse(r#"{"status":"Maybe","reason":"x","time":"2027-01-15T08:00:20.000000Z"}"#),
        Err(HealthReportError::Status("Maybe".into()))
    );
}
