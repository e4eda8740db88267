//! A server certificate that follows its files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::crypto::provider;

/// Why the files give no usable certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{} could not be read: {source}; check that the certificate's Secret is mounted there", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} holds no {what}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What the parser said.
        source: pem::Error,
    },
    /// The two files do not belong together, or the key is of an unknown kind.
    #[error(
        "the key in {} cannot be used with the certificate in {}: {source}; give a pair made together",
        key.display(),
        certificate.display()
    )]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What the TLS library said.
        source: rustls::Error,
    },
}

/// What a look at the files brought.
#[derive(Debug)]
pub enum Reload {
    /// The same bytes as at the last look.
    Unchanged,
    /// A new pair is in use.
    Replaced,
    /// The new bytes are no usable pair; the one in use stays. Reported only
    /// once for the same bytes.
    Kept(CertificateError),
}

/// The certificate and key in two PEM files, and the pair in use. The pair in
/// use is always complete: a torn or mismatching one never replaces it.
#[derive(Debug)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    in_use: ArcSwap<CertifiedKey>,
    /// The bytes last looked at, good or bad; None when they could not be read.
    last_look: Mutex<Option<Bytes>>,
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct Bytes {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    /// Reads the pair for the first time. Fails when it is not usable.
    pub async fn load(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Arc<Self>, CertificateError> {
        let (certificate, key) = (certificate.into(), key.into());
        let bytes = read(&certificate, &key).await?;
        let pair = parse(&certificate, &key, &bytes)?;
        Ok(Arc::new(Self {
            certificate,
            key,
            in_use: ArcSwap::from_pointee(pair),
            last_look: Mutex::new(Some(bytes)),
        }))
    }

    /// A TLS 1.2 and 1.3 configuration that serves the pair in use, for HTTP/2
    /// and HTTP/1.1. Fails only if the TLS library lacks those versions.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Looks at the files again. Compares bytes, not times: a Secret's files
    /// are replaced by renaming a link above them.
    pub async fn reload(&self) -> Reload {
        let mut last_look = self.last_look.lock().await;
        let bytes = match read(&self.certificate, &self.key).await {
            Ok(bytes) => bytes,
            Err(_) if last_look.is_none() => return Reload::Unchanged,
            Err(error) => {
                *last_look = None;
                return Reload::Kept(error);
            }
        };
        if last_look.as_ref() == Some(&bytes) {
            return Reload::Unchanged;
        }
        let parsed = parse(&self.certificate, &self.key, &bytes);
        *last_look = Some(bytes);
        match parsed {
            Ok(pair) => {
                self.in_use.store(Arc::new(pair));
                Reload::Replaced
            }
            Err(error) => Reload::Kept(error),
        }
    }

    /// Looks at the files every `interval` until `stop`, and logs what changed.
    pub async fn watch(self: Arc<Self>, interval: Duration, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            match self.reload().await {
                Reload::Unchanged => {}
                Reload::Replaced => tracing::info!("serving a new certificate"),
                Reload::Kept(error) => {
                    tracing::warn!(%error, "the changed certificate is not usable; keeping the one in use");
                }
            }
        }
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.in_use.load_full())
    }
}

async fn read(certificate: &Path, key: &Path) -> Result<Bytes, CertificateError> {
    let file = async |path: &Path| {
        let read = tokio::fs::read(path).await;
        read.map_err(|source| CertificateError::Read { path: path.to_owned(), source })
    };
    Ok(Bytes { certificate: file(certificate).await?, key: file(key).await? })
}

fn parse(certificate: &Path, key: &Path, bytes: &Bytes) -> Result<CertifiedKey, CertificateError> {
    let content =
        |path: &Path, what, source| CertificateError::Content { path: path.to_owned(), what, source };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes.certificate)
        .collect::<Result<_, _>>()
        .map_err(|source| content(certificate, "certificate", source))?;
    if chain.is_empty() {
        return Err(content(certificate, "certificate", pem::Error::NoItemsFound));
    }
    let private =
        PrivateKeyDer::from_pem_slice(&bytes.key).map_err(|source| content(key, "private key", source))?;
    let pair = CertifiedKey::from_der(chain, private, &provider());
    pair.map_err(|source| CertificateError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    })
}
