//! Watches that fill indexes and wake queues.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::TryStreamExt as _;
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, Resource};
use rollback_runtime::readiness::{Readiness, ReadyHandle};
use serde::de::DeserializeOwned;
use tokio::sync::watch as signal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::index::Index;
use crate::target::TargetKey;

/// All watches of the process.
pub struct Watches {
    client: Client,
    readiness: Readiness,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    synced: Vec<signal::Receiver<bool>>,
}

impl Watches {
    /// No watch yet. `stop` ends all of them.
    pub fn new(client: Client, readiness: Readiness, stop: CancellationToken) -> Self {
        Self { client, readiness, stop, tasks: JoinSet::new(), synced: Vec::new() }
    }

    /// Watches the kind in all namespaces: fills the index and tells `changed` which targets an event is about. `name`
    /// shows in /readyz until the first list is complete. `trim` drops what nobody reads, to save memory.
    ///
    /// An object that cannot be read is logged once for each of its versions and counts as absent.
    pub fn add<K, T, C>(
        &mut self,
        name: &'static str,
        config: watcher::Config,
        index: Arc<Index<K>>,
        trim: T,
        changed: C,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        T: Fn(&mut K) + Send + 'static,
        C: Fn(&TargetKey) + Send + 'static,
    {
        let api: Api<DeserializeGuard<K>> = Api::all(self.client.clone());
        let (synced, receiver) = signal::channel(false);
        self.synced.push(receiver);
        let ready = self.readiness.register(name);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let events = watch(api, config).default_backoff();
            let mut sift = Sift::new();
            let mut first = FirstList { name, ready, synced };
            let mut events = std::pin::pin!(events);
            loop {
                let event = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    event = events.try_next() => event,
                };
                match event {
                    Ok(Some(event)) => {
                        let done = matches!(event, Event::InitDone);
                        let about = match sift.sift(event, &trim) {
                            Sifted::Readable(event) => index.apply(event),
                            Sifted::Unreadable { namespace, name } => {
                                index.forget(&namespace, &name).into_iter().collect()
                            }
                            Sifted::Skipped => continue,
                        };
                        for key in about {
                            changed(&key);
                        }
                        if done {
                            first.complete();
                        }
                    }
                    Ok(None) => return,
                    Err(error) => first.failed(&error),
                }
            }
        });
    }

    /// Resolves when every watch has its first complete list.
    pub async fn synced(&self) {
        for synced in &self.synced {
            if synced.clone().wait_for(|done| *done).await.is_err() {
                // The watch has ended, which it does only when the process does.
                std::future::pending::<()>().await;
            }
        }
    }
}

struct FirstList {
    name: &'static str,
    ready: ReadyHandle,
    synced: signal::Sender<bool>,
}

impl FirstList {
    fn complete(&mut self) {
        if !self.synced.send_replace(true) {
            tracing::debug!(watch = self.name, "first list complete");
            self.ready.ready();
        }
    }

    fn failed(&self, error: &watcher::Error) {
        let why = describe(error);
        if !*self.synced.borrow() {
            self.ready.not_ready(why.clone());
        }
        // An expired list or a closed connection is ordinary: the watch begins again.
        if matches!(error, watcher::Error::WatchError(status) if status.code == 410) {
            tracing::debug!(watch = self.name, "{why}");
        } else {
            tracing::warn!(watch = self.name, "{why}; trying again");
        }
    }
}

fn describe(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(source) => {
            format!("the list cannot be read: {}", crate::error::sentence(source))
        }
        watcher::Error::WatchStartFailed(source) | watcher::Error::WatchFailed(source) => {
            format!("the watch broke: {}", crate::error::sentence(source))
        }
        watcher::Error::WatchError(status) => format!("the watch was ended: {}", status.message),
        watcher::Error::NoResourceVersion => "the list came without a resourceVersion".to_owned(),
    }
}

/// Lets through what can be read.
struct Sift {
    /// UID → resourceVersion of unreadable objects that were logged.
    logged: HashMap<String, Option<String>>,
}

impl Sift {
    fn new() -> Self {
        Self { logged: HashMap::new() }
    }

    fn sift<K: Resource<DynamicType = ()>>(
        &mut self,
        event: Event<DeserializeGuard<K>>,
        trim: impl Fn(&mut K),
    ) -> Sifted<K> {
        let trimmed = |mut object: K| {
            trim(&mut object);
            object
        };
        match event {
            Event::Apply(DeserializeGuard(Ok(object))) => Sifted::Readable(Event::Apply(trimmed(object))),
            Event::InitApply(DeserializeGuard(Ok(object))) => {
                Sifted::Readable(Event::InitApply(trimmed(object)))
            }
            Event::Delete(DeserializeGuard(Ok(object))) => Sifted::Readable(Event::Delete(object)),
            Event::Init => Sifted::Readable(Event::Init),
            Event::InitDone => Sifted::Readable(Event::InitDone),
            Event::InitApply(DeserializeGuard(Err(invalid))) => {
                self.log::<K>(&invalid);
                Sifted::Skipped
            }
            Event::Apply(DeserializeGuard(Err(invalid))) => {
                self.log::<K>(&invalid);
                gone(invalid)
            }
            Event::Delete(DeserializeGuard(Err(invalid))) => {
                self.logged.remove(invalid.metadata.uid.as_deref().unwrap_or_default());
                gone(invalid)
            }
        }
    }

    fn log<K: Resource<DynamicType = ()>>(&mut self, invalid: &InvalidObject) {
        let metadata = &invalid.metadata;
        let version = metadata.resource_version.clone();
        let before = self.logged.insert(metadata.uid.clone().unwrap_or_default(), version.clone());
        if before.is_none_or(|before| before != version) {
            tracing::error!(
                kind = %K::kind(&()),
                namespace = metadata.namespace.as_deref().unwrap_or_default(),
                name = metadata.name.as_deref().unwrap_or_default(),
                "the object cannot be read and is ignored until it is corrected: {}",
                invalid.error
            );
        }
    }
}

/// What becomes of an event.
enum Sifted<K> {
    Readable(Event<K>),
    /// An object that could be read before, perhaps, and cannot any more.
    Unreadable {
        namespace: String,
        name: String,
    },
    Skipped,
}

fn gone<K>(invalid: InvalidObject) -> Sifted<K> {
    Sifted::Unreadable {
        namespace: invalid.metadata.namespace.unwrap_or_default(),
        name: invalid.metadata.name.unwrap_or_default(),
    }
}

/// Drops `managedFields`, which nobody reads from an index of our own kinds.
pub fn without_managed_fields<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

#[cfg(test)]
mod tests {
    use rollback_api::Rollback;
    use serde_json::json;

    use super::*;

    fn guarded(version: &str, spec: &serde_json::Value) -> DeserializeGuard<Rollback> {
        let metadata = json!({ "name": "rb", "namespace": "shop", "uid": "u", "resourceVersion": version });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    }

    #[test]
    fn an_unreadable_object_counts_as_absent_and_stops_nothing() {
        let mut sift = Sift::new();
        let good = json!({ "toReleaseRef": { "target": "payments" }, "reason": "x" });
        let bad = json!({ "toReleaseRef": "payments" });
        let readable = sift.sift(Event::Apply(guarded("1", &good)), |_| {});
        assert!(matches!(readable, Sifted::Readable(Event::Apply(_))));
        match sift.sift(Event::Apply(guarded("2", &bad)), |_| {}) {
            Sifted::Unreadable { namespace, name } => assert_eq!((&*namespace, &*name), ("shop", "rb")),
            Sifted::Readable(_) | Sifted::Skipped => panic!("an unreadable object was let through"),
        }
        assert_eq!(sift.logged["u"].as_deref(), Some("2"));
        assert!(matches!(sift.sift(Event::InitApply(guarded("2", &bad)), |_| {}), Sifted::Skipped));
        assert!(matches!(sift.sift(Event::Delete(guarded("3", &bad)), |_| {}), Sifted::Unreadable { .. }));
        assert!(sift.logged.is_empty());
    }

    #[test]
    fn what_nobody_reads_is_dropped() {
        let object = json!({ "metadata": { "name": "rb", "managedFields": [{ "manager": "x" }] },
                             "spec": { "toReleaseRef": { "target": "payments" }, "reason": "x" } });
        let event = Event::Apply(serde_json::from_value::<DeserializeGuard<Rollback>>(object).unwrap());
        match Sift::new().sift(event, without_managed_fields) {
            Sifted::Readable(Event::Apply(rollback)) => assert_eq!(rollback.metadata.managed_fields, None),
            _ => panic!("not an object"),
        }
    }
}
