//! A pretend external deployment system: the server that the controller's scripted backend asks (debug builds).
//!
//! It behaves like a simple, honest one until a test scripts a fault. It is strict: an operation it does not know, or a
//! second deployment for a key, fails the test that asks [`ScriptedBackend::check`].

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};

/// One answer out of the ordinary.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The ordinary answer.
    Normal,
    /// An error of that class, with seconds to wait if it says so.
    Error(&'static str, Option<u64>),
    /// Does what was asked, then drops the connection without an answer.
    LoseAnswer,
    /// Never answers.
    Hang,
    /// Another HTTP status and no JSON.
    Broken(u16),
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// The key it carries.
    pub key: String,
    /// Its id.
    pub id: String,
    /// `pending`, `inProgress`, `succeeded`, `failed` or `superseded`.
    pub state: &'static str,
}

#[derive(Default)]
struct Tenant {
    deployments: Vec<Deployed>,
    scripts: BTreeMap<String, VecDeque<Reply>>,
    calls: Vec<String>,
    /// What new deployments become by themselves.
    outcome: Option<&'static str>,
}

#[derive(Default)]
struct State {
    /// By namespace: tests do not see each other.
    tenants: BTreeMap<String, Tenant>,
    violations: Vec<String>,
}

/// The server.
#[derive(Clone)]
pub struct ScriptedBackend {
    url: String,
    state: Arc<Mutex<State>>,
}

static SHARED: OnceLock<ScriptedBackend> = OnceLock::new();

impl ScriptedBackend {
    /// The one that the shared system asks.
    pub fn shared() -> &'static Self {
        SHARED.get_or_init(Self::start)
    }

    /// A new one.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let backend = Self { url: format!("http://{address}"), state: Arc::default() };
        let serving = backend.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let backend = serving.clone();
                // A client that goes away is no failure.
                std::thread::spawn(move || backend.serve(stream).ok());
            }
        });
        backend
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answers to an operation (`find`, `trigger`, `poll`, `cancel`) about a namespace.
    pub fn script(&self, namespace: &str, op: &str, replies: impl IntoIterator<Item = Reply>) {
        let mut state = self.state();
        state
            .tenants
            .entry(namespace.into())
            .or_default()
            .scripts
            .entry(op.into())
            .or_default()
            .extend(replies);
    }

    /// What deployments of a namespace become by themselves from now on; those under way too.
    pub fn outcome(&self, namespace: &str, outcome: &'static str) {
        let mut state = self.state();
        let tenant = state.tenants.entry(namespace.into()).or_default();
        tenant.outcome = Some(outcome);
        drop(state);
        self.finish(namespace, outcome);
    }

    /// What becomes of the deployments of a namespace that are under way.
    pub fn finish(&self, namespace: &str, outcome: &'static str) {
        let mut state = self.state();
        let tenant = state.tenants.entry(namespace.into()).or_default();
        for deployment in &mut tenant.deployments {
            if matches!(deployment.state, "pending" | "inProgress") {
                deployment.state = outcome;
            }
        }
    }

    /// All deployments of a namespace, in order.
    pub fn deployments(&self, namespace: &str) -> Vec<Deployed> {
        self.state().tenants.get(namespace).map(|tenant| tenant.deployments.clone()).unwrap_or_default()
    }

    /// How often an operation was asked for.
    pub fn calls(&self, namespace: &str, op: &str) -> usize {
        let state = self.state();
        state
            .tenants
            .get(namespace)
            .map_or(0, |tenant| tenant.calls.iter().filter(|call| *call == op).count())
    }

    /// Fails the test if the controller ever asked for something it must not.
    pub fn check(&self) {
        let violations = self.state().violations.clone();
        assert!(violations.is_empty(), "{violations:?}");
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line)? > 0 && line != "\r\n" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let Some((status, answer)) = self.answer(&body) else { return Ok(()) };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        reader.get_mut().write_all(format!("{head}{answer}").as_bytes())
    }

    /// Status and body; `None` drops the connection.
    fn answer(&self, body: &[u8]) -> Option<(u16, String)> {
        let asked: Value = serde_json::from_slice(body).unwrap_or_default();
        let op = asked["op"].as_str().unwrap_or_default().to_owned();
        let namespace = asked["target"]["namespace"].as_str().unwrap_or_default().to_owned();
        let reply = {
            let mut state = self.state();
            let tenant = state.tenants.entry(namespace.clone()).or_default();
            tenant.calls.push(op.clone());
            tenant.scripts.get_mut(&op).and_then(VecDeque::pop_front).unwrap_or(Reply::Normal)
        };
        match reply {
            Reply::Normal => Some((200, self.ordinary(&op, &namespace, &asked).to_string())),
            Reply::Error(class, retry) => {
                let error = json!({"class": class, "retryAfterSeconds": retry, "message": format!("scripted: {class}")});
                Some((200, json!({ "error": error }).to_string()))
            }
            Reply::LoseAnswer => {
                self.ordinary(&op, &namespace, &asked);
                None
            }
            Reply::Hang => loop {
                // Until the test process ends; the client gives up before.
                std::thread::park();
            },
            Reply::Broken(status) => Some((status, "<html>not JSON</html>".to_owned())),
        }
    }

    fn ordinary(&self, op: &str, namespace: &str, asked: &Value) -> Value {
        let mut state = self.state();
        let State { tenants, violations } = &mut *state;
        let tenant = tenants.entry(namespace.into()).or_default();
        let key = asked["key"].as_str().unwrap_or_default();
        let told = |deployment: &Deployed| json!({"id": deployment.id, "url": format!("https://cd.example/{}", deployment.id), "state": deployment.state, "message": deployment.state});
        let found = tenant.deployments.iter_mut().find(|deployment| deployment.key == key);
        match (op, found) {
            ("find", found) => json!({"ok": found.map(|deployment| told(deployment))}),
            ("trigger", Some(_)) => {
                violations.push(format!("{key} was deployed twice"));
                json!({"error": {"class": "invalid", "message": "deployed twice"}})
            }
            ("trigger", None) => {
                let id = format!("{namespace}-{}", tenant.deployments.len() + 1);
                let deployment = Deployed { key: key.into(), id, state: tenant.outcome.unwrap_or("pending") };
                let answer = told(&deployment);
                tenant.deployments.push(deployment);
                json!({ "ok": answer })
            }
            ("poll", Some(deployment)) => json!({"ok": told(deployment)}),
            ("cancel", Some(deployment)) => {
                deployment.state = "failed";
                json!({"ok": {"stopped": true}})
            }
            ("poll" | "cancel", None) => {
                json!({"error": {"class": "notFound", "message": "no such deployment"}})
            }
            (other, _) => {
                violations.push(format!("unknown operation {other:?}: {asked}"));
                json!({"error": {"class": "invalid", "message": "unknown operation"}})
            }
        }
    }
}
