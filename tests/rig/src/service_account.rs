//! Kubeconfigs of service accounts, to run a program with the rights it has in a real cluster.

use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;

use crate::control_plane::ControlPlane;
use crate::kubeconfig::{self, Credential};

/// Longer than any test run.
const VALIDITY_SECONDS: i64 = 24 * 60 * 60;

impl ControlPlane {
    /// A kubeconfig file with a token of the service account, valid for a day; its default namespace
    /// is `namespace`. Fails when there is no such account.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(VALIDITY_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let token = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("no token for service account {namespace}/{name}"))?
            .status
            .and_then(|status| status.token)
            .with_context(|| format!("an empty token for service account {namespace}/{name}"))?;
        let text = kubeconfig::text(&self.url(), self.ca_pem(), &Credential::Token(&token), namespace);
        let path = self.dir().join(format!("{namespace}-{name}-{}.kubeconfig", self.next_number()));
        kubeconfig::write(&path, &text)?;
        Ok(path)
    }
}
