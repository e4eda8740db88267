//! Annotation → status, as the reference does it (B.1), and what we add.

use rollback_api::annotations as keys;
use rstest::rstest;

use crate::world::{World, at, rfc3339};

fn world() -> World {
    let mut world = World::new();
    world.create("a");
    world.settle();
    world
}

#[test]
fn a_new_release_is_initialised() {
    let world = world();
    let status = world.status("a");
    assert_eq!(status.message.as_deref(), Some("Release has been just created, waiting for status update"));
    let config = &world.releases["a"].spec.config;
    assert_eq!(status.signature, Some(rollback_core::signature::signature(config)));
    assert_eq!(world.is("a", "Active"), "Unknown/Initialised");
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(world.condition("a", "Active").unwrap().observed_generation, Some(1));
    // Without a health source both are absent, not Unknown.
    assert_eq!((world.is("a", "Healthy"), world.is("a", "RollbackRequired")), ("-".into(), "-".into()));
    assert_eq!(world.pointer, None, "nothing is active, so there is nothing to point at");
}

#[rstest]
#[case::exactly_true(Some("true"), "True/Deployed")]
#[case::absent(None, "Unknown/Initialised")]
#[case::upper_case(Some("True"), "Unknown/Initialised")]
#[case::no(Some("false"), "Unknown/Initialised")]
#[case::empty(Some(""), "Unknown/Initialised")]
#[case::blank(Some("true "), "Unknown/Initialised")]
#[case::one(Some("1"), "Unknown/Initialised")]
fn only_true_asks_for_activation(#[case] value: Option<&str>, #[case] expected: &str) {
    let mut world = world();
    world.annotate("a", keys::ACTIVE, value);
    world.settle();
    assert_eq!(world.is("a", "Active"), expected);
    assert_eq!(world.active().is_some(), expected.starts_with("True"));
    // Whatever else it says is the author's and stays.
    assert_eq!(world.annotation("a", keys::ACTIVE).map(String::as_str), value);
}

#[rstest]
#[case::removed(None)]
#[case::other(Some("false"))]
fn taking_active_away_deactivates(#[case] value: Option<&str>) {
    let mut world = world();
    world.set_active("a");
    world.settle();
    assert_eq!(world.status("a").message.as_deref(), Some("Release is active"));
    world.later(60);
    world.annotate("a", keys::ACTIVE, value);
    world.settle();
    assert_eq!(world.is("a", "Active"), "False/Superseded");
    assert_eq!(world.status("a").message.as_deref(), Some("Release is inactive"));
    assert_eq!(world.status("a").deactivation_time.unwrap().0, at(60));
    assert_eq!(world.active(), None);
    assert_eq!(world.annotation("a", keys::ACTIVATION), None, "the event was answered");
    // And back again: a new event.
    let first = world.status("a").activation.unwrap();
    world.later(60);
    world.set_active("a");
    world.settle();
    world.check_settled();
    let second = world.status("a").activation.unwrap();
    assert_eq!((world.is("a", "Active"), second.time.0), ("True/Deployed".into(), at(120)));
    assert_ne!(first.id, second.id);
}

#[rstest]
#[case::absent_clears(None, None)]
#[case::empty_clears(Some(""), None)]
#[case::another(Some("2027-01-15T10:00:00+01:00"), Some(3600))]
#[case::fraction(Some("2027-01-15T08:00:07.9Z"), Some(7))]
#[case::a_date_keeps(Some("2027-01-15"), Some(5))]
#[case::words_keep(Some("yesterday"), Some(5))]
#[case::a_blank_keeps(Some("2027-01-15 10:00:00Z"), Some(5))]
#[case::unix_seconds_keep(Some("1800000000"), Some(5))]
fn times_follow_their_annotations(
    #[case] value: Option<&str>,
    #[case] expected: Option<i64>,
    #[values(true, false)] start: bool,
) {
    let mut world = world();
    let key = if start { keys::DEPLOYMENT_START_TIME } else { keys::DEPLOYMENT_END_TIME };
    world.annotate("a", key, Some(&rfc3339(5)));
    world.settle();
    world.annotate("a", key, value);
    let notes = world.decide().notes;
    world.settle();
    let status = world.status("a");
    let (ours, other) = if start {
        (status.deployment_start_time, status.deployment_end_time)
    } else {
        (status.deployment_end_time, status.deployment_start_time)
    };
    assert_eq!((ours.map(|time| time.0), other), (expected.map(at), None));
    assert_eq!(world.is("a", "Active"), "Unknown/Initialised");
    if expected == Some(5) {
        assert_eq!(notes.len(), 1);
        assert_eq!(
            notes[0].text,
            format!(
                "Release a: annotation {key}={:?} is not RFC 3339 (2026-01-31T14:02:00Z); the last readable time is kept",
                value.unwrap()
            )
        );
    } else {
        assert_eq!(notes, []);
    }
}

#[test]
fn an_unreadable_first_time_stays_absent() {
    let mut world = world();
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some("soon"));
    world.settle();
    assert_eq!(world.status("a").deployment_start_time, None);
}

#[test]
fn previous_release_follows_its_annotation_and_else_what_was_active() {
    let mut world = world();
    world.create("b");
    world.set_active("a");
    world.settle();
    world.later(60);
    world.set_active("b");
    world.settle();
    let previous = |world: &World| {
        let previous = world.status("b").previous_release.unwrap();
        (previous.release_ref.unwrap(), previous.transition_time.unwrap().0)
    };
    assert_eq!(previous(&world), ("a".into(), at(60)));
    world.later(60);
    world.annotate("b", keys::PREVIOUS_RELEASE, Some("x"));
    world.settle();
    assert_eq!(previous(&world), ("x".into(), at(120)));
    world.later(60);
    assert!(world.decide().is_idle(), "the same value again is no change");
    world.annotate("b", keys::PREVIOUS_RELEASE, None);
    world.settle();
    assert_eq!(previous(&world), ("a".into(), at(180)), "known without anybody saying so");
}

#[test]
fn the_transition_time_of_active_moves_only_with_its_status() {
    let mut world = world();
    world.set_active("a");
    world.settle();
    let before = world.condition("a", "Active").unwrap();
    world.later(60);
    world.annotate("a", keys::DEPLOYMENT_END_TIME, Some(&rfc3339(30)));
    world.settle();
    assert_eq!(world.condition("a", "Active").unwrap(), before);
    assert_eq!(world.status("a").deployment_end_time.unwrap().0, at(30));
}

#[rstest]
#[case::no_json("x", "is not an activation")]
#[case::no_id(r#"{"time":"2027-01-15T08:00:00.000000Z"}"#, "missing field `id`")]
#[case::empty_id(r#"{"id":"","time":"2027-01-15T08:00:00.000000Z"}"#, "has an empty id")]
#[case::no_time(r#"{"id":"x"}"#, "missing field `time`")]
#[case::bad_time(r#"{"id":"x","time":"now"}"#, "is not an activation")]
#[case::list("[]", "is not an activation")]
#[case::long_id(&format!(r#"{{"id":"{}","time":"2027-01-15T08:00:00Z"}}"#, "x".repeat(129)), "more than 128 characters")]
fn an_unreadable_event_is_replaced_by_one_of_ours(#[case] text: &str, #[case] why: &str) {
    let mut world = world();
    world.annotate("a", keys::ACTIVATION, Some(text));
    world.settle();
    assert_eq!(world.active(), None, "without `active` it asks for nothing");
    world.set_active("a");
    let notes = world.decide().notes;
    assert!(notes[0].text.contains(why) && notes[0].text.ends_with("; it is ignored"), "{notes:?}");
    world.settle();
    world.check_settled();
    assert_eq!(world.decide().notes, []);
}

#[test]
fn hostile_values_are_cut_in_notes_and_do_no_harm() {
    let mut world = world();
    world.annotate("a", keys::DEPLOYMENT_START_TIME, Some(&"\u{0}é\n".repeat(50_000)));
    world.annotate("a", keys::HEALTH, Some(&"[".repeat(100_000)));
    let notes = world.decide().notes;
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|note| note.text.len() < 2_000), "{notes:?}");
    world.settle();
}
