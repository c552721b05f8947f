//! Records of a zone, changed on its DNS server by RFC 2136 or at Route 53.
//!
//! A name is ours while the TXT record beside it says so. The server compares that record, and the present values, in the
//! step in which it changes them: two installations never mix their records, and a stranger's stay as they are.

mod challenge;
mod fault;
mod host;
mod rfc2136;
mod route53;
mod zones;

use crate::component::dns_records::HostRecords;
use crate::names::Domain;
pub use challenge::{add as add_challenge, allowed_authorities, remove as remove_challenge};
pub use fault::DnsFault;
pub use host::{RecordFault, owner_text, release, see, see_now, write};
pub use rfc2136::Rfc2136Login;
use rfc2136::Rfc2136Zone;
use route53::{RecordSet, Route53Zone};
pub use route53::{Route53Fault, Route53Login};
pub use zones::{DnsLogin, DnsZones, KeptZone, RecentFaults};

/// The label in front of a name, below which its owner is. A TXT record can't be beside a CNAME.
const OWNER: &str = "_streamfleet";

/// In seconds. Clients find a load balancer that moved within that time.
const TTL: u32 = 60;

/// The longest text of an owner that is passed on, in characters: one string of a TXT record.
const LONGEST_OWNER: usize = 255;

/// The records of a name, of whoever they are. Nothing at all if nobody has the name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenRecord {
    pub records: HostRecords,
    /// The text of the owner's record beside it.
    pub owner: Option<String>,
}

/// The records of a name.
struct SeenHost {
    record: SeenRecord,
    /// The same as Route 53 has it, word for word: it deletes only what is told to it as it is.
    sets: Vec<RecordSet>,
}

/// A part of a CAA record.
struct CaaProperty {
    tag: String,
    value: String,
}

/// A zone, and the server that changes it.
enum DnsZone<'z> {
    Rfc2136(Rfc2136Zone<'z>),
    Route53(Route53Zone<'z>),
}

impl<'z> DnsZone<'z> {
    /// # Errors
    /// If the zone's name is none, or the key can't be used.
    fn new(login: &'z DnsLogin, zone: &'z Domain) -> Result<DnsZone<'z>, DnsFault> {
        Ok(match login {
            DnsLogin::Rfc2136(login) => DnsZone::Rfc2136(Rfc2136Zone::new(login, zone)?),
            DnsLogin::Route53(login) => DnsZone::Route53(Route53Zone::new(login, zone)?),
        })
    }

    /// # Errors
    /// If the server doesn't answer, or refuses.
    async fn observe(&self, host: &str) -> Result<SeenHost, DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => Ok(SeenHost { record: zone.observe(host).await?, sets: Vec::new() }),
            DnsZone::Route53(zone) => zone.observe(host).await,
        }
    }

    /// Does the same for a plan, which has many names.
    ///
    /// # Errors
    /// If the server doesn't answer, or refuses.
    async fn survey(&self, host: &str) -> Result<SeenRecord, DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => zone.observe(host).await,
            DnsZone::Route53(zone) => zone.survey(host).await,
        }
    }

    /// Replaces what a name has, if it is still as it was seen: made of nothing, changed, taken over or deleted.
    ///
    /// # Errors
    /// [`DnsFault::Taken`] if nobody had the name and somebody has it by now, [`DnsFault::Changed`] if it has other
    /// records or another owner. Nothing is changed then.
    async fn swap(&self, host: &str, before: &SeenHost, after: &SeenRecord) -> Result<(), DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => zone.swap(host, &before.record, after).await,
            DnsZone::Route53(zone) => zone.swap(host, before, after).await,
        }
    }

    /// Adds a text to a name that may have others.
    ///
    /// # Errors
    /// If the server refuses, or the text isn't there afterwards.
    async fn add_text(&self, name: &str, text: &str) -> Result<(), DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => zone.add_text(name, text).await,
            DnsZone::Route53(zone) => zone.add_text(name, text).await,
        }
    }

    /// # Errors
    /// If the server refuses.
    async fn remove_text(&self, name: &str, text: &str) -> Result<(), DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => zone.remove_text(name, text).await,
            DnsZone::Route53(zone) => zone.remove_text(name, text).await,
        }
    }

    /// # Errors
    /// If the server doesn't answer, or refuses.
    async fn authorities(&self, name: &str) -> Result<Vec<CaaProperty>, DnsFault> {
        match self {
            DnsZone::Rfc2136(zone) => zone.authorities(name).await,
            DnsZone::Route53(zone) => zone.authorities(name).await,
        }
    }
}

fn owner_host(host: &str) -> String {
    format!("{OWNER}.{host}")
}
