//! What a round knows of one fleet, cluster or other resource, found without looking at all others.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use jiff::Timestamp;

use super::{Checked, Health, Round};
use crate::catalog::{ResolvedCluster, ResourceStatus};
use crate::health::Outputs;
use crate::interface::{self, Audience, Standing};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::{Change, FleetPlan, Index, Verb};
use crate::target::Target;

impl Round {
    /// What happens to a resource, if anything.
    pub fn change(&self, resource: &ResourceKey) -> Option<&Change> {
        self.index().change(&self.plan, resource)
    }

    /// What happens on a fleet, if it was planned.
    pub fn fleet_plan(&self, fleet: &FleetKey) -> Option<&FleetPlan> {
        self.index().fleet(&self.plan, fleet)
    }

    /// It is made for who asks first.
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.plan))
    }

    /// What is known of how a fleet, or the fleet of a cluster, is.
    fn health_of(&self, key: &ResourceKey) -> Option<&Health> {
        if key.kind == Kind::Fleet {
            return self.health.get(&key.as_fleet()?);
        }
        let knows = |health: &&Health| health.memory.clusters.contains_key(key);
        let mut fleets = self.fleets_of(key);
        fleets.find_map(|fleet| self.health.get(&fleet).filter(knows))
    }

    /// How a fleet or a cluster was found to be; none where it wasn't judged.
    pub fn judged(&self, key: &ResourceKey) -> Option<&ResourceStatus> {
        self.health_of(key)?.judged.as_ref()?.status_of(key)
    }

    /// What a person should know of deletions of which it isn't known what was applied; none where there is none.
    pub fn understated(&self) -> Option<String> {
        let recorded = &self.checked.recorded.resources;
        let is_unknown = |key: &ResourceKey| {
            recorded.get(key).is_some_and(|record| record.last_good.is_none() && !record.creating)
        };
        let deleted = self.plan.changes().filter(|change| change.verb == Verb::Delete);
        let unknown: Vec<String> = deleted
            .filter(|change| is_unknown(&change.resource))
            .map(|change| change.resource.to_string())
            .collect();
        (!unknown.is_empty()).then(|| {
            format!(
                "this state doesn't know what was applied of {}, as one that was restored from a backup or lost its cache: with \
                 a deletion may go more than this plan says, Namespaces and data among it",
                unknown.join(", ")
            )
        })
    }

    /// The fleet that a cluster is on, by its spec or its record.
    pub fn fleet_of(&self, cluster: &ResourceKey) -> Option<FleetKey> {
        self.fleets_of(cluster).next()
    }

    /// The fleet that a cluster is on by its spec, and the one that it is on by its record. They are one, unless the spec of
    /// a cluster that can't be moved names another.
    fn fleets_of(&self, cluster: &ResourceKey) -> impl Iterator<Item = FleetKey> {
        let Checked { catalog, recorded, .. } = &self.checked;
        let by_spec = catalog.resources.get(cluster).and_then(|resource| resource.fleet());
        let by_record = recorded.resources.get(cluster).and_then(|record| record.fleet(cluster));
        by_spec.into_iter().chain(by_record)
    }

    /// The clusters of the tree, and those that are there still.
    pub fn clusters(&self) -> BTreeSet<&ResourceKey> {
        let Checked { catalog, recorded, .. } = &self.checked;
        let known = catalog.resources.keys().chain(recorded.resources.keys());
        known.filter(|key| key.kind == Kind::Cluster).collect()
    }

    /// Where a fleet's manifests are; none where it is no folder.
    pub fn folder_of(&self, fleet: &FleetKey) -> Option<Utf8PathBuf> {
        match self.targets.get(fleet)? {
            Target::Directory(directory) => Some(directory.root()),
            Target::Kubernetes(_) => None,
        }
    }

    /// What was last told of a cluster, and when.
    pub fn last_known(&self, cluster: &ResourceKey) -> Option<(&ResourceStatus, Timestamp)> {
        self.health_of(cluster)?.memory.clusters.get(cluster)?.last()
    }

    /// How a resource stands, for those who run this.
    pub fn standing(&self, key: &ResourceKey) -> Standing {
        self.standing_for(key, Audience::Host)
    }

    /// How a resource stands.
    pub fn standing_for(&self, key: &ResourceKey, audience: Audience) -> Standing {
        let Checked { catalog, recorded, .. } = &self.checked;
        let (plan, judged) = ((&self.plan, self.index()), self.judged(key));
        interface::standing(key, (catalog, recorded), plan, judged, audience)
    }

    /// The address at which a fleet lets clients in, as last known: its Gateway's, or that of the load balancer of its only
    /// cluster. Where each cluster has load balancers of its own, no single address is the fleet's.
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

    /// A cluster as it is rendered, and what it is, as last known; none for one that was never applied.
    pub fn applied_cluster(&self, key: &ResourceKey) -> Option<(&ResolvedCluster, Option<&Outputs>)> {
        let Checked { catalog, recorded, .. } = &self.checked;
        recorded.resources.get(key)?;
        Some((catalog.clusters.get(key)?, self.outputs(key)))
    }

    /// Where a cluster is found and what it is, as last known.
    pub fn outputs(&self, cluster: &ResourceKey) -> Option<&Outputs> {
        Some(self.health_of(cluster)?.memory.clusters.get(cluster)?.outputs())
    }
}
