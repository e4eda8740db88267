//! Requests that are not admission reviews, each with its exact answer.
//!
//! Tried: another method, another path, a path with a slash or a query too much, no content type, another content
//! type, an empty body, blanks, text, an HTML page, half a JSON, two JSON documents, `null`, a list, a number, invalid UTF-8, a NUL
//! byte, a UTF-8 byte order mark, deep nesting, 7 MiB and one byte, another kind, another version, no request, a request of another type, no uid, an empty uid, a uid of another
//! type, a duplicate key, no operation, an unknown operation, no user, an empty user, no namespace, a namespace that
//! is a path, another group, another resource, hostile strings in every name.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use http_body_util::Full;
use hyper::body::Bytes;
use rollback_api::Backend;
use rollback_webhook::http::MAX_BODY;
use rstest::rstest;
use serde_json::{Value, json};
use support::State;

const PATH: &str = "/mutate-rollbacks";

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "resource": {"group": "deploy.crd.gocardless.com", "version": "v1alpha1", "resource": "rollbacks"},
            "namespace": "shop",
            "operation": "CREATE",
            "userInfo": {"username": "alice"},
            "object": {
                "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Rollback",
                "metadata": {"name": "back", "namespace": "shop"},
                "spec": {"toReleaseRef": {"target": "payments"}, "reason": "INC-311"},
            },
        },
    })
}

/// The review with one field of its request replaced (or, with `null`, taken away).
fn with(pointer: &str, value: Value) -> String {
    let mut review = review();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = review.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(parent.remove(key)),
        value => drop(parent.insert(key.to_owned(), value)),
    }
    review.to_string()
}

async fn answer(body: impl Into<Bytes>) -> (u16, String) {
    let webhook = support::webhook(State::default(), &[Backend::Noop], false);
    support::post(&webhook, PATH, body).await
}

fn unreadable(why: &str) -> String {
    format!("the body is not an AdmissionReview of admission.k8s.io/v1: {why}\n")
}

#[rstest]
#[case::empty("", "EOF while parsing a value at line 1 column 0")]
#[case::blanks("  \n ", "EOF while parsing a value at line 2 column 1")]
#[case::text("hello", "expected value at line 1 column 1")]
#[case::html("<html></html>", "expected value at line 1 column 1")]
#[case::half(r#"{"apiVersion": "adm"#, "EOF while parsing a string at line 1 column 19")]
#[case::two("{} {}", "trailing characters at line 1 column 4")]
#[case::null("null", "invalid type: null, expected struct Envelope at line 1 column 4")]
#[case::list("[1]", "invalid type: integer `1`, expected a string at line 1 column 2")]
#[case::number("7", "invalid type: integer `7`, expected struct Envelope at line 1 column 1")]
#[case::nul(
    "{\"kind\": \"\u{0}\"}",
    "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 11"
)]
#[case::byte_order_mark("\u{feff}{}", "expected value at line 1 column 1")]
#[case::duplicate(r#"{"kind": "a", "kind": "b"}"#, "duplicate field `kind` at line 1 column 20")]
#[case::kind_of_another_type(
    r#"{"kind": 7}"#,
    "invalid type: integer `7`, expected a string at line 1 column 10"
)]
#[tokio::test]
async fn what_is_not_a_review_is_400(#[case] body: &'static str, #[case] why: &str) {
    assert_eq!(answer(body).await, (400, unreadable(why)));
}

#[tokio::test]
async fn invalid_utf_8_is_400() {
    let (code, message) = answer(&b"{\"kind\": \"\xff\xfe\"}"[..]).await;
    assert_eq!((code, message), (400, unreadable("invalid unicode code point at line 1 column 11")));
}

#[tokio::test]
async fn deep_nesting_is_400() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = review().to_string().replace("\"INC-311\"", &deep);
    let (code, message) = answer(body).await;
    assert_eq!(code, 400);
    assert!(message.contains("recursion limit exceeded"), "{message}");
}

#[rstest]
#[case::other_kind(
    r#"{"apiVersion": "v1", "kind": "Pod", "request": 7}"#,
    "the body is \"Pod\" of \"v1\", not an AdmissionReview of admission.k8s.io/v1\n"
)]
#[case::old_version(
    r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#,
    "the body is \"AdmissionReview\" of \"admission.k8s.io/v1beta1\", not an AdmissionReview of admission.k8s.io/v1\n"
)]
#[case::nothing("{}", "the body is \"\" of \"\", not an AdmissionReview of admission.k8s.io/v1\n")]
#[case::hostile(
    "{\"kind\": \"\\u0000\\u001b[31m\\n\"}",
    "the body is \"\\0\\u{1b}[31m\\n\" of \"\", not an AdmissionReview of admission.k8s.io/v1\n"
)]
#[tokio::test]
async fn another_kind_is_named(#[case] body: &'static str, #[case] expected: &str) {
    assert_eq!(answer(body).await, (400, expected.to_owned()));
}

#[rstest]
#[case("/request", Value::Null, "the AdmissionReview has no request\n")]
#[case("/request/uid", json!(""), "request.uid of the AdmissionReview is empty\n")]
#[case("/request/userInfo/username", json!(""), "request.userInfo.username of the AdmissionReview is empty\n")]
#[case("/request/namespace", Value::Null, "request.namespace of the AdmissionReview is empty\n")]
#[case("/request/namespace", json!("../../secrets"), "request.namespace \"../../secrets\" of the AdmissionReview is not the name of a namespace\n")]
#[case(
    "/request/resource/group", json!("apps"),
    "/mutate-rollbacks admits rollbacks.deploy.crd.gocardless.com, not rollbacks.apps: correct the rules of the webhook configuration\n"
)]
#[case(
    "/request/resource/resource", json!("pods"),
    "/mutate-rollbacks admits rollbacks.deploy.crd.gocardless.com, not pods.deploy.crd.gocardless.com: correct the rules of the webhook configuration\n"
)]
#[tokio::test]
async fn an_incomplete_review_is_400(#[case] pointer: &str, #[case] value: Value, #[case] expected: &str) {
    assert_eq!(answer(with(pointer, value)).await, (400, expected.to_owned()));
}

#[rstest]
#[case("/request", json!([]), "invalid length 0, expected struct Request with 8 elements")]
#[case("/request/uid", Value::Null, "missing field `uid`")]
#[case("/request/uid", json!(7), "invalid type: integer `7`, expected a string")]
#[case("/request/operation", Value::Null, "missing field `operation`")]
#[case("/request/operation", json!("PATCH"), "unknown variant `PATCH`, expected one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT`")]
#[case("/request/userInfo", Value::Null, "missing field `userInfo`")]
#[case("/request/resource", Value::Null, "missing field `resource`")]
#[case("/request/namespace", json!({}), "invalid type: map, expected a string")]
#[tokio::test]
async fn a_field_of_another_type_is_400(#[case] pointer: &str, #[case] value: Value, #[case] why: &str) {
    assert_eq!(answer(with(pointer, value)).await, (400, unreadable(why)));
}

/// The API server's own size limit is lower; this one holds for whoever else reaches the port.
#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let mut body = review().to_string().into_bytes();
    body.resize(MAX_BODY, b' ');
    assert_eq!(answer(body.clone()).await.0, 200);
    body.push(b' ');
    assert_eq!(answer(body).await, (413, "the request body is larger than 7340032 bytes\n".to_owned()));
}

#[rstest]
#[case("GET", PATH, Some("application/json"), 405, "/mutate-rollbacks takes POST, not GET\n")]
#[case("PUT", PATH, Some("application/json"), 405, "/mutate-rollbacks takes POST, not PUT\n")]
#[case("POST", PATH, None, 415, "/mutate-rollbacks takes content type application/json\n")]
#[case("POST", PATH, Some("text/plain"), 415, "/mutate-rollbacks takes content type application/json\n")]
#[case(
    "POST",
    PATH,
    Some("application/yaml"),
    415,
    "/mutate-rollbacks takes content type application/json\n"
)]
#[case(
    "POST",
    PATH,
    Some("application/jsonp"),
    415,
    "/mutate-rollbacks takes content type application/json\n"
)]
#[case("POST", "/", Some("application/json"), 404, NOT_FOUND)]
#[case("POST", "/mutate-rollbacks/", Some("application/json"), 404, NOT_FOUND)]
#[case("POST", "/Mutate-Rollbacks", Some("application/json"), 404, NOT_FOUND)]
#[case("POST", "/mutate-rollbacks/../metrics", Some("application/json"), 404, NOT_FOUND)]
#[tokio::test]
async fn another_method_path_or_type_is_refused(
    #[case] method: &str,
    #[case] path: &str,
    #[case] content_type: Option<&str>,
    #[case] code: u16,
    #[case] message: &str,
) {
    let webhook = support::webhook(State::default(), &[Backend::Noop], false);
    let mut request = http::Request::builder().method(method).uri(path);
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    let request = request.body(Full::new(Bytes::from(review().to_string()))).unwrap();
    assert_eq!(support::send(&webhook, request).await, (code, message.to_owned()));
}

const NOT_FOUND: &str = "there is /mutate-releases, /validate-releases, /mutate-rollbacks, /validate-rollbacks, /validate-automated-rollback-policies\n";

#[tokio::test]
async fn a_content_type_may_have_parameters() {
    let webhook = support::webhook(State::default(), &[Backend::Noop], false);
    let request = http::Request::post(PATH)
        .header("content-type", "Application/JSON; charset=utf-8")
        .body(Full::new(Bytes::from(review().to_string())))
        .unwrap();
    assert_eq!(support::send(&webhook, request).await.0, 200);
}

/// None of these reaches a URL of the API server, which the pretended one would not survive.
#[rstest]
#[case("a,metadata.name=b")]
#[case("../configmaps")]
#[case("a b")]
#[case("a\u{0}")]
#[case("ž")]
#[case("$(rm -rf)")]
#[case("")]
#[tokio::test]
async fn a_hostile_target_is_refused_before_anything_is_read(#[case] target: &str) {
    let (code, body) = answer(with("/request/object/spec/toReleaseRef/target", json!(target))).await;
    assert_eq!(code, 200);
    let review: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(review["response"]["status"]["code"], 422);
    let message = review["response"]["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(&format!("spec.toReleaseRef.target {target:?} is not the name of a target")),
        "{message}"
    );
}

#[rstest]
#[case("../../../api/v1/namespaces/kube-system/secrets/x")]
#[case("x/status")]
#[case("x?watch=true")]
#[case("..")]
#[case("\u{0}")]
#[case("X")]
#[tokio::test]
async fn a_hostile_release_name_does_not_exist(#[case] name: &str) {
    let release = json!({
        "apiVersion": "deploy.crd.gocardless.com/v1alpha1", "kind": "Release",
        "metadata": {"name": "payments-a", "namespace": "shop"},
        "config": {"targetName": "payments", "revisions": [{"name": "a", "id": "1"}]},
        "status": {"conditions": [{"type": "Active", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let state = State { objects: vec![release], ..State::default() };
    let webhook = support::webhook(state, &[Backend::Noop], false);
    let mut review = review();
    review["request"]["object"]["spec"]["toReleaseRef"]["name"] = json!(name);
    let (_, body) = support::post(&webhook, PATH, review.to_string()).await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["status"]["code"], 403, "{body}");
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("Release {name} does not exist")), "{message}");
}
