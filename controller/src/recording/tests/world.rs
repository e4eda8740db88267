//! A namespace with a Deployment and a ConfigMap, the pretend API server, and both controllers.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::watcher::Event;
use prometheus_client::registry::Registry;
use rollback_api::{Release, annotations, labels};
use rollback_core::pointer::{Pointer, object_name};
use rollback_core::rollback::observed;
use serde_json::{Value, json};

use crate::context::{Context, Queues, Settings, Stores};
use crate::deployers::Deployers;
use crate::error::PassError;
use crate::events::Events;
use crate::fake_api::FakeApi;
use crate::fence::Fence;
use crate::index::Index;
use crate::metrics::Metrics;
use crate::queue::Next;
use crate::recording::Recording;
use crate::rollback::Pacing;
use crate::target::TargetKey;

pub(super) const NAMESPACE: &str = "shop";
pub(super) const TARGET: &str = "payments";

pub(super) fn key() -> TargetKey {
    TargetKey::new(NAMESPACE, TARGET)
}

pub(super) struct World {
    pub(super) api: FakeApi,
    pub(super) ctx: Arc<Context>,
    pub(super) recording: Recording,
    /// What the recording takes for now. The release controller knows the real time, and takes no event of the future.
    pub(super) now: Timestamp,
}

impl World {
    /// Nothing is recorded yet.
    pub(super) fn new() -> Self {
        let api = FakeApi::default();
        let ctx = Arc::new(context(&api));
        let recording = Recording::new(Arc::clone(&ctx));
        let world = Self { api, ctx, recording, now: Timestamp::now() - SignedDuration::from_hours(1) };
        // The pretend server does not know which kinds are served: an empty list would be "not found".
        world.api.put(&path("pods", "other"), json!({"metadata": {"name": "other"}}));
        world.config("10");
        world.web("1.0");
        world
    }

    /// The same cluster, another process.
    pub(super) fn restart(&mut self) {
        self.ctx = Arc::new(context(&self.api));
        self.recording = Recording::new(Arc::clone(&self.ctx));
        for kind in ["configmaps", "deployments"] {
            for object in self.api.all::<Value>(&format!("/{kind}/")) {
                if object["metadata"]["labels"][labels::TARGET] == TARGET {
                    self.recording.objects.show(&object, false);
                }
            }
        }
        self.show();
    }

    /// Stores an object of the target, and shows it.
    pub(super) fn put(&self, object: &Value) {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(NAMESPACE);
        object["metadata"]["labels"] = json!({labels::TARGET: TARGET});
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let path = path(&plural, object["metadata"]["name"].as_str().unwrap());
        object["metadata"]["uid"] = json!(format!("uid-{path}"));
        self.api.put(&path, object);
        let stored: Value = self.api.get(&path).unwrap();
        self.recording.objects.show(&stored, false);
    }

    pub(super) fn config(&self, rate: &str) {
        self.put(&json!({"kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"rate": rate}}));
    }

    /// A Deployment of two pods that is rolled out.
    pub(super) fn web(&self, tag: &str) {
        self.deployment("web", tag, 2);
        let set = json!({
            "metadata": {
                "name": "web-1", "uid": format!("set-{tag}"), "annotations": {"deployment.kubernetes.io/revision": "1"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": format!("uid-{}", path("deployments", "web")), "controller": true}],
            },
            "spec": {"selector": {}},
        });
        self.api.put(&path("replicasets", "web-1"), set);
        self.pod(tag, &json!({"ready": true, "state": {"running": {}}}));
    }

    pub(super) fn deployment(&self, name: &str, tag: &str, available: u32) {
        self.put(&json!({
            "kind": "Deployment",
            "metadata": {"name": name, "generation": 2, "annotations": {"deployment.kubernetes.io/revision": "1"}},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {"spec": {"containers": [{
                    "name": "app", "image": format!("{name}:{tag}"), "envFrom": [{"configMapRef": {"name": "shared"}}],
                }]}},
            },
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": available},
        }));
    }

    /// The one pod of web's current template.
    pub(super) fn pod(&self, tag: &str, container: &Value) {
        let mut container = container.clone();
        for (key, value) in
            [("name", json!("app")), ("image", json!("")), ("imageID", json!("")), ("restartCount", json!(0))]
        {
            if container[key].is_null() {
                container[key] = value;
            }
        }
        let ready = if container["ready"] == true { "True" } else { "False" };
        let pod = json!({
            "metadata": {
                "name": "web-1-x", "creationTimestamp": self.now.to_string(),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": format!("set-{tag}"), "controller": true}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [container]},
        });
        self.api.put(&path("pods", "web-1-x"), pod);
    }

    pub(super) fn delete(&self, plural: &str, name: &str) {
        let object: Value = self.api.get(&path(plural, name)).unwrap();
        self.api.remove(&path(plural, name));
        self.recording.objects.show(&object, true);
    }

    /// The watches of our own kinds catch up.
    pub(super) fn show(&self) {
        fn fill<K: kube::Resource>(index: &Index<K>, objects: Vec<K>) {
            index.apply(Event::Init);
            for object in objects {
                index.apply(Event::InitApply(object));
            }
            index.apply(Event::InitDone);
        }
        fill(&self.ctx.stores.releases, self.api.all("/releases/"));
        let configmaps: Vec<ConfigMap> = self.api.all("/configmaps/");
        let pointers = configmaps.into_iter().filter(|object| Pointer::target_of(object).is_some());
        fill(&self.ctx.stores.pointers, pointers.collect());
    }

    pub(super) async fn pass(&self) -> Result<Next, PassError> {
        self.recording.pass_at(&key(), self.now).await
    }

    pub(super) fn later(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Both controllers, with watches that keep up, until nothing is written any more.
    pub(super) async fn settle(&mut self) -> Next {
        for _ in 0..20 {
            self.show();
            self.api.take_log();
            let next = self.pass().await.unwrap();
            self.show();
            crate::release::pass(Arc::clone(&self.ctx), key()).await.unwrap();
            self.show();
            if self.writes().is_empty() {
                return next;
            }
        }
        panic!("no rest after 20 passes");
    }

    /// Waits out the quiet period, then settles.
    pub(super) async fn quiet(&mut self) {
        self.pass().await.unwrap();
        self.later(5);
        self.settle().await;
    }

    /// Writes since the last look, as `METHOD plural`, a pointer or release status apart.
    pub(super) fn writes(&self) -> Vec<String> {
        let log = self.api.take_log();
        let writes = log.iter().filter(|line| !line.starts_with("GET"));
        writes
            .map(|line| {
                let (method, path) = line.split_once(' ').unwrap();
                let parts: Vec<&str> = path.split('/').collect();
                let at = parts.iter().position(|part| *part == NAMESPACE).unwrap();
                format!("{method} {}", parts[at + 1])
            })
            .collect()
    }

    pub(super) fn releases(&self) -> Vec<Release> {
        self.api.all("/releases/")
    }

    /// The release whose deployment of web has that image tag.
    pub(super) fn release(&self, tag: &str) -> Release {
        let of = |release: &&Release| {
            self.snapshots(release).iter().any(|snapshot| {
                let image =
                    &snapshot.data.0["objects"][0]["spec"]["template"]["spec"]["containers"][0]["image"];
                image == &json!(format!("web:{tag}"))
            })
        };
        self.releases().iter().find(of).unwrap_or_else(|| panic!("no release of {tag}")).clone()
    }

    /// The snapshots that a release owns.
    pub(super) fn snapshots(&self, release: &Release) -> Vec<ControllerRevision> {
        let all: Vec<ControllerRevision> = self.api.all("/controllerrevisions/");
        let owned = all.into_iter().filter(|snapshot| {
            let owners = snapshot.metadata.owner_references.as_ref().unwrap();
            owners.iter().any(|owner| Some(&owner.uid) == release.metadata.uid.as_ref())
        });
        owned.collect()
    }

    pub(super) fn condition(release: &Release, type_: &str) -> (String, String) {
        let status = release.status.clone().unwrap();
        let found = rollback_core::conditions::find(&status.conditions, type_);
        let found = found.unwrap_or_else(|| panic!("no condition {type_}: {status:?}"));
        (found.status.clone(), found.reason.clone())
    }

    pub(super) fn pointer(&self) -> Pointer {
        let object: Option<ConfigMap> = self.api.get(&path("configmaps", &object_name(TARGET)));
        object.map(|object| Pointer::parse(TARGET, &object).unwrap()).unwrap_or_default()
    }

    pub(super) fn set_pointer(&self, pointer: &Pointer) {
        let path = path("configmaps", &object_name(TARGET));
        let object: Option<ConfigMap> = self.api.get(&path);
        self.api.put(&path, pointer.to_object(NAMESPACE, TARGET, object.as_ref()));
        self.show();
    }

    pub(super) fn active(&self) -> Option<String> {
        self.pointer().active.map(|active| active.release)
    }
}

pub(super) fn annotation(release: &Release, key: &str) -> Option<String> {
    release.metadata.annotations.as_ref()?.get(key).cloned()
}

pub(super) fn started(release: &Release) -> Option<String> {
    annotation(release, annotations::DEPLOYMENT_START_TIME)
}

pub(super) fn name(release: &Release) -> String {
    release.metadata.name.clone().unwrap()
}

pub(super) fn path(plural: &str, name: &str) -> String {
    let group = match plural {
        "configmaps" | "pods" => "api/v1",
        "releases" => "apis/deploy.crd.gocardless.com/v1alpha1",
        _ => "apis/apps/v1",
    };
    format!("/{group}/namespaces/{NAMESPACE}/{plural}/{name}")
}

fn context(api: &FakeApi) -> Context {
    let client = api.client();
    let metrics = Metrics::new(&mut Registry::default());
    let (events, _) = Events::new(client.clone(), metrics.clone());
    Context {
        client,
        stores: Stores::default(),
        settings: Settings {
            rollback: observed::Settings {
                backends: Vec::new(),
                adopt_unadmitted: false,
                backoff_base: Duration::from_secs(10),
                backoff_cap: Duration::from_secs(60),
            },
            backend_timeout: Duration::from_secs(30),
            rollback_history_limit: 3,
            recording_quiet_period: Duration::from_secs(5),
            minimum_active_time: Duration::from_secs(60),
            rollout_failure_after: Duration::from_secs(120),
        },
        fence: Fence::open(),
        events,
        metrics,
        queues: Queues::new().0,
        deployers: Deployers::default(),
        pacing: Pacing::default(),
    }
}
