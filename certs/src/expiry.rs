//! When a certificate ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::parse_x509_certificate;

use crate::CertError;

/// The moment after which the first certificate in `cert_pem` is no longer
/// valid. Fails when the text holds no readable certificate.
pub fn expiry(cert_pem: &str) -> Result<SystemTime, CertError> {
    let der = CertificateDer::from_pem_slice(cert_pem.as_bytes())
        .map_err(|error| CertError::Parse(error.to_string()))?;
    let (_, certificate) =
        parse_x509_certificate(&der).map_err(|error| CertError::Parse(error.to_string()))?;
    let seconds = certificate.validity().not_after.timestamp();
    let seconds = u64::try_from(seconds).map_err(|_| CertError::Validity)?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).ok_or(CertError::Validity)
}
