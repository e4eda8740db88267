use rstest::rstest;

use super::*;
use crate::clock::tests::clock;
use crate::testing::{deployed, incident, release};

fn names(releases: &[Release], to: &str) -> Result<(String, String), String> {
    let name = |release: &Release| release.metadata.name.clone().unwrap();
    ends("payments", releases, &To::parse(to).unwrap()).map(|(from, to)| (name(from), name(to)))
}

#[rstest]
#[case("healthy", "payments-3978d50")]
#[case("previous", "payments-77e10b2")]
#[case("payments-51aa0c7", "payments-51aa0c7")]
fn compares_what_is_live_with_what_would_be_deployed(#[case] to: &str, #[case] expected: &str) {
    assert_eq!(names(&incident(), to), Ok(("payments-9c01d2e".into(), expected.into())));
}

#[test]
fn says_why_there_is_nothing_to_compare() {
    let all = incident();
    assert_eq!(
        names(&all, "payments-0000000"),
        Err("Release payments-0000000 is not one of payments's. All of them: kubectl rollback history payments".into())
    );
    assert_eq!(
        names(&all[1..2], "healthy"),
        Err("no healthy release of payments to compare payments-9c01d2e with. Name one with --to: kubectl rollback history payments".into())
    );
    assert_eq!(
        names(&all[2..], "healthy"),
        Err("no release of payments is active, so there is nothing to compare with. Look: kubectl rollback history payments".into())
    );
}

#[test]
fn a_deployment_under_way_is_what_is_live() {
    let releases = [
        release("good", &deployed("True", ("True", ""), "2026-02-27T13:02:00Z", &json!({}))),
        release("stuck", &json!({"status": {"deploymentStartTime": "2026-03-01T13:05:00Z"}})),
    ];
    assert_eq!(names(&releases, "healthy"), Ok(("payments-stuck".into(), "payments-good".into())));
}

#[test]
fn shows_both_sides_and_each_revision() {
    let all = incident();
    insta::assert_snapshot!(text(&all, &all[1], &all[0], &clock()));
    insta::assert_json_snapshot!(value(&all[1], &all[0]));
}
