//! The Release: a record of one combination of revisions that was deployed for a target.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The fields of a Release beside `metadata` and `status`.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "deploy.crd.gocardless.com",
    version = "v1alpha1",
    kind = "Release",
    plural = "releases",
    shortname = "rel",
    category = "theatre",
    namespaced,
    no_spec,
    status = "ReleaseStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A combination of revisions that was deployed for a target, and how healthy it was.",
    selectable = ".config.targetName",
    selectable = ".status.signature",
    printcolumn(name = "Target_Name", type_ = "string", json_path = ".config.targetName"),
    printcolumn(
        name = "Active",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Active\")].status"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Healthy\")].status"
    ),
    printcolumn(name = "Signature", type_ = "string", json_path = ".status.signature"),
    printcolumn(name = "Started_At", type_ = "string", json_path = ".status.deploymentStartTime"),
    printcolumn(name = "Ended_At", type_ = "string", json_path = ".status.deploymentEndTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFields {
    /// What was deployed. Not a `spec`: it records what happened and never changes.
    #[x_kube(validation = Rule::new("self.targetName == oldSelf.targetName").message("config.targetName is immutable: record another combination as a new Release"))]
    #[x_kube(validation = Rule::new("self.revisions.size() == oldSelf.revisions.size() && self.revisions.all(r, oldSelf.revisions.exists(o, o.name == r.name && o.id == r.id && (has(o.source) ? o.source : '') == (has(r.source) ? r.source : '') && (has(o.type) ? o.type : '') == (has(r.type) ? r.type : '')))").message("config.revisions is immutable: record another combination as a new Release"))]
    #[x_kube(validation = Rule::new("self.revisions.all(r, oldSelf.revisions.exists(o, o.name == r.name && (has(o.metadata) && has(o.metadata.author) ? o.metadata.author : '') == (has(r.metadata) && has(r.metadata.author) ? r.metadata.author : '') && (has(o.metadata) && has(o.metadata.branch) ? o.metadata.branch : '') == (has(r.metadata) && has(r.metadata.branch) ? r.metadata.branch : '') && (has(o.metadata) && has(o.metadata.message) ? o.metadata.message : '') == (has(r.metadata) && has(r.metadata.message) ? r.metadata.message : '')))").message("config.revisions[].metadata is immutable: it is part of the release's signature"))]
    pub config: ReleaseConfig,
}

/// What was deployed: a target and its named revisions.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseConfig {
    /// The service in this namespace; a DNS-1123 subdomain.
    #[schemars(
        length(min = 1, max = 245),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub target_name: String,
    /// The revisions that were deployed together, one for each name.
    #[schemars(length(min = 1, max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub revisions: Vec<Revision>,
}

/// One named revision, such as `application` or `infrastructure`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Name, unique in the release.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What identifies the revision to its source: a commit, an image tag, a chart version.
    #[schemars(length(min = 1, max = 1024))]
    pub id: String,
    /// Where it comes from; the GitHub backend wants `owner/repo`.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What kind of source: `github`, `git`, `container_image`, `helm_chart`, …
    #[schemars(length(max = 253))]
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Who made it and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<RevisionMetadata>,
}

/// Who made a revision and why.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct RevisionMetadata {
    /// Author, as the source system writes it.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Branch.
    #[schemars(length(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit message.
    #[schemars(length(max = 16384))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What is known about a release. Written by the release controller alone (rule 1).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseStatus {
    /// `Active`, `Healthy`, `RollbackRequired`; see [`crate::conditions`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// One sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When its deployment started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_start_time: Option<Time>,
    /// When its deployment ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_end_time: Option<Time>,
    /// The release that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_release: Option<PreviousRelease>,
    /// First 10 hex digits of the SHA-256 of the canonical config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Added: the `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Added: the latest event that made this release the active one. Kept after it was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// Added: when the release stopped being active, if it was and is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deactivation_time: Option<Time>,
    /// Added: the Rollback that left this release since it was last activated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_by_rollback: Option<String>,
}

/// A link to the release that was active before.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct PreviousRelease {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ref: Option<String>,
    /// When the link was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transition_time: Option<Time>,
}

/// One event that made a release active (rule 1).
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    /// Names the event; a Rollback pins the release it leaves by it.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// When the deployment finished. Orders activations.
    pub time: MicroTime,
    /// The Rollback (name) that deployed it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rollback_ref: Option<String>,
    /// UID of that Rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rollback_uid: Option<String>,
}
