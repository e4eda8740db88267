//! The flags that every kubectl command has.

use std::path::PathBuf;
use std::time::Duration;

use super::values::duration;

/// Which cluster, as whom, in which namespace.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Connection (as for kubectl)")]
pub(crate) struct ConnectArgs {
    /// Path of the kubeconfig [default: $KUBECONFIG (may list several), ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Namespace [default: the context's]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Bearer token
    #[arg(long, global = true, value_name = "TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) as_user: Option<String>,
    /// Group to impersonate; may be given several times
    #[arg(long, global = true, value_name = "GROUP", requires = "as_user")]
    pub(crate) as_group: Vec<String>,
    /// UID to impersonate
    #[arg(long, global = true, value_name = "UID", requires = "as_user")]
    pub(crate) as_uid: Option<String>,
    /// File with the certificate authority of the API server
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// File with a client certificate
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) client_certificate: Option<PathBuf>,
    /// File with the key of the client certificate
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) client_key: Option<PathBuf>,
    /// Do not check the API server's certificate
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", conflicts_with = "certificate_authority")]
    pub(crate) insecure_skip_tls_verify: Option<bool>,
    /// Name to expect in the API server's certificate
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) tls_server_name: Option<String>,
    /// Longest time for one request to the API server, such as 5s; 0 for no limit [default: 30s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration)]
    pub(crate) request_timeout: Option<Duration>,
}
