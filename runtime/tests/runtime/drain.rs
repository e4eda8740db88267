//! The end of a server.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Client, Running, Version, soon, start};
use http::StatusCode;
use rollback_runtime::server::{Drained, Limits, Response, text};
use rstest::rstest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

/// A server whose requests wait until the gate lets them through, and say when
/// they are inside.
async fn gated(limits: Limits) -> (Running, Arc<Semaphore>, mpsc::UnboundedReceiver<()>) {
    let gate = Arc::new(Semaphore::new(0));
    let (entered, inside) = mpsc::unbounded_channel();
    let held = Arc::clone(&gate);
    let server = start(limits, move |_| {
        let (held, entered) = (Arc::clone(&held), entered.clone());
        async move {
            entered.send(()).unwrap();
            held.acquire().await.unwrap().forget();
            text(StatusCode::OK, "done")
        }
    })
    .await;
    (server, gate, inside)
}

async fn refused(server: &Running) {
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("new connections being refused", refused).await;
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn requests_in_progress_finish_and_new_ones_are_refused(#[case] version: Version) {
    let (server, gate, mut inside) = gated(Limits::default()).await;
    let mut client = Client::connect(&server, version).await;
    let answer = tokio::spawn(async move { client.get("/").await });
    soon("the request", inside.recv()).await.unwrap();
    server.stop.cancel();
    refused(&server).await;
    assert!(!server.served.is_finished(), "the server left a request behind");
    gate.add_permits(1);
    assert_eq!(soon("the answer", answer).await.unwrap(), (200, "done".to_owned()));
    assert_eq!(soon("the end of the server", server.served).await.unwrap(), Drained::Completely);
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end(#[case] version: Version) {
    let server = start(Limits::default(), |_| async { text(StatusCode::OK, "ok") }).await;
    let mut client = Client::connect(&server, version).await;
    assert_eq!(client.get("/").await.0, 200);
    server.stop.cancel();
    assert_eq!(soon("the end of the server", server.served).await.unwrap(), Drained::Completely);
    client.closed().await;
}

#[tokio::test]
async fn a_request_that_never_finishes_is_cut() {
    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let (server, _gate, mut inside) = gated(limits).await;
    let mut client = Client::connect(&server, Version::Http1).await;
    let answer = tokio::spawn(async move { client.send(crate::support::get("/")).await });
    soon("the request", inside.recv()).await.unwrap();
    server.stop.cancel();
    assert_eq!(soon("the end of the server", server.served).await.unwrap(), Drained::Cut(1));
    assert!(soon("the cut", answer).await.unwrap().is_err());
}

#[tokio::test]
async fn a_full_server_ends_too() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = start(limits, |_| async { text(StatusCode::OK, "ok") as Response }).await;
    let mut client = Client::connect(&server, Version::Http1).await;
    assert_eq!(client.get("/").await.0, 200);
    server.stop.cancel();
    assert_eq!(soon("the end of the server", server.served).await.unwrap(), Drained::Completely);
}
