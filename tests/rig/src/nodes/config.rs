//! Reading a pod's ConfigMaps and Secrets, and the record of what was read.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{Api, Client, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::hex::hex;

use super::references::{self, Kind, Reader, Reference};

/// A ConfigMap at the moment a pod's containers started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenConfigMap {
    /// Its resource version then.
    pub resource_version: String,
    /// Its content then, see [`configmap_digest`].
    pub sha256: String,
}

/// The ConfigMaps that a pod read at its start, by name; empty when it read none or has not started.
///
/// Fails when the annotation [`super::CONFIGMAPS_SEEN`] cannot be read.
pub fn configmaps_seen(pod: &Pod) -> Result<BTreeMap<String, SeenConfigMap>> {
    let Some(text) = pod.annotations().get(super::CONFIGMAPS_SEEN) else { return Ok(BTreeMap::new()) };
    serde_json::from_str(text)
        .with_context(|| format!("annotation {} of pod {}", super::CONFIGMAPS_SEEN, pod.name_any()))
}

/// The SHA-256 of a ConfigMap's `data` and `binaryData` as lower-case hex; metadata has no part in it.
pub fn configmap_digest(config_map: &ConfigMap) -> String {
    // serde_json sorts keys, so that equal content has one text.
    let content = json!({
        "binaryData": config_map.binary_data.clone().unwrap_or_default(),
        "data": config_map.data.clone().unwrap_or_default(),
    });
    hex(&Sha256::digest(content.to_string()))
}

/// What the pod's containers wait for, and what they would see if they started now.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The first volume that cannot be mounted: why.
    pub(super) volume: Option<String>,
    /// Containers that cannot be created, with the reason.
    pub(super) containers: BTreeMap<String, String>,
    pub(super) seen: BTreeMap<String, SeenConfigMap>,
}

impl Resolved {
    pub(super) fn complete(&self) -> bool {
        self.volume.is_none() && self.containers.is_empty()
    }
}

/// An object's keys; `None` when there is no such object.
type Keys = Option<BTreeSet<String>>;

/// Reads all that the pod refers to, now.
pub(super) async fn resolve(client: &Client, namespace: &str, pod: &Pod) -> kube::Result<Resolved> {
    let mut resolved = Resolved::default();
    let mut read: BTreeMap<(Kind, String), Keys> = BTreeMap::new();
    for reference in references::of(pod) {
        let object = (reference.kind, reference.name.clone());
        if !read.contains_key(&object) {
            let keys = read_keys(client, namespace, &reference, &mut resolved.seen).await?;
            read.insert(object.clone(), keys);
        }
        let Some(problem) = problem(&reference, namespace, read.get(&object).and_then(Option::as_ref)) else {
            continue;
        };
        match reference.reader {
            Reader::Volume(volume) => {
                resolved
                    .volume
                    .get_or_insert(format!("MountVolume.SetUp failed for volume \"{volume}\" : {problem}"));
            }
            Reader::Environment(container) => {
                resolved.containers.entry(container).or_insert(problem);
            }
        }
    }
    Ok(resolved)
}

async fn read_keys(
    client: &Client,
    namespace: &str,
    reference: &Reference,
    seen: &mut BTreeMap<String, SeenConfigMap>,
) -> kube::Result<Keys> {
    match reference.kind {
        Kind::ConfigMap => {
            let found =
                Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(&reference.name).await?;
            Ok(found.map(|config_map| {
                let record = SeenConfigMap {
                    resource_version: config_map.resource_version().unwrap_or_default(),
                    sha256: configmap_digest(&config_map),
                };
                seen.insert(reference.name.clone(), record);
                let data = config_map.data.into_iter().flatten().map(|(key, _)| key);
                data.chain(config_map.binary_data.into_iter().flatten().map(|(key, _)| key)).collect()
            }))
        }
        Kind::Secret => {
            let found = Api::<Secret>::namespaced(client.clone(), namespace).get_opt(&reference.name).await?;
            Ok(found.map(|secret| secret.data.into_iter().flatten().map(|(key, _)| key).collect()))
        }
    }
}

/// Why the reference cannot be followed, in a kubelet's words.
fn problem(reference: &Reference, namespace: &str, keys: Option<&BTreeSet<String>>) -> Option<String> {
    if reference.optional {
        return None;
    }
    let Reference { kind, name, .. } = reference;
    match (keys, &reference.key) {
        (None, _) => Some(format!("{} \"{name}\" not found", kind.word())),
        (Some(keys), Some(key)) if !keys.contains(key) => {
            let kind = match kind {
                Kind::ConfigMap => "ConfigMap",
                Kind::Secret => "Secret",
            };
            Some(format!("couldn't find key {key} in {kind} {namespace}/{name}"))
        }
        (Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_map(content: serde_json::Value) -> ConfigMap {
        serde_json::from_value(content).unwrap()
    }

    #[test]
    fn the_digest_is_of_the_content_only() {
        let blue = config_map(
            json!({ "metadata": { "name": "a", "resourceVersion": "1" }, "data": { "colour": "blue" } }),
        );
        let renamed = config_map(json!({ "metadata": { "name": "b" }, "data": { "colour": "blue" } }));
        let red = config_map(json!({ "metadata": { "name": "a" }, "data": { "colour": "red" } }));
        let binary = config_map(json!({ "binaryData": { "colour": "Ymx1ZQ==" } }));
        assert_eq!(configmap_digest(&blue), configmap_digest(&renamed));
        assert_ne!(configmap_digest(&blue), configmap_digest(&red));
        assert_ne!(configmap_digest(&blue), configmap_digest(&binary));
    }
}
