//! `rollback-webhook certs`: certificate authority and server certificate by one command.

use std::io::Write as _;
use std::time::SystemTime;

use anyhow::Context as _;
use rollback_certs::{CA_FILE, CERT_FILE, KEY_FILE, Lifetimes, Names};

use crate::args::CertsArgs;

/// Makes the certificates and says what they are for. Fails on an unusable name or directory.
pub(crate) fn write(args: &CertsArgs) -> anyhow::Result<()> {
    let CertsArgs { out, dns, ip } = args;
    let names = Names { dns: dns.clone(), ips: ip.clone() };
    let bundle = rollback_certs::generate(SystemTime::now(), &names, Lifetimes::default())?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("directory {} could not be made: choose another --out", out.display()))?;
    bundle.write_files(out)?;
    let report = format!(
        "{CERT_FILE} and {KEY_FILE}: for --tls-cert-file and --tls-private-key-file of rollback-webhook\n\
         {CA_FILE}: base64 of it is the caBundle of the webhook configurations\n"
    );
    // A reader that went away does not make the files any less written.
    match std::io::stdout().write_all(report.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
