//! The program itself: its certificates, its port, its probes and its end.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_rustls::TlsConnector;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rollback-webhook");
const DEADLINE: Duration = Duration::from_secs(30);

async fn certs(out: &Path) -> std::process::Output {
    Command::new(PROGRAM)
        .args(["certs", "--dns=localhost", "--ip=127.0.0.1", "--out"])
        .arg(out)
        .output()
        .await
        .unwrap()
}

/// A kubeconfig for an API server that is not there: the port was free a moment ago and nobody listens on it.
async fn kubeconfig(folder: &Path) -> std::path::PathBuf {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let path = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// The webhook as a child that dies with the test, and the two addresses from its first line.
async fn start(folder: &Path) -> (Child, SocketAddr, SocketAddr) {
    let mut child = Command::new(PROGRAM)
        .args(["--bind-address=127.0.0.1", "--port=0", "--admin-address=127.0.0.1:0", "--log-format=json"])
        .arg("--kubeconfig")
        .arg(kubeconfig(folder).await)
        .arg("--tls-cert-file")
        .arg(folder.join("tls.crt"))
        .arg("--tls-private-key-file")
        .arg(folder.join("tls.key"))
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(DEADLINE, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("serving admission") {
                return line;
            }
        }
        String::new()
    });
    let line: serde_json::Value = serde_json::from_str(&line.await.expect("it starts")).expect("it serves");
    // Keeps the pipe open and empty.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let fields = line.get("fields").unwrap_or(&line);
    let address = |key: &str| fields[key].as_str().expect("an address").parse().unwrap();
    (child, address("address"), address("admin"))
}

/// One HTTP/1.1 exchange; the answer's status and body.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A peer that closes without a TLS goodbye still has sent its answer.
    let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await.expect("an answer in time");
    let answer = String::from_utf8(answer).unwrap();
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// A connection that trusts the authority that `certs` wrote, and nobody else.
async fn connect(folder: &Path, address: SocketAddr) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("ca.crt")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

const REVIEW: &str = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
    "uid": "u-1", "namespace": "shop", "operation": "CREATE", "userInfo": {"username": "alice"},
    "resource": {"group": "deploy.crd.gocardless.com", "version": "v1alpha1", "resource": "rollbacks"},
    "object": {"metadata": {"name": "back"}, "spec": {"toReleaseRef": {"target": "payments"}, "reason": "r"}}}}"#;

#[tokio::test]
async fn serves_over_tls_with_its_own_certificates_and_ends_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    assert!(certs(folder.path()).await.status.success());
    let (mut child, address, admin) = start(folder.path()).await;

    // Live, but not ready: the API server is not there.
    assert_eq!(exchange(TcpStream::connect(admin).await.unwrap(), "GET", "/livez", "").await.0, 200);
    let (code, why) = exchange(TcpStream::connect(admin).await.unwrap(), "GET", "/readyz", "").await;
    assert_eq!(code, 503, "{why}");

    let (code, body) =
        exchange(connect(folder.path(), address).await, "POST", "/mutate-rollbacks?timeout=10s", REVIEW)
            .await;
    assert_eq!(code, 200, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["response"]["allowed"], false);
    assert_eq!(answer["response"]["status"]["code"], 500);
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("this rollback of payments could not be decided, so it is not admitted: "),
        "{message}"
    );
    assert!(message.contains("Connection refused"), "{message}");

    assert_eq!(exchange(connect(folder.path(), address).await, "GET", "/metrics", "").await.0, 404);
    let (_, metrics) = exchange(TcpStream::connect(admin).await.unwrap(), "GET", "/metrics", "").await;
    assert!(
        metrics.contains("rollback_webhook_requests_total{path=\"/mutate-rollbacks\",verdict=\"error\"} 1"),
        "{metrics}"
    );

    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(&pid).status().await.unwrap().success());
    let status = tokio::time::timeout(DEADLINE, child.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn makes_an_authority_and_a_certificate_by_one_command() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let made = certs(&out).await;
    assert!(made.status.success(), "{made:?}");
    assert!(String::from_utf8(made.stdout).unwrap().contains("caBundle"));
    for file in ["ca.crt", "tls.crt", "tls.key"] {
        assert!(out.join(file).exists(), "{file}");
    }
    assert_eq!(std::fs::metadata(out.join("tls.key")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn says_what_is_wrong_with_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let fails = async |args: &[&str], says: &str| {
        let output = Command::new(PROGRAM).args(args).current_dir(folder.path()).output().await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(error.contains(says), "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    };
    fails(&[], "--tls-cert-file").await;
    fails(&["certs", "--out=x"], "--dns").await;
    fails(&["certs", "--out=x", "--dns=not a name"], "is not a DNS name").await;
    std::fs::write(folder.path().join("file"), "").unwrap();
    fails(&["certs", "--out=file", "--dns=a.example"], "directory file could not be made").await;
    let config = kubeconfig(folder.path()).await;
    let config = format!("--kubeconfig={}", config.display());
    fails(&[&config, "--tls-cert-file=none", "--tls-private-key-file=none"], "none").await;
    fails(
        &["--kubeconfig=none", "--tls-cert-file=a", "--tls-private-key-file=b"],
        "the kubeconfig cannot be used",
    )
    .await;
}
