//! The wording of what came of a check.

use std::fmt;

use crate::names::one_line;

use super::{
    CertificateFault, LookupFault, NameVerdict, ProbeFailure, ProbeLevel, ProbeNote, ProbePlace, PublicName,
    ServerText, TOPIC,
};

/// The most names of a certificate that are told.
const NAMED: usize = 3;

impl fmt::Display for ServerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PublicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for ProbeLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ProbePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbePlace::Bootstrap => f.write_str("bootstrap"),
            ProbePlace::Broker(id) => write!(f, "broker {id}"),
        }
    }
}

/// One sentence: `broker 2: TLS ends with a certificate for other.example.com (from 203.0.113.7)`.
impl fmt::Display for NameVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match (&self.failure, &self.note) {
            (Some(failure), _) => self.failed(failure, f)?,
            (None, Some(note)) => write!(f, "{note}")?,
            (None, None) => write!(f, "{} is reachable", self.name)?,
        }
        match self.address {
            Some(address) => write!(f, " (from {address})"),
            None => Ok(()),
        }
    }
}

impl NameVerdict {
    fn failed(&self, failure: &ProbeFailure, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PublicName { host, port } = &self.name;
        let step = LevelAction(self.failed_at().unwrap_or(ProbeLevel::Write));
        match failure {
            ProbeFailure::Lookup(LookupFault::Missing) => write!(f, "the name {host} has no address"),
            ProbeFailure::Lookup(LookupFault::Failed(why)) => {
                write!(f, "the name {host} can't be looked up: {why}")
            }
            ProbeFailure::Denied(denied) => {
                write!(f, "the name {host} leads to an address that the settings don't allow: {denied}")
            }
            ProbeFailure::Refused => write!(f, "port {port} is closed"),
            ProbeFailure::Unconnected(why) => write!(f, "port {port} can't be connected to: {why}"),
            ProbeFailure::Certificate(fault) => write!(f, "TLS ends with a certificate {fault}"),
            ProbeFailure::Handshake(why) => write!(f, "the TLS handshake fails: {why}"),
            ProbeFailure::LoginRefused { user, says } => write!(f, "the login of {user} is refused: {says}"),
            ProbeFailure::Mechanism { offered } => {
                write!(f, "the broker doesn't offer the login of the plan; it offers: {offered}")
            }
            ProbeFailure::Unproven => f.write_str("the server doesn't know the password that it accepts"),
            ProbeFailure::NoToken(why) => write!(f, "the identity provider gives no token: {why}"),
            ProbeFailure::Unusable(why) => write!(f, "the probe's own login can't be used: {why}"),
            ProbeFailure::Version { request } => {
                write!(f, "the broker knows no version of the request {request} that the probe uses")
            }
            ProbeFailure::Advertised { found } => {
                write!(f, "clients are told to connect to {found} instead of {}", self.name)
            }
            ProbeFailure::AnotherBroker { node: Some(node) } => {
                write!(f, "the name {host} leads to broker {node}")
            }
            ProbeFailure::AnotherBroker { node: None } => {
                write!(f, "the name {host} leads to another broker")
            }
            ProbeFailure::AnotherCluster { found: Some(found) } => {
                write!(f, "the name {host} leads to another cluster, which advertises {found}")
            }
            ProbeFailure::AnotherCluster { found: None } => {
                write!(f, "the name {host} leads to a cluster without brokers")
            }
            ProbeFailure::Unlisted => {
                f.write_str("the answering broker doesn't know it as a member of the cluster")
            }
            ProbeFailure::Topic { attempted, code } => write!(f, "cannot {attempted}: {}", KafkaError(*code)),
            ProbeFailure::Leaderless { partition } => {
                write!(f, "partition {partition} of {TOPIC} has no leader")
            }
            ProbeFailure::WriteRefused { partition, code } => {
                write!(f, "a record for partition {partition} of {TOPIC} is refused: {}", KafkaError(*code))
            }
            ProbeFailure::ReadRefused { partition, code } => {
                write!(f, "partition {partition} of {TOPIC} can't be read: {}", KafkaError(*code))
            }
            ProbeFailure::Lost { partition } => {
                write!(f, "the record written to partition {partition} of {TOPIC} isn't read back")
            }
            ProbeFailure::Silent(time) => write!(f, "no answer to {step} within {} s", time.as_secs()),
            ProbeFailure::Late(time) => {
                write!(f, "the check was ended after {} s, during {step}", time.as_secs())
            }
            ProbeFailure::Closed => write!(f, "the connection is closed during {step}"),
            ProbeFailure::Oversized(most) => {
                write!(f, "the answer to {step} is larger than {} KiB", most >> 10)
            }
            ProbeFailure::Garbled => write!(f, "the answer to {step} isn't one of Kafka's protocol"),
        }
    }
}

impl NameVerdict {
    /// Why the name isn't reached, with the level and the remedy, for those who operate this installation.
    pub fn whole_sentence(&self) -> String {
        let at_level = self.failed_at().map(|level| format!(", at the level {level}")).unwrap_or_default();
        let hint = self.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{self}{at_level}{hint}")
    }

    /// The same for tenants. They choose where the name leads, so of a server that hasn't proven by its certificate that
    /// it is the cluster's, they learn neither whether there is one nor how it answers.
    pub fn for_tenants(&self) -> String {
        if !self.is_about_others() {
            return self.whole_sentence();
        }
        format!(
            "{}: nothing with the cluster's certificate answers at {}; check its record in DNS, the load balancer, \
             firewalls, and the base domain's certificate, or ask an administrator of this installation for the log of \
             `serve`, which says more",
            self.place, self.name
        )
    }

    /// The remedy for the failure.
    pub fn hint(&self) -> Option<&'static str> {
        let failure = self.failure.as_ref()?;
        Some(match failure {
            ProbeFailure::Lookup(LookupFault::Missing) => {
                "create its record in DNS; a new one may take as long as the zone's negative answers are kept"
            }
            ProbeFailure::Lookup(LookupFault::Failed(_)) => {
                "check the resolver of the host that Streamfleet runs on"
            }
            ProbeFailure::Denied(_) => {
                "lead the name to another address, or allow this one in the settings: `allow_addresses` under \
                 `[targets]`"
            }
            ProbeFailure::Certificate(fault) => fault.hint(),
            ProbeFailure::Handshake(_) => {
                "find out which server answers at this address, and lead the name to the broker"
            }
            ProbeFailure::LoginRefused { .. } => {
                "find out whether the operator has set this user up on the brokers, and read the broker's log"
            }
            ProbeFailure::Mechanism { .. } => "find out who changed the listener; Streamfleet puts it back",
            ProbeFailure::Unproven => {
                "another server answers in the broker's place: lead the name to the broker"
            }
            ProbeFailure::NoToken(_) => {
                "check the identity provider, and the client that the probe has there; clients without a token are \
                 as affected"
            }
            ProbeFailure::Unusable(_) => "put the named value in order",
            ProbeFailure::Version { .. } => "use a newer version of Streamfleet",
            ProbeFailure::Advertised { .. } => {
                "find out who changed the listener's advertised host; Streamfleet puts it back"
            }
            ProbeFailure::AnotherBroker { .. } | ProbeFailure::AnotherCluster { .. } => {
                "correct the name's record in DNS, or the load balancer that it leads to"
            }
            ProbeFailure::Unlisted => {
                "read the broker's log: it isn't a member of the cluster yet, or no more"
            }
            ProbeFailure::Topic { .. }
            | ProbeFailure::WriteRefused { .. }
            | ProbeFailure::ReadRefused { .. } => {
                "check the probe's rights and the topic's options; if nobody changed them, read the broker's log"
            }
            ProbeFailure::Leaderless { .. } => "bring back the brokers that have its replicas",
            ProbeFailure::Lost { .. } => "find out whether another program writes to the topic",
            _ if self.failed_at() == Some(ProbeLevel::Resolve) => {
                "check the resolver of the host that Streamfleet runs on"
            }
            _ if self.failed_at() == Some(ProbeLevel::Connect) => {
                "check the load balancer, firewalls and network policies; one that leaves out only the host of \
                 Streamfleet looks the same"
            }
            _ => "read the broker's log; a load balancer or proxy in between may end connections, too",
        })
    }
}

impl CertificateFault {
    fn hint(&self) -> &'static str {
        match self {
            CertificateFault::Names(_) => {
                "give the base domain a certificate that covers the name, or lead the name to this cluster"
            }
            CertificateFault::Expired(_) => {
                "renew the base domain's `tls_cert`; brokers load it when they restart"
            }
            CertificateFault::Early(_) => "compare the clocks, or use a certificate that is valid now",
            CertificateFault::Issuer(_) => {
                "add the issuer's own certificate to the end of the base domain's `tls_cert`"
            }
            CertificateFault::NotGiven { .. } => {
                "wait until the operator has restarted the broker, which then loads the new one; if it has, the \
                 name leads elsewhere"
            }
            CertificateFault::Unusable(_) => "use another certificate for the base domain",
        }
    }
}

/// The action at a level, as the end of a sentence.
struct LevelAction(ProbeLevel);

impl fmt::Display for LevelAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ProbeLevel::Resolve => "the lookup of the name",
            ProbeLevel::Connect => "the connection attempt",
            ProbeLevel::Tls => "the TLS handshake",
            ProbeLevel::Login => "the login",
            ProbeLevel::Identity => "the question who it is",
            ProbeLevel::Write => "the test record",
        })
    }
}

/// The end of `TLS ends with a certificate …`.
impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateFault::Names(names) if names.is_empty() => f.write_str("without a host name"),
            CertificateFault::Names(names) => {
                let told: Vec<&str> = names.iter().take(NAMED).map(ServerText::as_str).collect();
                write!(f, "for {}", told.join(", "))?;
                match names.len() - told.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            CertificateFault::Expired(at) => write!(f, "that expired at {at:.0}"),
            CertificateFault::Early(at) => write!(f, "that isn't valid before {at:.0}"),
            CertificateFault::Issuer(issuer) => {
                write!(f, "whose issuer clients aren't told to trust: {issuer}")
            }
            CertificateFault::NotGiven { until } => {
                f.write_str("other than the one that the broker was given")?;
                match until {
                    Some(until) => write!(f, "; it is valid until {until:.0}"),
                    None => Ok(()),
                }
            }
            CertificateFault::Unusable(why) => write!(f, "that clients refuse: {why}"),
        }
    }
}

impl fmt::Display for ProbeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeNote::Led { partition, by } => {
                write!(f, "reachable; broker {by} leads its partition {partition} of {TOPIC} now")
            }
            ProbeNote::LeaderNotReached { partition, by } => write!(
                f,
                "reachable; broker {by} leads its partition {partition} of {TOPIC} now, and isn't reached"
            ),
            ProbeNote::ReplicasLate { partition } => {
                write!(f, "reachable; the replicas of partition {partition} of {TOPIC} are late")
            }
            ProbeNote::NoPartition => write!(f, "reachable; it leads no partition of {TOPIC}"),
        }
    }
}

/// An error code of Kafka, by its name (`org.apache.kafka.common.protocol.Errors`) and, for those that say
/// what to do, a meaning.
struct KafkaError(i16);

impl fmt::Display for KafkaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            -1 => "UNKNOWN_SERVER_ERROR",
            2 => "CORRUPT_MESSAGE",
            3 => "UNKNOWN_TOPIC_OR_PARTITION",
            5 => "LEADER_NOT_AVAILABLE",
            6 => "NOT_LEADER_OR_FOLLOWER",
            7 => "REQUEST_TIMED_OUT",
            9 => "REPLICA_NOT_AVAILABLE",
            10 => "MESSAGE_TOO_LARGE",
            17 => "INVALID_TOPIC_EXCEPTION",
            19 => "NOT_ENOUGH_REPLICAS, fewer are in sync than its min.insync.replicas",
            20 => "NOT_ENOUGH_REPLICAS_AFTER_APPEND, fewer are in sync than its min.insync.replicas",
            29 => "TOPIC_AUTHORIZATION_FAILED, the user lacks the right",
            31 => "CLUSTER_AUTHORIZATION_FAILED, the user lacks the right",
            35 => "UNSUPPORTED_VERSION",
            37 => "INVALID_PARTITIONS",
            38 => "INVALID_REPLICATION_FACTOR",
            39 => "INVALID_REPLICA_ASSIGNMENT, a broker of the plan isn't registered",
            40 => "INVALID_CONFIG",
            41 => "NOT_CONTROLLER",
            42 => "INVALID_REQUEST",
            44 => "POLICY_VIOLATION",
            56 => "KAFKA_STORAGE_ERROR",
            60 => "REASSIGNMENT_IN_PROGRESS",
            87 => "INVALID_RECORD",
            89 => "THROTTLING_QUOTA_EXCEEDED",
            code => return write!(f, "error {code}"),
        })
    }
}

impl PublicName {
    /// How a server names it.
    pub fn told(host: &str, port: i32) -> ServerText {
        ServerText::new(&format!("{}:{port}", one_line(host, 100)))
    }
}
