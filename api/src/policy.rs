//! The AutomatedRollbackPolicy: when to create a Rollback without a person.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rollback::DeploymentOptions;

/// When to roll a target back without a person.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "deploy.crd.gocardless.com",
    version = "v1alpha1",
    kind = "AutomatedRollbackPolicy",
    plural = "automatedrollbackpolicies",
    shortname = "arbp",
    category = "theatre",
    namespaced,
    status = "AutomatedRollbackPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "When to roll a target back without a person.",
    selectable = ".spec.targetName",
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetName"),
    printcolumn(name = "Trigger_Condition", type_ = "string", json_path = ".spec.trigger.conditionType"),
    printcolumn(name = "Trigger_When", type_ = "string", json_path = ".spec.trigger.conditionStatus"),
    printcolumn(
        name = "Automated",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Automated\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Automated\")].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Automated\")].message",
        priority = 10
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AutomatedRollbackPolicySpec {
    /// The target that this policy watches.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("targetName is immutable: create a policy for the other target instead"))]
    pub target_name: String,
    /// Whether the policy may act.
    #[serde(default)]
    pub enabled: bool,
    /// What triggers it. Absent behaves as its defaults.
    #[serde(default)]
    pub trigger: Trigger,
    /// What the Rollbacks it creates look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_template: Option<RollbackTemplate>,
}

/// The release condition that triggers a rollback while the release is active.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Condition type on the active release.
    #[serde(default = "Trigger::default_condition_type")]
    #[schemars(length(min = 1, max = 316))]
    pub condition_type: String,
    /// The status that triggers.
    #[serde(default)]
    pub condition_status: TriggerStatus,
}

impl Trigger {
    fn default_condition_type() -> String {
        crate::conditions::ReleaseCondition::RollbackRequired.as_str().to_owned()
    }
}

impl Default for Trigger {
    fn default() -> Self {
        Self { condition_type: Self::default_condition_type(), condition_status: TriggerStatus::default() }
    }
}

/// A condition status that may trigger; Unknown never does.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriggerStatus {
    /// Triggers while the condition is True.
    #[default]
    True,
    /// Triggers while the condition is False.
    False,
}

/// What an automated Rollback looks like.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RollbackTemplate {
    /// Labels and annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Its spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<TemplateSpec>,
}

/// Labels and annotations of a template.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels; they win over the release's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The part of a Rollback's spec that a template may set.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// Options for the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_options: Option<DeploymentOptions>,
}

/// What the policy did and may do.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AutomatedRollbackPolicyStatus {
    /// When it last created a Rollback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_automated_rollback_time: Option<Time>,
    /// `Automated`; see [`crate::conditions`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// Added: the `metadata.generation` that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
