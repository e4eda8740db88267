//! Whether the process may receive work: ready when every named part is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The parts of this process and their state. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    parts: Arc<Mutex<Parts>>,
}

/// Name of each part, with what it still waits for; None when it is ready.
type Parts = BTreeMap<&'static str, Option<String>>;

/// One part's handle, to say when it is ready.
#[derive(Debug, Clone)]
pub struct ReadyHandle {
    name: &'static str,
    readiness: Readiness,
}

impl Readiness {
    /// No parts yet: ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part that is not ready yet. A second part of the same name
    /// shares the state of the first.
    pub fn register(&self, name: &'static str) -> ReadyHandle {
        self.lock().entry(name).or_insert_with(|| Some("starting".to_owned()));
        ReadyHandle { name, readiness: self.clone() }
    }

    /// Whether every part is ready.
    pub fn is_ready(&self) -> bool {
        self.lock().values().all(Option::is_none)
    }

    /// Each part with what it waits for, by name.
    pub(crate) fn parts(&self) -> Vec<(&'static str, Option<String>)> {
        self.lock().iter().map(|(name, waits)| (*name, waits.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        // Every change is a single insert: a panic elsewhere leaves it whole.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadyHandle {
    /// Says that this part is ready.
    pub fn ready(&self) {
        self.readiness.lock().insert(self.name, None);
    }

    /// Says that this part is not ready, and what it waits for.
    pub fn not_ready(&self, waits_for: impl Into<String>) {
        self.readiness.lock().insert(self.name, Some(waits_for.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_when_every_part_is() {
        let readiness = Readiness::new();
        assert!(readiness.is_ready());
        let (cache, lease) = (readiness.register("cache"), readiness.register("lease"));
        assert!(!readiness.is_ready());
        cache.ready();
        assert!(!readiness.is_ready());
        lease.ready();
        assert!(readiness.is_ready());
        cache.not_ready("the watch broke");
        assert!(!readiness.is_ready());
        assert_eq!(readiness.parts()[0], ("cache", Some("the watch broke".to_owned())));
    }
}
