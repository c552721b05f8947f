//! Why a level of the probe isn't fine.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::DeniedAddress;
use crate::names::one_line;

/// The longest text of a server that is kept, in characters.
const LONGEST: usize = 200;

/// A text that a server sent: one line, not too long, and without anything that a terminal would interpret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerText(String);

impl ServerText {
    pub fn new(text: &str) -> Self {
        Self(one_line(text, LONGEST).trim_end_matches(['.', ':', ' ']).to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeFailure {
    Lookup(LookupFault),
    /// The settings allow none of the name's addresses.
    Denied(DeniedAddress),
    /// The port is closed.
    Refused,
    /// The operating system's words.
    Unconnected(ServerText),
    Certificate(CertificateFault),
    /// The handshake failed for another reason.
    Handshake(ServerText),
    /// The broker refused the user, with its words.
    LoginRefused {
        user: String,
        says: ServerText,
    },
    /// The broker offers other mechanisms than the one that the plan says.
    Mechanism {
        offered: ServerText,
    },
    /// The server couldn't prove that it knows the password.
    Unproven,
    /// The identity provider gave no token.
    NoToken(ServerText),
    /// The order's own certificate, key or authorities can't be used.
    Unusable(ServerText),
    /// The broker speaks no version of the request that the probe knows.
    Version {
        request: &'static str,
    },
    /// The broker is advertised to clients under another name or port.
    Advertised {
        found: ServerText,
    },
    /// The name leads to another broker of the cluster, which isn't always known by its number.
    AnotherBroker {
        node: Option<u32>,
    },
    /// The answering cluster has none of the brokers. `found` is one that it advertises.
    AnotherCluster {
        found: Option<ServerText>,
    },
    /// A broker of the plan isn't among those that the answering one knows.
    Unlisted,
    /// The topic can't be read, created, or be given another partition.
    Topic {
        attempted: &'static str,
        code: i16,
    },
    /// The partition has no leader that is reached by a name of the plan.
    Leaderless {
        partition: i32,
    },
    WriteRefused {
        partition: i32,
        code: i16,
    },
    ReadRefused {
        partition: i32,
        code: i16,
    },
    /// The record was accepted, and something else was read in its place.
    Lost {
        partition: i32,
    },
    /// No answer in time.
    Silent(Duration),
    /// The whole check took too long, so this name was not finished.
    Late(Duration),
    Closed,
    /// The answer is larger than this, in bytes.
    Oversized(usize),
    /// The answer isn't one of Kafka's protocol.
    Garbled,
}

impl ProbeFailure {
    /// Whether the failure is of the connection, and not Kafka's answer.
    pub fn is_about_network(&self) -> bool {
        matches!(
            self,
            ProbeFailure::Denied(_)
                | ProbeFailure::Refused
                | ProbeFailure::Unconnected(_)
                | ProbeFailure::Handshake(_)
                | ProbeFailure::NoToken(_)
                | ProbeFailure::Silent(_)
                | ProbeFailure::Closed
                | ProbeFailure::Garbled
                | ProbeFailure::Oversized(_)
        )
    }
}

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupFault {
    /// It doesn't exist, or has no address.
    Missing,
    /// The resolver gave no answer, with the operating system's words.
    Failed(ServerText),
}

/// The fault of the certificate that a server presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateFault {
    /// It covers other names.
    Names(Vec<ServerText>),
    Expired(Timestamp),
    Early(Timestamp),
    /// The issuer isn't trusted.
    Issuer(ServerText),
    /// It is fine for clients, and not the one that the brokers were given. `until` is its end.
    NotGiven {
        until: Option<Timestamp>,
    },
    /// Another fault, in words.
    Unusable(ServerText),
}
