//! Certificates for the webhook: one certificate authority and one server
//! certificate signed by it, made at once.
//!
//! The authority's key is dropped after it has signed. Nobody can sign with it
//! later; a renewal makes a new authority, and the old one's certificate may
//! stay in the webhook configuration's `caBundle` until no server uses it.
//! Time is an argument everywhere.

mod authority;
mod expiry;
mod files;
mod names;

use std::time::{Duration, SystemTime};

pub use authority::{Authority, Leaf};
pub use expiry::expiry;
pub use files::{CA_FILE, CERT_FILE, KEY_FILE};
pub use names::Names;

/// How long the certificates are valid. A server certificate never outlives its
/// authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Of the certificate authority.
    pub authority: Duration,
    /// Of the server certificate.
    pub leaf: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Lifetimes {
    /// Ten years for the authority, one for the server certificate.
    fn default() -> Self {
        Self { authority: DAY * 3650, leaf: DAY * 365 }
    }
}

/// What a server and its clients need. PEM throughout.
#[derive(Clone)]
pub struct Bundle {
    /// The authority's certificate: what clients trust (`caBundle`).
    pub ca_pem: String,
    /// The server's certificate.
    pub cert_pem: String,
    /// The server's private key (PKCS #8).
    pub key_pem: String,
}

impl std::fmt::Debug for Bundle {
    /// Leaves the private key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("ca_pem", &self.ca_pem)
            .field("cert_pem", &self.cert_pem)
            .finish_non_exhaustive()
    }
}

/// Why certificates could not be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// A certificate for no name helps nobody.
    #[error("no name for the certificate: give at least one DNS name or IP address")]
    NoNames,
    /// Not a host name that TLS clients would accept.
    #[error("{0:?} is not a DNS name: give host names such as rollback-webhook.rollback-system.svc")]
    DnsName(String),
    /// The time cannot be written into a certificate.
    #[error("the validity of the certificate is out of range: use a shorter lifetime")]
    Validity,
    /// The library refused to make the key or the certificate.
    #[error("the certificate could not be made: {0}")]
    Generate(#[from] rcgen::Error),
    /// The text holds no certificate that can be read.
    #[error("no certificate could be read: {0}; give a PEM file that starts with a CERTIFICATE block")]
    Parse(String),
    /// A file could not be written.
    #[error("{file} could not be written: {source}; check that the directory exists and is writable")]
    Write {
        /// The file's name inside the directory.
        file: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Makes an authority and a server certificate for `names`, both valid from
/// shortly before `now`. Fails on an empty or unusable set of names.
pub fn generate(now: SystemTime, names: &Names, lifetimes: Lifetimes) -> Result<Bundle, CertError> {
    let authority = Authority::new(names.common_name()?, now, lifetimes.authority)?;
    let Leaf { cert_pem, key_pem } = authority.issue(names, now, lifetimes.leaf)?;
    Ok(Bundle { ca_pem: authority.cert_pem(), cert_pem, key_pem })
}
