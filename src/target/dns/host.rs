//! The records of a single host name as an object: seen, written and released.

use std::fmt;

use uuid::Uuid;

use super::{DnsFault, DnsServer, DnsZone, DnsZones, ObservedHost};
use crate::component::dns_records::HostRecords;
use crate::names::{Digest, Domain, ResourceKey};

/// The records of a name, of whoever they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRecord {
    pub records: HostRecords,
    /// The text of the owner's record beside it.
    pub owner: Option<String>,
    pub zone: Domain,
}

/// Why the records of a name couldn't be seen or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFault {
    /// There is no login for its zone; the reason as a clause.
    NoLogin(String),
    /// Somebody else has the name.
    Foreign,
    Server(DnsFault),
}

impl RecordFault {
    pub fn hint(&self) -> &'static str {
        match self {
            RecordFault::NoLogin(_) => {
                "restore the base domain and its cloud account until no cluster has records there, and apply again"
            }
            RecordFault::Foreign => {
                "remove the record of that name on its DNS server, or give the cluster another name"
            }
            RecordFault::Server(fault) => fault.hint(),
        }
    }
}

/// A clause.
impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordFault::NoLogin(why) => f.write_str(why),
            RecordFault::Foreign => f.write_str("somebody else has a record of that name"),
            RecordFault::Server(fault) => fault.fmt(f),
        }
    }
}

impl From<DnsFault> for RecordFault {
    fn from(fault: DnsFault) -> Self {
        match fault {
            DnsFault::Taken => RecordFault::Foreign,
            fault => RecordFault::Server(fault),
        }
    }
}

impl SeenRecord {
    /// Identifies records that somebody else made. They are taken over only as they were planned for.
    pub fn identity(&self) -> String {
        Digest::of(format!("{:?} {:?}", self.owner, self.records)).to_string()
    }
}

/// What the record beside a name says if it is ours.
pub fn owner_text(installation: Uuid, resource: &ResourceKey) -> String {
    let ResourceKey { organization, name, .. } = resource;
    format!("v=1 installation={installation} resource={organization}/{name}")
}

/// Returns the records of a name; `None` if it has none. A server that didn't answer lately isn't asked.
///
/// # Errors
/// If its server can't be asked.
pub async fn see(zones: &DnsZones, host: &str) -> Result<Option<SeenRecord>, RecordFault> {
    let place = place(zones, host)?;
    if let Some(fault) = zones.recent(place.login) {
        return Err(fault.into());
    }
    Ok(zones.noted(place.login, place.look(host).await)?)
}

/// Makes the records of a name be `after`. `adopts` is the identity of the records that are taken over.
///
/// # Errors
/// If somebody else has the name, or the server refuses. Nothing is changed then.
pub async fn write(
    zones: &DnsZones,
    host: &str,
    after: &HostRecords,
    whose: (&str, Option<&str>),
) -> Result<(), RecordFault> {
    let place = place(zones, host)?;
    match place.write(host, after, whose).await {
        // The update of a run that was killed may have come between the look and our own.
        Err(RecordFault::Foreign | RecordFault::Server(DnsFault::Changed)) => {
            place.write(host, after, whose).await
        }
        written => written,
    }
}

/// Deletes the records of a name if they are ours. Those of somebody else stay, and are no error: ours are gone.
///
/// # Errors
/// If the server can't be asked, or refuses.
pub async fn release(zones: &DnsZones, host: &str, owner: &str) -> Result<(), RecordFault> {
    let place = place(zones, host)?;
    match place.release(host, owner).await {
        Err(RecordFault::Server(DnsFault::Changed)) => place.release(host, owner).await,
        released => released,
    }
}

struct Place<'z> {
    zone: &'z Domain,
    login: &'z super::DnsLogin,
}

fn place<'z>(zones: &'z DnsZones, host: &str) -> Result<Place<'z>, RecordFault> {
    let gone =
        || RecordFault::NoLogin("no spec describes its base domain with `dns_provider: rfc2136`".to_owned());
    let kept = zones.of_host(host).ok_or_else(gone)?;
    let login = kept.login.as_ref().map_err(|why| RecordFault::NoLogin(why.clone()))?;
    Ok(Place { zone: &kept.zone, login })
}

impl Place<'_> {
    async fn look(&self, host: &str) -> Result<Option<SeenRecord>, DnsFault> {
        let Place { zone, login } = *self;
        let server = DnsServer::new(login)?;
        let ObservedHost { records, owner } = DnsZone::new(&server, zone.as_str())?.observe(host).await?;
        let is_there = !records.is_empty() || owner.is_some();
        Ok(is_there.then(|| SeenRecord { records, owner, zone: zone.clone() }))
    }

    async fn write(
        &self,
        host: &str,
        after: &HostRecords,
        (owner, adopts): (&str, Option<&str>),
    ) -> Result<(), RecordFault> {
        let server = DnsServer::new(self.login)?;
        let at = DnsZone::new(&server, self.zone.as_str())?;
        match self.look(host).await? {
            None => at.claim(host, after, owner).await?,
            Some(SeenRecord { records, owner: Some(found), .. }) if found == owner => {
                if records != *after {
                    at.change(host, &records, after, owner).await?;
                }
            }
            Some(found) if found.owner.is_none() && adopts == Some(found.identity().as_str()) => {
                at.adopt(host, &found.records, after, owner).await?;
            }
            Some(_) => return Err(RecordFault::Foreign),
        }
        Ok(())
    }

    async fn release(&self, host: &str, owner: &str) -> Result<(), RecordFault> {
        let found = self.look(host).await?;
        let Some(ours) = found.filter(|found| found.owner.as_deref() == Some(owner)) else { return Ok(()) };
        let server = DnsServer::new(self.login)?;
        Ok(DnsZone::new(&server, self.zone.as_str())?.release(host, &ours.records, owner).await?)
    }
}
