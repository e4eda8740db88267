//! The client for the Kubernetes API, with bounded waits.

mod retry;

use std::path::PathBuf;
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer;

use crate::args::parse_duration;
use retry::BoundedRetry;

/// The API server ends a watch after at most this long (kube asks for 290 s),
/// so silence beyond it means that the connection is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(300);
/// Requests waiting for the connection pool's front door.
const BUFFER: usize = 1024;

/// How to reach the API server. Flatten into a program's arguments.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Kubernetes API")]
pub struct ClientArgs {
    /// Kubeconfig file. Without it: the Pod's service account inside a cluster,
    /// else $KUBECONFIG or ~/.kube/config
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig in place of its current one
    #[arg(long)]
    pub context: Option<String>,

    /// How long to wait for the API server to begin its answer, tries included
    #[arg(long, default_value = "30s", value_parser = parse_duration, env = "ROLLBACK_KUBE_REQUEST_TIMEOUT")]
    pub kube_request_timeout: Duration,
}

/// What to do when the API server is overloaded (429, 503, 504).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Report it at once: for anything that somebody waits for.
    Off,
    /// Try a few times within seconds; requests that change something are
    /// repeated only when the server surely did not carry them out (429).
    Bounded,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}; check --kubeconfig and --context")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// The Pod's service account cannot be used.
    #[error("the Pod's service account cannot be used: {0}; check that its token is mounted")]
    InCluster(#[from] kube::config::InClusterError),
    /// The client cannot be built from a readable configuration.
    #[error("the API client cannot be built: {0}; check the certificates and the user in the kubeconfig")]
    Build(#[from] kube::Error),
}

/// The variable that Kubernetes sets in every container.
const IN_CLUSTER: &str = "KUBERNETES_SERVICE_HOST";

impl ClientArgs {
    /// The configuration the arguments name. Fails when it cannot be read.
    pub async fn config(&self) -> Result<Config, ClientError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = if let Some(path) = &self.kubeconfig {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
        } else if self.context.is_none() && std::env::var_os(IN_CLUSTER).is_some() {
            Config::incluster()?
        } else {
            Config::from_kubeconfig(&options).await?
        };
        config.read_timeout = Some(READ_TIMEOUT);
        config.reset_reader_on_write = true;
        Ok(config)
    }

    /// A client. Fails when the configuration cannot be read or used; does not
    /// talk to the server. Must be called inside the runtime.
    pub async fn client(&self, retry: Retry) -> Result<Client, ClientError> {
        build(self.config().await?, retry, self.kube_request_timeout)
    }
}

/// A client from a configuration; `request_timeout` bounds the wait for the
/// head of each answer, tries included. Fails when the configuration's keys or
/// certificates are unusable. Must be called inside the runtime.
pub fn build(mut config: Config, retry: Retry, request_timeout: Duration) -> Result<Client, ClientError> {
    // kube's own policy waits for up to 1000 seconds between 15 tries.
    config.default_retry = false;
    let timeout = TimeoutLayer::new(request_timeout);
    let builder = ClientBuilder::try_from(config)?;
    Ok(match retry {
        Retry::Off => builder.with_layer(&timeout).build(),
        Retry::Bounded => builder
            .with_layer(&BufferLayer::new(BUFFER))
            .with_layer(&RetryLayer::new(BoundedRetry::new()))
            .with_layer(&timeout)
            .build(),
    })
}
