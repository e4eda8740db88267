//! Clients that are slow, many, large or unlucky.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Client, Version, client_config, post, soon, start, tls};
use http::StatusCode;
use rollback_runtime::body::read_body;
use rollback_runtime::server::{Limits, Request, Response, text};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

async fn ok(_: Request) -> Response {
    text(StatusCode::OK, "ok")
}

const SHORT: Duration = Duration::from_millis(100);

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn both_versions_of_http_are_served(#[case] version: Version) {
    let server = start(Limits::default(), ok).await;
    let mut client = Client::connect(&server, version).await;
    assert_eq!(client.get("/").await, (200, "ok".to_owned()));
    assert_eq!(client.get("/").await, (200, "ok".to_owned()));
}

#[rstest]
#[case(&rustls::version::TLS12)]
#[case(&rustls::version::TLS13)]
#[tokio::test]
async fn both_current_versions_of_tls_are_served(#[case] version: &'static rustls::SupportedProtocolVersion) {
    let server = start(Limits::default(), ok).await;
    let config = Arc::new(client_config(&server.ca_pem, &[version]));
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(config).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
    // Without ALPN the server speaks HTTP/1.1.
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon("the answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_client_that_never_begins_the_handshake_is_dropped() {
    let server = start(Limits { handshake: SHORT, ..Limits::default() }, ok).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(soon("the server hanging up", silent.read(&mut [0; 1])).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_client_that_speaks_no_tls_harms_nobody() {
    let server = start(Limits::default(), ok).await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // A TLS alert or a reset: anything but an HTTP answer.
    let _ = soon("the server hanging up", plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(Client::connect(&server, Version::Http2).await.get("/").await.0, 200);
}

#[tokio::test]
async fn a_head_that_never_ends_is_dropped() {
    let server = start(Limits { header: SHORT, ..Limits::default() }, ok).await;
    let mut slow = tls(server.address, &server.ca_pem, b"http/1.1").await.unwrap();
    slow.write_all(b"POST / HTTP/1.1\r\nhost: loc").await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the server hanging up", slow.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn an_idle_connection_is_closed(#[case] version: Version) {
    let server = start(Limits { idle: SHORT, ..Limits::default() }, ok).await;
    let mut client = Client::connect(&server, version).await;
    assert_eq!(client.get("/").await.0, 200);
    client.closed().await;
}

#[tokio::test]
async fn an_http2_client_that_never_says_a_word_is_dropped() {
    let limits = Limits { idle: SHORT, handshake: Duration::from_secs(1), ..Limits::default() };
    let server = start(limits, ok).await;
    let mut silent = tls(server.address, &server.ca_pem, b"h2").await.unwrap();
    let mut answer = Vec::new();
    let _ = soon("the server hanging up", silent.read_to_end(&mut answer)).await;
}

#[tokio::test]
async fn a_connection_too_many_waits_for_its_turn() {
    let server = start(Limits { connections: 1, ..Limits::default() }, ok).await;
    let mut first = Client::connect(&server, Version::Http1).await;
    assert_eq!(first.get("/").await.0, 200);
    let (address, ca_pem) = (server.address, server.ca_pem.clone());
    let second =
        tokio::spawn(async move { Client::to(address, &ca_pem, Version::Http1).await.get("/").await });
    for _ in 0..50 {
        assert_eq!(first.get("/").await.0, 200);
    }
    assert!(!second.is_finished(), "the second connection was served beside the first");
    drop(first);
    assert_eq!(soon("the second connection's turn", second).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_request_too_many_is_told_to_come_back() {
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let limits = Limits { requests: 1, queue: SHORT, ..Limits::default() };
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let server = start(limits, move |_| {
        let (held, entered) = (Arc::clone(&held), entered.clone());
        async move {
            entered.send(()).unwrap();
            held.acquire().await.unwrap().forget();
            text(StatusCode::OK, "done")
        }
    })
    .await;
    let mut first = Client::connect(&server, Version::Http1).await;
    let first = tokio::spawn(async move { first.get("/").await });
    soon("the first request", inside.recv()).await.unwrap();
    let (status, body) = Client::connect(&server, Version::Http1).await.get("/").await;
    assert_eq!(status, 503);
    assert!(body.contains("too many requests"), "{body}");
    gate.add_permits(2);
    assert_eq!(soon("the first answer", first).await.unwrap(), (200, "done".to_owned()));
    assert_eq!(Client::connect(&server, Version::Http1).await.get("/").await.0, 200);
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn a_handler_that_hangs_is_given_up(#[case] version: Version) {
    let limits = Limits { request: SHORT, ..Limits::default() };
    let server = start(limits, |_| std::future::pending::<Response>()).await;
    let (status, body) = Client::connect(&server, version).await.get("/").await;
    assert_eq!(status, 503);
    assert!(body.contains("took too long"), "{body}");
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn a_handler_that_panics_costs_one_request(#[case] version: Version) {
    let server = start(Limits::default(), |request: Request| async move {
        assert!(request.uri().path() != "/panic", "as the test wants");
        text(StatusCode::OK, "ok")
    })
    .await;
    let mut client = Client::connect(&server, version).await;
    assert_eq!(client.get("/panic").await.0, 500);
    assert_eq!(client.get("/").await.0, 200, "the connection lives on");
}

async fn read_eight(request: Request) -> Response {
    match read_body(request, 8, Duration::from_secs(20)).await {
        Ok(body) => text(StatusCode::OK, format!("{} bytes", body.len())),
        Err(error) => text(error.status(), error.to_string()),
    }
}

#[rstest]
#[case(Version::Http1)]
#[case(Version::Http2)]
#[tokio::test]
async fn a_body_over_the_limit_is_refused(#[case] version: Version) {
    let server = start(Limits::default(), read_eight).await;
    let mut client = Client::connect(&server, version).await;
    let at = soon("an answer", client.send(post("/", "12345678"))).await.unwrap();
    assert_eq!(at, (200, "8 bytes".to_owned()));
    let over = soon("an answer", client.send(post("/", "123456789"))).await.unwrap();
    assert_eq!(over.0, 413);
    assert!(over.1.contains("larger than 8 bytes"), "{}", over.1);
}

#[tokio::test]
async fn a_chunked_body_over_the_limit_is_refused() {
    let server = start(Limits::default(), read_eight).await;
    let mut stream = tls(server.address, &server.ca_pem, b"http/1.1").await.unwrap();
    stream
        .write_all(
            b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n9\r\n123456789\r\n",
        )
        .await
        .unwrap();
    let mut answer = vec![0; 12];
    soon("the answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 413");
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let server = start(Limits::default(), |request| async {
        match read_body(request, 8, SHORT).await {
            Ok(_) => text(StatusCode::OK, "ok"),
            Err(error) => text(error.status(), error.to_string()),
        }
    })
    .await;
    let mut stream = tls(server.address, &server.ca_pem, b"http/1.1").await.unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 8\r\n\r\n123").await.unwrap();
    let mut answer = vec![0; 12];
    soon("the answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 408");
}
