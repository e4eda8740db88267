//! The certificates and keys of one control plane.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

/// What the API server's certificate is valid for; 10.0.0.1 is the first service address.
const SERVING_NAMES: [&str; 6] =
    ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// Files for the API server and the CA to sign client certificates with.
pub(crate) struct Pki {
    ca: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A client certificate and its key, PEM.
pub(crate) struct ClientCertificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pki {
    /// Makes a CA, a serving certificate and a key pair for service account tokens in `folder`: the
    /// files `ca.crt`, `apiserver.crt`, `apiserver.key`, `sa.key`, `sa.pub`.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut params = parameters("rig-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let pki = Self { ca, folder: folder.to_path_buf() };
        pki.write("ca.crt", &pki.ca.pem())?;

        let key = KeyPair::generate()?;
        let mut serving = CertificateParams::new(SERVING_NAMES.map(str::to_owned))?;
        with_validity(&mut serving);
        serving.distinguished_name = name("kube-apiserver", None);
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        pki.write("apiserver.crt", &pki.sign(serving, &key)?.pem())?;
        pki.write("apiserver.key", &key.serialize_pem())?;

        let tokens = KeyPair::generate()?;
        pki.write("sa.key", &tokens.serialize_pem())?;
        pki.write("sa.pub", &tokens.public_key_pem())?;
        Ok(pki)
    }

    /// The CA certificate, PEM.
    pub(crate) fn ca_pem(&self) -> String {
        self.ca.pem()
    }

    /// A client certificate for this user, in this group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<ClientCertificate> {
        let key = KeyPair::generate()?;
        let mut params = parameters(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = self.sign(params, &key)?.pem();
        Ok(ClientCertificate { certificate, key: key.serialize_pem() })
    }

    fn sign(&self, mut params: CertificateParams, key: &KeyPair) -> Result<Certificate> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        Ok(params.signed_by(key, &self.ca)?)
    }

    fn write(&self, file: &str, content: &str) -> Result<()> {
        std::fs::write(self.folder.join(file), content).with_context(|| format!("cannot write {file}"))
    }
}

fn parameters(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    with_validity(&mut params);
    params.distinguished_name = name(common_name, organization);
    params
}

/// Long enough for every run, whatever the clock of the machine says.
fn with_validity(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2120, 1, 1);
}

fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}
