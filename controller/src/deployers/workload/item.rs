//! The objects of the release that comes back.

use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use serde_json::Value;

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// Its name within the namespace.
    pub object: ObjectKey,
    /// The object as it was recorded.
    pub snapshot: Value,
    /// Why it is here.
    pub part: Part,
}

/// Why an object is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// The release consists of it. Beside it: the ConfigMaps that its template referred to and that do not belong
    /// to the target, as they were.
    Recorded {
        /// Whole ConfigMaps.
        references: Vec<Value>,
    },
    /// A ConfigMap that a template needs and that is gone. One that exists is none of our business.
    Missing,
}

/// The order of writes: ConfigMaps before the pods that read them, then by kind and name.
pub(super) fn sort(items: &mut [Item]) {
    items.sort_by_key(|item| (item.object.kind != WorkloadKind::ConfigMap, item.object.clone()));
}

/// `Deployment web`.
pub(super) fn called(object: &ObjectKey) -> String {
    format!("{} {}", object.kind.as_str(), object.name)
}
