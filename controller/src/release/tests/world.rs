//! A target with releases a, b and c, the pretend API server, and a controller.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::runtime::watcher::Event;
use prometheus_client::registry::Registry;
use rollback_api::{Backend, Release, ReleaseConfig, ReleaseFields, Revision, Rollback, annotations};
use rollback_core::pointer::{Pointer, object_name};
use rollback_core::rollback::observed;
use serde_json::json;

use crate::context::{Context, Queues, Settings, Stores};
use crate::deployers::Deployers;
use crate::error::PassError;
use crate::events::Events;
use crate::fake_api::FakeApi;
use crate::fence::Fence;
use crate::index::Index;
use crate::metrics::Metrics;
use crate::queue::Next;
use crate::release::pass;
use crate::rollback::Pacing;
use crate::target::TargetKey;

pub(super) const NAMESPACE: &str = "shop";
pub(super) const TARGET: &str = "payments";
const NAMESPACE_PATH: &str = "/api/v1/namespaces/shop";

pub(super) struct World {
    pub(super) api: FakeApi,
    pub(super) ctx: Arc<Context>,
}

pub(super) fn key() -> TargetKey {
    TargetKey::new(NAMESPACE, TARGET)
}

pub(super) fn release_path(name: &str) -> String {
    format!("/apis/deploy.crd.gocardless.com/v1alpha1/namespaces/{NAMESPACE}/releases/{name}")
}

pub(super) fn rollback_path(name: &str) -> String {
    format!("/apis/deploy.crd.gocardless.com/v1alpha1/namespaces/{NAMESPACE}/rollbacks/{name}")
}

pub(super) fn pointer_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", object_name(TARGET))
}

impl World {
    pub(super) fn new() -> Self {
        let api = FakeApi::default();
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(NAMESPACE.into());
        api.put(NAMESPACE_PATH, namespace);
        let ctx = context(&api, Fence::open());
        let world = Self { api, ctx };
        for name in ["a", "b", "c"] {
            world.create(name);
        }
        // Of another target: nobody's business.
        let rollback: Rollback = serde_json::from_value(json!({
            "metadata": { "name": "other", "namespace": NAMESPACE },
            "spec": { "toReleaseRef": { "target": "other", "name": "a" }, "reason": "x" },
        }))
        .unwrap();
        world.api.put(&rollback_path("other"), rollback);
        world
    }

    pub(super) fn create(&self, name: &str) {
        let revision = Revision { name: "application".into(), id: name.into(), ..Revision::default() };
        let config = ReleaseConfig { target_name: TARGET.into(), revisions: vec![revision] };
        let mut release = Release::new(name, ReleaseFields { config });
        release.metadata.namespace = Some(NAMESPACE.into());
        release.metadata.generation = Some(1);
        let mut object = json!(release);
        // One after the other, in the order of their names.
        let second = name.bytes().next().unwrap() - b'a';
        object["metadata"]["creationTimestamp"] = json!(format!("2026-12-01T05:00:{second:02}Z"));
        self.api.put(&release_path(name), object);
    }

    pub(super) fn annotate(&self, name: &str, annotation: &str, value: Option<&str>) {
        self.api.edit(&release_path(name), |object| {
            let patch = json!({ "metadata": { "annotations": { annotation: value } } });
            json_patch::merge(object, &patch);
        });
    }

    pub(super) fn set_active(&self, name: &str) {
        self.annotate(name, annotations::ACTIVE, Some("true"));
    }

    pub(super) fn limit(&self, limit: &str) {
        self.api.edit(NAMESPACE_PATH, |object| {
            object["metadata"]["annotations"][annotations::RELEASE_LIMIT] = json!(limit);
        });
    }

    pub(super) fn release(&self, name: &str) -> Release {
        self.api.get(&release_path(name)).unwrap()
    }

    pub(super) fn is(&self, name: &str) -> String {
        let status = self.release(name).status.unwrap();
        let condition = rollback_core::conditions::find(&status.conditions, "Active").unwrap();
        format!("{}/{}", condition.status, condition.reason)
    }

    pub(super) fn annotation(&self, name: &str, key: &str) -> Option<String> {
        self.release(name).metadata.annotations?.remove(key)
    }

    pub(super) fn active(&self) -> Option<String> {
        let object: ConfigMap = self.api.get(&pointer_path())?;
        Some(Pointer::parse(TARGET, &object).unwrap().active?.release)
    }

    /// The same cluster, another process.
    pub(super) fn restart(&mut self) {
        self.ctx = context(&self.api, Fence::open());
    }

    /// A process that must not act.
    pub(super) fn fenced_off(&mut self) {
        let fence = Fence::open();
        fence.stop().cancel();
        self.ctx = context(&self.api, fence);
    }

    /// The watches catch up.
    pub(super) fn show(&self) {
        fn fill<K: kube::Resource>(index: &Index<K>, objects: Vec<K>) {
            index.apply(Event::Init);
            for object in objects {
                index.apply(Event::InitApply(object));
            }
            index.apply(Event::InitDone);
        }
        fill(&self.ctx.stores.releases, self.api.all("/releases/"));
        fill(&self.ctx.stores.rollbacks, self.api.all("/rollbacks/"));
        fill(&self.ctx.stores.pointers, self.api.all("/configmaps/"));
    }

    /// A pass over what the watches show.
    pub(super) async fn pass(&self) -> Result<Next, PassError> {
        pass(Arc::clone(&self.ctx), key()).await
    }

    /// A pass with watches that keep up, and the requests that it made.
    pub(super) async fn run(&self) -> Vec<String> {
        self.show();
        self.api.take_log();
        assert_eq!(self.pass().await.unwrap(), Next::Idle);
        self.api.take_log().iter().map(|line| short(line)).collect()
    }

    /// The process makes so many writes; later ones fail, and never arrive.
    pub(super) fn dies_after(&self, writes: usize) {
        let mut made = 0;
        self.api.hook(move |method, _, _| {
            if method == Method::GET {
                return None;
            }
            made += 1;
            (made > writes).then_some(StatusCode::INTERNAL_SERVER_ERROR)
        });
    }

    pub(super) fn lives(&self) {
        self.api.hook(|_, _, _| None);
    }
}

/// `PUT releases/a/status`.
fn short(line: &str) -> String {
    let (method, path) = line.split_once(' ').unwrap();
    let path = path.rsplit_once("/namespaces/shop/").map_or("namespace", |(_, path)| path);
    format!("{method} {path}").replace(&object_name(TARGET), "POINTER")
}

fn context(api: &FakeApi, fence: Fence) -> Arc<Context> {
    let client = api.client();
    let metrics = Metrics::new(&mut Registry::default());
    let (events, _) = Events::new(client.clone(), metrics.clone());
    Arc::new(Context {
        client: client.clone(),
        stores: Stores::default(),
        settings: Settings {
            rollback: observed::Settings {
                backends: vec![Backend::Noop],
                adopt_unadmitted: false,
                backoff_base: Duration::from_secs(10),
                backoff_cap: Duration::from_secs(60),
            },
            backend_timeout: Duration::from_secs(30),
            rollback_history_limit: 3,
            recording_quiet_period: Duration::ZERO,
            minimum_active_time: Duration::ZERO,
            rollout_failure_after: Duration::ZERO,
        },
        deployers: Deployers::enable(&[Backend::Noop], &client, &fence).unwrap(),
        fence,
        events,
        metrics,
        queues: Queues::new().0,
        pacing: Pacing::default(),
    })
}
