use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::args::{Cli, Command};
use crate::clock::tests::clock;
use crate::testing::{deployed, incident, release, rollback};

fn args(line: &[&str]) -> Args {
    let words = ["kubectl-rollback", "start", "payments", "--reason", "INC-311"];
    match Cli::try_parse_from(words.iter().chain(line)).unwrap().command {
        Command::Start(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn object(line: &[&str], to: Option<&str>) -> serde_json::Value {
    serde_json::to_value(request::rollback(&args(line), to.map(str::to_owned)).unwrap()).unwrap()
}

#[test]
fn asks_for_no_more_than_was_said() {
    assert_eq!(
        object(&[], None),
        json!({
            "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
            "metadata": {"generateName": "payments-"},
            "spec": {"toReleaseRef": {"target": "payments"}, "reason": "INC-311"},
        })
    );
}

#[test]
fn every_flag_is_in_the_object() {
    let line = [
        "--set",
        "environment=production",
        "--set",
        "version=1.10",
        "--set",
        "empty=",
        "--set-json",
        "skip={\"canary\":true}",
        "--backend=github",
        "--deadline=10m",
        "--max-attempts",
        "1",
        "--hold",
        "--force",
    ];
    assert_eq!(
        object(&line, Some("payments-1")),
        json!({
            "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
            "metadata": {"generateName": "payments-", "annotations": {"theatre.gocardless.com/force": "true"}},
            "spec": {
                "toReleaseRef": {"target": "payments", "name": "payments-1"}, "reason": "INC-311",
                "deploymentOptions": {"environment": "production", "version": "1.10", "empty": "", "skip": {"canary": true}},
                "backend": "github", "progressDeadlineSeconds": 600, "maxAttempts": 1, "hold": "UntilNewerRelease",
            },
        })
    );
}

#[test]
fn an_option_is_given_once() {
    let failure = request::rollback(&args(&["--set", "a=1", "--set-json", "a=1"]), None).unwrap_err();
    assert_eq!(failure.text, "option a is given twice: use --set or --set-json once for each option");
}

#[test]
fn what_was_previewed_is_pinned() {
    let wanted = request::rollback(&args(&["--force"]), None).unwrap();
    let pinned = request::pinned(wanted, &rollback(&json!({"spec": {"initiatedBy": {"principal": "x"}}})));
    assert_eq!(pinned.metadata.name, None);
    let spec = serde_json::to_value(pinned.spec).unwrap();
    assert_eq!(
        spec,
        json!({
            "fromReleaseRef": {"target": "payments", "name": "payments-9c01d2e", "signature": "9c01d2e000", "activation": "act-9c"},
            "toReleaseRef": {"target": "payments", "name": "payments-3978d50", "signature": "3978d50982"},
            "reason": "INC-311",
        })
    );
}

#[test]
fn a_manifest_has_a_name_that_follows_from_its_content() {
    let answer = |name: &str| rollback(&json!({"metadata": {"name": name, "generateName": "payments-"}}));
    let (one, other) = (manifest(answer("payments-aaaaa")), manifest(answer("payments-bbbbb")));
    assert_eq!(one, other);
    assert!(one.metadata.name.unwrap().starts_with("payments-rollback-"));
}

fn views(releases: &[Release]) -> Vec<ReleaseView> {
    releases.iter().map(ReleaseView::of).collect()
}

use rollback_api::Release;

#[test]
fn previous_is_the_release_before_whatever_its_health() {
    assert_eq!(previous("payments", &views(&incident())).unwrap().name, "payments-77e10b2");
    let failure = previous("payments", &views(&incident()[1..2])).unwrap_err();
    assert_eq!(
        (failure.kind.code(), failure.text.as_str()),
        (2, "no earlier release of payments to go back to. Look: kubectl rollback history payments")
    );
}

#[test]
fn only_a_release_of_unknown_health_is_offered() {
    // Something healthy is there: then the refusal has another cause, and nothing is offered.
    assert_eq!(offered(&views(&incident())), None);
    let of = |healthy: &str| {
        vec![
            release(
                "a",
                &deployed(
                    "False",
                    (healthy, ""),
                    "2026-02-27T13:09:00Z",
                    &json!({"deactivationTime": "2026-03-01T13:02:00Z"}),
                ),
            ),
            release("b", &deployed("True", ("Unknown", ""), "2026-03-01T13:02:00Z", &json!({}))),
        ]
    };
    assert_eq!(offered(&views(&of("False"))), None);
    let unknown = views(&of("Unknown"));
    let offered = offered(&unknown).unwrap();
    assert_eq!(offered.name, "payments-a");
    assert_eq!(preview::offer(offered, &clock()), "was active for 1d until 14:02, health unknown");
}

#[test]
fn sentences_of_refusals() {
    assert_eq!(
        needs_yes("payments", "payments-9c01d2e", "payments-3978d50", "prod-eu-1").text,
        "not a terminal, and --yes was not given. Add --yes to roll payments back from payments-9c01d2e to payments-3978d50 on prod-eu-1."
    );
    assert_eq!(
        not_needed("payments", "payments-3978d50 is already active").text,
        "payments-3978d50 is already active. Nothing was created. Other releases: kubectl rollback history payments"
    );
}
