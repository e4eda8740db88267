//! Rolling back, from the command line to the exit code.

use serde_json::{Value, json};

use super::server::{Answer, Request, Server};
use super::{program, run};

const DEADLINE: &str = "2999-01-01T00:00:00Z";

/// A target with a bad active release and a good one before it.
pub(super) fn releases() -> Vec<Value> {
    let release = |suffix: &str, active: &str, healthy: &str, more: Value| {
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-03-01T13:00:00Z"});
        let mut release = json!({
            "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Release",
            "metadata": {"name": format!("payments-{suffix}"), "namespace": "shop", "uid": suffix, "creationTimestamp": "2026-02-20T10:00:00Z"},
            "config": {"targetName": "payments", "revisions": [{"name": "application", "id": suffix}]},
            "status": {"conditions": [condition("Active", active), condition("Healthy", healthy)], "signature": "s",
                       "activation": {"id": "a", "time": "2026-02-21T10:00:00.000000Z"}},
        });
        for (key, value) in more.as_object().unwrap() {
            release["status"][key] = value.clone();
        }
        release
    };
    vec![
        release("good", "False", "True", json!({"deactivationTime": "2026-02-22T10:00:00Z"})),
        release(
            "bad",
            "True",
            "False",
            json!({"activation": {"id": "b", "time": "2026-02-22T10:00:00.000000Z"}, "previousRelease": {"releaseRef": "payments-good"}}),
        ),
    ]
}

/// The Rollback with a status.
fn rollback(status: &Value) -> Value {
    json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
        "metadata": {
            "name": "payments-x7k2p", "generateName": "payments-", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "2026-03-01T13:09:10Z", "annotations": {"theatre.gocardless.com/authenticated-as": "oncall@example.com"},
        },
        "spec": {
            "fromReleaseRef": {"target": "payments", "name": "payments-bad", "signature": "b", "activation": "b"},
            "toReleaseRef": {"target": "payments", "name": "payments-good", "signature": "g"},
            "reason": "INC-311", "initiatedBy": {"principal": "oncall@example.com", "type": "user"},
        },
        "status": status,
    })
}

fn ended(status: &str, reason: &str, message: &str) -> Value {
    rollback(&json!({
        "startTime": "2026-03-01T13:09:12Z", "completionTime": "2026-03-01T13:10:41Z",
        "fromReleaseRef": {"target": "payments", "name": "payments-bad"},
        "plan": {"backend": "github", "revisions": [], "signature": "g", "releaseUid": "good"},
        "attempts": [{"number": 1, "key": "u1-1", "state": "Succeeded", "deploymentID": "4711", "startTime": "2026-03-01T13:09:12Z"}],
        "conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-03-01T13:10:41Z"}],
    }))
}

/// A server on which the rollback ends so.
fn server(end: Value) -> Server {
    Server::start(move |request| answer(request, &end))
}

fn answer(request: &Request, end: &Value) -> Answer {
    if request.is("GET", "/releases") {
        Answer::list(&releases())
    } else if request.is("GET", "/releases/payments-bad") {
        Answer::json(200, &releases()[1])
    } else if request.is("POST", "/rollbacks") {
        Answer::json(201, &rollback(&json!({}))).warning("the health of Release payments-good is unknown")
    } else if request.asks("watch=true") {
        Answer::watch(std::slice::from_ref(end))
    } else if request.is("GET", "/rollbacks") {
        Answer::list(&[rollback(&json!({"deadline": DEADLINE}))])
    } else {
        Answer::json(200, end)
    }
}

const START: &[&str] = &["payments", "--reason", "INC-311", "--yes"];

#[test]
fn rolls_back_and_follows_to_the_end() {
    let server = server(ended("True", "DeploymentSucceeded", ""));
    let ran = run(&server, START);
    assert_eq!((ran.code, ran.out.as_str()), (0, "rollback/payments-x7k2p created\n"), "{}", ran.err);
    for expected in [
        &format!("Cluster {}, namespace shop\n", server.url()) as &str,
        "    payments-bad",
        "  → payments-good",
        "    application   bad → good\n",
        "You are oncall@example.com.\n",
        "2026-03-01 13:09:12  attempt 1 of 3   deployment 4711 created\n",
        "2026-03-01 13:10:41  payments-good is active and was deployed in 1m29s\n",
    ] {
        assert!(ran.err.contains(expected), "{expected:?} is missing in:\n{}", ran.err);
    }
    assert_eq!(
        ran.err.matches("Warning: the health of Release payments-good is unknown\n").count(),
        1,
        "{}",
        ran.err
    );
    assert!(!ran.err.contains('\u{1b}'), "no colour in a pipe: {:?}", ran.err);
}

#[test]
fn what_is_created_is_what_was_previewed() {
    let server = server(ended("True", "DeploymentSucceeded", ""));
    run(&server, &["payments", "--reason", "INC-311", "--yes", "--set", "environment=production"]);
    let posts = server.sent("POST");
    assert_eq!(posts.len(), 2);
    assert!(posts.iter().all(|post| post.asks("fieldManager=kubectl-rollback")));
    assert!(posts[0].asks("dryRun=All") && !posts[1].asks("dryRun"));
    assert_eq!(
        posts[0].body["spec"],
        json!({"toReleaseRef": {"target": "payments"}, "reason": "INC-311", "deploymentOptions": {"environment": "production"}})
    );
    let mut spec = rollback(&json!({}))["spec"].clone();
    spec.as_object_mut().unwrap().remove("initiatedBy");
    spec["deploymentOptions"] = json!({"environment": "production"});
    assert_eq!(posts[1].body["spec"], spec);
    assert_eq!(posts[1].body["metadata"], json!({"generateName": "payments-"}));
}

#[test]
fn the_exit_code_says_how_it_ended() {
    for (reason, message, code, said) in [
        (
            "DeploymentFailed",
            "attempt 3 of 3: image not found",
            3,
            "Failed: attempt 3 of 3: image not found. payments-bad is still active.\n",
        ),
        ("DeploymentSuperseded", "payments-new was deployed", 5, "Superseded: payments-new was deployed.\n"),
        ("Cancelled", "cancelled by alice: wrong", 5, "Cancelled: by alice: wrong.\n"),
        (
            "NotNeeded",
            "payments is no longer on payments-bad",
            5,
            "Not needed: payments is no longer on payments-bad.\n",
        ),
    ] {
        let ran = run(&server(ended("False", reason, message)), START);
        assert_eq!(ran.code, code, "{reason}: {}", ran.err);
        assert!(ran.err.ends_with(said), "{}", ran.err);
    }
}

#[test]
fn where_nobody_can_be_asked_yes_must_be_given() {
    let server = server(Value::Null);
    let ran = run(&server, &["payments", "--reason", "INC-311"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let expected = format!(
        "Refused: not a terminal, and --yes was not given. Add --yes to roll payments back from payments-bad to payments-good on {}.\n",
        server.url()
    );
    assert!(ran.err.ends_with(&expected), "{}", ran.err);
    assert_eq!(server.sent("POST").len(), 1, "the dry run alone");
}

#[test]
fn a_dry_run_prints_a_manifest_to_commit() {
    let server = server(Value::Null);
    let ran = run(&server, &["payments", "--reason", "INC-311", "--dry-run=server", "-o", "yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(server.sent("POST").iter().all(|post| post.asks("dryRun=All")));
    insta::assert_snapshot!(ran.out);
    let name = run(&server, &["payments", "--reason", "INC-311", "--dry-run=server", "-o", "name"]);
    assert!(name.out.starts_with("rollback.deploy.crd.gocardless.com/payments-rollback-"), "{}", name.out);
    let people = run(&server, &["payments", "--reason", "INC-311", "--dry-run=server"]);
    assert_eq!((people.code, people.out.as_str()), (0, ""));
    assert!(people.err.ends_with("Dry run: the server checked permissions, schema and admission. Nothing was stored, and the deployer was not asked.\n"));
}

#[test]
fn programs_get_the_object() {
    let server = server(ended("True", "DeploymentSucceeded", ""));
    let waited =
        run(&server, &[START, &["-o", "jsonpath={.metadata.name} {.status.conditions[0].status}"]].concat());
    assert_eq!((waited.code, waited.out.as_str()), (0, "payments-x7k2p True"));
    let not_waited = run(&server, &[START, &["-o", "json", "--wait=false"]].concat());
    let object: Value = serde_json::from_str(&not_waited.out).unwrap();
    assert_eq!(
        (object["kind"].as_str(), object["metadata"]["name"].as_str()),
        (Some("Rollback"), Some("payments-x7k2p"))
    );
    let name = run(&server, &[START, &["-o", "name", "--wait=false"]].concat());
    assert_eq!(name.out, "rollback.deploy.crd.gocardless.com/payments-x7k2p\n");
}

#[test]
fn the_time_to_wait_can_be_limited() {
    let running =
        rollback(&json!({"deadline": DEADLINE, "attempts": [{"number": 1, "key": "k", "state": "Running"}]}));
    let ran = run(&server(running), &[START, &["--timeout=300ms"]].concat());
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("\nStill running: waited "), "{}", ran.err);
    assert!(ran.err.ends_with("Follow: kubectl rollback status payments-x7k2p --watch    Cancel: kubectl rollback cancel payments-x7k2p\n"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_watching_and_nothing_else() {
    let running =
        rollback(&json!({"deadline": DEADLINE, "attempts": [{"number": 1, "key": "k", "state": "Running"}]}));
    let server = server(running);
    let child = program()
        .args(START)
        .args(["-n", "shop", "--server", &server.url()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    server.wait_for(|request| request.asks("watch=true"));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let ran = super::Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("\nStopped watching. rollback/payments-x7k2p goes on ("), "{}", ran.err);
    assert_eq!(server.sent("PATCH").len() + server.sent("DELETE").len(), 0);
}

#[test]
fn what_would_end_as_not_needed_is_not_created() {
    let server = Server::start(|request| {
        if request.is("POST", "/rollbacks") {
            Answer::json(201, &rollback(&json!({})))
                .warning("nothing will be deployed: payments-bad is already active")
        } else {
            Answer::list(&releases())
        }
    });
    let ran = run(&server, &["payments", "--reason", "x", "--to", "payments-bad", "--yes"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            5,
            "Not needed: payments-bad is already active. Nothing was created. Other releases: kubectl rollback history payments\n"
        )
    );
    assert_eq!(server.sent("POST").len(), 1);
}

#[test]
fn a_rollback_goes_on_when_nobody_reads() {
    let server = server(ended("False", "DeploymentFailed", "no"));
    let mut child = program()
        .args(START)
        .args(["-n", "shop", "--server", &server.url()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(server.sent("POST").len(), 2);
}

#[test]
fn cancels_and_waits() {
    let server = server(ended("False", "Cancelled", "cancelled by oncall@example.com: wrong one"));
    let running = Server::start(move |request| {
        if request.is("PATCH", "/rollbacks/payments-x7k2p") || request.is("GET", "/rollbacks/payments-x7k2p")
        {
            Answer::json(200, &rollback(&json!({"deadline": DEADLINE})))
        } else {
            answer(request, &ended("False", "Cancelled", "cancelled by oncall@example.com: wrong one"))
        }
    });
    let ran = run(&running, &["cancel", "payments-x7k2p", "--reason", "wrong one"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "rollback/payments-x7k2p is asked to stop\n"),
        "{}",
        ran.err
    );
    assert!(ran.err.ends_with("Cancelled: by oncall@example.com: wrong one.\n"), "{}", ran.err);
    assert_eq!(
        running.sent("PATCH")[0].body,
        json!({"metadata": {"annotations": {"theatre.gocardless.com/cancel": "wrong one"}}})
    );
    // One that has ended is left alone.
    let late = run(&server, &["cancel", "rollback/payments-x7k2p"]);
    assert_eq!(late.code, 2);
    assert!(
        late.err.starts_with("Refused: rollback/payments-x7k2p has already ended. Cancelled: "),
        "{}",
        late.err
    );
    assert_eq!(server.sent("PATCH").len(), 0);
}
