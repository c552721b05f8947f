//! The faults that end a conversation with a server.

use std::io;
use std::time::Duration;

use rustls::AlertDescription;

use crate::component::probe::{ProbeFailure, ServerText};

#[derive(Debug)]
pub enum Fault {
    Closed,
    Oversized(usize),
    Garbled,
    Silent(Duration),
    /// The server ended TLS with an alert.
    Alert(AlertDescription),
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if let Some(alert) = alert(&error) {
            return Fault::Alert(alert);
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Fault::Closed,
            _ => Fault::Io(error),
        }
    }
}

/// The alert that an error of rustls tells about.
pub fn alert(error: &io::Error) -> Option<AlertDescription> {
    match tls_error(error)? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}

pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| inner.source()?.downcast_ref())
}

impl From<Fault> for ProbeFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Closed => ProbeFailure::Closed,
            Fault::Oversized(most) => ProbeFailure::Oversized(most),
            Fault::Garbled => ProbeFailure::Garbled,
            Fault::Silent(time) => ProbeFailure::Silent(time),
            Fault::Alert(alert) => {
                ProbeFailure::Handshake(ServerText::new(&format!("the server says {alert:?}")))
            }
            Fault::Io(error) => ProbeFailure::Unconnected(ServerText::new(&error.to_string())),
        }
    }
}
