//! A target with releases a, b and c (active), the pretend API server and backend, and a controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::Event;
use prometheus_client::registry::Registry;
use rollback_api::{
    Activation, Backend, FromReleaseRef, Release, ReleaseConfig, ReleaseFields, ReleaseRef, Revision,
    Rollback, RollbackSpec, annotations,
};
use rollback_core::pointer::{ActiveRelease, Pointer, object_name};
use rollback_core::rollback::observed;
use serde_json::json;

use super::backend::FakeBackend;
use crate::context::{Context, Queues, Settings, Stores};
use crate::deployers::Deployers;
use crate::error::PassError;
use crate::events::Events;
use crate::fake_api::FakeApi;
use crate::fence::Fence;
use crate::index::Index;
use crate::metrics::Metrics;
use crate::queue::Next;
use crate::rollback::{Pacing, pass};
use crate::target::TargetKey;

pub(super) const NAMESPACE: &str = "shop";
pub(super) const TARGET: &str = "payments";

pub(super) struct World {
    pub(super) api: FakeApi,
    pub(super) backend: FakeBackend,
    pub(super) ctx: Arc<Context>,
    pub(super) registry: Registry,
}

pub(super) fn key() -> TargetKey {
    TargetKey::new(NAMESPACE, TARGET)
}

pub(super) fn rollback_path(name: &str) -> String {
    format!("/apis/deploy.crd.gocardless.com/v1alpha1/namespaces/{NAMESPACE}/rollbacks/{name}")
}

pub(super) fn release_path(name: &str) -> String {
    format!("/apis/deploy.crd.gocardless.com/v1alpha1/namespaces/{NAMESPACE}/releases/{name}")
}

pub(super) fn pointer_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", object_name(TARGET))
}

impl World {
    pub(super) fn new() -> Self {
        let api = FakeApi::default();
        let backend = FakeBackend::default();
        for name in ["a", "b", "c"] {
            let revision = Revision { name: "application".into(), id: name.into(), ..Revision::default() };
            let config = ReleaseConfig { target_name: TARGET.into(), revisions: vec![revision] };
            let mut release = Release::new(name, ReleaseFields { config });
            release.metadata.namespace = Some(NAMESPACE.into());
            api.put(&release_path(name), release);
        }
        let mut registry = Registry::default();
        let ctx = Arc::new(context(&api, &backend, Metrics::new(&mut registry), Fence::open()));
        let world = Self { api, backend, ctx, registry };
        world.activate("c", "first", None);
        world.show();
        world
    }

    /// The same cluster, another process.
    pub(super) fn restart(&mut self) {
        let metrics = self.ctx.metrics.clone();
        self.ctx = Arc::new(context(&self.api, &self.backend, metrics, Fence::open()));
        self.show();
    }

    /// The same cluster, a process without the backend.
    pub(super) fn without_backend(&mut self) {
        let metrics = self.ctx.metrics.clone();
        let mut ctx = context(&self.api, &self.backend, metrics, Fence::open());
        ctx.deployers = Deployers::default();
        self.ctx = Arc::new(ctx);
        self.show();
    }

    /// A process that must not act.
    pub(super) fn fenced_off(&mut self) {
        let fence = Fence::open();
        fence.stop().cancel();
        let metrics = self.ctx.metrics.clone();
        self.ctx = Arc::new(context(&self.api, &self.backend, metrics, fence));
        self.show();
    }

    pub(super) fn create(&self, name: &str, from: &str, to: &str, change: impl FnOnce(&mut RollbackSpec)) {
        let mut spec = RollbackSpec {
            to_release_ref: ReleaseRef { target: TARGET.into(), name: Some(to.into()), signature: None },
            from_release_ref: Some(FromReleaseRef {
                target: TARGET.into(),
                name: Some(from.into()),
                ..FromReleaseRef::default()
            }),
            reason: "test".into(),
            ..RollbackSpec::default()
        };
        change(&mut spec);
        let mut rollback = Rollback::new(name, spec);
        rollback.metadata.namespace = Some(NAMESPACE.into());
        rollback.metadata.annotations = Some(BTreeMap::from([
            (annotations::AUTHENTICATED_AS.into(), "somebody".into()),
            (annotations::SUBMITTED_HASH.into(), format!("hash-{name}")),
        ]));
        self.api.put(&rollback_path(name), rollback);
    }

    pub(super) fn rollback(&self, name: &str) -> Rollback {
        self.api.get(&rollback_path(name)).unwrap()
    }

    pub(super) fn condition(&self, name: &str, type_: &str) -> (String, String) {
        let status = self.rollback(name).status.unwrap();
        let condition = rollback_core::conditions::find(&status.conditions, type_).unwrap();
        (condition.status.clone(), condition.reason.clone())
    }

    pub(super) fn pointer(&self) -> Pointer {
        let object: ConfigMap = self.api.get(&pointer_path()).unwrap();
        Pointer::parse(TARGET, &object).unwrap()
    }

    /// What the release controller does with an activation.
    pub(super) fn activate(&self, release: &str, id: &str, by: Option<(&str, &str)>) {
        let object: Option<ConfigMap> = self.api.get(&pointer_path());
        let old = object.as_ref().map(|object| Pointer::parse(TARGET, object).unwrap()).unwrap_or_default();
        let activation = Activation {
            id: id.into(),
            time: MicroTime(Timestamp::now()),
            rollback_ref: by.map(|(name, _)| name.into()),
            rollback_uid: by.map(|(_, uid)| uid.into()),
        };
        let active = ActiveRelease {
            release: release.into(),
            uid: "u".into(),
            activation,
            replaced: old.active.as_ref().map(|active| active.release.clone()),
            left: None,
        };
        let pointer = Pointer { active: Some(active), ..old };
        self.api.put(&pointer_path(), pointer.to_object(NAMESPACE, TARGET, object.as_ref()));
    }

    /// The release controller follows the request on a release, if there is a new one; says whether there was.
    pub(super) fn release_controller(&self) -> bool {
        let mut followed = false;
        for release in self.api.all::<Release>("/releases/") {
            let Some(text) =
                release.metadata.annotations.as_ref().and_then(|all| all.get(annotations::ACTIVATION))
            else {
                continue;
            };
            let asked: Activation = serde_json::from_str(text).unwrap();
            if self.pointer().active.is_some_and(|active| active.activation.id == asked.id) {
                continue;
            }
            followed = true;
            let by = asked.rollback_ref.as_deref().zip(asked.rollback_uid.as_deref());
            self.activate(release.metadata.name.as_deref().unwrap(), &asked.id, by);
        }
        followed
    }

    /// The watches catch up.
    pub(super) fn show(&self) {
        fn fill<K>(index: &Index<K>, objects: Vec<K>)
        where
            K: kube::Resource,
        {
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

    /// Passes, with watches that keep up, until nothing is written any more.
    pub(super) async fn settle(&self) -> Next {
        for _ in 0..10 {
            self.show();
            self.api.take_log();
            let next = self.pass().await.unwrap();
            let followed = self.release_controller();
            self.show();
            if !followed && self.api.take_log().iter().all(|line| line.starts_with("GET")) {
                return next;
            }
        }
        panic!("no rest after 10 passes");
    }

    pub(super) fn cancel(&self, name: &str) {
        self.api.edit(&rollback_path(name), |object| {
            object["metadata"]["annotations"][annotations::CANCEL] = json!("changed my mind");
        });
    }

    pub(super) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

fn context(api: &FakeApi, backend: &FakeBackend, metrics: Metrics, fence: Fence) -> Context {
    let client = api.client();
    let (events, _) = Events::new(client.clone(), metrics.clone());
    Context {
        client,
        stores: Stores::default(),
        settings: Settings {
            rollback: observed::Settings {
                backends: vec![Backend::Github],
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
        fence,
        events,
        metrics,
        queues: Queues::new().0,
        deployers: Deployers::only(Backend::Github, Arc::new(backend.clone())),
        pacing: Pacing::default(),
    }
}
