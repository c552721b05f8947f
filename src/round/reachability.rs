//! Which clusters are probed, when, and what that found. Lost with the process: a new one probes again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::catalog::{Condition, Status};
use crate::component::health::PublicSide;
use crate::component::probe::ProbePlace;
use crate::health::{FleetHealth, FleetObservation};
use crate::names::{FleetKey, Identifier, ResourceKey};
use crate::parallel::locked;

/// Above this number of clusters, each is probed [`SLOWER`] times less often: a probe takes a connection to every
/// broker.
const FEW: usize = 500;
const SLOWER: u32 = 5;

/// The longest time without a look at what is due.
const LONGEST: Duration = Duration::from_secs(60);

/// How many probes in a row have to fail: the first may meet a broker that restarts, the second one that has just
/// come back.
const FAILURES: u32 = 3;

/// How many clusters are probed at once, and how many of one organization, so that addresses that don't answer hold
/// up nobody else.
const AT_ONCE: usize = 64;
const AT_ONCE_EACH: usize = 16;

/// The type of the condition of a cluster that clients can't reach.
const UNREACHABLE: &str = "Unreachable";

/// Identity providers know the users of their clusters, and no field of a spec names one for the probe.
const NO_LOGIN: &str = "the reachability probe has no login, as where clients log in with tokens of an identity provider: \
                        it looks at names, connections and certificates alone";

/// Shared by all rounds of a process.
#[derive(Default)]
pub struct ReachabilityTable {
    table: Mutex<Table>,
    /// Notified when a cluster may be due earlier than the last answer of [`ReachabilityTable::due`] says.
    changed: Notify,
}

#[derive(Default)]
struct Table {
    clusters: BTreeMap<ResourceKey, Probed>,
    /// The fleets of the last plan, which has the connections that probes need. None before the first plan.
    fleets: BTreeSet<FleetKey>,
    /// Incremented whenever a condition of a fleet's clusters changes.
    revisions: BTreeMap<FleetKey, u64>,
    /// The probes that run, by organization.
    running: BTreeMap<Identifier, usize>,
}

struct Probed {
    fleet: FleetKey,
    side: Arc<PublicSide>,
    due: Instant,
    runs: bool,
    /// Whether its brokers may be restarting one after the other, so that failures don't count.
    is_changing: bool,
    /// The names that failed in the last probes.
    failing: BTreeMap<ProbePlace, FailingName>,
    /// Why the last probe didn't learn everything.
    hindered: Option<String>,
    /// How many probes may still end without success before the cluster's last change counts as confirmed. After that
    /// the failures degrade it, or nothing can be learned.
    unconfirmed: u32,
}

struct FailingName {
    /// How many probes failed in a row.
    times: u32,
    why: FailureWords,
}

/// A cluster to probe, which counts as running until this is dropped. So a probe that panics has an end, too.
pub struct DueProbe {
    pub cluster: ResourceKey,
    pub fleet: FleetKey,
    pub side: Arc<PublicSide>,
    table: Arc<ReachabilityTable>,
    has_ended: AtomicBool,
}

impl Drop for DueProbe {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::Relaxed) {
            self.table.ended(self, Instant::now());
        }
    }
}

/// The findings of a probe about all names.
pub type ProbeFindings = BTreeMap<ProbePlace, NameFinding>;

/// The finding of a probe about one name.
pub enum NameFinding {
    Reached,
    Unreached(FailureWords),
    /// It isn't known whether clients reach it, for this reason.
    Hindered(String),
}

/// Why clients don't reach a name.
pub struct FailureWords {
    /// Without what the owner of a domain could use to scan the network around this host.
    pub for_tenants: String,
    pub for_the_log: String,
}

/// A finding that changes a cluster's condition, or what waits for it.
pub enum ChangedFinding {
    /// Clients may not reach the cluster, for this reason.
    Unreached(String),
    /// Clients reach it again.
    Reached,
    /// Nothing waits for it any more.
    Confirmed,
}

impl ReachabilityTable {
    /// Takes over an observation of a fleet: its clusters are probed from now on, and those that are gone no longer.
    pub fn observed(&self, fleet: &FleetKey, sides: BTreeMap<ResourceKey, PublicSide>, now: Instant) {
        let mut table = self.lock();
        table.clusters.retain(|key, probed| probed.fleet != *fleet || sides.contains_key(key));
        for (key, side) in sides {
            match table.clusters.get_mut(&key) {
                Some(probed) if *probed.side == side => {}
                // Something was changed or has just come back: a good time to look.
                Some(probed) => {
                    if probed.side.applied != side.applied {
                        probed.unconfirmed = FAILURES;
                    }
                    probed.side = Arc::new(side);
                    probed.due = now;
                }
                None => {
                    let (side, failing) = (Arc::new(side), BTreeMap::new());
                    let fleet = fleet.clone();
                    let (due, runs, is_changing, hindered) = (now, false, false, None);
                    // It may have been changed shortly before this process began.
                    let unconfirmed = FAILURES;
                    let probed =
                        Probed { fleet, side, due, runs, is_changing, failing, hindered, unconfirmed };
                    table.clusters.insert(key, probed);
                }
            }
        }
        self.changed.notify_one();
    }

    /// Waits until a cluster may be due.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes over the fleets of a plan, before the next plan begins. Clusters of others are forgotten; those that this
    /// plan observed become due.
    pub fn planned<'f>(&self, fleets: impl Iterator<Item = &'f FleetKey>) {
        let mut table = self.lock();
        let Table { clusters, fleets: known, revisions, .. } = &mut *table;
        *known = fleets.cloned().collect();
        clusters.retain(|_, probed| known.contains(&probed.fleet));
        revisions.retain(|fleet, _| known.contains(fleet));
        self.changed.notify_one();
    }

    /// Ends a probe without a finding. The next one doesn't begin at once: it might end like this one.
    fn ended(&self, probe: &DueProbe, now: Instant) {
        let mut table = self.lock();
        table.ended(probe);
        if let Some(probed) = table.clusters.get_mut(&probe.cluster) {
            probed.runs = false;
            probed.due = now + LONGEST;
        }
        self.changed.notify_one();
    }

    /// Adds what was found to an observation that is about to be judged.
    pub(super) fn tell(&self, seen: &mut FleetObservation) {
        let table = self.lock();
        for (key, cluster) in &mut seen.clusters {
            cluster.troubles.extend(table.clusters.get(key).and_then(Probed::condition));
        }
    }

    /// Findings about clusters that are being changed don't count. When the change is over, they are probed.
    pub(super) fn judged(&self, judged: &FleetHealth, now: Instant) {
        let changing = |status| {
            [Status::Updating, Status::Upgrading, Status::Provisioning, Status::Deleting].contains(&status)
        };
        let mut table = self.lock();
        for (key, judgement) in &judged.clusters {
            if let Some(probed) = table.clusters.get_mut(key) {
                let was_changing =
                    std::mem::replace(&mut probed.is_changing, changing(judgement.status.status));
                if probed.is_changing {
                    probed.failing.clear();
                    probed.unconfirmed = FAILURES;
                } else if was_changing {
                    // Another side, so that the finding of a probe that began during the change is of no use.
                    probed.side = Arc::new(PublicSide::clone(&probed.side));
                    probed.due = now;
                    self.changed.notify_one();
                }
            }
        }
    }

    /// The clusters of a fleet that no probe has reached since they were changed.
    pub(super) fn unconfirmed(&self, fleet: &FleetKey) -> BTreeSet<ResourceKey> {
        let table = self.lock();
        let unconfirmed = table.clusters.iter().filter(|(_, it)| it.fleet == *fleet && it.unconfirmed > 0);
        unconfirmed.map(|(key, _)| key.clone()).collect()
    }

    /// A number that changes whenever [`Self::tell`] would tell something else of a fleet.
    pub(super) fn revision(&self, fleet: &FleetKey) -> u64 {
        self.lock().revisions.get(fleet).copied().unwrap_or_default()
    }

    /// The clusters to probe now, and when to ask again.
    pub fn due(self: &Arc<Self>, now: Instant) -> (Vec<DueProbe>, Instant) {
        let mut table = self.lock();
        let Table { clusters, fleets, running, .. } = &mut *table;
        let mut waiting: Vec<_> = clusters
            .iter_mut()
            .filter(|(_, probed)| !probed.runs && fleets.contains(&probed.fleet))
            .collect();
        waiting.sort_by_key(|(_, probed)| probed.due);
        let mut next = now + LONGEST;
        let mut all: usize = running.values().sum();
        let mut due = Vec::new();
        for (key, probed) in waiting {
            if probed.due > now {
                next = next.min(probed.due);
                break;
            }
            let of_organization = running.entry(key.organization.clone()).or_default();
            if all < AT_ONCE && *of_organization < AT_ONCE_EACH {
                all += 1;
                *of_organization += 1;
                probed.runs = true;
                let (cluster, fleet) = (key.clone(), probed.fleet.clone());
                let (side, table, has_ended) =
                    (Arc::clone(&probed.side), Arc::clone(self), AtomicBool::new(false));
                due.push(DueProbe { cluster, fleet, side, table, has_ended });
            }
        }
        (due, next)
    }

    /// Ends a probe; the next one begins after the interval. If the fleet has to be judged again, returns why.
    pub fn found(
        &self,
        probe: &DueProbe,
        findings: ProbeFindings,
        interval: Duration,
        now: Instant,
    ) -> Option<ChangedFinding> {
        let mut table = self.lock();
        self.changed.notify_one();
        table.ended(probe);
        probe.has_ended.store(true, Ordering::Relaxed);
        let interval = if table.clusters.len() > FEW { SLOWER * interval } else { interval };
        let Table { clusters, revisions, .. } = &mut *table;
        let probed = clusters.get_mut(&probe.cluster)?;
        probed.runs = false;
        // A cluster that changed meanwhile is due at once, and its names may be others.
        if !Arc::ptr_eq(&probed.side, &probe.side) {
            return None;
        }
        probed.due = now + interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        let before = (probed.condition(), probed.unconfirmed > 0);
        probed.take(findings);
        let after = (probed.condition(), probed.unconfirmed > 0);
        if before == after {
            return None;
        }
        *revisions.entry(probed.fleet.clone()).or_default() += 1;
        if before.0 == after.0 {
            return Some(ChangedFinding::Confirmed);
        }
        let lasting = probed.lasting().next().map(|it| it.why.for_the_log.clone());
        Some(match lasting.or_else(|| probed.hindered.clone()) {
            Some(why) => ChangedFinding::Unreached(why),
            None => ChangedFinding::Reached,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }
}

impl Table {
    fn ended(&mut self, probe: &DueProbe) {
        if let Some(running) = self.running.get_mut(&probe.cluster.organization) {
            *running = running.saturating_sub(1);
        }
        self.running.retain(|_, running| *running > 0);
    }
}

impl Probed {
    fn take(&mut self, findings: ProbeFindings) {
        if !self.is_changing {
            let is_reached = findings.values().all(|it| matches!(it, NameFinding::Reached));
            self.unconfirmed = if is_reached { 0 } else { self.unconfirmed.saturating_sub(1) };
        }
        self.hindered = None;
        let mut before = std::mem::take(&mut self.failing);
        for (place, finding) in findings {
            let why = match finding {
                NameFinding::Reached => continue,
                NameFinding::Hindered(why) => {
                    self.hindered.get_or_insert(why);
                    self.failing.extend(before.remove_entry(&place));
                    continue;
                }
                NameFinding::Unreached(why) => why,
            };
            let counts = !self.is_changing
                && match place {
                    ProbePlace::Bootstrap => true,
                    // The pod of a broker that isn't ready says more.
                    ProbePlace::Broker(id) => self.side.brokers.get(&id).copied().unwrap_or_default(),
                };
            if counts {
                let times = before.get(&place).map_or(0, |before| before.times).saturating_add(1);
                self.failing.insert(place, FailingName { times, why });
            }
        }
    }

    fn lasting(&self) -> impl Iterator<Item = &FailingName> {
        self.failing.values().filter(|failing| failing.times >= FAILURES)
    }

    fn condition(&self) -> Option<Condition> {
        if let Some(failing) = self.lasting().next() {
            let what = match self.lasting().count() {
                1 => "it".to_owned(),
                count => format!("{count} of its names; the first"),
            };
            let why = &failing.why.for_tenants;
            let message = format!("clients outside of Kubernetes can't reach {what}: {why}");
            return Some(Condition { kind: UNREACHABLE.to_owned(), degraded: true, message });
        }
        let (kind, message) = match &self.hindered {
            Some(why) => ("ReachabilityUnknown", format!("it is unknown whether clients reach it: {why}")),
            None if self.side.listener.user.is_none() => ("LoginNotProbed", NO_LOGIN.to_owned()),
            None => return None,
        };
        Some(Condition { kind: kind.to_owned(), degraded: false, message })
    }
}

#[cfg(test)]
mod tests;
