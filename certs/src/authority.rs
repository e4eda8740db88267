//! A certificate authority that lives in memory only.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use time::OffsetDateTime;

use crate::{CertError, Names};

/// Certificates begin this much in the past, for clients whose clock is behind.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// RFC 5280 allows 64 characters in a common name.
const COMMON_NAME_MAX: usize = 64;

/// An authority able to sign server certificates until it is dropped.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    not_after: OffsetDateTime,
}

/// A server certificate with its key.
#[derive(Clone)]
pub struct Leaf {
    /// The certificate, PEM.
    pub cert_pem: String,
    /// The private key, PKCS #8 PEM.
    pub key_pem: String,
}

impl Authority {
    /// Makes an authority named after `name`, valid for `lifetime` from `now`.
    /// Fails when the validity cannot be expressed.
    pub fn new(name: impl AsRef<str>, now: SystemTime, lifetime: Duration) -> Result<Self, CertError> {
        let seconds = now.duration_since(UNIX_EPOCH).map_err(|_| CertError::Validity)?.as_secs();
        let mut params = CertificateParams::default();
        // The moment makes two authorities for one name tell apart, and the
        // subject must differ from the leaf's or OpenSSL takes the leaf for
        // self-signed.
        params.distinguished_name = common_name(&format!("CA {seconds} {}", name.as_ref()));
        (params.not_before, params.not_after) = validity(now, lifetime)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let not_after = params.not_after;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?, not_after })
    }

    /// The authority's certificate, PEM.
    pub fn cert_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Signs a new server certificate with a new key, valid for `lifetime` from
    /// `now` but no longer than the authority. Fails on empty or unusable names.
    pub fn issue(&self, names: &Names, now: SystemTime, lifetime: Duration) -> Result<Leaf, CertError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&names.common_name()?);
        params.subject_alt_names = names.to_sans()?;
        (params.not_before, params.not_after) = validity(now, lifetime)?;
        params.not_after = params.not_after.min(self.not_after);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Leaf { cert_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name.chars().take(COMMON_NAME_MAX).collect::<String>());
    distinguished
}

fn validity(now: SystemTime, lifetime: Duration) -> Result<(OffsetDateTime, OffsetDateTime), CertError> {
    let at = |moment: Option<SystemTime>| {
        let seconds = moment?.duration_since(UNIX_EPOCH).ok()?.as_secs();
        // X.509 writes years with four digits; `time` refuses later ones.
        OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()
    };
    let begin = at(now.checked_sub(BACKDATE)).ok_or(CertError::Validity)?;
    let end = at(now.checked_add(lifetime)).ok_or(CertError::Validity)?;
    Ok((begin, end))
}
