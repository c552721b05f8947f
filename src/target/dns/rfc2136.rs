//! A DNS server that takes signed updates (RFC 2136).

mod exchange;

use std::fmt;
use std::net::IpAddr;

use hickory_proto::op::{Message, OpCode, Query, ResponseCode, UpdateMessage as _};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use jiff::Timestamp;
use secrecy::SecretString;

use super::{CaaProperty, DnsFault, LONGEST_OWNER, SeenRecord, TTL, owner_host};
use crate::component::dns_records::HostRecords;
use crate::config::AddressRange;
use crate::names::Domain;
use exchange::DnsServer;

/// A server, and the key that it knows us by.
#[derive(Clone)]
pub struct Rfc2136Login {
    pub host: String,
    pub port: u16,
    /// As BIND's tools write it.
    pub key: SecretString,
    /// Exceptions to the addresses that a tenant's server may not have.
    pub allowed: Vec<AddressRange>,
    pub clock: fn() -> Timestamp,
}

impl fmt::Debug for Rfc2136Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rfc2136Login({}:{})", self.host, self.port)
    }
}

pub struct Rfc2136Zone<'z> {
    server: DnsServer<'z>,
    zone: Name,
}

impl<'z> Rfc2136Zone<'z> {
    pub fn new(login: &'z Rfc2136Login, zone: &Domain) -> Result<Rfc2136Zone<'z>, DnsFault> {
        Ok(Rfc2136Zone { server: DnsServer::new(login)?, zone: name(zone.as_str())? })
    }

    pub async fn observe(&self, host: &str) -> Result<SeenRecord, DnsFault> {
        let mut found = SeenRecord::default();
        let (host, owner) = (name(host)?, name(&owner_host(host))?);
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

    pub async fn swap(&self, host: &str, before: &SeenRecord, after: &SeenRecord) -> Result<(), DnsFault> {
        let (name, beside) = (name(host)?, name(&owner_host(host))?);
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

    pub async fn add_text(&self, at: &str, value: &str) -> Result<(), DnsFault> {
        let record = text(&name(at)?, value, TTL);
        let mut update = self.update();
        update.add_update(record);
        self.send(update, DnsFault::Changed).await?;
        // A server ignores a text where there is a CNAME.
        let is_there = |record: &Record| matches!(&record.data, RData::TXT(text) if text.txt_data.concat() == value.as_bytes());
        match self.records(at, RecordType::TXT).await?.iter().any(is_there) {
            true => Ok(()),
            false => Err(DnsFault::Hidden(at.to_owned())),
        }
    }

    pub async fn remove_text(&self, at: &str, value: &str) -> Result<(), DnsFault> {
        let mut gone = text(&name(at)?, value, 0);
        gone.dns_class = DNSClass::NONE;
        let mut update = self.update();
        update.add_update(gone);
        self.send(update, DnsFault::Changed).await
    }

    pub async fn authorities(&self, at: &str) -> Result<Vec<CaaProperty>, DnsFault> {
        let property = |record: Record| match record.data {
            RData::CAA(caa) => {
                Some(CaaProperty { value: String::from_utf8_lossy(&caa.value).into_owned(), tag: caa.tag })
            }
            _ => None,
        };
        Ok(self.records(at, RecordType::CAA).await?.into_iter().filter_map(property).collect())
    }

    async fn records(&self, at: &str, kind: RecordType) -> Result<Vec<Record>, DnsFault> {
        let at = name(at)?;
        let [answer] = self.server.exchange([query(&at, kind)]).await?;
        records(answer, &at)
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

fn text(name: &Name, text: &str, ttl: u32) -> Record {
    Record::from_rdata(name.clone(), ttl, RData::TXT(TXT::new(vec![text.to_owned()])))
}

/// A record without data, which stands for a name or for all records of a kind.
fn of_class(name: &Name, class: DNSClass, kind: RecordType) -> Record {
    let mut record: Record = Record::update0(name.clone(), 0, kind).into_record_of_rdata();
    record.dns_class = class;
    record
}
