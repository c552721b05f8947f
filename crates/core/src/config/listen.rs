//! The address that `serve` listens on.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The value for no port. An empty value would be ambiguous: an empty variable counts as not set.
const NOWHERE: &str = "none";

/// The address where super users are named and nothing else is configured.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

/// A value of `api.listen`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Listen {
    /// No port is opened: `none`.
    Nowhere,
    On(SocketAddr),
}

/// The address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    pub address: SocketAddr,
    /// Whether nobody chose it, so that `serve` goes on without it if it is taken.
    pub is_default: bool,
}

impl ListenAddress {
    pub(super) fn of(listen: Option<Listen>, has_super_users: bool) -> Option<ListenAddress> {
        match listen {
            Some(Listen::Nowhere) => None,
            Some(Listen::On(address)) => Some(ListenAddress { address, is_default: false }),
            // Without super users nobody could sign in, except members by tokens that somebody made for them.
            None => has_super_users.then_some(ListenAddress { address: DEFAULT, is_default: true }),
        }
    }
}

/// The address by which a browser on this host reaches a listener. One on all addresses has no address of its own.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[derive(Debug, thiserror::Error)]
#[error("it is no address with a port, such as 127.0.0.1:3000")]
pub struct NotAnAddress;

impl FromStr for Listen {
    type Err = NotAnAddress;
    fn from_str(text: &str) -> Result<Listen, NotAnAddress> {
        match text {
            NOWHERE => Ok(Listen::Nowhere),
            address => address.parse().map(Listen::On).map_err(|_| NotAnAddress),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = NotAnAddress;
    fn try_from(text: String) -> Result<Listen, NotAnAddress> {
        text.parse()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Nowhere => f.write_str(NOWHERE),
            Listen::On(address) => address.fmt(f),
        }
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        listen.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_an_address_or_none_and_is_written_as_it_is_read() {
        for text in ["none", "127.0.0.1:3000", "[::1]:0"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for text in ["", "None", "off", "localhost:3000", "3000", ":3000", "127.0.0.1"] {
            let error = text.parse::<Listen>().unwrap_err();
            assert_eq!(error.to_string(), NotAnAddress.to_string(), "{text}");
        }
    }

    #[test]
    fn the_default_is_an_address_of_this_host_once_somebody_can_sign_in() {
        let default = ListenAddress { address: "127.0.0.1:3000".parse().unwrap(), is_default: true };
        assert_eq!(ListenAddress::of(None, true), Some(default));
        assert_eq!(ListenAddress::of(None, false), None);
        for has_super_users in [true, false] {
            assert_eq!(ListenAddress::of(Some(Listen::Nowhere), has_super_users), None);
            let listen = Some(Listen::On(default.address));
            let configured = ListenAddress { is_default: false, ..default };
            assert_eq!(ListenAddress::of(listen, has_super_users), Some(configured));
        }
    }
}
