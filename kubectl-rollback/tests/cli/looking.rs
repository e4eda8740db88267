//! Looking: history, list, diff, status, completion.

use std::process::Stdio;

use serde_json::{Value, json};

use super::server::{Answer, Server};
use super::start::releases;
use super::{Ran, program, run};

fn server() -> Server {
    Server::start(|request| {
        if request.is("GET", "/releases") {
            Answer::list(&releases())
        } else if request.is("GET", "/rollbacks") {
            Answer::list(&[rollback("old", "2026-02-01T00:00:00Z"), rollback("new", "2026-02-02T00:00:00Z")])
        } else if request.is("GET", "/rollbacks/old") {
            Answer::json(200, &rollback("old", "2026-02-01T00:00:00Z"))
        } else {
            Answer::missing("x")
        }
    })
}

fn rollback(name: &str, created: &str) -> Value {
    json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": created},
        "spec": {"toReleaseRef": {"target": "payments", "name": "payments-good"}, "reason": "r"},
        "status": {"completionTime": created, "conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "", "lastTransitionTime": created}]},
    })
}

#[test]
fn history_is_a_table_or_a_list() {
    let server = server();
    let table = run(&server, &["history", "payments"]);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    let columns: Vec<Vec<&str>> = table.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(columns[0], ["RELEASE", "STATE", "HEALTH", "DEPLOYED", "LEFT", "APPLICATION", "NOTE"]);
    assert_eq!(columns[1][..3], ["payments-bad", "Active", "Unhealthy"]);
    assert_eq!(columns[2][..3], ["payments-good", "Superseded", "Healthy"]);
    let names = run(&server, &["history", "payments", "-o", "name"]);
    assert_eq!(
        names.out,
        "release.deploy.crd.gocardless.com/payments-bad\nrelease.deploy.crd.gocardless.com/payments-good\n"
    );
    let json: Value =
        serde_json::from_str(&run(&server, &["history", "payments", "-o", "json"]).out).unwrap();
    assert_eq!((json["kind"].as_str(), json["items"].as_array().map(Vec::len)), (Some("List"), Some(2)));
    assert!(
        server.requests().iter().any(|request| request.asks("fieldSelector=config.targetName%3Dpayments"))
    );
}

#[test]
fn list_shows_targets() {
    let ran = run(&server(), &["list"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.lines().nth(1).unwrap().starts_with("payments   payments-bad   Unhealthy   "),
        "{}",
        ran.out
    );
    let name = run(&server(), &["ls", "-o", "name"]);
    assert_eq!(name.out, "release.deploy.crd.gocardless.com/payments-bad\n");
}

#[test]
fn diff_says_by_its_exit_code_whether_anything_differs() {
    let differs = run(&server(), &["diff", "payments"]);
    assert_eq!(differs.code, 1, "{}", differs.err);
    assert!(differs.out.ends_with("  application   bad → good\n"), "{}", differs.out);
    let same = run(&server(), &["diff", "payments", "--to", "payments-bad"]);
    assert_eq!(same.code, 0, "{}", same.err);
    let unknown = run(&server(), &["diff", "payments", "--to", "payments-gone"]);
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (
            2,
            "Error: Release payments-gone is not one of payments's. All of them: kubectl rollback history payments\n"
        )
    );
    let json: Value = serde_json::from_str(&run(&server(), &["diff", "payments", "-o", "json"]).out).unwrap();
    assert_eq!(json["revisions"][0]["to"]["id"], "good");
}

#[test]
fn status_takes_a_rollback_or_a_target() {
    let of_target = run(&server(), &["status", "payments"]);
    assert_eq!(of_target.code, 0, "{}", of_target.err);
    assert!(of_target.out.starts_with("rollback/new   payments: ? → payments-good\n"), "{}", of_target.out);
    assert!(run(&server(), &["status", "old"]).out.starts_with("rollback/old "));
    assert_eq!(run(&server(), &["status", "rb/old", "-o", "jsonpath={.metadata.name}"]).out, "old");
    let watched = run(&server(), &["status", "old", "--watch"]);
    assert_eq!((watched.code, watched.err.as_str()), (0, ""));
    // The same words, watched or not.
    assert_eq!(watched.out, run(&server(), &["status", "old"]).out);
    let unknown = run(
        &Server::start(|request| {
            if request.is("GET", "/rollbacks") { Answer::list(&[]) } else { Answer::missing("x") }
        }),
        &["status", "x"],
    );
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (
            1,
            "Error: no rollback \"x\", and no rollback of a target of that name, in namespace shop. None is running here. All: kubectl get rollbacks -n shop\n"
        )
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let server = server();
    let mut child = program()
        .args(["history", "payments", "-o", "json", "-n", "shop", "--server", &server.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn signature_reads_standard_input_offline() {
    use std::io::Write as _;
    let mut child = program()
        .args(["signature", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "apiVersion: deploy.crd.gocardless.com/v1alpha1\nkind: Release\nconfig: {targetName: test-target, revisions: [{name: application, id: abc123}]}\n";
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (0, "3978d50982   test-target-3978d50\n"));
}

#[test]
fn completes_names_of_the_cluster() {
    let server = server();
    let complete = |words: &[&str]| {
        let connection = ["--server", &server.url(), "-n", "shop"].map(str::to_owned);
        let ran =
            Ran::from(program().args(["__complete", "--"]).args(connection).args(words).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    assert_eq!(complete(&["history", "pay"]), "payments\n:4\n");
    assert_eq!(complete(&["payments", "--to", "payments-g"]), "payments-good\n:4\n");
    assert_eq!(complete(&["cancel", ""]), "new\tpayments: r\nold\tpayments: r\n:4\n");
    assert_eq!(complete(&["signature", "-f", ""]), ":0\n");
    assert!(complete(&["his"]).starts_with("history\t"));
}

#[test]
fn completion_without_a_cluster_offers_nothing_and_says_nothing() {
    let ran = Ran::from(program().args(["__complete", "--", "history", ""]).output().unwrap());
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, ":4\n", ""));
}

#[test]
fn installs_the_helper_that_kubectl_runs() {
    let folder = tempfile::tempdir().unwrap();
    let install = || {
        Ran::from(program().args(["completion", "--install", "--dir"]).arg(folder.path()).output().unwrap())
    };
    for _ in 0..2 {
        assert_eq!(install().code, 0);
    }
    let files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["kubectl_complete-rollback"]);
    #[cfg(unix)]
    {
        let plugin = std::path::Path::new(env!("CARGO_BIN_EXE_kubectl-rollback")).parent().unwrap();
        let path = format!("{}:/usr/bin:/bin", plugin.display());
        let output = std::process::Command::new(folder.path().join("kubectl_complete-rollback"))
            .arg("vers")
            .env("PATH", path)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "version\tPrint the version\n:4\n");
    }
    let script = Ran::from(program().args(["completion", "bash"]).output().unwrap());
    assert!(script.out.contains("kubectl-rollback"), "{}", script.out);
}
