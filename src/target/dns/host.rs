//! The records of a single host name as an object: seen, written and released.

use std::fmt;

use uuid::Uuid;

use super::{DnsFault, DnsLogin, DnsZone, DnsZones, KeptZone, SeenRecord};
use crate::component::dns_records::HostRecords;
use crate::names::{Digest, ResourceKey};

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
    pub(super) fn gone() -> RecordFault {
        RecordFault::no_login("no spec describes its base domain with `dns_provider: rfc2136` or `route53`")
    }

    pub(super) fn no_login(why: &str) -> RecordFault {
        RecordFault::NoLogin(why.to_owned())
    }

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

impl KeptZone {
    fn login(&self) -> Result<&DnsLogin, RecordFault> {
        self.login.as_ref().map_err(|why| RecordFault::no_login(why))
    }

    pub(super) fn open(&self) -> Result<DnsZone<'_>, RecordFault> {
        Ok(DnsZone::new(self.login()?, &self.zone)?)
    }
}

impl DnsZones {
    fn kept(&self, host: &str) -> Result<&KeptZone, RecordFault> {
        self.of_host(host).ok_or_else(RecordFault::gone)
    }
}

impl SeenRecord {
    /// Identifies records that somebody else made. They are taken over only as they were planned for.
    pub fn identity(&self) -> String {
        Digest::of(format!("{:?} {:?}", self.owner, self.records)).to_string()
    }
}

/// The text of the record beside a name of ours.
pub fn owner_text(installation: Uuid, resource: &ResourceKey) -> String {
    let ResourceKey { organization, name, .. } = resource;
    format!("v=1 installation={installation} resource={organization}/{name}")
}

/// Returns the records of a name; `None` if it has none. A server that didn't answer lately isn't asked, and one may be
/// asked for all names of the domain at once.
///
/// # Errors
/// If its server can't be asked.
pub async fn see(zones: &DnsZones, host: &str) -> Result<Option<SeenRecord>, RecordFault> {
    let kept = zones.kept(host)?;
    let login = kept.login()?;
    if let Some(fault) = zones.recent(login) {
        return Err(fault.into());
    }
    let look = async { DnsZone::new(login, &kept.zone)?.survey(host).await };
    let seen = zones.noted(login, look.await)?;
    Ok(Some(seen).filter(|seen| *seen != SeenRecord::default()))
}

/// Does the same as [`see`], as it is at this moment.
///
/// # Errors
/// If its server can't be asked.
pub async fn see_now(zones: &DnsZones, host: &str) -> Result<Option<SeenRecord>, RecordFault> {
    let seen = zones.kept(host)?.open()?.observe(host).await?.record;
    Ok(Some(seen).filter(|seen| *seen != SeenRecord::default()))
}

/// Makes the records of a name be `after`. `adopts` is the identity of the records that are taken over.
///
/// # Errors
/// If somebody else has the name, or the server refuses. Nothing is changed then.
pub async fn write(
    zones: &DnsZones,
    host: &str,
    after: &HostRecords,
    (owner, adopts): (&str, Option<&str>),
) -> Result<(), RecordFault> {
    let after = SeenRecord { records: after.clone(), owner: Some(owner.to_owned()) };
    let try_once = || {
        change(zones, host, |seen| {
            let is_free = *seen == SeenRecord::default() || seen.owner == after.owner;
            let is_adopted = || seen.owner.is_none() && adopts == Some(seen.identity().as_str());
            if is_free || is_adopted() { Ok(after.clone()) } else { Err(RecordFault::Foreign) }
        })
    };
    match try_once().await {
        // The update of a run that was killed may have come between the look and our own.
        Err(RecordFault::Foreign | RecordFault::Server(DnsFault::Changed)) => try_once().await,
        written => written,
    }
}

/// Deletes the records of a name if they are ours. Those of somebody else stay, and are no error: ours are gone.
///
/// # Errors
/// If the server can't be asked, or refuses.
pub async fn release(zones: &DnsZones, host: &str, owner: &str) -> Result<(), RecordFault> {
    let try_once = || {
        change(zones, host, |seen| {
            let is_ours = seen.owner.as_deref() == Some(owner);
            Ok(if is_ours { SeenRecord::default() } else { seen.clone() })
        })
    };
    match try_once().await {
        Err(RecordFault::Server(DnsFault::Changed)) => try_once().await,
        released => released,
    }
}

/// Looks at a name, and makes it be what `decide` says, in one step with the comparison.
async fn change(
    zones: &DnsZones,
    host: &str,
    decide: impl FnOnce(&SeenRecord) -> Result<SeenRecord, RecordFault>,
) -> Result<(), RecordFault> {
    let zone = zones.kept(host)?.open()?;
    let seen = zone.observe(host).await?;
    let after = decide(&seen.record)?;
    if seen.record != after {
        zone.swap(host, &seen, &after).await?;
    }
    Ok(())
}
