//! One connection from handshake to end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use super::requests::Requests;
use super::{Limits, Request, Response};

/// The name of HTTP/2 in the TLS handshake (RFC 7540, section 3.1).
const ALPN_HTTP2: &[u8] = b"h2";

/// Serves one connection to its end. Its errors are its client's: logged at
/// debug level.
pub(super) async fn run<H, F>(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    requests: Arc<Requests<H>>,
    limits: Limits,
    stop: CancellationToken,
) where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers on this connection may be delayed");
    }
    let Some(acceptor) = acceptor else {
        return serve_http1(TokioIo::new(stream), requests, limits, stop).await;
    };
    let handshake = tokio::time::timeout(limits.handshake, acceptor.accept(stream));
    let tls = match stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(tls))) => tls,
        Some(Ok(Err(error))) => return tracing::debug!(%error, "TLS handshake failed"),
        Some(Err(_)) => return tracing::debug!("TLS handshake took too long"),
        None => return,
    };
    // The handshake has settled the version, so nothing has to be guessed from
    // the first bytes (which a client could hold back for ever).
    if tls.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2) {
        serve_http2(TokioIo::new(tls), requests, limits, stop).await;
    } else {
        serve_http1(TokioIo::new(tls), requests, limits, stop).await;
    }
}

async fn serve_http1<I, H, F>(io: I, requests: Arc<Requests<H>>, limits: Limits, stop: CancellationToken)
where
    I: Read + Write + Unpin + Send + 'static,
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let activity = Activity::new();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(
            io,
            service_fn(|request| {
                let (requests, busy) = (Arc::clone(&requests), activity.begin());
                async move {
                    let response = requests.answer(request).await;
                    drop(busy);
                    Ok::<_, Infallible>(response)
                }
            }),
        );
    drive(connection, &activity, limits, stop).await;
}

async fn serve_http2<I, H, F>(io: I, requests: Arc<Requests<H>>, limits: Limits, stop: CancellationToken)
where
    I: Read + Write + Unpin + Send + 'static,
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let activity = Activity::new();
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.keep_alive)
        .keep_alive_timeout(limits.keep_alive)
        .max_concurrent_streams(u32::try_from(limits.requests).unwrap_or(u32::MAX))
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .serve_connection(
            io,
            service_fn(|request| {
                let (requests, busy) = (Arc::clone(&requests), activity.begin());
                async move {
                    let response = requests.answer(request).await;
                    drop(busy);
                    Ok::<_, Infallible>(response)
                }
            }),
        );
    drive(connection, &activity, limits, stop).await;
}

/// Runs the connection until it ends by itself, idles too long, or the server
/// stops; then lets it finish what it has begun.
async fn drive<C>(connection: C, activity: &Activity, limits: Limits, stop: CancellationToken)
where
    C: GracefulConnection<Error = hyper::Error> + Future<Output = Result<(), hyper::Error>>,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = activity.idle_for(limits.idle) => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        activity.touch();
        tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            // A client that neither sends nor reads: nothing to wait for.
            () = activity.idle_for(limits.handshake) => return,
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
