//! What goes wrong around the cluster: exact words and exit codes.

use super::server::{Answer, Server};
use super::start::releases;
use super::{program, run};

const START: &[&str] = &["payments", "--reason", "x", "--yes"];

#[test]
fn admission_refuses() {
    let server = Server::start(|request| {
        if request.method == "POST" {
            Answer::status(
                403,
                "Forbidden",
                "admission webhook \"mutate-rollbacks.rollback.dev\" denied the request: rollback/payments-x7k2p (oncall, 40s ago) is already rolling payments back to payments-3978d50.\nFollow: kubectl rollback status payments-x7k2p --watch    Cancel: kubectl rollback cancel payments-x7k2p",
            )
        } else {
            Answer::list(&releases())
        }
    });
    let ran = run(&server, START);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert_eq!(
        ran.err,
        "Refused: rollback/payments-x7k2p (oncall, 40s ago) is already rolling payments back to payments-3978d50.\n\
         Follow: kubectl rollback status payments-x7k2p --watch    Cancel: kubectl rollback cancel payments-x7k2p\n"
    );
}

#[test]
fn a_target_that_is_not_there() {
    let server = Server::start(|request| {
        if request.asks("config.targetName%3Dpayments") || !request.asks("fieldSelector") {
            Answer::list(&releases())
        } else {
            Answer::list(&[])
        }
    });
    let said =
        "no releases of \"payment\" in namespace shop. Did you mean payments? Targets here: payments.\n";
    let ran = run(&server, &["payment", "--reason", "z"]);
    assert_eq!((ran.code, ran.err), (2, format!("Refused: {said}")));
    for (command, code) in [("history", 1), ("diff", 2)] {
        let ran = run(&server, &[command, "payment"]);
        assert_eq!((ran.code, ran.err), (code, format!("Error: {said}")));
    }
    assert_eq!(server.sent("POST").len(), 0);
}

#[test]
fn a_permission_is_missing() {
    let server = Server::start(|request| {
        if request.method == "POST" {
            Answer::status(
                403,
                "Forbidden",
                "rollbacks.deploy.crd.gocardless.com is forbidden: User \"oncall@example.com\" cannot create resource \"rollbacks\" in API group \"deploy.crd.gocardless.com\" in the namespace \"shop\"",
            )
        } else {
            Answer::list(&releases())
        }
    });
    let ran = run(&server, START);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            2,
            "Refused: oncall@example.com may not create rollbacks in namespace shop. Ask for the ClusterRole rollback-responder.\n"
        )
    );
}

#[test]
fn the_kinds_are_not_there() {
    let server = Server::start(|_| Answer::text(404, "404 page not found\n"));
    for arguments in
        [&["list"] as &[&str], &["history", "payments"], &["status", "payments"], &["cancel", "x"], START]
    {
        let ran = run(&server, arguments);
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.starts_with(&format!(
                "Error: the rollback system is not installed on {}: its kinds",
                server.url()
            )),
            "{}",
            ran.err
        );
    }
}

#[test]
fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let ran = super::Ran::from(program().args(["list", "--server", &url]).output().unwrap());
    assert_eq!(
        (ran.code, ran.err),
        (
            1,
            format!(
                "Error: cannot reach the API server {url}: connection refused. Is the cluster up, and do you need a VPN? kubectl version\n"
            )
        )
    );
}

#[test]
fn the_server_is_silent() {
    let server = Server::start(|_| Answer::silence());
    let ran = run(&server, &["list", "--request-timeout=200ms"]);
    assert_eq!(
        (ran.code, ran.err),
        (
            1,
            format!(
                "Error: cannot list releases: {} did not answer within 200ms. Wait longer with --request-timeout; is the cluster up? kubectl version\n",
                server.url()
            )
        )
    );
}

#[test]
fn an_overloaded_server_is_asked_once() {
    for code in [429, 503, 504] {
        let server = Server::start(move |_| Answer::status(code, "x", "busy"));
        assert_eq!(run(&server, &["list"]).code, 1);
        assert_eq!(server.requests().len(), 1, "{code}");
    }
}

#[test]
fn something_else_answers() {
    let server = Server::start(|_| Answer::text(200, "<html>login</html>"));
    let ran = run(&server, &["list"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.starts_with(&format!(
            "Error: cannot list releases: the answer of {} is not what this version reads (",
            server.url()
        )),
        "{}",
        ran.err
    );
}

#[test]
fn mistyped_commands_are_refused_before_anything_is_asked() {
    let ran = super::Ran::from(program().arg("histroy").arg("payments").output().unwrap());
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            2,
            "Refused: histroy looks like a mistyped history: kubectl rollback history\nIf the target is really called histroy: kubectl rollback start histroy --reason …\n"
        )
    );
}

#[test]
fn usage_errors_are_not_refusals() {
    for (arguments, code) in [
        (&["payments"] as &[&str], 1),
        (&["history"], 1),
        (&["diff"], 2),
        (&["diff", "a", "b"], 2),
        (&["list", "--nope"], 1),
    ] {
        let ran = super::Ran::from(program().args(arguments).output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{arguments:?}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains("kubectl rollback"), "{}", ran.err);
    }
}

#[test]
fn no_kubeconfig() {
    let ran = super::Ran::from(program().arg("list").output().unwrap());
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.starts_with(
            "Error: no kubeconfig: neither $KUBECONFIG nor ~/.kube/config names a file that exists."
        ),
        "{}",
        ran.err
    );
}
