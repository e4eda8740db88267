//! What must hold before the first write: no object refuses its content, and what the restored templates refer to
//! exists (rule 18). Reads only.

use std::collections::{BTreeMap, BTreeSet};

use rollback_core::backend::{BackendError, ErrorClass};
use rollback_core::workload::object::{ObjectKey, WorkloadKind};
use rollback_core::workload::plan::{self, Options};
use rollback_core::workload::references::{self, Reference, ReferenceKind};
use rollback_core::workload::restore::{Need, need};
use serde_json::Value;

use super::item::{Item, Part, called, sort};
use super::objects::{Existence, Objects};

/// Checks the items and adds the ConfigMaps that have to be created again for them. All that is in the way is in one
/// error, so that a person mends it in one go.
pub(super) async fn check(
    objects: &Objects<'_>,
    items: Vec<Item>,
    key: &str,
    options: Options,
) -> Result<Vec<Item>, BackendError> {
    let mut problems = Vec::new();
    let mut busy = true;
    let mut needed: BTreeMap<Reference, BTreeSet<ObjectKey>> = BTreeMap::new();
    for item in &items {
        let live = objects.get(&item.object).await?;
        let need = need(&item.object, live.as_ref(), &item.snapshot, key);
        let obstacle = live
            .as_ref()
            .and_then(|live| plan::obstacle(&item.object, objects.namespace(), live, &need, options));
        if let Some(obstacle) = obstacle {
            busy &= live.as_ref().is_some_and(|live| !live["metadata"]["deletionTimestamp"].is_null());
            problems.push(obstacle);
        }
        match need {
            Need::Create(_) | Need::Restore(_) => {
                for reference in references::of_template(&item.snapshot["spec"]["template"]) {
                    needed.entry(reference).or_default().insert(item.object.clone());
                }
            }
            // Its pods run with what they refer to.
            Need::Mark(_) | Need::HandBack(_) | Need::Nothing => {}
        }
    }
    let kept = Kept::of(&items);
    let mut items = items;
    for (reference, by) in needed {
        if kept.in_release(&reference) || objects.exists(&reference).await? != Existence::Absent {
            continue;
        }
        if let Some(snapshot) = kept.beside(&reference) {
            let object = ObjectKey::new(WorkloadKind::ConfigMap, reference.name);
            items.push(Item { object, snapshot, part: Part::Missing });
            continue;
        }
        busy = false;
        let by: Vec<String> = by.iter().map(called).collect();
        let (kind, name) = (reference.kind.as_str().to_lowercase(), &reference.name);
        problems.push(format!(
            "{} needs {reference}, which does not exist; create it (kubectl create {kind} {name} -n {} …) or roll back to \
             another release",
            by.join(", "),
            objects.namespace(),
        ));
    }
    if !problems.is_empty() {
        let class = if busy { ErrorClass::Busy } else { ErrorClass::Invalid };
        return Err(BackendError::new(class, format!("nothing was touched: {}", problems.join("; "))));
    }
    sort(&mut items);
    Ok(items)
}

/// ConfigMaps that can be had from the snapshots.
struct Kept {
    release: BTreeSet<String>,
    beside: BTreeMap<String, Value>,
}

impl Kept {
    fn of(items: &[Item]) -> Self {
        let configmaps = items.iter().filter(|item| item.object.kind == WorkloadKind::ConfigMap);
        let mut beside = BTreeMap::new();
        for item in items {
            if let Part::Recorded { references } = &item.part {
                for configmap in references {
                    let name = configmap["metadata"]["name"].as_str().unwrap_or_default();
                    beside.insert(name.to_owned(), configmap.clone());
                }
            }
        }
        Self { release: configmaps.map(|item| item.object.name.clone()).collect(), beside }
    }

    /// The release brings it itself.
    fn in_release(&self, reference: &Reference) -> bool {
        reference.kind == ReferenceKind::ConfigMap && self.release.contains(&reference.name)
    }

    fn beside(&self, reference: &Reference) -> Option<Value> {
        match reference.kind {
            ReferenceKind::ConfigMap => self.beside.get(&reference.name).cloned(),
            ReferenceKind::Secret | ReferenceKind::ServiceAccount | ReferenceKind::PersistentVolumeClaim => {
                None
            }
        }
    }
}
