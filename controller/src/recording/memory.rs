//! What the recording remembers between two passes over a target. Lost with the process: then a change is waited for
//! again, and snapshots are looked for again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rollback_core::workload::set::Set;
use rollback_core::workload::window::Window;

use crate::target::TargetKey;

/// Sets of releases to remember; each is asked for only while a Rollback is under way.
const SETS: usize = 64;

/// About one target.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// A change that is not recorded yet.
    pub(super) window: Option<Window>,
    /// UID of the release whose snapshots are known to be stored.
    pub(super) kept: Option<String>,
    /// What was last said about why the target cannot be recorded.
    pub(super) complaint: Option<String>,
    /// Signature of the set that cannot be recorded as it is.
    pub(super) refused: Option<String>,
}

/// About all targets.
#[derive(Debug, Default)]
pub(super) struct Memories {
    targets: Mutex<HashMap<TargetKey, Memory>>,
    sets: Mutex<HashMap<String, Arc<Set>>>,
}

impl Memories {
    /// What is known about the target. No two passes over one target run at a time.
    pub(super) fn of(&self, key: &TargetKey) -> Memory {
        lock(&self.targets).get(key).cloned().unwrap_or_default()
    }

    pub(super) fn keep(&self, key: &TargetKey, memory: Memory) {
        lock(&self.targets).insert(key.clone(), memory);
    }

    pub(super) fn forget(&self, key: &TargetKey) {
        lock(&self.targets).remove(key);
    }

    /// The objects of a release by its UID: they never change.
    pub(super) fn set(&self, uid: &str) -> Option<Arc<Set>> {
        lock(&self.sets).get(uid).cloned()
    }

    pub(super) fn keep_set(&self, uid: &str, set: &Arc<Set>) {
        let mut sets = lock(&self.sets);
        if sets.len() >= SETS {
            sets.clear();
        }
        sets.insert(uid.to_owned(), Arc::clone(set));
    }
}

// A panic in the middle of a change leaves at worst an old entry.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
