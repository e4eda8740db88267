//! The ConfigMaps and Secrets that a pod reads.

use k8s_openapi::api::core::v1::{Container, Pod, Volume};

/// Published to every namespace for the token volume; of no interest to a test.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Which kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
}

/// Who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reader {
    /// The environment of this container.
    Environment(String),
    /// This volume.
    Volume(String),
}

/// One use of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// A key that must be there.
    pub(super) key: Option<String>,
    pub(super) optional: bool,
    pub(super) reader: Reader,
}

impl Kind {
    /// As a kubelet writes it in messages.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }
}

/// All of a pod: its volumes first, then its containers in order.
pub(super) fn of(pod: &Pod) -> Vec<Reference> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let volumes = spec.volumes.iter().flatten().flat_map(of_volume);
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers).flat_map(of_container);
    volumes.chain(containers).filter(|reference| reference.name != ROOT_CA).collect()
}

fn of_volume(volume: &Volume) -> Vec<Reference> {
    let reference = |kind, name: &str, optional: Option<bool>| Reference {
        kind,
        name: name.to_owned(),
        key: None,
        optional: optional.unwrap_or_default(),
        reader: Reader::Volume(volume.name.clone()),
    };
    let mut found = Vec::new();
    if let Some(source) = &volume.config_map {
        found.push(reference(Kind::ConfigMap, &source.name, source.optional));
    }
    if let Some(source) = &volume.secret {
        found.push(reference(
            Kind::Secret,
            source.secret_name.as_deref().unwrap_or_default(),
            source.optional,
        ));
    }
    for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
        if let Some(source) = &source.config_map {
            found.push(reference(Kind::ConfigMap, &source.name, source.optional));
        }
        if let Some(source) = &source.secret {
            found.push(reference(Kind::Secret, &source.name, source.optional));
        }
    }
    found
}

fn of_container(container: &Container) -> Vec<Reference> {
    let reference = |kind, name: &str, key: Option<&str>, optional: Option<bool>| Reference {
        kind,
        name: name.to_owned(),
        key: key.map(str::to_owned),
        optional: optional.unwrap_or_default(),
        reader: Reader::Environment(container.name.clone()),
    };
    let mut found = Vec::new();
    for source in container.env_from.iter().flatten() {
        if let Some(source) = &source.config_map_ref {
            found.push(reference(Kind::ConfigMap, &source.name, None, source.optional));
        }
        if let Some(source) = &source.secret_ref {
            found.push(reference(Kind::Secret, &source.name, None, source.optional));
        }
    }
    for source in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        if let Some(source) = &source.config_map_key_ref {
            found.push(reference(Kind::ConfigMap, &source.name, Some(&source.key), source.optional));
        }
        if let Some(source) = &source.secret_key_ref {
            found.push(reference(Kind::Secret, &source.name, Some(&source.key), source.optional));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_every_way_to_read_a_configmap() {
        let pod: Pod = serde_json::from_value(json!({ "spec": {
            "volumes": [
                { "name": "a", "configMap": { "name": "in-volume", "optional": true } },
                { "name": "t", "projected": { "sources": [
                    { "configMap": { "name": "kube-root-ca.crt" } }, { "configMap": { "name": "projected" } },
                ] } },
                { "name": "s", "secret": { "secretName": "keys" } },
            ],
            "initContainers": [{ "name": "i", "envFrom": [{ "configMapRef": { "name": "init" } }] }],
            "containers": [{ "name": "c",
                "env": [
                    { "name": "PLAIN", "value": "1" },
                    { "name": "KEY", "valueFrom": { "configMapKeyRef": { "name": "one", "key": "k" } } },
                ],
                "envFrom": [{ "secretRef": { "name": "all" } }],
            }],
        } }))
        .unwrap();
        let found: Vec<(Kind, String, Option<String>, bool)> = of(&pod)
            .into_iter()
            .map(|reference| (reference.kind, reference.name, reference.key, reference.optional))
            .collect();
        let config_map = |name: &str| (Kind::ConfigMap, name.to_owned(), None, false);
        assert_eq!(
            found,
            [
                (Kind::ConfigMap, "in-volume".to_owned(), None, true),
                config_map("projected"),
                (Kind::Secret, "keys".to_owned(), None, false),
                config_map("init"),
                (Kind::Secret, "all".to_owned(), None, false),
                (Kind::ConfigMap, "one".to_owned(), Some("k".to_owned()), false),
            ]
        );
    }
}
