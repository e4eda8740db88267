//! What a pod template needs to find in its namespace (rule 18).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A kind of object that a pod template can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReferenceKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
    /// A ServiceAccount.
    ServiceAccount,
    /// A PersistentVolumeClaim.
    PersistentVolumeClaim,
}

impl ReferenceKind {
    /// The kind as the API writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
        }
    }
}

/// An object that pods of a template cannot start without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Its kind.
    pub kind: ReferenceKind,
    /// Its name, in the namespace of the pods.
    pub name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// What pods of the template (`spec.template` of a workload) need. Left out: references that are marked optional, pull
/// secrets (pods start without them when the node has the image), and claims that a StatefulSet makes itself.
pub fn of_template(template: &Value) -> BTreeSet<Reference> {
    let mut found = Found::default();
    let spec = &template["spec"];
    found.name(ReferenceKind::ServiceAccount, &spec["serviceAccountName"]);
    for volume in each(&spec["volumes"]) {
        found.unless_optional(ReferenceKind::ConfigMap, &volume["configMap"], "name");
        found.unless_optional(ReferenceKind::Secret, &volume["secret"], "secretName");
        found.name(ReferenceKind::Secret, &volume["azureFile"]["secretName"]);
        found.name(ReferenceKind::PersistentVolumeClaim, &volume["persistentVolumeClaim"]["claimName"]);
        for source in each(&volume["projected"]["sources"]) {
            found.unless_optional(ReferenceKind::ConfigMap, &source["configMap"], "name");
            found.unless_optional(ReferenceKind::Secret, &source["secret"], "name");
        }
        // Volumes of storage systems name the Secret with their credentials in one of these two ways.
        for source in volume.as_object().into_iter().flat_map(|volume| volume.values()) {
            found.name(ReferenceKind::Secret, &source["secretRef"]["name"]);
            found.name(ReferenceKind::Secret, &source["nodePublishSecretRef"]["name"]);
        }
    }
    for container in each(&spec["containers"]).chain(each(&spec["initContainers"])) {
        for source in each(&container["envFrom"]) {
            found.unless_optional(ReferenceKind::ConfigMap, &source["configMapRef"], "name");
            found.unless_optional(ReferenceKind::Secret, &source["secretRef"], "name");
        }
        for variable in each(&container["env"]) {
            let from = &variable["valueFrom"];
            found.unless_optional(ReferenceKind::ConfigMap, &from["configMapKeyRef"], "name");
            found.unless_optional(ReferenceKind::Secret, &from["secretKeyRef"], "name");
        }
    }
    found.0
}

#[derive(Default)]
struct Found(BTreeSet<Reference>);

impl Found {
    fn name(&mut self, kind: ReferenceKind, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.0.insert(Reference { kind, name: name.to_owned() });
        }
    }

    fn unless_optional(&mut self, kind: ReferenceKind, source: &Value, name: &str) {
        if source["optional"] != true {
            self.name(kind, &source[name]);
        }
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(spec: &Value) -> Vec<String> {
        of_template(&json!({ "spec": spec })).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn finds_every_way_to_refer() {
        let found = names(&json!({
            "serviceAccountName": "robot",
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "files"}},
                {"name": "b", "secret": {"secretName": "tls"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "disk"}},
                {"name": "d", "projected": {"sources": [{"configMap": {"name": "p1"}}, {"secret": {"name": "p2"}}, {"serviceAccountToken": {}}]}},
                {"name": "e", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "csi"}}},
                {"name": "f", "cephfs": {"secretRef": {"name": "ceph"}}},
                {"name": "g", "emptyDir": {}},
            ],
            "containers": [{
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "password", "key": "a"}}},
                    {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
            }],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "most"}}]}],
        }));
        assert_eq!(
            found,
            [
                "ConfigMap all",
                "ConfigMap env",
                "ConfigMap files",
                "ConfigMap p1",
                "Secret ceph",
                "Secret csi",
                "Secret most",
                "Secret p2",
                "Secret password",
                "Secret tls",
                "ServiceAccount robot",
                "PersistentVolumeClaim disk",
            ]
        );
    }

    #[test]
    fn optional_ones_are_not_needed() {
        let found = names(&json!({
            "volumes": [{"configMap": {"name": "a", "optional": true}}, {"secret": {"secretName": "b", "optional": true}}],
            "containers": [{
                "envFrom": [{"configMapRef": {"name": "c", "optional": true}}],
                "env": [{"valueFrom": {"secretKeyRef": {"name": "d", "optional": true}}}, {"valueFrom": {"secretKeyRef": {"name": "e", "optional": false}}}],
            }],
        }));
        assert_eq!(found, ["Secret e"]);
    }

    #[test]
    fn odd_templates_refer_to_nothing() {
        for spec in [
            json!(null),
            json!({}),
            json!({"volumes": {}, "containers": 3}),
            json!({"serviceAccountName": ""}),
        ] {
            assert!(names(&spec).is_empty());
        }
    }
}
