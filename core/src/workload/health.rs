//! Whether a release that runs is healthy, by the pods of its workloads (rule 20).
//!
//! A release has failed when a pod of its own template crashes in a loop, cannot be started, or is not ready for too
//! long, or when a workload's controller gave up. It is healthy when every rollout is finished, at least one pod is ready
//! and it has been active for a minimum time. Anything else is no verdict.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::object::{ObjectKey, WorkloadKind};
use super::pods::{self, GRACE, Template, Trouble};
use super::rollout::{RolloutState, rollout};

/// Most troubles that a message names.
const NAMED: usize = 3;

/// A workload that runs.
#[derive(Clone, Debug)]
pub struct Running<'a> {
    /// Its name.
    pub key: &'a ObjectKey,
    /// The object.
    pub object: &'a Value,
    /// Which pods run its current template; `None` while none can.
    pub template: Option<Template>,
    /// Its pods, at least those of the current template.
    pub pods: Vec<Pod>,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A release counts as healthy only this long after it became active.
    pub minimum_active: SignedDuration,
    /// A pod that is not ready for this long has failed.
    pub failure_after: SignedDuration,
}

/// The release that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// When it became active; `None` while it is being deployed.
    pub active_since: Option<Timestamp>,
    /// Whether it was healthy since it was deployed. Then a single pod condemns it no more (a node may have failed):
    /// only a workload without any ready pod does.
    pub proven: bool,
}

/// What there is to say about a release's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthVerdict {
    /// Every workload is rolled out and has stayed ready.
    Healthy(String),
    /// It should be left; why, for people.
    RollbackRequired(String),
    /// No verdict yet; how far it is, for people.
    InProgress(String),
    /// Nothing runs that could be judged.
    NothingRunning,
}

/// A verdict and how long it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// What there is to say.
    pub verdict: HealthVerdict,
    /// When the same pods would be judged otherwise.
    pub again: Option<Timestamp>,
}

/// Judges a release by its workloads.
pub fn assess(running: &[Running<'_>], subject: Subject, limits: Limits, now: Timestamp) -> Assessment {
    let seen: Vec<Seen> = running.iter().map(|workload| look(workload, subject, limits)).collect();
    let troubles = || seen.iter().flat_map(|seen| &seen.troubles);
    let counting: Vec<&str> = troubles()
        .filter(|trouble| trouble.counts_from <= now)
        .map(|trouble| trouble.text.as_str())
        .collect();
    if !counting.is_empty() {
        return Assessment { verdict: HealthVerdict::RollbackRequired(several(&counting)), again: None };
    }
    let again = troubles().map(|trouble| trouble.counts_from).min();
    let waiting: Vec<&str> = seen.iter().filter_map(|seen| seen.waits.as_deref()).collect();
    if !waiting.is_empty() {
        return Assessment { verdict: HealthVerdict::InProgress(several(&waiting)), again };
    }
    let ready: usize = seen.iter().map(|seen| seen.ready).sum();
    if ready == 0 {
        let verdict = if running.iter().all(|workload| wants_none(workload.key.kind, workload.object)) {
            HealthVerdict::NothingRunning
        } else {
            HealthVerdict::InProgress("rolled out, but no pod of it can be seen yet".to_owned())
        };
        return Assessment { verdict, again };
    }
    let pods = if ready == 1 { "1 pod is ready".to_owned() } else { format!("{ready} pods are ready") };
    let Some(since) = subject.active_since else {
        let verdict = HealthVerdict::InProgress(format!("rolled out: {pods}; about to become active"));
        return Assessment { verdict, again };
    };
    let healthy_at = since.checked_add(limits.minimum_active).unwrap_or(since);
    if now < healthy_at {
        let verdict = HealthVerdict::InProgress(format!(
            "rolled out: {pods}; healthy if it stays so until {healthy_at:.0}"
        ));
        return Assessment { verdict, again: again.into_iter().chain([healthy_at]).min() };
    }
    Assessment { verdict: HealthVerdict::Healthy(format!("every workload is rolled out: {pods}")), again }
}

/// What one workload looks like.
struct Seen {
    troubles: Vec<Trouble>,
    /// What its rollout waits for.
    waits: Option<String>,
    /// Pods of the current template that are ready.
    ready: usize,
}

fn look(workload: &Running<'_>, subject: Subject, limits: Limits) -> Seen {
    let Running { key, object, template, pods } = workload;
    let called = format!("{} {}", key.kind.as_str(), key.name);
    let own: Vec<&Pod> =
        pods.iter().filter(|pod| template.as_ref().is_some_and(|template| template.runs(pod))).collect();
    let ready = own.iter().filter(|pod| pods::is_ready(pod)).count();
    let mut troubles: Vec<Trouble> = Vec::new();
    let mut waits = None;
    match rollout(key.kind, object) {
        Ok(RolloutState::Finished) => {}
        Ok(RolloutState::InProgress(how)) => waits = Some(format!("{called}: {how}")),
        Ok(RolloutState::Failed(why)) => {
            let text = format!("{called}: {why}");
            waits = Some(text.clone());
            troubles.push(Trouble { text, counts_from: Timestamp::UNIX_EPOCH });
        }
        Err(error) => waits = Some(format!("{called} cannot be read: {error}")),
    }
    troubles.extend(cannot_create(&called, object));
    troubles.extend(own.iter().filter_map(|pod| pods::trouble(pod, limits.failure_after)));
    // The pod says more than its Deployment does.
    troubles.sort_by_key(|trouble| !trouble.text.starts_with("pod "));
    if subject.proven && ready > 0 {
        troubles.clear();
    }
    Seen { troubles, waits, ready }
}

/// Whether no pod is wanted at all.
fn wants_none(kind: WorkloadKind, object: &Value) -> bool {
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => object["spec"]["replicas"] == 0,
        WorkloadKind::DaemonSet => object["status"]["desiredNumberScheduled"] == 0,
        WorkloadKind::ConfigMap => true,
    }
}

/// A Deployment whose pods are refused: a quota, an admission webhook, a service account that does not exist.
fn cannot_create(called: &str, object: &Value) -> Option<Trouble> {
    let conditions = object["status"]["conditions"].as_array()?;
    let refused = |condition: &&Value| condition["type"] == "ReplicaFailure" && condition["status"] == "True";
    let condition = conditions.iter().find(refused)?;
    let since = condition["lastTransitionTime"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let since = since.unwrap_or(Timestamp::UNIX_EPOCH);
    let why = condition["message"].as_str().or(condition["reason"].as_str()).unwrap_or("no reason is given");
    Some(Trouble {
        text: format!("{called}: pods cannot be created: {why}"),
        counts_from: since.checked_add(GRACE).unwrap_or(since),
    })
}

fn several(all: &[&str]) -> String {
    let named = all.iter().take(NAMED).copied().collect::<Vec<_>>().join("; ");
    match all.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

#[cfg(test)]
mod tests;
