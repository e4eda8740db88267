//! The names a server certificate stands for.

use std::net::IpAddr;

use rcgen::SanType;
use rustls_pki_types::DnsName;

use crate::CertError;

/// Host names and addresses by which clients reach the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Host names, without wildcards.
    pub dns: Vec<String>,
    /// Addresses.
    pub ips: Vec<IpAddr>,
}

impl Names {
    /// The names under which the API server and others in the cluster reach a
    /// Service.
    pub fn of_service(service: &str, namespace: &str) -> Self {
        Self {
            dns: vec![
                format!("{service}.{namespace}.svc"),
                format!("{service}.{namespace}.svc.cluster.local"),
                format!("{service}.{namespace}"),
            ],
            ips: Vec::new(),
        }
    }

    /// The first name, for people. Fails when there is none.
    pub(crate) fn common_name(&self) -> Result<String, CertError> {
        let first = self.dns.first().cloned().or_else(|| self.ips.first().map(ToString::to_string));
        first.ok_or(CertError::NoNames)
    }

    pub(crate) fn to_sans(&self) -> Result<Vec<SanType>, CertError> {
        let dns = self.dns.iter().map(|name| {
            let refused = || CertError::DnsName(name.clone());
            DnsName::try_from(name.as_str()).map_err(|_| refused())?;
            Ok(SanType::DnsName(name.as_str().try_into().map_err(|_| refused())?))
        });
        dns.chain(self.ips.iter().map(|ip| Ok(SanType::IpAddress(*ip)))).collect()
    }
}
