//! What the watches show, by target: no question about one target looks at the objects of another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::runtime::watcher::Event;
use rollback_api::{Release, Rollback, labels};
use rollback_core::pointer::Pointer;

use crate::target::TargetKey;

/// Objects of one kind by target. Shared between a watch, which writes, and passes, which read.
#[derive(Debug)]
pub struct Index<K> {
    target: fn(&K) -> Option<TargetKey>,
    held: RwLock<Held<K>>,
}

#[derive(Debug)]
struct Held<K> {
    known: Objects<K>,
    /// What a list that is under way has shown so far.
    listing: Option<Objects<K>>,
}

#[derive(Debug)]
struct Objects<K> {
    /// Name → object, for each target.
    by_target: HashMap<TargetKey, BTreeMap<String, Arc<K>>>,
    /// (namespace, name) → target.
    targets: HashMap<(String, String), TargetKey>,
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Self { by_target: HashMap::new(), targets: HashMap::new() }
    }
}

impl<K: Resource> Objects<K> {
    /// The target that the object was filed under before, if it was.
    fn remove(&mut self, place: &(String, String)) -> Option<TargetKey> {
        let key = self.targets.remove(place)?;
        if let Some(objects) = self.by_target.get_mut(&key) {
            objects.remove(&place.1);
            if objects.is_empty() {
                self.by_target.remove(&key);
            }
        }
        Some(key)
    }

    fn find(&self, object: &K) -> Option<&K> {
        let place = place(object);
        let found = self.by_target.get(self.targets.get(&place)?)?.get(&place.1)?;
        (found.meta().uid == object.meta().uid).then_some(&**found)
    }

    fn has_newer(&self, object: &K) -> bool {
        self.find(object).is_some_and(|found| version(found) > version(object) && version(object).is_some())
    }

    fn has_older(&self, object: &K) -> bool {
        self.find(object).is_some_and(|found| version(found) < version(object) && version(found).is_some())
    }

    fn insert(&mut self, key: TargetKey, object: K) {
        let (namespace, name) = place(&object);
        self.by_target.entry(key.clone()).or_default().insert(name.clone(), Arc::new(object));
        self.targets.insert((namespace, name), key);
    }
}

fn place<K: Resource>(object: &K) -> (String, String) {
    let metadata = object.meta();
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// Versions of one object are numbers that grow (so says the API since Kubernetes 1.35).
fn version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

impl<K: Resource> Index<K> {
    /// An empty index; `target` says which target an object belongs to, if any.
    pub fn new(target: fn(&K) -> Option<TargetKey>) -> Arc<Self> {
        let held = Held { known: Objects::default(), listing: None };
        Arc::new(Self { target, held: RwLock::new(held) })
    }

    /// All objects of the target, by name.
    pub fn of(&self, key: &TargetKey) -> Vec<Arc<K>> {
        self.read()
            .known
            .by_target
            .get(key)
            .map(|objects| objects.values().cloned().collect())
            .unwrap_or_default()
    }

    /// The object of that name, if it belongs to the target.
    pub fn get(&self, key: &TargetKey, name: &str) -> Option<Arc<K>> {
        self.read().known.by_target.get(key)?.get(name).cloned()
    }

    /// The targets that have an object.
    pub fn targets(&self) -> Vec<TargetKey> {
        self.read().known.by_target.keys().cloned().collect()
    }

    /// Takes in what a watch saw; returns the targets that it is about.
    pub fn apply(&self, event: Event<K>) -> BTreeSet<TargetKey> {
        let mut held = self.write();
        match event {
            Event::Apply(object) => {
                if held.known.has_newer(&object) {
                    return BTreeSet::new();
                }
                let mut about: BTreeSet<TargetKey> = held.known.remove(&place(&object)).into_iter().collect();
                if let Some(key) = (self.target)(&object) {
                    about.insert(key.clone());
                    held.known.insert(key, object);
                }
                about
            }
            Event::Delete(object) => held.known.remove(&place(&object)).into_iter().collect(),
            Event::Init => {
                held.listing = Some(Objects::default());
                BTreeSet::new()
            }
            Event::InitApply(object) => {
                if let (Some(key), Some(listing)) = ((self.target)(&object), held.listing.as_mut()) {
                    listing.insert(key, object);
                }
                BTreeSet::new()
            }
            Event::InitDone => {
                let Some(listed) = held.listing.take() else { return BTreeSet::new() };
                let before = std::mem::replace(&mut held.known, listed);
                before.by_target.into_keys().chain(held.known.by_target.keys().cloned()).collect()
            }
        }
    }

    /// Takes in what a write was answered with, ahead of the watch, so that the next pass does not begin with what was
    /// before. Only in place of an older version of the same object: one that is gone stays gone. For kinds that are
    /// kept without `managedFields`.
    pub fn note(&self, written: &K)
    where
        K: Clone,
    {
        let mut held = self.write();
        let Some(key) = (self.target)(written).filter(|_| held.known.has_older(written)) else { return };
        let mut object = written.clone();
        object.meta_mut().managed_fields = None;
        held.known.remove(&place(&object));
        held.known.insert(key, object);
    }

    /// Takes an object out that cannot be read any more; returns the target that it belonged to.
    pub fn forget(&self, namespace: &str, name: &str) -> Option<TargetKey> {
        self.write().known.remove(&(namespace.to_owned(), name.to_owned()))
    }

    // A panic between two changes cannot leave half an object behind, so a poisoned lock is as good as any.
    fn read(&self) -> RwLockReadGuard<'_, Held<K>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held<K>> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The target of a Release.
pub fn of_release(release: &Release) -> Option<TargetKey> {
    Some(TargetKey::new(release.metadata.namespace.clone()?, release.spec.config.target_name.clone()))
}

/// The target of a Rollback.
pub fn of_rollback(rollback: &Rollback) -> Option<TargetKey> {
    Some(TargetKey::new(rollback.metadata.namespace.clone()?, rollback.spec.to_release_ref.target.clone()))
}

/// The target that a pointer is about.
pub fn of_pointer(object: &ConfigMap) -> Option<TargetKey> {
    Some(TargetKey::new(object.metadata.namespace.clone()?, Pointer::target_of(object)?))
}

/// The target that an object's label names.
pub fn by_label<K: Resource>(object: &K) -> Option<TargetKey> {
    let metadata = object.meta();
    Some(TargetKey::new(metadata.namespace.clone()?, metadata.labels.as_ref()?.get(labels::TARGET)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(name: &str, target: Option<&str>, version: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some("shop".into());
        object.metadata.name = Some(name.into());
        object.metadata.resource_version = Some(version.into());
        object.metadata.labels =
            target.map(|target| BTreeMap::from([(labels::TARGET.into(), target.into())]));
        object
    }

    fn key(target: &str) -> TargetKey {
        TargetKey::new("shop", target)
    }

    fn names(index: &Index<ConfigMap>, target: &str) -> Vec<String> {
        index.of(&key(target)).iter().map(|object| object.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn an_object_that_moves_concerns_both_targets() {
        let index = Index::new(by_label::<ConfigMap>);
        assert_eq!(index.apply(Event::Apply(labelled("x", Some("a"), "1"))), BTreeSet::from([key("a")]));
        let about = index.apply(Event::Apply(labelled("x", Some("b"), "2")));
        assert_eq!(about, BTreeSet::from([key("a"), key("b")]));
        assert_eq!((names(&index, "a"), names(&index, "b")), (vec![], vec!["x".to_owned()]));
        assert_eq!(index.apply(Event::Apply(labelled("x", None, "3"))), BTreeSet::from([key("b")]));
        assert_eq!(index.targets(), []);
    }

    #[test]
    fn a_new_list_replaces_the_old_one_when_it_is_complete() {
        let index = Index::new(by_label::<ConfigMap>);
        index.apply(Event::Apply(labelled("old", Some("a"), "1")));
        index.apply(Event::Apply(labelled("kept", Some("b"), "1")));
        assert!(index.apply(Event::Init).is_empty());
        index.apply(Event::InitApply(labelled("kept", Some("b"), "2")));
        assert_eq!(names(&index, "a"), ["old"], "half a list is no list");
        assert_eq!(index.apply(Event::InitDone), BTreeSet::from([key("a"), key("b")]));
        assert_eq!(names(&index, "a"), Vec::<String>::new());
        let kept = index.get(&key("b"), "kept").unwrap();
        assert_eq!(kept.metadata.resource_version.as_deref(), Some("2"));
        assert!(index.get(&key("a"), "kept").is_none());
    }

    #[test]
    fn a_written_object_is_known_at_once_and_its_echo_changes_nothing() {
        let index = Index::new(by_label::<ConfigMap>);
        let version =
            || index.get(&key("a"), "x").and_then(|object| object.metadata.resource_version.clone());
        index.note(&labelled("x", Some("a"), "5"));
        assert_eq!(version(), None, "what the watch has not shown is not added");
        index.apply(Event::Apply(labelled("x", Some("a"), "9")));
        index.note(&labelled("x", Some("a"), "10"));
        assert_eq!(version().as_deref(), Some("10"));
        index.note(&labelled("x", Some("a"), "7"));
        assert!(index.apply(Event::Apply(labelled("x", Some("a"), "8"))).is_empty());
        assert_eq!(version().as_deref(), Some("10"), "an older version comes late");
        assert_eq!(index.apply(Event::Apply(labelled("x", Some("a"), "10"))), BTreeSet::from([key("a")]));
        let mut another = labelled("x", Some("a"), "3");
        another.metadata.uid = Some("another".into());
        index.apply(Event::Apply(another));
        assert_eq!(version().as_deref(), Some("3"), "another object of the same name");
        index.apply(Event::Delete(labelled("x", Some("a"), "11")));
        index.note(&labelled("x", Some("a"), "12"));
        assert_eq!(version(), None, "what is gone stays gone");
    }

    #[test]
    fn what_is_deleted_or_unreadable_is_absent() {
        let index = Index::new(by_label::<ConfigMap>);
        index.apply(Event::Apply(labelled("x", Some("a"), "1")));
        index.apply(Event::Apply(labelled("y", Some("a"), "1")));
        assert_eq!(index.apply(Event::Delete(labelled("x", None, "2"))), BTreeSet::from([key("a")]));
        assert_eq!(index.forget("shop", "y"), Some(key("a")));
        assert_eq!(index.forget("shop", "y"), None);
        assert_eq!(names(&index, "a"), Vec::<String>::new());
    }
}
