//! A pretended API server that holds a fixed set of objects, and a webhook that reads from it.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use rollback_api::Backend;
use rollback_webhook::admit::{Admission, Settings};
use rollback_webhook::http::Webhook;
use rollback_webhook::metrics::Metrics;
use rollback_webhook::reader::Live;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the API server holds, and how it fails.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What the state is about.
    #[serde(default, rename = "about")]
    pub _about: String,
    /// The objects, each with kind and metadata.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// HTTP status by plural name: answered instead of the objects. 0: never answered.
    #[serde(default)]
    pub fails: BTreeMap<String, u16>,
}

const KINDS: [(&str, &str); 4] = [
    ("ConfigMap", "configmaps"),
    ("Release", "releases"),
    ("Rollback", "rollbacks"),
    ("AutomatedRollbackPolicy", "automatedrollbackpolicies"),
];

impl State {
    /// Answers a GET or a LIST as an API server does; anything else is a test's mistake.
    async fn answer(&self, request: http::Request<Body>) -> (u16, Value) {
        assert_eq!(request.method(), http::Method::GET, "admission only reads");
        let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let place = path.iter().position(|part| *part == "namespaces").expect("a namespaced path");
        let (namespace, plural, name) = (path[place + 1], path[place + 2], path.get(place + 3));
        match self.fails.get(plural) {
            Some(0) => std::future::pending().await,
            Some(code) => return (*code, status(*code, &format!("{plural} are broken"))),
            None => {}
        }
        let kind = KINDS.iter().find(|(_, known)| *known == plural).expect("a kind that admission reads").0;
        let here = self
            .objects
            .iter()
            .filter(|object| object["kind"] == kind && object["metadata"]["namespace"] == namespace);
        if let Some(name) = name {
            let found = here.into_iter().find(|object| object["metadata"]["name"] == *name);
            return found.map_or_else(|| (404, status(404, "not found")), |object| (200, object.clone()));
        }
        let query = request.uri().query().unwrap_or_default();
        let fields = selector(query, "fieldSelector");
        assert!(
            fields.is_some() || query.contains("limit="),
            "admission never lists without a selector or a limit"
        );
        let items: Vec<&Value> = here
            .filter(|object| fields.as_ref().is_none_or(|(path, value)| field(object, path) == Some(value)))
            .collect();
        (200, json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {}, "items": items}))
    }
}

fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "InternalError",
    };
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

/// `key=value` of a selector in a query, decoded.
fn selector(query: &str, name: &str) -> Option<(String, String)> {
    let text = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let text = text.replace("%3D", "=");
    let (key, value) = text.split_once('=').expect("an equality selector");
    Some((key.to_owned(), value.to_owned()))
}

fn field<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    path.split('.').try_fold(object, |value, key| value.get(key))?.as_str()
}

/// A client of that API server. Must be called inside the runtime.
pub fn client(state: State) -> kube::Client {
    let state = Arc::new(state);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let state = Arc::clone(&state);
        async move {
            let (code, body) = state.answer(request).await;
            let body = Full::new(Bytes::from(body.to_string()));
            let mut response = http::Response::new(body);
            *response.status_mut() = http::StatusCode::from_u16(code).expect("a status");
            Ok::<_, Infallible>(response)
        }
    });
    kube::Client::new(service, "default")
}

/// 2026-03-01, noon.
pub fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

/// A webhook over that API server.
pub fn webhook(state: State, backends: &[Backend], naming: bool) -> Arc<Webhook<Live>> {
    let settings = Settings { backends: backends.to_vec(), naming, now };
    Webhook::new(Admission::new(Live::new(client(state)), settings), Metrics::default())
}

/// Sends a body as the API server does; the answer is status and text.
pub async fn post(webhook: &Webhook<Live>, path: &str, body: impl Into<Bytes>) -> (u16, String) {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .expect("a request");
    send(webhook, request).await
}

/// Sends any request.
pub async fn send(webhook: &Webhook<Live>, request: http::Request<Full<Bytes>>) -> (u16, String) {
    let response = webhook.respond(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("UTF-8"))
}
