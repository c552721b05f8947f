//! Indexed lookups of one fleet, cluster or other resource in a round.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use jiff::Timestamp;

use super::{Health, Round};
use crate::catalog::{ResolvedCluster, ResolvedTree, ResourceStatus};
use crate::component::health::Outputs;
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::{Change, FleetPlan, Index, Verb};
use crate::record::{Audience, Standing, StandingInputs, UnplannedWrite};
use crate::target::Target;

impl Round {
    /// The planned change of a resource, if any.
    pub fn change(&self, resource: &ResourceKey) -> Option<&Change> {
        self.index().change(&self.plan, resource)
    }

    pub fn fleet_plan(&self, fleet: &FleetKey) -> Option<&FleetPlan> {
        self.index().fleet(&self.plan, fleet)
    }

    /// Created on first use.
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.plan))
    }

    /// The health of a fleet, or of the fleet of a cluster or of something on it.
    fn health_of(&self, key: &ResourceKey) -> Option<&Health> {
        if key.kind == Kind::Fleet {
            return self.health.get(&key.as_fleet()?);
        }
        let cluster = key.within_cluster().map_or_else(|| key.clone(), |(cluster, _)| cluster);
        let knows = |health: &&Health| health.memory.clusters.contains_key(&cluster);
        let mut fleets = self.fleets_of(&cluster);
        fleets.find_map(|fleet| self.health.get(&fleet).filter(knows))
    }

    /// The health of a fleet or cluster; `None` if it wasn't judged.
    pub fn judged(&self, key: &ResourceKey) -> Option<&ResourceStatus> {
        self.health_of(key)?.judged.as_ref()?.status_of(key)
    }

    /// The remarks beside the plan, as sentences: every command shows them, whether it planned
    /// itself or asked a daemon.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(ToString::to_string).chain(self.unknown_deletion_warning())
    }

    /// Warning for deletions whose applied spec was lost with the cache.
    fn unknown_deletion_warning(&self) -> Option<String> {
        let recorded = &self.checked.recorded.resources;
        let is_unknown = |key: &ResourceKey| {
            recorded
                .get(key)
                .is_some_and(|record| record.cached.last_good.is_none() && !record.durable.creating)
        };
        let deleted = self.plan.changes().filter(|change| change.verb == Verb::Delete);
        let unknown: Vec<String> = deleted
            .filter(|change| is_unknown(&change.resource))
            .map(|change| change.resource.to_string())
            .collect();
        (!unknown.is_empty()).then(|| {
            format!(
                "the applied spec of {} is lost, because the state was restored from a backup or lost its cache: a \
                 deletion may remove more than this plan shows, including Namespaces and data",
                unknown.join(", ")
            )
        })
    }

    /// The fleet of a cluster, by its spec or else its record.
    pub fn fleet_of(&self, cluster: &ResourceKey) -> Option<FleetKey> {
        self.fleets_of(cluster).next()
    }

    /// The fleets of a cluster by its spec and by its record. They differ only if the spec tries to move the
    /// cluster, which isn't possible.
    fn fleets_of(&self, cluster: &ResourceKey) -> impl Iterator<Item = FleetKey> {
        let ResolvedTree { catalog, recorded, .. } = &*self.checked;
        let by_spec = catalog.resources.get(cluster).and_then(|resource| resource.fleet());
        let by_record = recorded.resources.get(cluster).and_then(|record| record.fleet(cluster));
        by_spec.into_iter().chain(by_record)
    }

    /// The clusters of the tree, and those that still exist.
    pub fn clusters(&self) -> BTreeSet<&ResourceKey> {
        let ResolvedTree { catalog, recorded, .. } = &*self.checked;
        let known = catalog.resources.keys().chain(recorded.resources.keys());
        known.filter(|key| key.kind == Kind::Cluster).collect()
    }

    /// The folder with a fleet's manifests; `None` if its target isn't a folder.
    pub fn folder_of(&self, fleet: &FleetKey) -> Option<Utf8PathBuf> {
        match self.targets.get(fleet)? {
            Target::Directory(directory) => Some(directory.root()),
            Target::Kubernetes(_) => None,
        }
    }

    /// The last judgement of a cluster, and its time.
    pub fn last_known(&self, cluster: &ResourceKey) -> Option<(&ResourceStatus, Timestamp)> {
        self.health_of(cluster)?.memory.clusters.get(cluster)?.last()
    }

    /// The status of a resource, in words for operators.
    pub fn standing(&self, key: &ResourceKey) -> Standing {
        self.standing_for(key, None, Audience::Host)
    }

    pub fn standing_for(
        &self,
        key: &ResourceKey,
        unplanned: Option<UnplannedWrite>,
        audience: Audience,
    ) -> Standing {
        let ResolvedTree { catalog, recorded, .. } = &*self.checked;
        let (plan, index, judged) = (&self.plan, self.index(), self.judged(key));
        StandingInputs { catalog, recorded, plan, index, judged, unplanned, audience }.standing(key)
    }

    /// The address at which clients reach a fleet, as last known: its Gateway's, or that of its only
    /// cluster's load balancer. If each of several clusters has load balancers of its own, there is none.
    pub fn loadbalancer_dns(&self, fleet: &ResourceKey) -> Option<String> {
        let memory = &self.health.get(&fleet.as_fleet()?)?.memory;
        let outside =
            memory.clusters.values().filter_map(|cluster| cluster.outputs().bootstrap.get("external"));
        let outside: Vec<&String> = outside.collect();
        let only = || match outside.as_slice() {
            [address] => Some(address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host)),
            _ => None,
        };
        memory.fleet.gateway().or_else(only).map(str::to_owned)
    }

    /// The resolved cluster, and what was last observed of it; `None` if it was never applied.
    pub fn applied_cluster(&self, key: &ResourceKey) -> Option<(&ResolvedCluster, Option<&Outputs>)> {
        let ResolvedTree { catalog, recorded, .. } = &*self.checked;
        recorded.resources.get(key)?;
        Some((catalog.clusters.get(key)?, self.outputs(key)))
    }

    /// The last observed addresses and certificates of a cluster.
    pub fn outputs(&self, cluster: &ResourceKey) -> Option<&Outputs> {
        Some(self.health_of(cluster)?.memory.clusters.get(cluster)?.outputs())
    }
}
