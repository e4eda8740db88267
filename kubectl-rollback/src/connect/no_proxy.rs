//! `NO_PROXY` as Go reads it. The client's own reading compares the proxy's address, not the server's.

use std::net::IpAddr;

/// Whether a host is reached without the environment's proxy.
pub(super) fn matches(host: &str, list: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    let ip = host.parse::<IpAddr>().ok();
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).filter(|entry| !entry.is_empty()).any(
        |entry| {
            if entry == "*" {
                return true;
            }
            if let Some(ip) = ip {
                return entry.parse() == Ok(ip) || in_range(ip, &entry);
            }
            let name = entry.split(':').next().unwrap_or_default();
            let name = name.strip_prefix("*.").unwrap_or(name);
            match name.strip_prefix('.') {
                Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
                None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
            }
        },
    )
}

/// Whether an address is in a range such as `10.0.0.0/8`.
fn in_range(ip: IpAddr, range: &str) -> bool {
    let Some((base, bits)) = range.split_once('/') else { return false };
    let (Ok(base), Ok(bits)) = (base.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (ip, base) {
        (IpAddr::V4(ip), IpAddr::V4(base)) if bits <= 32 => {
            bits == 0 || (ip.to_bits() ^ base.to_bits()) >> (32 - bits) == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(base)) if bits <= 128 => {
            bits == 0 || (ip.to_bits() ^ base.to_bits()) >> (128 - bits) == 0
        }
        (IpAddr::V4(_) | IpAddr::V6(_), IpAddr::V4(_) | IpAddr::V6(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("localhost", "", true)]
    #[case("127.0.0.1", "", true)]
    #[case("[::1]", "", true)]
    #[case("k8s.example.com", "", false)]
    #[case("k8s.example.com", "*", true)]
    #[case("k8s.example.com", "example.com", true)]
    #[case("k8s.example.com", ".example.com", true)]
    #[case("example.com", ".example.com", false)]
    #[case("example.com", "example.com", true)]
    #[case("badexample.com", "example.com", false)]
    #[case("K8S.Example.com", "other, k8s.EXAMPLE.com:6443", true)]
    #[case("10.1.2.3", "10.0.0.0/8", true)]
    #[case("11.1.2.3", "10.0.0.0/8", false)]
    #[case("10.1.2.3", "10.1.2.3", true)]
    #[case("10.1.2.3", "10.0.0.0/33", false)]
    #[case("10.1.2.3", "0.0.0.0/0", true)]
    #[case("fd00::1", "fd00::/8", true)]
    #[case("fd00::1", "10.0.0.0/8", false)]
    fn as_go_reads_it(#[case] host: &str, #[case] list: &str, #[case] expected: bool) {
        assert_eq!(matches(host, list), expected);
    }
}
