//! The other end of a connection.

use std::net::{IpAddr, SocketAddr};

use axum::http::Extensions;

/// A request extension. The listener sets it; nothing that is sent can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// A process on the socket, with its user by the kernel.
    Local {
        uid: u32,
    },
    Remote(SocketAddr),
}

impl Peer {
    /// A request without a peer has a remote one without an address, and so no rights.
    pub fn of(extensions: &Extensions) -> Peer {
        extensions.get().copied().unwrap_or(Peer::Remote(SocketAddr::from(([0; 4], 0))))
    }

    /// The address that limits count by; `None` on the socket.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Peer::Local { .. } => None,
            Peer::Remote(address) => Some(address.ip()),
        }
    }
}
