//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use rollback_api::Backend;
use rollback_runtime::{admin::AdminArgs, client::ClientArgs, shutdown::ShutdownArgs, telemetry::LogArgs};

/// Admission webhook of the rollback system.
#[derive(Debug, clap::Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    /// What to do instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to serve.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What the program does beside serving.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Write a certificate authority and a server certificate signed by it
    Certs(CertsArgs),
}

/// How to serve.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Server certificate (PEM); read again when it changes
    #[arg(long, env = "ROLLBACK_TLS_CERT_FILE", required = true)]
    pub tls_cert_file: Option<PathBuf>,

    /// Private key of the server certificate (PEM)
    #[arg(long, env = "ROLLBACK_TLS_PRIVATE_KEY_FILE", required = true)]
    pub tls_private_key_file: Option<PathBuf>,

    /// Address to serve on
    #[arg(long, default_value = "0.0.0.0", env = "ROLLBACK_BIND_ADDRESS")]
    pub bind_address: IpAddr,

    /// Port to serve on
    #[arg(long, default_value_t = 9443, env = "ROLLBACK_PORT")]
    pub port: u16,

    /// Backends that Rollbacks may ask for, the default first: noop, workload, github, argocd. Give the controller
    /// the same ones
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "noop",
        value_parser = backend,
        env = "ROLLBACK_MANAGER_CICD_BACKEND"
    )]
    pub cicd_backend: Vec<Backend>,

    /// Name Releases after their target and signature, and refuse other names
    #[arg(long, env = "ROLLBACK_ENABLE_RELEASE_UNIQUENESS_WEBHOOKS")]
    pub enable_release_uniqueness_webhooks: bool,

    /// How to reach the API server.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Probes and metrics.
    #[command(flatten)]
    pub admin: AdminArgs,
    /// Shutdown.
    #[command(flatten)]
    pub shutdown: ShutdownArgs,
    /// Logs.
    #[command(flatten)]
    pub log: LogArgs,
}

/// What certificates to write.
#[derive(Debug, clap::Args)]
pub struct CertsArgs {
    /// Directory for ca.crt, tls.crt and tls.key; made if it does not exist
    #[arg(long)]
    pub out: PathBuf,

    /// DNS name that the certificate is for; may be repeated
    #[arg(long, required_unless_present = "ip")]
    pub dns: Vec<String>,

    /// IP address that the certificate is for; may be repeated
    #[arg(long)]
    pub ip: Vec<IpAddr>,
}

fn backend(text: &str) -> Result<Backend, String> {
    Backend::parse(text).ok_or_else(|| {
        let all: Vec<&str> = Backend::ALL.iter().map(|backend| backend.as_str()).collect();
        format!("there is no such backend; use one or more of {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};
    use rstest::rstest;

    use super::*;

    const FILES: [&str; 2] = ["--tls-cert-file=c", "--tls-private-key-file=k"];

    fn parse(more: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("rollback-webhook").chain(more.iter().copied()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case(&[], &[Backend::Noop])]
    #[case(&["--cicd-backend=workload,noop"], &[Backend::Workload, Backend::Noop])]
    #[case(&["--cicd-backend", "github", "--cicd-backend", "workload"], &[Backend::Github, Backend::Workload])]
    fn backends_may_be_listed_or_repeated(#[case] args: &[&str], #[case] expected: &[Backend]) {
        let cli = parse(&[&FILES[..], args].concat()).unwrap();
        assert_eq!(cli.serve.cicd_backend, expected);
    }

    #[rstest]
    #[case(&["--cicd-backend=jenkins"], "there is no such backend; use one or more of noop, workload, github, argocd")]
    #[case(&["--port=70000"], "--port")]
    #[case(&["--bind-address=here"], "--bind-address")]
    fn a_bad_value_is_refused_with_the_flag(#[case] args: &[&str], #[case] says: &str) {
        let error = parse(&[&FILES[..], args].concat()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn serving_needs_a_certificate_and_making_one_does_not() {
        assert!(parse(&[]).unwrap_err().to_string().contains("--tls-cert-file"));
        assert!(parse(&["certs", "--out=d", "--ip=127.0.0.1"]).unwrap().command.is_some());
        assert!(parse(&["certs", "--out=d"]).unwrap_err().to_string().contains("--dns"));
    }
}
