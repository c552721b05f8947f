//! The address of a Kubernetes API server, and the addresses that a tenant must not make Streamfleet connect
//! to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{MaterialFault, fault};

pub(super) struct Server {
    pub url: String,
    /// The host in it, without brackets and port.
    pub host: String,
}

impl Server {
    pub(super) fn parse(url: &str) -> Result<Server, MaterialFault> {
        let scheme = "https://";
        let Some(rest) = url.get(scheme.len()..).filter(|_| url[..scheme.len()].eq_ignore_ascii_case(scheme))
        else {
            return Err(fault(
                "kubeconfig-server-not-https",
                "the kubeconfig's `server` is not an https URL",
                "set it to the address of the API server, `https://HOST:PORT`",
            ));
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(fault(
                "kubeconfig-server-user-info",
                "the kubeconfig's `server` has a user name or password in its URL",
                "remove everything up to the `@`, and set a token or a client certificate under `users`",
            ));
        }
        let host = split_host(authority).filter(|_| is_plain_path(path)).filter(|host| is_host(host));
        let Some(host) = host else {
            return Err(fault(
                "kubeconfig-server-invalid",
                "the kubeconfig's `server` is not a URL with a host name or IP address, a port and a path",
                "set it to the address of the API server, `https://HOST:PORT`",
            ));
        };
        Ok(Server { url: url.to_owned(), host: host.to_ascii_lowercase() })
    }
}

/// Splits `HOST:PORT` and `[IPV6]:PORT`, with or without the port.
fn split_host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, after)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port_fits = match port.strip_prefix(':') {
        Some(port) => {
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => port.is_empty(),
    };
    port_fits.then_some(host)
}

/// Whether a path contains only characters that need no encoding, and no query.
fn is_plain_path(path: &str) -> bool {
    path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%:".contains(&b))
}

/// Whether this is an IP address in its usual form, or a host name. A name whose last label is a number is
/// neither: system resolvers read `127.1`, `2130706433` and `0x7f.1` as 127.0.0.1.
fn is_host(host: &str) -> bool {
    if host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let label_fits = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    name.len() <= 253 && name.split('.').all(label_fits) && !numeric
}

/// Returns why a host must not be connected to, from its spelling alone.
pub(super) fn denied_host(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return denied_range(address).map(|range| format!("`{host}` is {range}"));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let local = name == "localhost" || name.ends_with(".localhost");
    local.then(|| format!("`{host}` is a name of the host that Streamfleet runs on"))
}

/// Returns why an address from a tenant must not be connected to, as the end of `ADDRESS is …`; `None` if it
/// may.
///
/// An IPv4 address inside an IPv6 address (RFC 4291 mapped and compatible, RFC 2765, RFC 6052, RFC 8215, RFC
/// 3056) is treated as IPv4.
pub fn denied_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => denied_v4(address),
        IpAddr::V6(address) => {
            denied_v6(address).or_else(|| embedded(address).into_iter().find_map(denied_v4))
        }
    }
}

/// Metadata services, which return the credentials of the calling machine, other than 169.254.169.254:
/// Alibaba Cloud and Oracle Cloud; Amazon's and Google's over IPv6.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

const LOOPBACK: &str = "a loopback address of the host that Streamfleet runs on";
const SITE_LOCAL: &str = "a site-local address, with which emulators reach their host";
const LINK_LOCAL: &str = "a link-local address, which clouds use for their metadata services";
const METADATA: &str = "the address of a cloud's metadata service";
const MULTICAST: &str = "a multicast address";
const BROADCAST: &str = "the broadcast address";
const UNSPECIFIED: &str = "an unspecified address, which means the host that Streamfleet runs on";

fn denied_v4(address: Ipv4Addr) -> Option<&'static str> {
    let ranges = [
        (address.is_loopback(), LOOPBACK),
        (address.octets()[0] == 0, UNSPECIFIED),
        (address.is_link_local(), LINK_LOCAL),
        (METADATA_V4.contains(&address), METADATA),
        (address.is_multicast(), MULTICAST),
        (address.is_broadcast(), BROADCAST),
    ];
    ranges.into_iter().find_map(|(within, range)| within.then_some(range))
}

fn denied_v6(address: Ipv6Addr) -> Option<&'static str> {
    let ranges = [
        (address.is_loopback(), LOOPBACK),
        (address.is_unspecified(), UNSPECIFIED),
        (address.is_unicast_link_local(), LINK_LOCAL),
        // fec0::/10, obsolete. Only emulators still use it, to reach their host.
        (address.segments()[0] & 0xffc0 == 0xfec0, SITE_LOCAL),
        (METADATA_V6.contains(&address), METADATA),
        (address.is_multicast(), MULTICAST),
    ];
    ranges.into_iter().find_map(|(within, range)| within.then_some(range))
}

/// Returns the IPv4 addresses that gateways, or the system itself, may translate an IPv6 address to.
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => vec![v4(high, low)],
        [0x2002, high, low, ..] => vec![v4(high, low)],
        [0x64, 0xff9b, 1, ..] => local_use(address),
        _ => Vec::new(),
    }
}

/// Returns the possible IPv4 addresses in an address of 64:ff9b:1::/48. The length of the prefix is known to
/// the network alone, so each position of RFC 6052 is checked. An empty one is ignored unless all are empty.
fn local_use(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = address.octets();
    // The ninth octet is skipped wherever it would be included.
    let places = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]];
    let found = places.map(|place| Ipv4Addr::from(place.map(|at| octets[at])));
    let filled: Vec<Ipv4Addr> = found.into_iter().filter(|found| found.octets()[0] != 0).collect();
    if filled.is_empty() { vec![Ipv4Addr::UNSPECIFIED] } else { filled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_back_to_us_are_denied() {
        let denied = [
            ("127.0.0.1", LOOPBACK),
            ("127.255.0.9", LOOPBACK),
            ("0.0.0.0", UNSPECIFIED),
            ("0.1.2.3", UNSPECIFIED),
            ("169.254.169.254", LINK_LOCAL),
            ("100.100.100.200", METADATA),
            ("224.0.0.1", MULTICAST),
            ("255.255.255.255", BROADCAST),
            ("::1", LOOPBACK),
            ("::", UNSPECIFIED),
            ("fe80::1", LINK_LOCAL),
            ("fd00:ec2::254", METADATA),
            ("ff02::1", MULTICAST),
            ("::ffff:127.0.0.1", LOOPBACK),
            ("::127.0.0.1", LOOPBACK),
            ("64:ff9b::a9fe:a9fe", LINK_LOCAL),
            ("2002:7f00:1::", LOOPBACK),
            ("::ffff:0:127.0.0.1", LOOPBACK),
            ("::ffff:0:169.254.169.254", LINK_LOCAL),
            ("64:ff9b:1::127.0.0.1", LOOPBACK),
            ("64:ff9b:1:a9fe:a9:fe00::", LINK_LOCAL),
            ("64:ff9b:1:ffa9:fe:a9fe::", LINK_LOCAL),
            ("64:ff9b:1:ffff:7f:0:100:0", LOOPBACK),
            ("64:ff9b:1::", UNSPECIFIED),
            ("fec0::2", SITE_LOCAL),
            ("feff::1", SITE_LOCAL),
        ];
        for (address, range) in denied {
            assert_eq!(denied_range(address.parse().unwrap()), Some(range), "{address}");
        }
        for address in [
            "10.0.0.1",
            "192.168.1.1",
            "203.0.113.7",
            "fd00::1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b:1::10.0.0.1",
            "64:ff9b:1:a00:0:100::",
        ] {
            assert_eq!(denied_range(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn a_server_is_a_host_a_port_and_a_path() {
        for (url, host) in [
            ("https://k.example.com", "k.example.com"),
            ("HTTPS://K.example.com:6443/", "k.example.com"),
            ("https://10.0.0.1:6443/k8s/clusters/c-m-1", "10.0.0.1"),
            ("https://[2001:db8::1]:6443", "2001:db8::1"),
            ("https://api.cluster-1.internal.", "api.cluster-1.internal."),
        ] {
            assert_eq!(Server::parse(url).map(|server| server.host), Ok(host.to_owned()), "{url}");
        }
        for url in [
            "https://",
            "https://:6443",
            "https://h:0",
            "https://h:70000",
            "https://h:+1",
            "https://h:1:2",
            "https://h h",
            "https://h/?q",
            "https://h/#f",
            "https://h\\evil",
            "https://h/\nx",
            "https://[::1",
            "https://[h]",
            "https://127.1",
            "https://2130706433",
            "https://0x7f000001",
            "https://0x7f.0.0.0x1",
            "https://a..b",
        ] {
            assert_eq!(
                Server::parse(url).map(|s| s.host).map_err(|f| f.code),
                Err("kubeconfig-server-invalid"),
                "{url}"
            );
        }
    }
}
