//! Probes and metrics over a real socket.

use std::net::SocketAddr;

use crate::support::soon;
use clap::Parser as _;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rollback_runtime::admin::{Admin, AdminArgs};
use rollback_runtime::readiness::Readiness;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("the answer", stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn probes_and_metrics_tell_the_state() {
    let mut registry = Registry::default();
    let counter: Counter = Counter::default();
    registry.register("rollback_things", "Things that happened", counter.clone());
    counter.inc_by(3);
    let (readiness, draining, stop) = (Readiness::new(), CancellationToken::new(), CancellationToken::new());
    let cache = readiness.register("cache");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let admin = Admin { registry, readiness, draining: draining.clone() };
    let served = tokio::spawn(admin.serve(listener, stop.clone()));

    assert!(ask(address, "GET", "/livez").await.starts_with("HTTP/1.1 200"));
    let waiting = ask(address, "GET", "/readyz").await;
    assert!(waiting.starts_with("HTTP/1.1 503") && waiting.contains("[-] cache: starting"), "{waiting}");
    cache.ready();
    let ready = ask(address, "GET", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("[+] cache: ok"), "{ready}");
    let metrics = ask(address, "GET", "/metrics").await;
    assert!(metrics.contains("application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("rollback_things_total 3"), "{metrics}");
    assert!(ask(address, "POST", "/metrics").await.starts_with("HTTP/1.1 405"));
    assert!(ask(address, "GET", "/other").await.starts_with("HTTP/1.1 404"));

    draining.cancel();
    let draining = ask(address, "GET", "/readyz").await;
    assert!(draining.starts_with("HTTP/1.1 503") && draining.contains("shutting down"), "{draining}");
    assert!(ask(address, "GET", "/livez").await.starts_with("HTTP/1.1 200"), "alive while it drains");
    stop.cancel();
    soon("the end of the server", served).await.unwrap();
}

#[derive(clap::Parser)]
struct Program {
    #[command(flatten)]
    admin: AdminArgs,
}

#[test]
fn the_older_options_replace_their_part_of_the_address() {
    let address = |arguments: &[&str]| {
        Program::try_parse_from([&["program"], arguments].concat()).unwrap().admin.address().to_string()
    };
    assert_eq!(address(&[]), "0.0.0.0:9525");
    assert_eq!(address(&["--admin-address=127.0.0.1:1"]), "127.0.0.1:1");
    assert_eq!(address(&["--metrics-address=127.0.0.1"]), "127.0.0.1:9525");
    assert_eq!(address(&["--metrics-port=1"]), "0.0.0.0:1");
    assert_eq!(address(&["--metrics-address=::1", "--metrics-port=1"]), "[::1]:1");
}
