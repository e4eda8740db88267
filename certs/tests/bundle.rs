//! What comes out is judged by a TLS client's own verifier, not by our reading.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rollback_certs::{CA_FILE, CERT_FILE, CertError, KEY_FILE, Lifetimes, Names, expiry, generate};
use rstest::rstest;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

const NOW: Duration = Duration::from_secs(1_800_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn now() -> SystemTime {
    UNIX_EPOCH + NOW
}

fn names() -> Names {
    Names {
        ips: vec!["127.0.0.1".parse().unwrap()],
        ..Names::of_service("rollback-webhook", "rollback-system")
    }
}

fn verify(ca_pem: &str, cert_pem: &str, server: &str, at: Duration) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let cert = CertificateDer::from_pem_slice(cert_pem.as_bytes()).unwrap();
    let name = ServerName::try_from(server.to_owned()).unwrap();
    verifier.verify_server_cert(&cert, &[], &name, &[], UnixTime::since_unix_epoch(at)).map(|_| ())
}

#[rstest]
#[case("rollback-webhook.rollback-system.svc", NOW, true)]
#[case("rollback-webhook.rollback-system.svc.cluster.local", NOW, true)]
#[case("127.0.0.1", NOW, true)]
#[case("other.rollback-system.svc", NOW, false)]
#[case("127.0.0.2", NOW, false)]
// A client whose clock is a little behind.
#[case("127.0.0.1", NOW.saturating_sub(Duration::from_secs(200)), true)]
#[case("127.0.0.1", NOW.saturating_sub(Duration::from_secs(400)), false)]
#[case("127.0.0.1", NOW + DAY * 364, true)]
#[case("127.0.0.1", NOW + DAY * 366, false)]
fn a_client_with_the_authority_accepts_the_names_in_time(
    #[case] server: &str,
    #[case] at: Duration,
    #[case] accepted: bool,
) {
    let bundle = generate(now(), &names(), Lifetimes::default()).unwrap();
    assert_eq!(verify(&bundle.ca_pem, &bundle.cert_pem, server, at).is_ok(), accepted);
}

#[test]
fn another_authority_is_not_accepted() {
    let ours = generate(now(), &names(), Lifetimes::default()).unwrap();
    let other = generate(now(), &names(), Lifetimes::default()).unwrap();
    assert!(verify(&other.ca_pem, &ours.cert_pem, "127.0.0.1", NOW).is_err());
}

#[test]
fn the_key_belongs_to_the_certificate_and_stays_out_of_the_debug_text() {
    let bundle = generate(now(), &names(), Lifetimes::default()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(bundle.cert_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(bundle.key_pem.as_bytes()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let certified = rustls::sign::CertifiedKey::from_der(chain, key, &provider).unwrap();
    certified.keys_match().unwrap();
    assert!(!format!("{bundle:?}").contains("PRIVATE KEY"));
}

#[test]
fn subjects_differ_and_the_leaf_names_its_authority() {
    let bundle = generate(now(), &names(), Lifetimes::default()).unwrap();
    let ca = CertificateDer::from_pem_slice(bundle.ca_pem.as_bytes()).unwrap();
    let leaf = CertificateDer::from_pem_slice(bundle.cert_pem.as_bytes()).unwrap();
    let (_, ca) = x509_parser::parse_x509_certificate(&ca).unwrap();
    let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).unwrap();
    assert_ne!(ca.subject(), leaf.subject());
    assert_eq!(leaf.issuer(), ca.subject());
    let authority_key = leaf.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.clone(),
        _ => None,
    });
    let own_key = ca.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(id) => Some(id.clone()),
        _ => None,
    });
    assert!(authority_key.is_some());
    assert_eq!(authority_key, own_key);
}

#[test]
fn expiry_is_read_back_and_never_after_the_authority() {
    let lifetimes = Lifetimes { authority: DAY * 10, leaf: DAY * 30 };
    let bundle = generate(now(), &names(), lifetimes).unwrap();
    assert_eq!(expiry(&bundle.ca_pem).unwrap(), now() + DAY * 10);
    assert_eq!(expiry(&bundle.cert_pem).unwrap(), now() + DAY * 10);
    let short = generate(now(), &names(), Lifetimes { leaf: DAY, ..lifetimes }).unwrap();
    assert_eq!(expiry(&short.cert_pem).unwrap(), now() + DAY);
    assert!(matches!(expiry("not a certificate"), Err(CertError::Parse(_))));
    assert!(matches!(expiry(&bundle.key_pem), Err(CertError::Parse(_))));
}

#[rstest]
#[case(Names::default(), "no name")]
#[case(Names { dns: vec!["has space".into()], ips: vec![] }, "has space")]
#[case(Names { dns: vec!["schön.example".into()], ips: vec![] }, "schön.example")]
#[case(Names { dns: vec![String::new()], ips: vec![] }, "\"\"")]
fn unusable_names_are_refused_by_name(#[case] names: Names, #[case] says: &str) {
    let error = generate(now(), &names, Lifetimes::default()).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

#[test]
fn a_validity_beyond_what_a_certificate_can_say_is_refused() {
    let lifetimes = Lifetimes { authority: DAY * 365 * 9000, leaf: DAY };
    assert!(matches!(generate(now(), &names(), lifetimes), Err(CertError::Validity)));
    assert!(matches!(generate(UNIX_EPOCH, &names(), Lifetimes::default()), Err(CertError::Validity)));
}

#[test]
fn files_are_replaced_whole_and_the_key_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let first = generate(now(), &names(), Lifetimes::default()).unwrap();
    let second = generate(now(), &names(), Lifetimes::default()).unwrap();
    first.write_files(dir.path()).unwrap();
    second.write_files(dir.path()).unwrap();
    let read = |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert_eq!(read(CA_FILE), second.ca_pem);
    assert_eq!(read(CERT_FILE), second.cert_pem);
    assert_eq!(read(KEY_FILE), second.key_pem);
    let mode = std::fs::metadata(dir.path().join(KEY_FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "nothing unfinished is left behind");
}

#[test]
fn a_missing_directory_is_reported_with_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = generate(now(), &names(), Lifetimes::default()).unwrap();
    let error = bundle.write_files(&dir.path().join("absent")).unwrap_err().to_string();
    assert!(error.contains(KEY_FILE), "{error}");
}
