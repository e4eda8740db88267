//! The endpoint for probes and metrics: `/livez`, `/readyz`, `/metrics`.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderValue, Method, StatusCode, header};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::readiness::Readiness;
use crate::server::{Drained, Limits, Response, Transport, serve, text};

/// Where to serve probes and metrics. Flatten into a program's arguments.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Probes and metrics")]
pub struct AdminArgs {
    /// Address and port for /livez, /readyz and /metrics
    #[arg(long, default_value = "0.0.0.0:9525", env = "ROLLBACK_ADMIN_ADDRESS")]
    pub admin_address: SocketAddr,

    /// Address in place of the one in --admin-address
    #[arg(long, env = "ROLLBACK_METRICS_ADDRESS")]
    pub metrics_address: Option<IpAddr>,

    /// Port in place of the one in --admin-address
    #[arg(long, env = "ROLLBACK_METRICS_PORT")]
    pub metrics_port: Option<u16>,
}

impl AdminArgs {
    /// The address the three options come to.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(
            self.metrics_address.unwrap_or(self.admin_address.ip()),
            self.metrics_port.unwrap_or(self.admin_address.port()),
        )
    }
}

/// What the endpoint tells about the process.
#[derive(Debug)]
pub struct Admin {
    /// The metrics. All are registered before the endpoint starts.
    pub registry: Registry,
    /// The parts that must be ready.
    pub readiness: Readiness,
    /// Cancelled when the process shuts down: not ready from then on.
    pub draining: CancellationToken,
}

/// The text format of the metrics.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

impl Admin {
    /// Serves until `stop`. Give it a token that is cancelled last, so that
    /// probes are answered while the process drains.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) -> Drained {
        let admin = Arc::new(self);
        let handler = move |request: crate::server::Request| {
            let response = admin.respond(request.method(), request.uri().path());
            async move { response }
        };
        serve(listener, Transport::Plain, Limits::small(), handler, stop).await
    }

    fn respond(&self, method: &Method, path: &str) -> Response {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        }
        match path {
            "/livez" => text(StatusCode::OK, "ok\n"),
            "/readyz" => self.readyz(),
            "/metrics" => self.metrics(),
            _ => text(StatusCode::NOT_FOUND, "there is /livez, /readyz and /metrics\n"),
        }
    }

    /// One line a part, as the Kubernetes servers write them.
    fn readyz(&self) -> Response {
        let mut parts = self.readiness.parts();
        if self.draining.is_cancelled() {
            parts.push(("shutdown", Some("shutting down".to_owned())));
        }
        let status = if parts.iter().all(|(_, waits)| waits.is_none()) {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let lines = parts.iter().map(|(name, waits)| match waits {
            None => format!("[+] {name}: ok\n"),
            Some(waits) => format!("[-] {name}: {waits}\n"),
        });
        let verdict = if status == StatusCode::OK { "ready\n" } else { "not ready\n" };
        text(status, lines.chain([verdict.to_owned()]).collect::<String>())
    }

    fn metrics(&self) -> Response {
        let mut body = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut body, &self.registry);
        if let Err(error) = encoded {
            // A collector of ours refused; half a page must not look whole.
            body.clear();
            let _ = writeln!(body, "the metrics could not be written: {error}");
            return text(StatusCode::INTERNAL_SERVER_ERROR, body);
        }
        let mut response = text(StatusCode::OK, body);
        response.headers_mut().insert(header::CONTENT_TYPE, OPEN_METRICS);
        response
    }
}
