//! A pretend API server for unit tests: objects by path, resourceVersions, finalizers, status subresource, merge
//! patches, deletion with preconditions. No admission, no watch: a test shows the indexes what it wants them to see.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Cheap to clone; all clones are one server.
#[derive(Clone, Default)]
pub(crate) struct FakeApi {
    state: Arc<Mutex<State>>,
}

/// Looks at a request before it is carried out; may change the objects, or answer in the server's place.
type Hook = Box<dyn FnMut(&Method, &str, &mut BTreeMap<String, Value>) -> Option<StatusCode> + Send>;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    log: Vec<String>,
    hook: Option<Hook>,
}

impl FakeApi {
    /// A client of this server. Must be called inside the runtime.
    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, std::convert::Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Stores an object as its creator would; metadata that the server fills in is filled in.
    pub(crate) fn put(&self, path: &str, object: impl serde::Serialize) {
        let mut state = self.state.lock().unwrap();
        let object = serde_json::to_value(object).unwrap();
        state.store(path, object);
    }

    /// The object at that path.
    pub(crate) fn get<K: serde::de::DeserializeOwned>(&self, path: &str) -> Option<K> {
        let state = self.state.lock().unwrap();
        state.objects.get(path).map(|object| serde_json::from_value(object.clone()).unwrap())
    }

    /// All objects whose path has that part.
    pub(crate) fn all<K: serde::de::DeserializeOwned>(&self, part: &str) -> Vec<K> {
        let state = self.state.lock().unwrap();
        let named = state.objects.iter().filter(|(path, _)| path.contains(part));
        named.map(|(_, object)| serde_json::from_value(object.clone()).unwrap()).collect()
    }

    /// Changes an object as somebody else would.
    pub(crate) fn edit(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state.lock().unwrap();
        let mut object = state.objects[path].clone();
        change(&mut object);
        state.store(path, object);
    }

    /// Removes an object whatever its finalizers say.
    pub(crate) fn remove(&self, path: &str) {
        self.state.lock().unwrap().objects.remove(path);
    }

    /// Looks at every request from now on.
    pub(crate) fn hook(
        &self,
        hook: impl FnMut(&Method, &str, &mut BTreeMap<String, Value>) -> Option<StatusCode> + Send + 'static,
    ) {
        self.state.lock().unwrap().hook = Some(Box::new(hook));
    }

    /// The requests since the last call, as `METHOD path`.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let path = parts.uri.path().to_owned();
        let mut state = self.state.lock().unwrap();
        state.log.push(format!("{} {path}", parts.method));
        if let Some(mut hook) = state.hook.take() {
            let said = hook(&parts.method, &path, &mut state.objects);
            state.hook.get_or_insert(hook);
            if let Some(status) = said {
                return failure(status, "the test says so");
            }
        }
        state.carry_out(&parts.method, &path, body)
    }
}

impl State {
    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.version.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.version));
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!("2026-12-01T10:00:00Z");
        }
        let unfinalized = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        if !metadata["deletionTimestamp"].is_null() && unfinalized {
            self.objects.remove(path);
        } else {
            self.objects.insert(path.to_owned(), object.clone());
        }
        object
    }

    fn carry_out(&mut self, method: &Method, path: &str, body: Value) -> Response<Body> {
        let (path, status) = match path.strip_suffix("/status") {
            Some(path) => (path, true),
            None => (path, false),
        };
        if method == Method::POST {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default());
            if self.objects.contains_key(&path) {
                return failure(StatusCode::CONFLICT, "already exists");
            }
            return success(&self.store(&path, body));
        }
        let Some(live) = self.objects.get(path).cloned() else {
            let prefix = format!("{path}/");
            let list: Vec<&Value> = self
                .objects
                .iter()
                .filter(|(path, _)| path.starts_with(&prefix))
                .map(|(_, object)| object)
                .collect();
            if method == Method::GET && !list.is_empty() {
                return success(&json!({ "metadata": {}, "items": list }));
            }
            return failure(StatusCode::NOT_FOUND, &format!("{path} not found"));
        };
        if method == Method::GET {
            return success(&live);
        }
        let preconditions = if method == Method::DELETE { &body["preconditions"] } else { &body["metadata"] };
        for field in ["resourceVersion", "uid"] {
            if preconditions[field].is_string() && preconditions[field] != live["metadata"][field] {
                return failure(StatusCode::CONFLICT, "the object has been modified");
            }
        }
        let mut wanted = live.clone();
        if method == Method::DELETE {
            wanted["metadata"]["deletionTimestamp"] = json!("2026-12-01T11:00:00Z");
        } else if method == Method::PATCH {
            json_patch::merge(&mut wanted, &body);
        } else if status {
            wanted["status"] = body["status"].clone();
        } else {
            wanted = body;
        }
        if wanted == live { success(&live) } else { success(&self.store(path, wanted)) }
    }
}

fn success(object: &Value) -> Response<Body> {
    Response::new(Body::from(object.to_string().into_bytes()))
}

fn failure(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": status.canonical_reason().unwrap_or_default().replace(' ', ""), "code": status.as_u16(),
    });
    let mut response = success(&body);
    *response.status_mut() = status;
    response
}
