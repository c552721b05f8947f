//! The reachability probe of a cluster as values: what is checked, as which user, and what came of it. The
//! effect `probe` makes the connections.

mod failure;
mod words;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Bound;
use std::time::Duration;

use secrecy::SecretString;

pub use failure::{CertificateFault, LookupFault, ProbeFailure, ServerText};

use crate::names::ResourceKey;
use crate::spec::certificate;

/// The topic that the probe writes to. Kafka's own tools hide no topic with such a name; the two underscores
/// are the usual sign of a topic that belongs to a program.
pub const TOPIC: &str = "__streamfleet_probe";

/// The most replicas of a partition.
const MAX_REPLICAS: usize = 3;

/// The topic's options. The broker's defaults are a user's choice, and some would make the topic unusable:
/// compaction refuses records without a key, and a compressed batch can't be compared with what was sent.
/// Segments are as short as the retention, since only a closed segment is deleted.
pub const TOPIC_OPTIONS: [(&str, &str); 6] = [
    ("cleanup.policy", "delete"),
    ("compression.type", "producer"),
    ("max.message.bytes", "65536"),
    ("min.insync.replicas", "1"),
    ("retention.ms", "600000"),
    ("segment.ms", "600000"),
];

/// The operations that the probe's user needs, all of them on [`TOPIC`] and none on the cluster: it creates the
/// topic (`Create`), adds partitions for new brokers (`Alter`), writes (`Write`) and reads (`Read`). `Describe`
/// comes with each of the last three.
pub const TOPIC_RIGHTS: [&str; 4] = ["Alter", "Create", "Read", "Write"];

/// The input of a check of one cluster.
#[derive(Debug, Clone)]
pub struct ProbeOrder {
    pub cluster: ResourceKey,
    pub bootstrap: PublicName,
    /// The brokers of the plan's pools, by the node ids that the operator gave them, with the name and port that each advertises to clients outside.
    pub brokers: BTreeMap<u32, PublicName>,
    pub trust: ProbeTrust,
    /// The chain in PEM that the brokers were given. Its first certificate is the one that they have to present.
    pub certificate: Option<String>,
    /// `None` if no login is known: then the probe ends after TLS.
    pub login: Option<ProbeLogin>,
}

/// A name that clients connect to, and its port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicName {
    pub host: String,
    pub port: u16,
}

/// The authorities that clients trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeTrust {
    /// Those of the host that Streamfleet runs on.
    System,
    /// Certificates in PEM.
    Certificates(String),
}

impl ProbeTrust {
    /// The trust that `client-properties` tells clients when brokers present this chain.
    pub fn of_chain(tls_cert: &str) -> ProbeTrust {
        certificate::root(tls_cert).map_or(ProbeTrust::System, ProbeTrust::Certificates)
    }
}

/// How the probe logs in. A secret is neither printed nor kept after the last copy is dropped.
#[derive(Debug, Clone)]
pub enum ProbeLogin {
    Scram {
        user: String,
        password: SecretString,
    },
    /// Both in PEM.
    Mtls {
        certificate: String,
        key: SecretString,
    },
    OAuth(TokenRequest),
}

/// A request for a token by client credentials (RFC 6749, section 4.4).
#[derive(Debug, Clone)]
pub struct TokenRequest {
    pub token_endpoint: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub scope: Option<String>,
    /// Certificates in PEM that the token endpoint is trusted by; the system's if there are none.
    pub authorities: Option<String>,
}

impl ProbeOrder {
    /// The node ids of the topic's replicas for a partition led by a broker: the broker and those after it in
    /// the plan, as in a ring. Which brokers are alive doesn't matter.
    pub fn replicas(&self, leader: u32, count: usize) -> Vec<u32> {
        let after = self.brokers.range((Bound::Excluded(leader), Bound::Unbounded)).map(|(id, _)| *id);
        let before = self.brokers.range(..leader).map(|(id, _)| *id);
        std::iter::once(leader).chain(after).chain(before).take(count).collect()
    }

    /// How many replicas a partition has if the topic is created now.
    pub fn replication(&self) -> usize {
        self.brokers.len().min(MAX_REPLICAS)
    }
}

/// The levels of a check, in their order. Each needs those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeLevel {
    /// The name has an address.
    Resolve,
    Connect,
    /// The chain is trusted, covers the name, is valid now, and begins with the certificate that was given.
    Tls,
    Login,
    /// The broker that answers is the one of the name, and it advertises the names of the plan.
    Identity,
    /// A record that was written through the broker is read back. The bootstrap name has no such level.
    Write,
}

impl ProbeLevel {
    pub const ALL: [ProbeLevel; 6] = [
        ProbeLevel::Resolve,
        ProbeLevel::Connect,
        ProbeLevel::Tls,
        ProbeLevel::Login,
        ProbeLevel::Identity,
        ProbeLevel::Write,
    ];

    /// The level's name, for metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ProbeLevel::Resolve => "resolve",
            ProbeLevel::Connect => "connect",
            ProbeLevel::Tls => "tls",
            ProbeLevel::Login => "login",
            ProbeLevel::Identity => "identity",
            ProbeLevel::Write => "write",
        }
    }
}

/// The owner of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbePlace {
    Bootstrap,
    Broker(u32),
}

/// The result of the check of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameVerdict {
    pub place: ProbePlace,
    pub name: PublicName,
    /// The address that was connected to, or tried last.
    pub address: Option<IpAddr>,
    /// The highest level that is fine; `None` if not even the first one is.
    pub reached: Option<ProbeLevel>,
    /// Why the next level isn't fine. `None` if every level that could be checked is.
    pub failure: Option<ProbeFailure>,
    pub note: Option<ProbeNote>,
    /// How long each level took that was begun.
    pub took: BTreeMap<ProbeLevel, Duration>,
}

/// A finding that is no failure and is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeNote {
    /// The broker doesn't lead its partition now. The record was written through the leader.
    Led { partition: i32, by: u32 },
    /// The broker doesn't lead its partition now, and the leader wasn't reached. Its own verdict says why.
    LeaderNotReached { partition: i32, by: u32 },
    /// The broker accepted the record, and waited in vain for its replicas.
    ReplicasLate { partition: i32 },
    /// No partition belongs to the broker, and the topic has too many to add one more.
    NoPartition,
}

impl NameVerdict {
    /// Whether the failure tells of a server that isn't known to be the cluster's. Such details would let the owner of a
    /// domain scan the network around this host.
    fn is_about_others(&self) -> bool {
        match self.failure {
            Some(ProbeFailure::Lookup(_)) => false,
            Some(ProbeFailure::NoToken(_)) => true,
            _ => self.failed_at().is_some_and(|level| level <= ProbeLevel::Tls),
        }
    }

    /// Whether nothing was learned about the name: the resolver of the host that probes gives no answer. It says the
    /// same when it fails itself and when the name's own servers do.
    pub fn is_hindered(&self) -> bool {
        use ProbeFailure::{Late, Lookup, Silent};
        let is_lookup = self.failed_at() == Some(ProbeLevel::Resolve);
        is_lookup && matches!(self.failure, Some(Lookup(LookupFault::Failed(_)) | Silent(_) | Late(_)))
    }

    /// The level that isn't fine.
    pub fn failed_at(&self) -> Option<ProbeLevel> {
        self.failure.as_ref()?;
        let next = self.reached.map_or(0, |reached| reached as usize + 1);
        ProbeLevel::ALL.get(next).copied()
    }
}

/// The result of a check of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    pub cluster: ResourceKey,
    /// The bootstrap name first, then the brokers by node id.
    pub verdicts: Vec<NameVerdict>,
    pub took: Duration,
}

impl ProbeReport {
    pub fn is_reachable(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.failure.is_none())
    }

    /// The failure at the lowest level, since it may be the cause of others.
    pub fn first_failure(&self) -> Option<&NameVerdict> {
        let failed = self.verdicts.iter().filter(|verdict| verdict.failure.is_some());
        failed.min_by_key(|verdict| (verdict.failed_at(), verdict.place))
    }

    pub fn of(&self, place: ProbePlace) -> Option<&NameVerdict> {
        self.verdicts.iter().find(|verdict| verdict.place == place)
    }

    /// The longest time that a level took at any name; `None` if it was begun at none.
    pub fn slowest(&self, level: ProbeLevel) -> Option<Duration> {
        self.verdicts.iter().filter_map(|verdict| verdict.took.get(&level)).max().copied()
    }
}

#[cfg(test)]
mod tests;
