//! A server on a free port and clients that trust it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rollback_certs::{Bundle, Lifetimes, Names, generate};
use rollback_runtime::crypto::provider;
use rollback_runtime::server::{CertificateFiles, Drained, Limits, Request, Response, Transport, serve};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes: only a hang reaches it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Fails the test instead of hanging.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

pub fn pair() -> Bundle {
    let names = Names { dns: vec!["localhost".into()], ips: vec!["127.0.0.1".parse().unwrap()] };
    generate(SystemTime::now(), &names, Lifetimes::default()).unwrap()
}

pub async fn load(dir: &Path) -> Arc<CertificateFiles> {
    CertificateFiles::load(dir.join("tls.crt"), dir.join("tls.key")).await.unwrap()
}

/// A running TLS server with its authority.
pub struct Running {
    pub address: SocketAddr,
    pub ca_pem: String,
    pub stop: CancellationToken,
    pub served: JoinHandle<Drained>,
}

pub async fn start<H, F>(limits: Limits, handler: H) -> Running
where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let dir = tempfile::tempdir().unwrap();
    let bundle = pair();
    bundle.write_files(dir.path()).unwrap();
    let files = load(dir.path()).await;
    start_with(files.server_config().unwrap(), bundle.ca_pem, limits, handler).await
}

pub async fn start_with<H, F>(
    config: Arc<rustls::ServerConfig>,
    ca_pem: String,
    limits: Limits,
    handler: H,
) -> Running
where
    H: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let served = tokio::spawn(serve(listener, Transport::Tls(config), limits, handler, stop.clone()));
    Running { address, ca_pem, stop, served }
}

pub fn client_config(ca_pem: &str, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

pub async fn tls(address: SocketAddr, ca_pem: &str, alpn: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut config = client_config(ca_pem, rustls::ALL_VERSIONS);
    config.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// Which version of HTTP a client speaks.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    Http1,
    Http2,
}

/// One connection that sends requests.
pub enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Client {
    pub async fn connect(server: &Running, version: Version) -> Self {
        Self::to(server.address, &server.ca_pem, version).await
    }

    pub async fn to(address: SocketAddr, ca_pem: &str, version: Version) -> Self {
        match version {
            Version::Http1 => {
                let io = TokioIo::new(tls(address, ca_pem, b"http/1.1").await.unwrap());
                let (sender, connection) = http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            Version::Http2 => {
                let io = TokioIo::new(tls(address, ca_pem, b"h2").await.unwrap());
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        }
    }

    pub async fn send(&mut self, request: http::Request<Full<Bytes>>) -> hyper::Result<(u16, String)> {
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub async fn get(&mut self, path: &str) -> (u16, String) {
        soon("an answer", self.send(get(path))).await.unwrap()
    }

    /// Waits until the server has closed this connection.
    pub async fn closed(&mut self) {
        let closed = async {
            loop {
                let ready = match self {
                    Self::Http1(sender) => sender.is_closed(),
                    Self::Http2(sender) => sender.is_closed(),
                };
                if ready {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon("the end of the connection", closed).await;
    }
}

pub fn get(path: &str) -> http::Request<Full<Bytes>> {
    let builder =
        http::Request::builder().uri(format!("https://localhost{path}")).header("host", "localhost");
    builder.body(Full::default()).unwrap()
}

pub fn post(path: &str, body: impl Into<Bytes>) -> http::Request<Full<Bytes>> {
    let builder = http::Request::builder().method("POST");
    let builder = builder.uri(format!("https://localhost{path}")).header("host", "localhost");
    builder.body(Full::new(body.into())).unwrap()
}
