//! The process: from the command line to the last answer.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use prometheus_client::registry::Registry;
use rollback_api::{GROUP, VERSION};
use rollback_runtime::admin::Admin;
use rollback_runtime::client::Retry;
use rollback_runtime::readiness::{Readiness, ReadyHandle};
use rollback_runtime::server::{CertificateFiles, Limits, Transport, serve};
use rollback_runtime::shutdown::Shutdown;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::admit::{Admission, Settings};
use crate::args::ServeArgs;
use crate::http::Webhook;
use crate::metrics::Metrics;
use crate::reader::Live;

/// How often the certificate files are looked at.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(10);
/// How often the API server is asked until it serves our kinds.
const API_INTERVAL: Duration = Duration::from_secs(1);

/// Serves until a signal ends it.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<()> {
    rollback_runtime::telemetry::init(&args.log)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(process(args))
}

async fn process(args: ServeArgs) -> anyhow::Result<()> {
    // Destructured completely: a forgotten flag does not compile.
    let ServeArgs {
        tls_cert_file,
        tls_private_key_file,
        bind_address,
        port,
        cicd_backend,
        enable_release_uniqueness_webhooks,
        client,
        admin,
        shutdown,
        log: _,
    } = args;
    let cert_file = tls_cert_file.context("--tls-cert-file is missing")?;
    let key_file = tls_private_key_file.context("--tls-private-key-file is missing")?;
    let ending = Shutdown::on_signals(shutdown.shutdown_delay).context("signals cannot be handled")?;
    let client = client.client(Retry::Off).await?;
    let certificate = CertificateFiles::load(&cert_file, &key_file).await?;
    let listener = bind(SocketAddr::new(bind_address, port), "--bind-address and --port").await?;
    let admin_listener = bind(admin.address(), "--admin-address").await?;
    tracing::info!(address = %listener.local_addr()?, admin = %admin_listener.local_addr()?, "serving admission");

    let (metrics, readiness, last) = (Metrics::default(), Readiness::new(), CancellationToken::new());
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let ready = readiness.register("api");
    let admin = tokio::spawn(
        Admin { registry, readiness, draining: ending.draining() }.serve(admin_listener, last.clone()),
    );
    let transport = Transport::Tls(certificate.server_config()?);
    tokio::spawn(certificate.watch(CERTIFICATE_INTERVAL, ending.stop()));
    tokio::spawn(watch_expiry(cert_file, metrics.clone(), ending.stop()));
    tokio::spawn(wait_for_api(client.clone(), ready, ending.stop()));

    let settings =
        Settings { backends: cicd_backend, naming: enable_release_uniqueness_webhooks, now: Timestamp::now };
    let webhook = Webhook::new(Admission::new(Live::new(client), settings), metrics);
    let handler = move |request| {
        let webhook = Arc::clone(&webhook);
        async move { webhook.respond(request).await }
    };
    let limits = Limits { drain: shutdown.drain_timeout, ..Limits::default() };
    let drained = serve(listener, transport, limits, handler, ending.stop()).await;
    tracing::info!(?drained, "stopped serving");
    last.cancel();
    admin.await.context("the endpoint for probes ended badly")?;
    Ok(())
}

async fn bind(address: SocketAddr, flags: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be served on; choose another one with {flags}"))
}

/// Ready once the API server serves our kinds: before that every Rollback would be refused.
async fn wait_for_api(client: Client, ready: ReadyHandle, stop: CancellationToken) {
    let group = format!("{GROUP}/{VERSION}");
    let mut said = String::new();
    let look = async {
        loop {
            match client.list_api_group_resources(&group).await {
                Ok(_) => return,
                Err(error) => {
                    let why = format!("the API server does not serve {group}: {error}");
                    if why != said {
                        tracing::warn!("not ready: {why}");
                        ready.not_ready(why.clone());
                        said = why;
                    }
                }
            }
            tokio::time::sleep(API_INTERVAL).await;
        }
    };
    if stop.run_until_cancelled(look).await.is_some() {
        ready.ready();
    }
}

/// Keeps the metric of the certificate's expiry up to date.
async fn watch_expiry(file: PathBuf, metrics: Metrics, stop: CancellationToken) {
    let watch = async {
        loop {
            metrics.certificate_expires(expiry(&file).await.unwrap_or_default());
            tokio::time::sleep(CERTIFICATE_INTERVAL).await;
        }
    };
    let _: Option<()> = stop.run_until_cancelled(watch).await;
}

async fn expiry(file: &Path) -> Option<i64> {
    let pem = tokio::fs::read_to_string(file).await.ok()?;
    let expiry = rollback_certs::expiry(&pem).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(expiry.as_secs()).ok()
}
