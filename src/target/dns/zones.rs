//! Which server has the records of which base domain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::{DnsFault, Rfc2136Login, Route53Login};
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

/// How a zone's server is reached.
#[derive(Debug, Clone)]
pub enum DnsLogin {
    Rfc2136(Rfc2136Login),
    Route53(Route53Login),
}

impl DnsLogin {
    /// What is asked, and as whom if that counts: logins of the same place share what is known of it.
    fn place(&self) -> String {
        match self {
            DnsLogin::Rfc2136(login) => format!("{}:{}", login.host, login.port),
            DnsLogin::Route53(login) => format!("{} {}", login.endpoint, login.key().unwrap_or_default()),
        }
    }
}

/// The servers that didn't answer lately.
#[derive(Default)]
pub struct RecentFaults(Mutex<BTreeMap<String, (Instant, DnsFault)>>);

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
        let (at, fault) = recent.get(&login.place())?;
        (at.elapsed() < REST).then(|| fault.clone())
    }

    pub(super) fn noted<T>(&self, login: &DnsLogin, found: Result<T, DnsFault>) -> Result<T, DnsFault> {
        let place = login.place();
        match &found {
            Err(fault) if fault.is_silence() => {
                tracing::debug!(?login, ?fault, "DNS server isn't reached");
                drop(locked(&self.recent.0).insert(place, (Instant::now(), fault.clone())));
            }
            _ => drop(locked(&self.recent.0).remove(&place)),
        }
        found
    }
}
