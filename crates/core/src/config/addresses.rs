//! Ranges of IP addresses in settings, and which addresses of tenants may be connected to.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::kubeconfig::{KubeAccess, denied_range};

/// A range of IP addresses: `127.0.0.0/8`, `fd00::/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["127.0.0.0/8", "::1"]))]
pub struct AddressRange {
    start: IpAddr,
    /// The number of significant leading bits.
    prefix: u32,
}

impl AddressRange {
    /// Every address of both versions.
    pub const ALL: [AddressRange; 2] = [
        AddressRange { start: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 },
        AddressRange { start: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 0 },
    ];

    /// Whether the range contains an address. An IPv4-mapped IPv6 address is treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((start, width), (address, other)) = (bits(self.start), bits(address.to_canonical()));
        let ignored = width - self.prefix;
        width == other && (ignored == 128 || start >> ignored == address >> ignored)
    }
}

/// An address that a tenant's name or kubeconfig leads to, and that must not be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedAddress {
    pub address: IpAddr,
    /// The kind of address, as the end of a sentence.
    pub range: &'static str,
}

impl fmt::Display for DeniedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.address, self.range)
    }
}

impl Error for DeniedAddress {}

/// Judges an address that comes from a tenant. `allowed` is `targets.allow_addresses` of the settings.
///
/// # Errors
/// If it is in a denied range, and the settings don't allow it.
pub fn judge_address(address: IpAddr, allowed: &[AddressRange]) -> Result<(), DeniedAddress> {
    match denied_range(address) {
        Some(range) if !allowed.iter().any(|allowed| allowed.contains(address)) => {
            Err(DeniedAddress { address, range })
        }
        _ => Ok(()),
    }
}

/// Returns why a server is not connected to, as a clause; `None` if it may be. What a name resolves to is found out when
/// it is used.
pub fn denied_server(access: &KubeAccess, allowed: &[AddressRange]) -> Option<String> {
    let is_denied = match access.host.parse() {
        Ok(address) => judge_address(address, allowed).is_err(),
        // It may resolve to an address of the list.
        Err(_) => allowed.is_empty(),
    };
    access.denied_address().filter(|_| is_denied)
}

/// Returns an address as a number, and its width in bits.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), u32::BITS),
        IpAddr::V6(address) => (address.to_bits(), u128::BITS),
    }
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parse = || {
            let (start, prefix) = text.split_once('/').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
            let start: IpAddr = start.parse().ok()?;
            let width = bits(start).1;
            let prefix = prefix.map_or(Some(width), |prefix| prefix.parse().ok())?;
            (prefix <= width).then_some(AddressRange { start, prefix })
        };
        parse().ok_or_else(|| {
            format!("`{text}` is not a range of addresses; use a range such as `127.0.0.0/8` or `fd00::/8`")
        })
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.start, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<AddressRange, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn a_range_holds_the_addresses_that_share_its_leading_bits() {
        for (of, address, within) in [
            ("127.0.0.0/8", "127.255.0.9", true),
            ("127.0.0.0/8", "128.0.0.1", false),
            ("127.0.0.0/8", "::ffff:127.0.0.1", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0/0", "203.0.113.7", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true),
            ("::1", "::1", true),
            ("fd00::/8", "fe00::1", false),
        ] {
            assert_eq!(range(of).unwrap().contains(address.parse().unwrap()), within, "{of} {address}");
        }
    }

    #[test]
    fn only_what_the_settings_allow_is_let_through() {
        let allowed = [range("127.0.0.0/8").unwrap()];
        for (address, may) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("::1", false),
            ("169.254.169.254", false),
            ("203.0.113.7", true),
        ] {
            assert_eq!(judge_address(address.parse().unwrap(), &allowed).is_ok(), may, "{address}");
        }
        let denied = judge_address("127.0.0.1".parse().unwrap(), &[]).unwrap_err();
        assert_eq!(
            denied.to_string(),
            "127.0.0.1 is a loopback address of the host that Streamfleet runs on"
        );
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "localhost", "127.0.0.0/33", "127.0.0.0/", "::/129", "127.0.0.0/-1"] {
            let said = format!(
                "`{text}` is not a range of addresses; use a range such as `127.0.0.0/8` or `fd00::/8`"
            );
            assert_eq!(range(text), Err(said));
        }
        assert_eq!(range("::1").unwrap().to_string(), "::1/128");
    }
}
