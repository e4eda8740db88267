//! The API client against a server that is overloaded, silent or absent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Config};
use rollback_runtime::client::{ClientArgs, Retry, build};
use rollback_runtime::server::{Limits, Request, Response, Transport, serve, text};
use rstest::rstest;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, soon};

/// A plain API server with one handler; counts its requests.
async fn api_server<F>(handler: impl Fn(Request) -> F + Send + Sync + 'static) -> (Config, Arc<AtomicUsize>)
where
    F: Future<Output = Response> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = move |request| {
        counted.fetch_add(1, Ordering::SeqCst);
        handler(request)
    };
    tokio::spawn(serve(listener, Transport::Plain, Limits::small(), handler, CancellationToken::new()));
    // Another test may have been first; either way ring is installed.
    let _ = rollback_runtime::crypto::install_crypto_provider();
    (Config::new(uri), count)
}

#[rstest]
#[case(Retry::Off, 1)]
#[case(Retry::Bounded, 5)]
#[tokio::test]
async fn an_overloaded_server_is_asked_a_few_times_or_once(#[case] retry: Retry, #[case] requests: usize) {
    let (config, count) = api_server(|_| async { text(StatusCode::SERVICE_UNAVAILABLE, "busy") }).await;
    let api: Api<Namespace> = Api::all(build(config, retry, DEADLINE).unwrap());
    assert!(soon("the answer", api.get("default")).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), requests);
}

#[rstest]
#[case(Retry::Off)]
#[case(Retry::Bounded)]
#[tokio::test]
async fn a_silent_server_is_given_up(#[case] retry: Retry) {
    let (config, _) = api_server(|_| std::future::pending::<Response>()).await;
    let api: Api<Namespace> = Api::all(build(config, retry, Duration::from_millis(200)).unwrap());
    let error = soon("giving up", api.get("default")).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_named_with_its_option() {
    let args = ClientArgs {
        kubeconfig: Some(PathBuf::from("absent/kubeconfig")),
        context: None,
        kube_request_timeout: DEADLINE,
    };
    let error = args.client(Retry::Off).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("absent/kubeconfig") && error.contains("--kubeconfig"), "{error}");
}

#[tokio::test]
async fn a_context_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
        contexts: [{name: here, context: {cluster: c, user: u}}]\n\
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n";
    std::fs::write(&path, text).unwrap();
    let args = |context: Option<&str>| ClientArgs {
        kubeconfig: Some(path.clone()),
        context: context.map(str::to_owned),
        kube_request_timeout: DEADLINE,
    };
    assert_eq!(args(None).config().await.unwrap().cluster_url.port_u16(), Some(1));
    let error = args(Some("elsewhere")).config().await.unwrap_err().to_string();
    assert!(error.contains("elsewhere") && error.contains("--context"), "{error}");
}
