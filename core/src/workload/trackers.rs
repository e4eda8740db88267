//! Which deployment tool manages a workload, by the labels and annotations that it leaves (rules 13, 14 and 19).

use std::fmt;

use serde_json::Value;

/// A deployment tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// An Argo CD Application.
    ArgoCd,
    /// A Flux Kustomization.
    FluxKustomization,
    /// A Flux HelmRelease.
    FluxHelmRelease,
    /// A Helm release.
    Helm,
}

/// What manages an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tracker {
    /// The tool.
    pub tool: Tool,
    /// The tool's object: an Application, a Kustomization, a release.
    pub name: String,
}

impl fmt::Display for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = match self.tool {
            Tool::ArgoCd => "Argo CD Application",
            Tool::FluxKustomization => "Flux Kustomization",
            Tool::FluxHelmRelease => "Flux HelmRelease",
            Tool::Helm => "Helm release",
        };
        write!(f, "{tool} {}", self.name)
    }
}

/// The tools that manage the object and may bring the content back that a rollback leaves. `app.kubernetes.io/instance`
/// alone says nothing: anybody sets it.
pub fn trackers(object: &Value) -> Vec<Tracker> {
    let labels = &object["metadata"]["labels"];
    let annotations = &object["metadata"]["annotations"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    // `app:group/kind:namespace/name`
    let tracking_id = text(&annotations["argocd.argoproj.io/tracking-id"]);
    let application = tracking_id.and_then(|id| id.split(':').next().map(str::to_owned));
    let application = application.or_else(|| text(&labels["argocd.argoproj.io/instance"]));
    let found = [
        (Tool::ArgoCd, application),
        (Tool::FluxKustomization, text(&labels["kustomize.toolkit.fluxcd.io/name"])),
        (Tool::FluxHelmRelease, text(&labels["helm.toolkit.fluxcd.io/name"])),
        (Tool::Helm, text(&annotations["meta.helm.sh/release-name"])),
    ];
    found.into_iter().filter_map(|(tool, name)| Some(Tracker { tool, name: name? })).collect()
}

/// A Helm release that an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmRelease {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Whether Helm merges on the client: its next upgrade then keeps fields of the version that a rollback brought
    /// back, because it compares with the manifest that it stored itself.
    pub client_side: bool,
}

/// The Helm release that the object belongs to.
pub fn helm_release(object: &Value) -> Option<HelmRelease> {
    let annotations = &object["metadata"]["annotations"];
    let name = annotations["meta.helm.sh/release-name"].as_str()?;
    let namespace = annotations["meta.helm.sh/release-namespace"].as_str();
    let entries = object["metadata"]["managedFields"].as_array();
    let helm = |operation: &str| {
        entries.into_iter().flatten().any(|entry| {
            // Flux's controller carries Helm out under its own name.
            (entry["manager"] == "helm" || entry["manager"] == "helm-controller")
                && entry["operation"] == operation
        })
    };
    Some(HelmRelease {
        name: name.to_owned(),
        namespace: namespace.or(object["metadata"]["namespace"].as_str()).unwrap_or_default().to_owned(),
        client_side: helm("Update") && !helm("Apply"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(metadata: &Value) -> Vec<String> {
        trackers(&json!({ "metadata": metadata })).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_the_tool_and_its_object() {
        for (metadata, expected) in [
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}}),
                vec!["Argo CD Application shop"],
            ),
            (json!({"labels": {"argocd.argoproj.io/instance": "shop"}}), vec!["Argo CD Application shop"]),
            (
                json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}),
                vec!["Flux Kustomization apps"],
            ),
            (
                json!({"labels": {"helm.toolkit.fluxcd.io/name": "web"}, "annotations": {"meta.helm.sh/release-name": "shop-web"}}),
                vec!["Flux HelmRelease web", "Helm release shop-web"],
            ),
            (json!({"labels": {"app.kubernetes.io/instance": "shop"}}), vec![]),
            (json!({"labels": {"argocd.argoproj.io/instance": ""}}), vec![]),
            (json!({}), vec![]),
        ] {
            assert_eq!(names(&metadata), expected, "{metadata}");
        }
    }

    #[test]
    fn tells_client_side_helm_from_server_side() {
        let object = |entries: Value| {
            json!({"metadata": {
                "namespace": "shop",
                "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "tools"},
                "managedFields": entries,
            }})
        };
        for (entries, client_side) in [
            (json!([{"manager": "helm", "operation": "Update"}]), true),
            (json!([{"manager": "helm", "operation": "Apply"}]), false),
            // Helm 4 after an upgrade of a release that Helm 3 installed.
            (
                json!([{"manager": "helm", "operation": "Update"}, {"manager": "helm", "operation": "Apply"}]),
                false,
            ),
            (json!([{"manager": "kubectl", "operation": "Update"}]), false),
            (json!(null), false),
        ] {
            let found = helm_release(&object(entries.clone())).unwrap();
            assert_eq!((found.name.as_str(), found.namespace.as_str()), ("web", "tools"));
            assert_eq!(found.client_side, client_side, "{entries}");
        }
        assert_eq!(helm_release(&json!({"metadata": {}})), None);
    }
}
