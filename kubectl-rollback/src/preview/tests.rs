use serde_json::{Value, json};

use super::*;
use crate::clock::tests::clock;
use crate::testing::{deployed, incident, place, release, rollback};

fn preview(answer: &Value, releases: &[Release], chosen: bool) -> String {
    let answer = rollback(answer);
    Preview { place: &place(), answer: &answer, releases, chosen }.text(&clock())
}

#[test]
fn the_incident() {
    let mut releases = incident();
    releases[1].spec.config.revisions[0].id = "e79564fbef044b63d560296cdc8e84c130175016".into();
    let answer = json!({"spec": {"backend": "github", "deploymentOptions": {"environment": "production"}}});
    insta::assert_snapshot!(preview(&answer, &releases, true));
}

#[test]
fn a_named_release_passes_nothing_over() {
    let answer = json!({"spec": {"toReleaseRef": {"name": "payments-77e10b2"}, "hold": "UntilNewerRelease", "deploymentOptions": {
        "commit": "{.config.revisions[?(@.name==\"application\")].id}", "retries": 3,
    }}});
    insta::assert_snapshot!(preview(&answer, &incident(), false));
}

#[test]
fn revisions_that_only_one_side_has() {
    let mut releases = incident();
    releases[0].spec.config.revisions[1].name = "chart".into();
    insta::assert_snapshot!(preview(&json!({}), &releases, true));
}

#[test]
fn back_to_the_active_release_from_a_deployment_that_never_finished() {
    let releases = [
        release("good", &deployed("True", ("True", ""), "2026-02-27T13:02:00Z", &json!({}))),
        release("stuck", &json!({"status": {"deploymentStartTime": "2026-03-01T13:05:00Z"}})),
    ];
    let answer = json!({"spec": {"fromReleaseRef": {"name": "payments-stuck"}, "toReleaseRef": {"name": "payments-good"}}});
    insta::assert_snapshot!(preview(&answer, &releases, true));
}

#[test]
fn releases_that_are_gone_are_named_all_the_same() {
    insta::assert_snapshot!(preview(&json!({}), &[], true));
}

#[test]
fn no_context_and_nobody_known() {
    let answer = rollback(&json!({"metadata": {"annotations": null}}));
    let place = Place { context: String::new(), ..place() };
    let text =
        Preview { place: &place, answer: &answer, releases: &incident(), chosen: false }.text(&clock());
    assert!(text.starts_with("Cluster prod-eu-1, namespace shop\n"), "{text}");
    assert!(text.ends_with("Deployer: the cluster's default."), "{text}");
}

#[test]
fn says_why_a_release_is_passed_over() {
    let view = |left: Option<&str>| {
        let status = left.map_or(json!({}), |left| json!({"deactivationTime": left}));
        ReleaseView::of(&release("x", &json!({ "status": status })))
    };
    let why = |why: Ineligible, left| why_not(&view(left), &why, &clock());
    assert_eq!(
        why(Ineligible::LeftByRollback("r".into()), Some("2026-02-23T10:00:00Z")),
        "rolled back from on Monday"
    );
    assert_eq!(
        why(Ineligible::LeftByRollback("r".into()), Some("2026-03-01T10:00:00Z")),
        "rolled back from at 11:00"
    );
    assert_eq!(why(Ineligible::LeftByRollback("r".into()), None), "rolled back from");
    assert_eq!(why(Ineligible::Blocked("drops a column".into()), None), "blocked: drops a column");
    assert_eq!(why(Ineligible::Unhealthy, None), "unhealthy");
}
