//! Errors of the API server as people read them: kind (exit code) and exact text.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::failure::Kind;
use crate::testing::place;

fn status(value: Value) -> kube::Error {
    kube::Error::Api(Box::new(serde_json::from_value(value).unwrap()))
}

fn said(value: Value) -> (Kind, String) {
    let failure = call("create rollbacks", &status(value), &place());
    (failure.kind, failure.text)
}

const RBAC: &str = "rollbacks.deploy.crd.gocardless.com is forbidden: User \"oncall@example.com\" cannot create resource \"rollbacks\" \
                    in API group \"deploy.crd.gocardless.com\" in the namespace \"shop\"";

#[rstest]
#[case(
    json!({"code": 403, "reason": "Forbidden", "message": "admission webhook \"validate-rollbacks.rollback.dev\" denied the request: no healthy release of payments to go back to.\n  payments-77e10b2   health unknown"}),
    Kind::Refused, "no healthy release of payments to go back to.\n  payments-77e10b2   health unknown"
)]
#[case(
    json!({"code": 422, "reason": "Invalid", "message": "admission webhook \"w\" denied the request: spec.toReleaseRef.signature is \"x\""}),
    Kind::Refused, "spec.toReleaseRef.signature is \"x\""
)]
#[case(
    json!({"code": 403, "reason": "Forbidden", "message": RBAC, "details": {"kind": "rollbacks"}}),
    Kind::Refused, "oncall@example.com may not create rollbacks in namespace shop. Ask for the ClusterRole rollback-responder."
)]
#[case(
    json!({"code": 403, "message": "releases.deploy.crd.gocardless.com is forbidden: User \"u\" cannot list resource \"releases\" in API group \"deploy.crd.gocardless.com\" at the cluster scope"}),
    Kind::Refused, "u may not list releases in all namespaces. Ask for the ClusterRole rollback-viewer."
)]
#[case(
    json!({"code": 403, "message": "rollbacks \"x\" is forbidden: exceeded quota: q"}),
    Kind::Refused, "rollbacks \"x\" is forbidden: exceeded quota: q"
)]
#[case(
    json!({"code": 403, "message": "rollbacks \"x\" is forbidden: unable to create new content in namespace shop because it is being terminated"}),
    Kind::Refused, "rollbacks \"x\" is forbidden: unable to create new content in namespace shop because it is being terminated"
)]
#[case(
    json!({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}),
    Kind::Error, "https://prod-eu-1.example.com does not accept your credentials (context prod-eu). Log in again; see who you are with kubectl auth whoami"
)]
#[case(
    json!({"code": 404, "reason": "Failed to parse error data", "message": "404 page not found"}),
    Kind::Error, "the rollback system is not installed on prod-eu-1 (context prod-eu): its kinds (deploy.crd.gocardless.com/v1alpha1) are not served.\nIs it the right cluster? Others: kubectl config get-contexts"
)]
#[case(
    json!({"code": 404, "reason": "NotFound", "message": "namespaces \"shop\" not found", "details": {"name": "shop", "kind": "namespaces"}}),
    Kind::Error, "cannot create rollbacks: namespaces \"shop\" not found (404)"
)]
#[case(
    json!({"code": 422, "reason": "Invalid", "message": "Rollback.deploy.crd.gocardless.com \"x\" is invalid: spec.reason: Too long: may not be more than 512 bytes"}),
    Kind::Refused, "the API server does not accept the object: spec.reason: Too long: may not be more than 512 bytes"
)]
#[case(
    json!({"code": 429, "message": "too many requests"}),
    Kind::Error, "cannot create rollbacks: https://prod-eu-1.example.com is overloaded and asks to try again later"
)]
#[case(
    json!({"code": 500, "reason": "InternalError", "message": "Internal error occurred: failed calling webhook \"mutate-rollbacks.rollback.dev\": failed to call webhook: Post \"https://rollback-webhook.rollback-system.svc:443/mutate-rollbacks?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused"}),
    Kind::Error, "cannot create rollbacks: the rollback webhook does not answer, and without it nothing is admitted (connection refused).\nLook at it: kubectl -n rollback-system get pods,endpointslices"
)]
#[case(
    json!({"code": 503, "message": "the server is currently unable to handle the request"}),
    Kind::Error, "cannot create rollbacks: the server is currently unable to handle the request (503)"
)]
#[case(
    json!({"code": 409, "reason": "AlreadyExists", "message": "rollbacks \"x\" already exists", "details": {"name": "x"}}),
    Kind::Error, "cannot create rollbacks: rollbacks \"x\" already exists (409)"
)]
fn what_the_server_says(#[case] answer: Value, #[case] kind: Kind, #[case] text: &str) {
    assert_eq!(said(answer), (kind, text.to_owned()));
}

fn network(error: impl Into<Box<dyn StdError + Send + Sync>>) -> String {
    call("list releases", &kube::Error::Service(error.into()), &place()).text
}

#[test]
fn a_server_that_is_not_there() {
    let refused = std::io::Error::from_raw_os_error(111);
    assert_eq!(
        network(refused),
        "cannot reach the API server https://prod-eu-1.example.com (context prod-eu): connection refused. Is the cluster up, and do you need a VPN? kubectl version"
    );
}

#[rstest]
#[case(
    "invalid peer certificate: UnknownIssuer",
    "its certificate is signed by an authority that the kubeconfig does not name (--certificate-authority)"
)]
#[case(
    "invalid peer certificate: certificate not valid for name \"x\"",
    "its certificate is for another name (--tls-server-name)"
)]
#[case("invalid peer certificate: Expired", "its certificate has expired")]
#[case("Connection reset by peer (os error 104)", "connection reset by peer")]
fn a_connection_that_is_not_trusted(#[case] cause: &str, #[case] expected: &str) {
    let text = network(cause.to_owned());
    assert!(text.contains(&format!(": {expected}. Is the cluster up")), "{text}");
}

#[test]
fn a_server_that_is_silent() {
    assert_eq!(
        timed_out("list releases", Duration::from_secs(30), &place()).text,
        "cannot list releases: https://prod-eu-1.example.com did not answer within 30s. Wait longer with --request-timeout; is the cluster up? kubectl version"
    );
    assert!(timed_out("x", Duration::from_millis(250), &place()).text.contains("within 250ms."));
}

#[test]
fn an_answer_of_another_version() {
    let error = serde_json::from_str::<u8>("x").unwrap_err();
    let text = call("list releases", &kube::Error::SerdeError(error), &place()).text;
    assert!(text.starts_with("cannot list releases: the answer of https://prod-eu-1.example.com is not what this version reads (expected value"), "{text}");
}

#[cfg(unix)]
#[test]
fn credentials_never_show_what_a_plugin_printed() {
    use std::os::unix::process::ExitStatusExt as _;
    let out = std::process::Output {
        status: std::process::ExitStatus::from_raw(256),
        stdout: b"{\"token\":\"s3cret\"}".to_vec(),
        stderr: b"trying\nsession expired, run: aws sso login\n\n".to_vec(),
    };
    let failed = AuthError::AuthExecRun { cmd: "aws --token s3cret".into(), out: Box::new(out) };
    assert_eq!(
        credentials(&failed, &place()).text,
        "no credentials for https://prod-eu-1.example.com (context prod-eu): the credential plugin of its user failed (exit status: 1): \
         session expired, run: aws sso login. Try the same with kubectl: kubectl auth whoami"
    );
    let missing = AuthError::AuthExecStart(std::io::ErrorKind::NotFound.into());
    assert!(credentials(&missing, &place()).text.contains("is not installed, or not in PATH"));
    // Also where the client wraps it.
    let wrapped = kube::Error::Service(Box::new(AuthError::MissingCommand));
    assert!(call("x", &wrapped, &place()).text.contains("users[].user.exec has no command"));
}
