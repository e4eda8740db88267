//! Following against a pretend API server: what is shown, and how it ends.

use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::clock::tests::clock;
use crate::printer::tests::{Captured, captured};
use crate::session::Warnings;
use crate::testing::{attempt, attempts, condition, place, rollback};

/// What the server does. Requests that the script does not know fail the test by never being answered.
struct Server {
    /// The first state is what a list answers; the others come by watch.
    states: Vec<Rollback>,
    /// What a GET answers: a state, or an error.
    get: Result<Option<Rollback>, StatusCode>,
    /// Woken when a watch begins.
    watching: Arc<Notify>,
    /// Whether the watch was answered already.
    told: bool,
    /// Whether list and watch are answered at all.
    watchable: bool,
}

fn json_body(code: StatusCode, value: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(value.to_string().into_bytes())).unwrap()
}

fn session(server: Server) -> Session {
    let server = Arc::new(Mutex::new(server));
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        async move {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let is_get = request.uri().path().ends_with("/payments-x7k2p");
            let answer = {
                let mut server = server.lock().unwrap();
                if is_get {
                    Some(match &server.get {
                        Ok(Some(rollback)) => {
                            json_body(StatusCode::OK, &serde_json::to_value(rollback).unwrap())
                        }
                        Ok(None) => json_body(
                            StatusCode::NOT_FOUND,
                            &json!({"code": 404, "message": "not found", "details": {"name": "payments-x7k2p"}}),
                        ),
                        Err(code) => json_body(
                            *code,
                            &json!({"code": code.as_u16(), "message": "rollbacks is forbidden: User \"u\" cannot get resource \"rollbacks\" in API group \"g\" in the namespace \"shop\""}),
                        ),
                    })
                } else if !server.watchable {
                    Some(json_body(StatusCode::SERVICE_UNAVAILABLE, &json!({"code": 503, "message": "down"})))
                } else if query.contains("watch=true") {
                    server.watching.notify_one();
                    let first = !std::mem::replace(&mut server.told, true);
                    first.then(|| {
                        let event =
                            |state: &Rollback| format!("{}\n", json!({"type": "MODIFIED", "object": state}));
                        let events: Vec<String> = server.states[1..].iter().map(event).collect();
                        Response::new(Body::from(events.concat().into_bytes()))
                    })
                } else {
                    let items: Vec<&Rollback> = server.states.iter().take(1).collect();
                    Some(json_body(
                        StatusCode::OK,
                        &json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}),
                    ))
                }
            };
            match answer {
                Some(answer) => Ok::<_, std::convert::Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    Session {
        client: kube::Client::new(service, "shop"),
        place: place(),
        warnings: Warnings::default(),
        deadline: None,
    }
}

fn server(states: &[Rollback]) -> Server {
    Server {
        states: states.to_vec(),
        get: Ok(states.last().cloned()),
        watching: Arc::default(),
        told: false,
        watchable: true,
    }
}

async fn followed(
    server: Server,
    first: Rollback,
    timeout: Option<Duration>,
    interrupted: impl Future<Output = ()>,
) -> (Result<End, Failure>, Captured) {
    let (mut printer, out, err) = captured();
    let options = Options { timeout, sink: Sink::Err };
    let session = session(server);
    let result = Box::pin(follow_until(&session, &mut printer, &clock(), first, options, interrupted)).await;
    assert_eq!(out.text(), "");
    (result.map(|(_, end)| end), err)
}

fn never() -> std::future::Pending<()> {
    std::future::pending()
}

fn running(message: &str) -> Rollback {
    rollback(&attempts(
        &json!([attempt(1, "Running", &json!({"deploymentID": "4711", "message": message}))]),
        &json!({"deadline": "2999-01-01T00:00:00Z"}),
    ))
}

fn succeeded() -> Rollback {
    let done =
        attempt(1, "Succeeded", &json!({"deploymentID": "4711", "completionTime": "2026-03-01T13:10:40Z"}));
    let status =
        json!({"conditions": [condition("Succeeded", "True", "")], "completionTime": "2026-03-01T13:10:41Z"});
    rollback(&attempts(&json!([done]), &status))
}

/// The lines without their times, which are now for what has none of its own.
fn without_times(err: &Captured) -> Vec<String> {
    err.text().lines().map(|line| line.split_once("  ").map_or(line, |(_, text)| text).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn shows_each_change_once_and_ends_with_the_rollback() {
    let states = [
        rollback(&json!({"status": {}})),
        running("queued"),
        running("queued"),
        running("deploying"),
        succeeded(),
    ];
    let (result, err) = followed(server(&states), states[0].clone(), None, never()).await;
    assert_eq!(result.unwrap().kind, None);
    assert_eq!(
        without_times(&err),
        [
            "waits for the controller",
            "attempt 1 of 3   deployment 4711 created",
            "attempt 1 of 3   in progress: \"queued\"",
            "attempt 1 of 3   in progress: \"deploying\"",
            "payments-3978d50 is active and was deployed in 1m29s",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_gone_silent_does_not_hide_the_end() {
    let mut server = server(&[running("queued")]);
    server.get = Ok(Some(succeeded()));
    let (result, _) = followed(server, running("queued"), None, never()).await;
    assert_eq!(result.unwrap().kind, None);
}

#[tokio::test(start_paused = true)]
async fn one_that_has_ended_is_not_waited_for() {
    let (result, err) = followed(server(&[]), succeeded(), None, never()).await;
    assert_eq!(result.unwrap().kind, None);
    assert_eq!(without_times(&err).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_by_the_caller() {
    let failed = json!({"type": "Succeeded", "status": "False", "reason": "DeploymentFailed", "message": "attempt 3 of 3: no", "lastTransitionTime": "2026-03-01T13:10:41Z"});
    let ended = rollback(&json!({"status": {"conditions": [failed]}}));
    let (result, err) = followed(server(&[running("x"), ended.clone()]), running("x"), None, never()).await;
    let end = result.unwrap();
    assert_eq!((end.kind, end.text.as_str()), (Some(Kind::Failed), "attempt 3 of 3: no."));
    assert!(!err.text().contains("attempt 3"), "{}", err.text());
}

#[tokio::test(start_paused = true)]
async fn the_time_to_wait_ends_before_the_rollback_does() {
    let (result, _) =
        followed(server(&[running("x")]), running("x"), Some(Duration::from_secs(600)), never()).await;
    let failure = result.unwrap_err();
    assert_eq!(failure.kind.code(), 4);
    let (first, second) = failure.text.split_once('\n').unwrap();
    assert!(first.starts_with("waited 10m as asked (--timeout). rollback/payments-x7k2p has "), "{first}");
    assert_eq!(
        second,
        "Follow: kubectl rollback status payments-x7k2p --watch    Cancel: kubectl rollback cancel payments-x7k2p"
    );
}

#[tokio::test(start_paused = true)]
async fn who_stops_watching_is_told_that_it_goes_on() {
    let server = server(&[running("x")]);
    let watching = server.watching.clone();
    let (result, _) = followed(server, running("x"), None, async move { watching.notified().await }).await;
    let failure = result.unwrap_err();
    assert_eq!((failure.kind, failure.kind.code()), (Kind::StoppedWatching, 4));
    assert!(
        failure.text.starts_with("rollback/payments-x7k2p goes on (attempt 1 of 3, deadline in "),
        "{}",
        failure.text
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_rollback_ends_the_wait() {
    let mut server = server(&[]);
    server.get = Ok(None);
    let (result, _) = followed(server, running("x"), None, never()).await;
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.kind.code(), failure.text.as_str()),
        (
            5,
            "rollback/payments-x7k2p was deleted while it was running. See what is active: kubectl rollback history payments"
        )
    );
    // Another object of the same name is not the one that was followed.
    let other = rollback(&json!({"metadata": {"uid": "u2"}}));
    let (result, _) = followed(self::server(&[other]), running("x"), None, never()).await;
    assert_eq!(result.unwrap_err().kind.code(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_once_and_sat_out() {
    let mut server = server(&[running("x")]);
    server.watchable = false;
    server.get = Err(StatusCode::SERVICE_UNAVAILABLE);
    let (result, err) = followed(server, running("x"), Some(Duration::from_secs(120)), never()).await;
    assert_eq!(result.unwrap_err().kind.code(), 4);
    assert_eq!(
        err.text().matches("Trying again; the rollback goes on meanwhile.").count(),
        1,
        "{}",
        err.text()
    );
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_is_told_at_once() {
    let mut server = server(&[running("x")]);
    server.watchable = false;
    server.get = Err(StatusCode::FORBIDDEN);
    let (result, _) = followed(server, running("x"), None, never()).await;
    assert_eq!(
        result.unwrap_err().text,
        "u may not get rollbacks in namespace shop. Ask for the ClusterRole rollback-viewer."
    );
}
