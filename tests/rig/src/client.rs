//! Kubernetes clients for the rig's API servers.

use std::path::Path;

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The client configuration of a kubeconfig file; proxies are ignored and nothing is retried, so
/// that a test sees each answer of the server.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.proxy_url = None;
    config.default_retry = false;
    Ok(config)
}

/// A client with connections of its own. They belong to the runtime that is current now.
pub(crate) fn client(config: &Config) -> Result<Client> {
    // Fails only when a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::try_from(config.clone())?)
}
