//! Health of fleets and clusters: observed, judged and remembered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{ReachabilityTable, Round};
use crate::catalog::{RecordedFleet, ResolvedTree};
use crate::component::health::{
    AppliedCluster, AppliedClusters, ClusterObservation, PublicSide, applied_manifests,
};
use crate::health::{self, FleetHealth, FleetMemories, FleetObservation};
use crate::names::{FleetKey, ResourceKey};
use crate::parallel::Memo;
use crate::plan::{ObservedFleet, Reach};
use crate::spec::Reachability;
use crate::state::{State, StateError};
use crate::target::{Target, TargetError};

/// The longest time between judgements of a fleet: half of
/// [`timing::OBSERVATION_GAP`](crate::component::health::timing::OBSERVATION_GAP), so that observation counts as
/// continuous.
const MAX_JUDGEMENT_AGE: SignedDuration = SignedDuration::from_secs(30);

/// The time limit for observing a cluster on request. It consists of many calls, each with its own limit, so a
/// slow API server could take minutes.
const OBSERVATION_TIMEOUT: Duration = Duration::from_secs(10);

/// How old a stored judgement may become if only its times change.
const KEPT: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The present judgement; `None` if nothing could be observed or nothing runs.
    pub judged: Option<FleetHealth>,
    pub memory: FleetMemories,
    /// The clusters as last applied.
    pub wanted: AppliedClusters,
    /// The observation that was judged; `None` if there was none, or if nothing changed since the last
    /// judgement.
    pub seen: Option<FleetObservation>,
    /// When to judge again without any visible change; `None` if time alone changes nothing.
    pub again: Option<Timestamp>,
}

/// Why a cluster could not be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationError {
    /// The answers did not all come within the time limit.
    Timeout(Duration),
    /// The target can't be read. Tenants may not learn why, since a kubeconfig could be used to scan the network.
    Unreadable,
}

/// The last judgements, in a running process.
pub(super) type Judgements = Memo<FleetKey, Last>;

/// Changes whenever another judgement would: the target's revision and that of the probes' findings.
type Revision = (u64, u64);

pub(super) struct Last {
    /// `None` if changes could go unnoticed.
    revision: Option<Revision>,
    /// The result, without the observation.
    health: Health,
    /// When it was last stored in the state.
    kept: Timestamp,
}

impl Last {
    /// Whether another judgement would have the same result.
    fn is_unchanged_since(
        &self,
        revision: Option<Revision>,
        wanted: &AppliedClusters,
        now: Timestamp,
    ) -> bool {
        // If the clock was set back, it is due as well.
        let is_due = self
            .health
            .again
            .is_some_and(|again| again <= now || again.duration_since(now) > MAX_JUDGEMENT_AGE);
        revision.is_some() && revision == self.revision && !is_due && *wanted == self.health.wanted
    }
}

impl Round {
    /// A cluster as last applied, and its observation: the judged one or, if nothing changed since an earlier
    /// judgement, a new one. `None` if there is nothing to observe, or its fleet was unreachable in this round.
    /// It blocks, like [`super::Installation::plan`].
    ///
    /// # Errors
    /// When the target can't be read, or not in time.
    pub fn observe_cluster(
        &self,
        cluster: &ResourceKey,
        runtime: &Handle,
    ) -> Result<Option<(&AppliedCluster, ClusterObservation)>, ObservationError> {
        let of_cluster = |(_, health): &(_, &Health)| health.wanted.contains_key(cluster);
        let Some((fleet, health)) = self.health.iter().find(of_cluster) else { return Ok(None) };
        let seen = match (&health.judged, &health.seen, self.targets.get(fleet)) {
            (None, ..) => None,
            (Some(_), Some(seen), _) => Some(seen.clone()),
            (Some(_), None, None) => None,
            (Some(_), None, Some(target)) => {
                runtime.block_on(in_time(fleet, target.observe_health(&health.wanted)))?
            }
        };
        let seen = seen.and_then(|seen| seen.clusters.get(cluster).cloned());
        Ok(health.wanted.get(cluster).zip(seen))
    }
}

async fn in_time<T>(
    fleet: &FleetKey,
    observation: impl Future<Output = Result<T, TargetError>>,
) -> Result<T, ObservationError> {
    match timeout(OBSERVATION_TIMEOUT, observation).await {
        Ok(Ok(seen)) => Ok(seen),
        Ok(Err(error)) => {
            tracing::debug!(%fleet, %error, hint = error.hint(), "cannot observe a cluster of fleet {fleet}");
            Err(ObservationError::Unreadable)
        }
        Err(_) => Err(ObservationError::Timeout(OBSERVATION_TIMEOUT)),
    }
}

pub(super) struct FleetJudge<'a> {
    pub fleet: &'a FleetKey,
    pub context: &'a HealthContext<'a>,
}

/// The inputs for judging fleets.
pub(super) struct HealthContext<'a> {
    pub checked: &'a ResolvedTree,
    pub state: Option<&'a State>,
    /// `None` if judgements are remembered only in the state.
    pub judged: Option<&'a Judgements>,
    /// `None` where nothing is probed.
    pub reachability: Option<&'a ReachabilityTable>,
    /// Whether new judgements are stored in the state.
    pub keeps: bool,
    pub now: Timestamp,
    pub runtime: &'a Handle,
}

impl HealthContext<'_> {
    /// The last judgement of a fleet that isn't observed now.
    pub(super) fn last(&self, fleet: &FleetKey) -> Health {
        let last = self.judged.and_then(|judged| judged.get(fleet));
        last.map(|last| Health { again: None, ..last.health.clone() }).unwrap_or_default()
    }
}

impl FleetJudge<'_> {
    /// Judges an observed fleet against what was last applied to it, and stores the result. If its health
    /// can't be read, the fleet counts as unreachable.
    pub(super) fn judge(
        &self,
        held: &RecordedFleet,
        site: Option<(&Target, &mut ObservedFleet)>,
    ) -> Result<Health, StateError> {
        // Nothing runs in a folder.
        if let Some((Target::Directory(_), _)) = &site {
            return Ok(Health::default());
        }
        let last = self.context.judged.and_then(|judged| judged.get(self.fleet));
        let before = last.as_ref().map(|last| &last.health.wanted);
        let wanted = self.wanted(held, site.as_ref().map(|(_, observed)| &**observed), before);
        let before = self.remembered(&wanted, last.as_deref())?;
        let unjudged = |wanted, memory| Health { memory, wanted, ..Health::default() };
        let Some((target, observed)) = site.filter(|(_, observed)| self.is_judged(observed)) else {
            return Ok(unjudged(wanted, before));
        };
        let health = match self.see_and_judge(target, &wanted, &before, last.as_deref()) {
            Ok(Some(health)) => health,
            Ok(None) => return Ok(unjudged(wanted, before)),
            Err(error) => {
                observed.reach = error.reach(held.observed_at);
                return Ok(unjudged(wanted, before));
            }
        };
        observed.health.clone_from(&health.judged);
        Ok(health)
    }

    /// Judges a fleet whose objects haven't changed; `None` if it has to be observed for that.
    pub(super) fn judge_again(&self, target: &Target) -> Option<Health> {
        if let Target::Directory(_) = target {
            return Some(Health::default());
        }
        let Some(last) = self.context.judged.and_then(|judged| judged.get(self.fleet)) else {
            return Some(Health::default());
        };
        let Health { wanted, memory, .. } = &last.health;
        self.see_and_judge(target, wanted, memory, Some(&last)).ok().flatten()
    }

    /// `None` if nothing runs.
    fn see_and_judge(
        &self,
        target: &Target,
        wanted: &AppliedClusters,
        before: &FleetMemories,
        last: Option<&Last>,
    ) -> Result<Option<Health>, TargetError> {
        let now = self.context.now;
        let reachability = self.context.reachability;
        let probed = reachability.map_or(0, |table| table.revision(self.fleet));
        let revision = target.health_revision().map(|revision| (revision, probed));
        if let Some(last) = last.filter(|last| last.is_unchanged_since(revision, wanted, now)) {
            return Ok(Some(last.health.clone()));
        }
        let Some(mut seen) = self.context.runtime.block_on(target.observe_health(wanted))? else {
            return Ok(None);
        };
        if let Some(table) = reachability {
            if self.context.keeps {
                table.observed(self.fleet, self.public_sides(wanted, &seen), Instant::now());
            }
            table.tell(&mut seen);
        }
        let (mut judged, memory) = health::judge_all(wanted, &seen, before, now);
        if let Some(table) = reachability {
            if self.context.keeps {
                table.judged(&judged, Instant::now());
            }
            judged.unconfirmed = table.unconfirmed(self.fleet);
        }
        let looks_by = now.checked_add(MAX_JUDGEMENT_AGE).ok();
        let again = memory.due(now).into_iter().chain(looks_by).min();
        let health = Health { judged: Some(judged), memory, wanted: wanted.clone(), seen: None, again };
        let kept = self.keep(&health, last);
        if let Some(judged) = self.context.judged {
            judged.put(self.fleet, Some(Last { revision, health: health.clone(), kept }));
        }
        Ok(Some(Health { seen: Some(seen), ..health }))
    }

    /// The public sides of the fleet's clusters; none unless its spec asks for probes.
    fn public_sides(
        &self,
        wanted: &AppliedClusters,
        seen: &FleetObservation,
    ) -> BTreeMap<ResourceKey, PublicSide> {
        let fleet = self.context.checked.catalog.fleets.get(self.fleet);
        let is_probed = fleet.is_some_and(|it| it.spec.advanced_config.reachability == Reachability::Probe);
        let sides = seen
            .clusters
            .iter()
            .filter(|_| is_probed)
            .filter_map(|(key, seen)| Some((key.clone(), PublicSide::of(wanted.get(key)?, seen)?)));
        sides.collect()
    }

    /// Before its first apply, a fleet has nothing to judge.
    fn is_judged(&self, observed: &ObservedFleet) -> bool {
        observed.reach == Reach::Reached
            && self.context.checked.recorded.resources.contains_key(&self.fleet.resource())
    }

    /// The fleet's clusters as last applied: by the target's inventory, or by the record if that can't be
    /// read.
    fn wanted(
        &self,
        held: &RecordedFleet,
        observed: Option<&ObservedFleet>,
        before: Option<&AppliedClusters>,
    ) -> AppliedClusters {
        let reached = observed.filter(|observed| observed.reach == Reach::Reached);
        let objects = reached.map_or(&held.objects, |observed| &observed.inventory);
        let resources = &self.context.checked.recorded.resources;
        let objects = objects.iter().filter(|(_, object)| resources.contains_key(&object.owner));
        applied_manifests::of_fleet(
            objects,
            |key| reached?.objects.get(key)?.manifest.clone(),
            |cluster| resources.get(cluster).is_some_and(|record| record.durable.deleting),
            before,
        )
    }

    fn remembered(&self, wanted: &AppliedClusters, last: Option<&Last>) -> Result<FleetMemories, StateError> {
        let last = last.map(|last| &last.health.memory);
        let state = self.context.state;
        let fleet = match last {
            Some(last) => last.fleet.clone(),
            None => {
                let key = self.fleet.resource();
                state.map(|state| state.memory(&key)).transpose()?.flatten().unwrap_or_default()
            }
        };
        let mut memories = FleetMemories { fleet, clusters: BTreeMap::new() };
        for cluster in wanted.keys() {
            let memory = match last.and_then(|last| last.clusters.get(cluster)) {
                Some(known) => known.clone(),
                None => state.map(|state| state.memory(cluster)).transpose()?.flatten().unwrap_or_default(),
            };
            memories.clusters.insert(cluster.clone(), memory);
        }
        Ok(memories)
    }

    /// Stores a judgement in the state if it differs from the stored one, or that is old. Returns when it was
    /// last stored. Its loss only costs some waiting times, so a failure to write the cache stops nothing.
    fn keep(&self, health: &Health, last: Option<&Last>) -> Timestamp {
        let Health { judged: Some(judged), memory, .. } = health else { return self.context.now };
        let says_the_same = |last: &&Last| {
            let statuses = |judged: &FleetHealth| {
                let clusters = judged.clusters.values().map(|judgement| judgement.status.clone());
                clusters.chain([judged.status.clone()]).collect::<Vec<_>>()
            };
            let before = last.health.judged.as_ref();
            before.is_some_and(|before| statuses(before) == statuses(judged))
                && self.context.now.duration_since(last.kept) < KEPT
        };
        if let Some(last) = last.filter(says_the_same) {
            return last.kept;
        }
        let Some(state) = self.context.state.filter(|_| self.context.keeps) else { return self.context.now };
        let fleet = state.put_memory(&self.fleet.resource(), &memory.fleet);
        let clusters = memory.clusters.iter().map(|(key, memory)| state.put_memory(key, memory));
        // Also marks the fleet as reached, even if nothing is applied to it for months.
        let seen = state.record_observation(self.fleet, self.context.now);
        for error in [fleet, seen].into_iter().chain(clusters).filter_map(Result::err) {
            tracing::warn!(
                fleet = %self.fleet, %error, hint = error.hint(),
                "cannot record the health of fleet {} or of its clusters", self.fleet
            );
        }
        self.context.now
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_observation_without_an_end_is_given_up() {
        let fleet: FleetKey = "acme/far".to_owned().try_into().unwrap();
        let error = in_time(&fleet, pending::<Result<(), TargetError>>()).await.unwrap_err();
        assert_eq!(error, ObservationError::Timeout(Duration::from_secs(10)));
        assert_eq!(in_time(&fleet, ready(Ok(1))).await, Ok(1));
    }
}
