//! A certificate that is replaced under a running server.

use std::time::Duration;

use crate::support::{Client, Running, Version, load, pair, soon, start_with, tls};
use http::StatusCode;
use rollback_runtime::server::{CertificateError, CertificateFiles, Limits, Reload, text};
use tokio_util::sync::CancellationToken;

async fn trusted(server: &Running, ca_pem: &str) -> bool {
    tls(server.address, ca_pem, b"h2").await.is_ok()
}

#[tokio::test]
async fn a_new_pair_is_served_and_a_torn_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, third) = (pair(), pair(), pair());
    first.write_files(dir.path()).unwrap();
    let files = load(dir.path()).await;
    let server =
        start_with(files.server_config().unwrap(), first.ca_pem.clone(), Limits::default(), |_| async {
            text(StatusCode::OK, "ok")
        })
        .await;
    let mut early = Client::connect(&server, Version::Http2).await;
    assert!(trusted(&server, &first.ca_pem).await && !trusted(&server, &second.ca_pem).await);
    assert!(matches!(files.reload().await, Reload::Unchanged));

    second.write_files(dir.path()).unwrap();
    assert!(matches!(files.reload().await, Reload::Replaced));
    assert!(trusted(&server, &second.ca_pem).await && !trusted(&server, &first.ca_pem).await);
    assert_eq!(early.get("/").await.0, 200, "an open connection lives on");

    // The certificate of one pair with the key of another.
    std::fs::write(dir.path().join("tls.crt"), &third.cert_pem).unwrap();
    assert!(matches!(files.reload().await, Reload::Kept(CertificateError::Pair { .. })));
    assert!(matches!(files.reload().await, Reload::Unchanged), "reported once");
    assert!(trusted(&server, &second.ca_pem).await);

    // Half a certificate.
    std::fs::write(dir.path().join("tls.crt"), &third.cert_pem[..200]).unwrap();
    assert!(matches!(files.reload().await, Reload::Kept(CertificateError::Content { .. })));
    assert!(trusted(&server, &second.ca_pem).await);

    std::fs::remove_file(dir.path().join("tls.key")).unwrap();
    assert!(matches!(files.reload().await, Reload::Kept(CertificateError::Read { .. })));
    assert!(matches!(files.reload().await, Reload::Unchanged), "reported once");
    assert!(trusted(&server, &second.ca_pem).await);

    third.write_files(dir.path()).unwrap();
    assert!(matches!(files.reload().await, Reload::Replaced));
    assert!(trusted(&server, &third.ca_pem).await);
}

#[tokio::test]
async fn the_watch_finds_a_new_pair_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (pair(), pair());
    first.write_files(dir.path()).unwrap();
    let files = load(dir.path()).await;
    let stop = CancellationToken::new();
    let watch = tokio::spawn(std::sync::Arc::clone(&files).watch(Duration::from_millis(10), stop.clone()));
    let server =
        start_with(files.server_config().unwrap(), first.ca_pem.clone(), Limits::default(), |_| async {
            text(StatusCode::OK, "ok")
        })
        .await;
    assert!(trusted(&server, &first.ca_pem).await);
    second.write_files(dir.path()).unwrap();
    let seen = async {
        while !trusted(&server, &second.ca_pem).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the new certificate", seen).await;
    stop.cancel();
    soon("the end of the watch", watch).await.unwrap();
}

#[tokio::test]
async fn the_first_load_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let error = CertificateFiles::load(&cert, &key).await.unwrap_err();
    assert!(error.to_string().contains("tls.crt could not be read"), "{error}");
    std::fs::write(&cert, "").unwrap();
    std::fs::write(&key, "").unwrap();
    let error = CertificateFiles::load(&cert, &key).await.unwrap_err();
    assert!(error.to_string().contains("tls.crt holds no certificate"), "{error}");
    std::fs::write(&cert, pair().cert_pem).unwrap();
    let error = CertificateFiles::load(&cert, &key).await.unwrap_err();
    assert!(error.to_string().contains("tls.key holds no private key"), "{error}");
    std::fs::write(&key, pair().key_pem).unwrap();
    let error = CertificateFiles::load(&cert, &key).await.unwrap_err();
    assert!(error.to_string().contains("cannot be used with the certificate"), "{error}");
}
