//! An account's zones, kept for a short time. Route 53 answers five requests a second, and a plan needs
//! thousands of names.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::{RecordSet, Route53Fault, Route53Zone};
use crate::names::Domain;
use crate::parallel::locked;
use crate::target::dns::{DnsFault, SeenHost, SeenRecord, owner_host};
use crate::target::https::{HttpsClient, HttpsLimits, roots_of_host};

/// How long what a domain has is believed.
const FRESH: Duration = Duration::from_secs(10);

/// The longest time for all names of a domain. A fleet isn't planned if looking at it takes two minutes.
const LONGEST: Duration = Duration::from_secs(60);

/// A page has 300 records.
const LIMITS: HttpsLimits = HttpsLimits { time: Duration::from_secs(10), size: 4 << 20 };

#[derive(Default)]
pub struct Known {
    https: OnceLock<HttpsClient>,
    zones: Mutex<BTreeMap<Domain, String>>,
    /// The records of whole domains.
    surveys: Mutex<BTreeMap<String, Arc<Mutex<Option<Survey>>>>>,
    /// When records were last changed from here.
    changed: std::sync::Mutex<Option<Instant>>,
}

struct Survey {
    begun: Instant,
    ended: Instant,
    found: Result<Arc<SetsByName>, DnsFault>,
}

type SetsByName = BTreeMap<String, Vec<RecordSet>>;

impl Known {
    /// Has the next survey be made anew.
    pub fn forget(&self) {
        *locked(&self.changed) = Some(Instant::now());
    }
}

impl Route53Zone<'_> {
    /// Returns what a host name has. All names of its domain are asked for at once.
    pub async fn survey(&self, host: &str) -> Result<SeenRecord, DnsFault> {
        let domain = host.split_once('.').map_or(host, |(_, domain)| domain);
        let sets = self.sets_of_domain(domain).await?;
        let own = [host.to_owned(), owner_host(host)];
        let own = own.iter().filter_map(|name| sets.get(name)).flatten().cloned().collect();
        Ok(SeenHost::of(host, own).record)
    }

    async fn sets_of_domain(&self, domain: &str) -> Result<Arc<SetsByName>, DnsFault> {
        let known = &self.login.known;
        let survey = Arc::clone(known.surveys.lock().await.entry(domain.to_owned()).or_default());
        // Others wait for the same answer meanwhile.
        let mut survey = survey.lock().await;
        let changed = *locked(&known.changed);
        let is_fresh = |survey: &&Survey| {
            survey.ended.elapsed() < FRESH && changed.is_none_or(|changed| survey.begun > changed)
        };
        if let Some(survey) = survey.as_ref().filter(is_fresh) {
            return survey.found.clone();
        }
        let begun = Instant::now();
        let listed = timeout(LONGEST, self.sets_within(domain)).await;
        let listed = listed.unwrap_or_else(|_| Err(Route53Fault::Slow(LONGEST).into()));
        let found = listed.map(|sets| {
            let mut by_name = SetsByName::new();
            for set in sets {
                by_name.entry(set.name.clone()).or_default().push(set);
            }
            Arc::new(by_name)
        });
        *survey = Some(Survey { begun, ended: Instant::now(), found: found.clone() });
        found
    }

    pub(super) async fn zone_id(&self) -> Result<String, DnsFault> {
        let mut zones = self.login.known.zones.lock().await;
        if let Some(id) = zones.get(self.zone) {
            return Ok(id.clone());
        }
        let id = self.find_zone().await?;
        zones.insert(self.zone.clone(), id.clone());
        Ok(id)
    }

    pub(super) fn https(&self) -> Result<&HttpsClient, Route53Fault> {
        let known = &self.login.known;
        if let Some(client) = known.https.get() {
            return Ok(client);
        }
        let roots = self.login.roots.clone().unwrap_or_else(roots_of_host);
        // The endpoint is AWS's, or the administrator's.
        let client = HttpsClient::new(roots, &crate::config::AddressRange::ALL, LIMITS)
            .map_err(|fault| self.unreached(&fault.to_string()))?;
        Ok(known.https.get_or_init(|| client))
    }
}
