//! Which server has the records of which base domain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use tokio::time::Instant;

use super::DnsFault;
use crate::config::AddressRange;
use crate::names::Domain;
use crate::parallel::locked;

/// How long a server that didn't answer isn't asked again for a plan, which others wait for.
const REST: Duration = Duration::from_secs(60);

/// The base domains of one organization whose records are kept here.
#[derive(Clone, Default)]
pub struct DnsZones {
    domains: Arc<BTreeMap<Domain, KeptZone>>,
    recent: Arc<RecentFaults>,
}

pub struct KeptZone {
    pub zone: Domain,
    /// The login at its server, or why there is none, as a clause.
    pub login: Result<DnsLogin, String>,
}

/// A server, and the key that it knows us by.
#[derive(Clone)]
pub struct DnsLogin {
    pub host: String,
    pub port: u16,
    /// As BIND's tools write it.
    pub key: SecretString,
    /// Exceptions to the addresses that a tenant's server may not have.
    pub allowed: Vec<AddressRange>,
    pub clock: fn() -> Timestamp,
}

impl fmt::Debug for DnsLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DnsLogin({}:{})", self.host, self.port)
    }
}

/// The servers that didn't answer lately.
#[derive(Default)]
pub struct RecentFaults(Mutex<BTreeMap<(String, u16), (Instant, DnsFault)>>);

impl DnsZones {
    pub fn new(domains: BTreeMap<Domain, KeptZone>) -> DnsZones {
        DnsZones { domains: Arc::new(domains), recent: Arc::default() }
    }

    pub fn remembering(&self, recent: &Arc<RecentFaults>) -> DnsZones {
        DnsZones { domains: Arc::clone(&self.domains), recent: Arc::clone(recent) }
    }

    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The zone of a host name, which is one label below its base domain.
    pub fn of_host(&self, host: &str) -> Option<&KeptZone> {
        let (_, domain) = host.split_once('.')?;
        self.domains.get(domain)
    }

    pub fn of_domain(&self, domain: &Domain) -> Option<&KeptZone> {
        self.domains.get(domain)
    }

    /// Why the server wasn't reached lately.
    pub(super) fn recent(&self, login: &DnsLogin) -> Option<DnsFault> {
        let recent = locked(&self.recent.0);
        let (at, fault) = recent.get(&(login.host.clone(), login.port))?;
        (at.elapsed() < REST).then(|| fault.clone())
    }

    pub(super) fn noted<T>(&self, login: &DnsLogin, found: Result<T, DnsFault>) -> Result<T, DnsFault> {
        let place = (login.host.clone(), login.port);
        match &found {
            Err(fault) if fault.is_silence() => {
                tracing::debug!(host = login.host, port = login.port, ?fault, "DNS server isn't reached");
                drop(locked(&self.recent.0).insert(place, (Instant::now(), fault.clone())));
            }
            _ => drop(locked(&self.recent.0).remove(&place)),
        }
        found
    }
}
