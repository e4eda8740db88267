//! Reading from the API server.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, ObjectList};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use rollback_api::{AutomatedRollbackPolicy, Release, Rollback};
use rollback_core::admission::TargetState;
use rollback_core::pointer::{self, Pointer};
use rollback_core::release::ReleaseView;
use serde::de::DeserializeOwned;

use super::{ReadError, Reader};

/// Most releases that are looked at to name other targets in a refusal.
const NEIGHBOURS: u32 = 500;

/// Reads from the API server, uncached. A list without a version is the most recent state.
#[derive(Clone)]
pub struct Live {
    client: Client,
}

impl Live {
    /// Reads through that client, which should not retry: somebody waits for the answer.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn list<K>(&self, namespace: &str, params: &ListParams) -> Result<ObjectList<K>, ReadError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>(namespace)
            .list(params)
            .await
            .map_err(|error| read_error(&K::plural(&()), namespace, error))
    }

    async fn get<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, ReadError>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>(namespace)
            .get_opt(name)
            .await
            .map_err(|error| read_error(&K::plural(&()), namespace, error))
    }

    async fn pointer(&self, namespace: &str, target: &str) -> Result<Option<Pointer>, ReadError> {
        let object: Option<ConfigMap> = self.get(namespace, &pointer::object_name(target)).await?;
        Ok(object.map(|object| Pointer::parse(target, &object)).transpose()?)
    }

    /// Targets that have releases. Only makes a refusal more helpful, so an error leaves it shorter.
    async fn neighbours(&self, namespace: &str) -> Vec<String> {
        match self.list::<Release>(namespace, &ListParams::default().limit(NEIGHBOURS)).await {
            Ok(releases) => {
                let names = releases.items.into_iter().map(|release| release.spec.config.target_name);
                names.collect::<BTreeSet<String>>().into_iter().collect()
            }
            Err(error) => {
                tracing::debug!(%error, namespace, "other targets are left out of a refusal");
                Vec::new()
            }
        }
    }
}

impl Reader for Live {
    async fn target(
        &self,
        namespace: &str,
        target: &str,
        named: Option<&str>,
    ) -> Result<TargetState, ReadError> {
        let of_target = |field: &str| ListParams::default().fields(&format!("{field}={target}"));
        let (releases_of, rollbacks_of) =
            (of_target("config.targetName"), of_target("spec.toReleaseRef.target"));
        let (pointer, releases, rollbacks) = tokio::try_join!(
            self.pointer(namespace, target),
            self.list::<Release>(namespace, &releases_of),
            self.list::<Rollback>(namespace, &rollbacks_of),
        )?;
        let mut state = TargetState::new(namespace, target, pointer, releases.items, &rollbacks.items);
        if state.views.is_empty() {
            state.other_targets = self.neighbours(namespace).await;
        } else if let Some(name) = named.filter(|name| is_object_name(name) && state.view(name).is_none()) {
            let release: Option<Release> = self.get(namespace, name).await?;
            state.stranger = release.as_ref().map(ReleaseView::of);
        }
        Ok(state)
    }

    async fn policies(
        &self,
        namespace: &str,
        target: &str,
    ) -> Result<Vec<AutomatedRollbackPolicy>, ReadError> {
        let params = ListParams::default().fields(&format!("spec.targetName={target}"));
        Ok(self.list(namespace, &params).await?.items)
    }
}

/// Whether a text may stand in a URL's path as the name of an object.
fn is_object_name(text: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    text.len() <= 253
        && text.bytes().all(allowed)
        && end(text.bytes().next())
        && end(text.bytes().next_back())
        && !text.contains("..")
}

fn read_error(what: &str, namespace: &str, error: kube::Error) -> ReadError {
    let what = what.to_owned();
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            ReadError::Forbidden { what, namespace: namespace.to_owned() }
        }
        kube::Error::Api(status) if status.code == 404 => ReadError::NotInstalled { what },
        kube::Error::Api(status) => ReadError::Other {
            what,
            why: format!("the API server says {:?} ({})", status.message, status.code),
        },
        error => ReadError::Other { what, why: innermost(&error) },
    }
}

/// The innermost cause, which says what happened: "Connection refused" instead of "client error (Connect)".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_object_names_reach_a_url() {
        for good in ["a", "payments-3978d50", "a.b-c"] {
            assert!(is_object_name(good), "{good}");
        }
        for bad in
            ["", ".", "..", "a/../b", "a/status", "A", "a?x", "a%2f", "-a", "a-", "a..b", &"a".repeat(254)]
        {
            assert!(!is_object_name(bad), "{bad}");
        }
    }
}
