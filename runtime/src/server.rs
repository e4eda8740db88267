//! An HTTP server with limits, over TLS or plain TCP.
//!
//! It takes a bound listener and a token that ends it. A connection takes its
//! place before it is accepted, so that a flood waits in the kernel's queue. On
//! the end it stops accepting, lets requests in progress finish, and cuts what
//! is left after the drain timeout.

mod activity;
mod certificate;
mod connection;
mod limits;
mod requests;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use certificate::{CertificateError, CertificateFiles, Reload};
pub use limits::Limits;

use requests::Requests;

/// A request as the handler gets it; read its body with [`crate::body::read_body`].
pub type Request = http::Request<Incoming>;
/// A handler's answer.
pub type Response = http::Response<Full<Bytes>>;

/// What carries the requests.
#[derive(Clone)]
pub enum Transport {
    /// HTTP/1.1 over TCP.
    Plain,
    /// HTTP/1.1 or HTTP/2, as the client chooses, over TLS; see
    /// [`CertificateFiles::server_config`].
    Tls(Arc<ServerConfig>),
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every connection finished by itself.
    Completely,
    /// So many connections had to be cut at the drain timeout.
    Cut(usize),
}

/// How long to wait after the system refuses to accept: at first, and at most.
const ACCEPT_BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Serves until `stop` is cancelled and the connections are drained. A handler
/// that panics costs its own request a 500, nothing more.
pub async fn serve<H, F>(
    listener: TcpListener,
    transport: Transport,
    limits: Limits,
    handler: H,
    stop: CancellationToken,
) -> Drained
where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.connections));
    let requests = Arc::new(Requests::new(handler, limits));
    let acceptor = match transport {
        Transport::Plain => None,
        Transport::Tls(config) => Some(TlsAcceptor::from(config)),
    };
    let mut connections = JoinSet::new();
    // Ends when `stop` is cancelled, or never: nobody closes the semaphore.
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
        let Some(stream) = stop.run_until_cancelled(accept(&listener)).await else { break };
        let (acceptor, requests, stop) = (acceptor.clone(), Arc::clone(&requests), stop.clone());
        connections.spawn(async move {
            connection::run(stream, acceptor, requests, limits, stop).await;
            drop(place);
        });
        while let Some(ended) = connections.try_join_next() {
            report(ended);
        }
    }
    // New clients are refused now instead of waiting for nothing.
    drop(listener);
    drain(connections, limits.drain).await
}

async fn drain(mut connections: JoinSet<()>, within: Duration) -> Drained {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(within, all).await.is_ok() {
        return Drained::Completely;
    }
    let cut = connections.len();
    tracing::warn!(connections = cut, "cut connections that did not finish within the drain timeout");
    connections.shutdown().await;
    Drained::Cut(cut)
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked: this is a defect, please report it");
    }
}

/// The next connection. Errors of accept are the system's (no more file
/// descriptors) or one client's; neither ends the server.
async fn accept(listener: &TcpListener) -> TcpStream {
    let (mut wait, longest) = ACCEPT_BACKOFF;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted; trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(longest);
            }
        }
    }
}

/// A short plain-text answer.
pub fn text(status: http::StatusCode, body: impl Into<String>) -> Response {
    let mut response = http::Response::new(Full::from(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
