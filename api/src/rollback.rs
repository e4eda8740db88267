//! The Rollback: a request to move a target to an earlier release, and the record of how that went.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default of `spec.progressDeadlineSeconds`, in seconds.
pub const DEFAULT_PROGRESS_DEADLINE_SECONDS: i64 = 1800;
/// Default of `spec.maxAttempts`.
pub const DEFAULT_MAX_ATTEMPTS: i32 = 3;
/// Most entries of `status.attempts`, and the largest `spec.maxAttempts`.
pub const MAX_ATTEMPTS: i32 = 10;

/// A request to move a target from its active release to an earlier one. Immutable once created.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "deploy.crd.gocardless.com",
    version = "v1alpha1",
    kind = "Rollback",
    plural = "rollbacks",
    shortname = "rb",
    category = "theatre",
    namespaced,
    status = "RollbackStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A request to move a target to an earlier release, and the record of how that went.",
    selectable = ".spec.toReleaseRef.target",
    selectable = ".spec.toReleaseRef.name",
    printcolumn(name = "From", type_ = "string", json_path = ".status.fromReleaseRef.name"),
    printcolumn(name = "To", type_ = "string", json_path = ".spec.toReleaseRef.name"),
    printcolumn(name = "Initiator", type_ = "string", json_path = ".spec.initiatedBy.principal"),
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Succeeded\")].status"
    ),
    printcolumn(name = "Reason", type_ = "string", json_path = ".spec.reason", priority = 10),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.fromReleaseRef) || self.fromReleaseRef.target == self.toReleaseRef.target").message("fromReleaseRef.target must equal toReleaseRef.target: a rollback moves one target"),
    validation = Rule::new("self.reason == oldSelf.reason").message("reason is immutable: create a new Rollback instead"),
    validation = Rule::new("!has(oldSelf.fromReleaseRef) || (has(self.fromReleaseRef) && self.fromReleaseRef == oldSelf.fromReleaseRef)").message("fromReleaseRef is immutable once set: create a new Rollback instead"),
    validation = Rule::new("(has(self.initiatedBy) && has(self.initiatedBy.principal) ? self.initiatedBy.principal : '') == (has(oldSelf.initiatedBy) && has(oldSelf.initiatedBy.principal) ? oldSelf.initiatedBy.principal : '') && (has(self.initiatedBy) && has(self.initiatedBy.type) ? self.initiatedBy.type : '') == (has(oldSelf.initiatedBy) && has(oldSelf.initiatedBy.type) ? oldSelf.initiatedBy.type : '')").message("initiatedBy is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(self.backend) ? self.backend : '') == (has(oldSelf.backend) ? oldSelf.backend : '')").message("backend is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(self.hold) ? self.hold : '') == (has(oldSelf.hold) ? oldSelf.hold : '')").message("hold is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(self.progressDeadlineSeconds) ? self.progressDeadlineSeconds : 1800) == (has(oldSelf.progressDeadlineSeconds) ? oldSelf.progressDeadlineSeconds : 1800)").message("progressDeadlineSeconds is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(self.maxAttempts) ? self.maxAttempts : 3) == (has(oldSelf.maxAttempts) ? oldSelf.maxAttempts : 3)").message("maxAttempts is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(self.ttlSecondsAfterFinished) ? self.ttlSecondsAfterFinished : 0) == (has(oldSelf.ttlSecondsAfterFinished) ? oldSelf.ttlSecondsAfterFinished : 0)").message("ttlSecondsAfterFinished is immutable: create a new Rollback instead"),
    validation = Rule::new("(has(oldSelf.dryRun) && oldSelf.dryRun) || !(has(self.dryRun) && self.dryRun)").message("dryRun cannot be enabled after creation")
)]
#[serde(rename_all = "camelCase")]
pub struct RollbackSpec {
    /// The release to go back to. Without a name, admission picks the newest eligible one.
    pub to_release_ref: ReleaseRef,
    /// Added: the release to leave. Absent: the active one, filled in at admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_release_ref: Option<FromReleaseRef>,
    /// Why, for people: an incident number, a symptom.
    #[schemars(length(min = 1, max = 512))]
    pub reason: String,
    /// Who asked for it, as the client says. The verified user is in an annotation (rule 7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiated_by: Option<InitiatedBy>,
    /// Options for the backend. Strings may be kubectl JSONPath templates over the target release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_options: Option<DeploymentOptions>,
    /// Added: what carries the rollback out. Absent: the controller's first backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// Added: seconds from leaving the queue to giving up. Default 1800.
    #[schemars(range(min = 30, max = 86400))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i64>,
    /// Added: how often to try. Default 3.
    #[schemars(range(min = 1, max = 10))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<i32>,
    /// Added: how long to keep automation from undoing the rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Added: seconds to keep the object after its end. Absent: for ever.
    #[schemars(range(min = 600, max = 315_360_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// While true nothing is deployed; unset it to deploy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// Option name → JSON value; values are kept as they are.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct DeploymentOptions(pub BTreeMap<String, serde_json::Value>);

impl JsonSchema for DeploymentOptions {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DeploymentOptions".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "maxProperties": 64,
            "additionalProperties": { "x-kubernetes-preserve-unknown-fields": true },
        })
    }
}

/// A release of a target.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("!has(oldSelf.name) || oldSelf.name == '' || (has(self.name) && self.name == oldSelf.name)").message("Name is immutable once set"),
    validation = Rule::new("!has(oldSelf.signature) || oldSelf.signature == '' || !has(self.signature) || self.signature == oldSelf.signature").message("signature is immutable once set")
)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseRef {
    /// The target.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("Target is immutable"))]
    pub target: String,
    /// The release's name.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Added: the release's signature; pins its content.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The release that is being left.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct FromReleaseRef {
    /// The target.
    #[schemars(length(min = 1, max = 253))]
    pub target: String,
    /// The release's name.
    #[schemars(length(max = 253))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The release's signature; pins its content.
    #[schemars(length(max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Id of the activation that is being left: a later activation of the same release is not meant.
    #[schemars(length(max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
}

/// Who asked for a rollback, as the client says.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct InitiatedBy {
    /// A name.
    #[schemars(length(max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// `user` or `system`.
    #[schemars(length(max = 256))]
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// What carries a rollback out.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Deploys nothing and always succeeds.
    Noop,
    /// The cluster's own Deployments, StatefulSets, DaemonSets and ConfigMaps.
    Workload,
    /// GitHub Deployments.
    Github,
    /// Argo CD.
    Argocd,
}

impl Backend {
    /// All backends.
    pub const ALL: &'static [Self] = &[Self::Noop, Self::Workload, Self::Github, Self::Argocd];

    /// The text in the API and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Workload => "workload",
            Self::Github => "github",
            Self::Argocd => "argocd",
        }
    }

    /// The backend of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|backend| backend.as_str() == text)
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How long to keep automation from undoing a rollback (rule 14).
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Not at all.
    None,
    /// Until a newer release is deployed.
    UntilNewerRelease,
    /// Until a person ends it.
    UntilReleased,
}

/// How a rollback went. Written by the rollback controller alone.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RollbackStatus {
    /// One sentence for people: what happens now, or how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The release being left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_release_ref: Option<FromReleaseRef>,
    /// Whether automation created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,
    /// When the first attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The latest deployment, in the backend's words.
    #[serde(rename = "deploymentID", skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<String>,
    /// Where a person can watch it.
    #[serde(rename = "deploymentURL", skip_serializing_if = "Option::is_none")]
    pub deployment_url: Option<String>,
    /// How many attempts reached the backend or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_count: Option<i32>,
    /// `InProgress`, `Succeeded`, `DryRun`; see [`crate::conditions`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// Added: the `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Added: what is to be deployed, copied at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Added: one entry for each attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["number".into()]))]
    #[schemars(length(max = 10))]
    pub attempts: Vec<Attempt>,
    /// Added: when the next attempt may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Time>,
    /// Added: when to give up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

/// What a rollback deploys: copied at the start, so that later changes cannot move it.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The backend.
    pub backend: Backend,
    /// Options after JSONPath was resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<DeploymentOptions>,
    /// The target release's revisions.
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub revisions: Vec<crate::Revision>,
    /// The target release's signature.
    pub signature: String,
    /// UID of the target release.
    pub release_uid: String,
}

/// One try to make the backend deploy the target release.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// From 1.
    pub number: i32,
    /// The idempotency key: `<rollback uid>-<number>`.
    #[schemars(length(max = 128))]
    pub key: String,
    /// Where it stands.
    pub state: AttemptState,
    /// When it was persisted, before the backend was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The backend's id.
    #[serde(rename = "deploymentID", skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<String>,
    /// Where a person can watch it.
    #[serde(rename = "deploymentURL", skip_serializing_if = "Option::is_none")]
    pub deployment_url: Option<String>,
    /// What the backend said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Where an attempt stands.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptState {
    /// Persisted; the backend may or may not have been called.
    Triggering,
    /// The backend has it.
    Running,
    /// The backend says that it is deployed.
    Succeeded,
    /// The backend says that it failed, or refused it.
    Failed,
    /// Another deployment took over.
    Superseded,
    /// Stopped at our request.
    Cancelled,
    /// The rollback ended before the attempt was proven stopped; it may still finish.
    Abandoned,
}
