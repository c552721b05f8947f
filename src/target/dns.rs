//! Records of a zone, changed on its DNS server by RFC 2136.
//!
//! A name is ours while the TXT record beside it says so. The server compares that record, and the present values, in the
//! step in which it changes them: two installations never mix their records, and a stranger's stay as they are.

mod challenge;
mod exchange;
mod fault;
mod host;
mod zones;

use std::net::IpAddr;

use hickory_proto::op::{Message, OpCode, Query, ResponseCode, UpdateMessage as _};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::component::dns_records::HostRecords;
pub use challenge::{add as add_challenge, allowed_authorities, remove as remove_challenge};
use exchange::DnsServer;
pub use fault::DnsFault;
pub use host::{RecordFault, owner_text, release, see, write};
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

/// A zone, and the server that changes it.
struct DnsZone<'z> {
    server: DnsServer<'z>,
    zone: Name,
}

impl<'z> DnsZone<'z> {
    /// # Errors
    /// If the zone's name is none, or the key can't be used.
    fn new(login: &'z DnsLogin, zone: &str) -> Result<DnsZone<'z>, DnsFault> {
        Ok(DnsZone { server: DnsServer::new(login)?, zone: name(zone)? })
    }

    /// # Errors
    /// If the server doesn't answer, or refuses.
    async fn observe(&self, host: &str) -> Result<SeenRecord, DnsFault> {
        let mut found = SeenRecord::default();
        let (host, owner) = (name(host)?, owner_name(host)?);
        let asked = [(&host, RecordType::A), (&host, RecordType::AAAA), (&owner, RecordType::TXT)];
        let answers = self.server.exchange(asked.map(|(name, kind)| query(name, kind))).await?;
        for (answer, (asked, _)) in answers.into_iter().zip(asked) {
            for record in records(answer, asked)? {
                match record.data {
                    RData::A(A(address)) => drop(found.records.addresses.insert(address.into())),
                    RData::AAAA(AAAA(address)) => drop(found.records.addresses.insert(address.into())),
                    RData::CNAME(CNAME(alias)) if *asked == host => {
                        let alias = alias.to_lowercase().to_ascii();
                        found.records.alias = Some(alias.trim_end_matches('.').to_owned());
                    }
                    RData::TXT(text) => {
                        let strings = text.txt_data.iter().map(|string| String::from_utf8_lossy(string));
                        let whole = strings.collect::<Vec<_>>().join(" ");
                        found.owner = Some(whole.chars().take(LONGEST_OWNER).collect());
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// Replaces what a name has, if it is still as it was seen: made of nothing, changed, taken over or deleted.
    ///
    /// # Errors
    /// [`DnsFault::Taken`] if nobody had the name and somebody has it by now, [`DnsFault::Changed`] if it has other
    /// records or another owner. Nothing is changed then.
    async fn swap(&self, host: &str, before: &SeenRecord, after: &SeenRecord) -> Result<(), DnsFault> {
        let (name, beside) = (name(host)?, owner_name(host)?);
        let mut update = self.update();
        if *before == SeenRecord::default() {
            update.add_pre_requisite(of_class(&name, DNSClass::NONE, RecordType::ANY));
        }
        update.add_pre_requisite(match &before.owner {
            Some(owner) => text(&beside, owner, 0),
            None => of_class(&beside, DNSClass::NONE, RecordType::ANY),
        });
        update.add_pre_requisites(all(&before.records, &name, 0)?);
        for kind in kinds(&before.records) {
            update.add_update(of_class(&name, DNSClass::ANY, kind));
        }
        update.add_updates(all(&after.records, &name, TTL)?);
        if before.owner != after.owner {
            update.add_update(match &after.owner {
                Some(owner) => text(&beside, owner, TTL),
                None => of_class(&beside, DNSClass::ANY, RecordType::TXT),
            });
        }
        let unmet = if *before == SeenRecord::default() { DnsFault::Taken } else { DnsFault::Changed };
        self.send(update, unmet).await
    }

    fn update(&self) -> Message {
        let mut update = query(&self.zone, RecordType::SOA);
        update.metadata.op_code = OpCode::Update;
        update
    }

    /// `unmet` is what it means that the name isn't as it was expected to be.
    async fn send(&self, update: Message, unmet: DnsFault) -> Result<(), DnsFault> {
        let [answer] = self.server.exchange([update]).await?;
        match answer.metadata.response_code {
            ResponseCode::NoError => Ok(()),
            ResponseCode::YXDomain
            | ResponseCode::YXRRSet
            | ResponseCode::NXDomain
            | ResponseCode::NXRRSet => Err(unmet),
            code => Err(DnsFault::of_code(code)),
        }
    }
}

fn all(records: &HostRecords, host: &Name, ttl: u32) -> Result<Vec<Record>, DnsFault> {
    let addresses = records.addresses.iter().map(|address| match *address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    });
    let alias = records.alias.as_deref().map(|alias| Ok::<_, DnsFault>(RData::CNAME(CNAME(name(alias)?))));
    let all = addresses.map(Ok).chain(alias);
    all.map(|data| Ok(Record::from_rdata(host.clone(), ttl, data?))).collect()
}

fn kinds(records: &HostRecords) -> Vec<RecordType> {
    let has = |is: fn(&IpAddr) -> bool| records.addresses.iter().any(is);
    [
        (has(IpAddr::is_ipv4), RecordType::A),
        (has(IpAddr::is_ipv6), RecordType::AAAA),
        (records.alias.is_some(), RecordType::CNAME),
    ]
    .into_iter()
    .filter_map(|(is_there, kind)| is_there.then_some(kind))
    .collect()
}

fn query(name: &Name, kind: RecordType) -> Message {
    let mut message = Message::query();
    message.metadata.recursion_desired = false;
    let mut query = Query::new();
    query.set_name(name.clone()).set_query_class(DNSClass::IN).set_query_type(kind);
    message.add_query(query);
    message
}

/// The records of a name, as its own server has them: no other server is asked.
fn records(answer: Message, of: &Name) -> Result<Vec<Record>, DnsFault> {
    match answer.metadata.response_code {
        ResponseCode::NXDomain => Ok(Vec::new()),
        ResponseCode::NoError if !answer.metadata.authoritative => Err(DnsFault::NotAuthoritative),
        ResponseCode::NoError => Ok(answer.answers.into_iter().filter(|record| record.name == *of).collect()),
        code => Err(DnsFault::of_code(code)),
    }
}

fn name(text: &str) -> Result<Name, DnsFault> {
    let mut name = Name::from_ascii(text).map_err(|_| DnsFault::NoName(text.to_owned()))?;
    name.set_fqdn(true);
    Ok(name)
}

fn owner_name(host: &str) -> Result<Name, DnsFault> {
    name(&format!("{OWNER}.{host}"))
}

fn text(name: &Name, text: &str, ttl: u32) -> Record {
    Record::from_rdata(name.clone(), ttl, RData::TXT(TXT::new(vec![text.to_owned()])))
}

/// A record without data, which stands for a name or for all records of a kind.
fn of_class(name: &Name, class: DNSClass, kind: RecordType) -> Record {
    let mut record: Record = Record::update0(name.clone(), 0, kind).into_record_of_rdata();
    record.dns_class = class;
    record
}
