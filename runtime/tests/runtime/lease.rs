//! The election loop against an API server in memory, in simulated time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser as _;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use rollback_runtime::lease::{Elector, LeaseArgs};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// What the API server does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Works,
    /// Refuses everything with this status.
    Fails(u16),
    /// Writes what is asked and then answers 500.
    LosesAnswers,
    Hangs,
}

struct Server {
    lease: Option<Value>,
    version: u64,
    writes: usize,
    mood: Mood,
}

#[derive(Clone)]
struct Api(Arc<Mutex<Server>>);

impl Api {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Server { lease: None, version: 0, writes: 0, mood: Mood::Works })))
    }

    /// A client whose server can have a mood of its own.
    fn client(&self, mood: &Arc<Mutex<Mood>>) -> Client {
        let (api, mood) = (self.clone(), Arc::clone(mood));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (api, mood) = (api.clone(), Arc::clone(&mood));
            async move {
                let (own, common) = (*mood.lock().unwrap(), api.0.lock().unwrap().mood);
                let mood = if own == Mood::Works { common } else { own };
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (status, body) = match mood {
                    Mood::Hangs => std::future::pending().await,
                    Mood::Fails(status) => failure(status),
                    Mood::Works => api.answer(&parts.method, &body),
                    Mood::LosesAnswers if parts.method == Method::GET => api.answer(&parts.method, &body),
                    Mood::LosesAnswers => {
                        api.answer(&parts.method, &body);
                        failure(500)
                    }
                };
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, tower::BoxError>(Response::builder().status(status).body(body).unwrap())
            }
        });
        Client::new(service, "rollback-system")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (u16, Value) {
        let mut server = self.0.lock().unwrap();
        if method == Method::GET {
            return server.lease.clone().map_or_else(|| failure(404), |lease| (200, lease));
        }
        let mut sent: Value = serde_json::from_slice(body).unwrap();
        match (method == Method::POST, &server.lease) {
            (true, Some(_)) => return failure(409),
            (false, None) => return failure(404),
            (false, Some(lease)) => {
                let (sent, stored) =
                    (&sent["metadata"]["resourceVersion"], &lease["metadata"]["resourceVersion"]);
                assert!(sent.is_string(), "a replace without the version it read");
                if sent != stored {
                    return failure(409);
                }
            }
            (true, None) => {}
        }
        server.version += 1;
        server.writes += 1;
        sent["metadata"]["resourceVersion"] = json!(server.version.to_string());
        server.lease = Some(sent.clone());
        (200, sent)
    }

    fn mood(&self, mood: Mood) {
        self.0.lock().unwrap().mood = mood;
    }

    /// Changes the Lease as another client would. None deletes it.
    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut server = self.0.lock().unwrap();
        server.version += 1;
        let version = server.version.to_string();
        let lease = server.lease.as_mut().unwrap();
        edit(lease);
        lease["metadata"]["resourceVersion"] = json!(version);
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.as_ref().map(|lease| lease["spec"].clone()).unwrap_or_default()
    }

    fn holder(&self) -> String {
        self.spec()["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }
}

fn failure(status: u16) -> (u16, Value) {
    let reason = match status {
        404 => "NotFound",
        409 => "Conflict",
        _ => "Test",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "as the test wants", "reason": reason, "code": status});
    (status, body)
}

#[derive(clap::Parser)]
struct Program {
    #[command(flatten)]
    lease: LeaseArgs,
}

fn args(more: &[&str]) -> LeaseArgs {
    Program::try_parse_from([&["program"], more].concat()).unwrap().lease
}

fn start(api: &Api) -> (Elector, Arc<Mutex<Mood>>) {
    let mood = Arc::new(Mutex::new(Mood::Works));
    (Elector::start(api.client(&mood), &args(&[]), "controller").unwrap(), mood)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn one_candidate_leads_and_keeps_renewing() {
    let api = Api::new();
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    assert!(!leadership.is_leader_now());
    timeout(s(5), leadership.wait_acquired()).await.unwrap();
    let first = api.spec();
    assert_eq!((&first["leaseDurationSeconds"], &first["leaseTransitions"]), (&json!(15), &json!(0)));
    for _ in 0..60 {
        sleep(s(1)).await;
        assert!(leadership.is_leader_now());
    }
    let last = api.spec();
    assert_eq!(first["acquireTime"], last["acquireTime"]);
    assert_ne!(first["renewTime"], last["renewTime"]);
    assert!(api.0.lock().unwrap().writes >= 30, "renewed every two seconds");
    assert!(timeout(s(1), leadership.lost()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_release_hands_over_at_once_and_counts() {
    let api = Api::new();
    let (first, _) = start(&api);
    timeout(s(20), first.leadership().wait_acquired()).await.unwrap();
    let (second, _) = start(&api);
    assert!(timeout(s(60), second.leadership().wait_acquired()).await.is_err(), "two leaders");
    let gone = first.leadership();
    first.release().await;
    assert!(!gone.is_leader_now());
    assert!(timeout(s(1), gone.lost()).await.is_err(), "a release is no loss");
    timeout(s(4), second.leadership().wait_acquired()).await.unwrap();
    assert_eq!(api.spec()["leaseTransitions"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_leader_stops_before_the_next_begins() {
    let api = Api::new();
    let (first, mood) = start(&api);
    timeout(s(20), first.leadership().wait_acquired()).await.unwrap();
    let (second, _) = start(&api);
    sleep(s(20)).await;
    *mood.lock().unwrap() = Mood::Hangs;
    let cut = Instant::now();
    let (old, new) = (first.leadership(), second.leadership());
    let (mut old_ended, mut new_began) = (None, None);
    while new_began.is_none() {
        sleep(Duration::from_millis(100)).await;
        assert!(cut.elapsed() < s(60), "nobody took over");
        assert!(!(old.is_leader_now() && new.is_leader_now()), "two leaders");
        if old_ended.is_none() && !old.is_leader_now() {
            old_ended = Some(cut.elapsed());
        }
        if new.is_leader_now() {
            new_began = Some(cut.elapsed());
        }
    }
    let (old_ended, new_began) = (old_ended.unwrap(), new_began.unwrap());
    assert!(old_ended <= s(10) + Duration::from_millis(200), "{old_ended:?}");
    assert!(new_began >= old_ended + s(2), "no margin: {old_ended:?}, {new_began:?}");
    let lost = timeout(s(1), old.lost()).await.unwrap();
    assert!(
        lost.to_string().contains("rollback-system/controller: the Lease could not be renewed in time"),
        "{lost}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_fails_for_a_while_costs_nothing_and_for_long_the_leadership() {
    for status in [500, 503, 403, 429] {
        let api = Api::new();
        let (elector, _) = start(&api);
        let leadership = elector.leadership();
        timeout(s(20), leadership.wait_acquired()).await.unwrap();
        api.mood(Mood::Fails(status));
        sleep(s(7)).await;
        assert!(leadership.is_leader_now());
        api.mood(Mood::Works);
        sleep(s(30)).await;
        assert!(leadership.is_leader_now(), "{status}");
        api.mood(Mood::Fails(status));
        timeout(s(11), leadership.lost()).await.unwrap();
        assert!(!leadership.is_leader_now());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_by_another_is_a_loss_that_names_it() {
    let api = Api::new();
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    timeout(s(20), leadership.wait_acquired()).await.unwrap();
    api.edit(|lease| lease["spec"]["holderIdentity"] = json!("somebody-else"));
    let lost = timeout(s(5), leadership.lost()).await.unwrap();
    assert!(lost.to_string().contains("somebody-else took the Lease"), "{lost}");
    assert_eq!(api.holder(), "somebody-else");
}

#[tokio::test(start_paused = true)]
async fn a_change_beside_the_record_is_kept_and_costs_nothing() {
    let api = Api::new();
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    timeout(s(20), leadership.wait_acquired()).await.unwrap();
    api.edit(|lease| lease["metadata"]["labels"] = json!({"team": "a"}));
    let writes = api.0.lock().unwrap().writes;
    sleep(s(10)).await;
    assert!(leadership.is_leader_now());
    assert!(api.0.lock().unwrap().writes > writes);
    assert_eq!(api.0.lock().unwrap().lease.as_ref().unwrap()["metadata"]["labels"], json!({"team": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let api = Api::new();
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    timeout(s(20), leadership.wait_acquired()).await.unwrap();
    api.0.lock().unwrap().lease = None;
    sleep(s(6)).await;
    assert!(leadership.is_leader_now());
    assert!(!api.holder().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_is_found_again() {
    let api = Api::new();
    api.mood(Mood::LosesAnswers);
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    sleep(s(5)).await;
    assert!(!leadership.is_leader_now(), "nothing was confirmed");
    assert!(!api.holder().is_empty());
    api.mood(Mood::Works);
    timeout(s(5), leadership.wait_acquired()).await.unwrap();
    assert!(leadership.is_leader_now());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_ends_leaves_the_lease_alone() {
    let api = Api::new();
    let (first, _) = start(&api);
    timeout(s(20), first.leadership().wait_acquired()).await.unwrap();
    let (second, _) = start(&api);
    sleep(s(5)).await;
    let holder = api.holder();
    second.release().await;
    assert_eq!(api.holder(), holder);
    assert!(first.leadership().is_leader_now());
}

#[tokio::test(start_paused = true)]
async fn a_release_that_cannot_be_written_ends_all_the_same() {
    let api = Api::new();
    let (elector, _) = start(&api);
    let leadership = elector.leadership();
    timeout(s(20), leadership.wait_acquired()).await.unwrap();
    api.mood(Mood::Hangs);
    timeout(s(15), elector.release()).await.unwrap();
    assert!(!leadership.is_leader_now());
}

#[tokio::test(start_paused = true)]
async fn without_election_it_leads_at_once_and_writes_nothing() {
    let api = Api::new();
    let client = api.client(&Arc::new(Mutex::new(Mood::Works)));
    let elector = Elector::start(client, &args(&["--leader-elect=false"]), "controller").unwrap();
    let leadership = elector.leadership();
    timeout(s(20), leadership.wait_acquired()).await.unwrap();
    assert!(leadership.is_leader_now());
    elector.release().await;
    assert_eq!(api.spec(), Value::Null);
}
