//! How every fleet and cluster stands.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::catalog::{Gauge, Status};
use crate::interface::{self, Standing};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::Reach;
use crate::round::Round;
use crate::spec::Spec;

/// How one fleet or cluster stands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// Which.
    pub resource: ResourceKey,
    /// The one word.
    pub status: Status,
    /// Why, where the word alone leaves a question.
    pub reason: Option<String>,
    /// Since when; none where that isn't known.
    pub since: Option<String>,
    /// The Kafka units of a fleet.
    pub kafka_units: Option<Gauge>,
    /// The clusters of a fleet.
    pub clusters: Option<Gauge>,
}

/// Fleets in order, each followed by its clusters: those of the tree, and those that are there still.
pub fn lines(round: &Round) -> Vec<Line> {
    let catalog = &round.checked.catalog;
    let mut clusters = clusters(round);
    let mut lines = Vec::new();
    let planned = round.plan.fleets.iter().map(|plan| &plan.fleet);
    let fleets: BTreeSet<&FleetKey> = catalog.fleets.keys().chain(planned).collect();
    for key in fleets {
        let (units, of_clusters) =
            catalog.fleets.get(key).map(|fleet| (fleet.kafka_units, fleet.clusters)).unwrap_or_default();
        lines.push(line(round, key.resource(), Some(units), Some(of_clusters)));
        let clusters = clusters.remove(key).unwrap_or_default();
        let unreached = unreached(round, key);
        let clusters = clusters.into_iter().map(|cluster| line(round, cluster, None, None));
        lines.extend(clusters.map(|line| match (&unreached, line.status) {
            (Some(why), Status::Unreachable) => Line { reason: Some(why.clone()), ..line },
            _ => line,
        }));
    }
    lines
}

/// What is said of each cluster of a fleet that can't be reached, for which the fleet's own line says why.
fn unreached(round: &Round, fleet: &FleetKey) -> Option<String> {
    let plan = round.fleet_plan(fleet)?;
    matches!(plan.reach, Reach::Unreachable { .. }).then(|| format!("fleet {fleet} can't be reached"))
}

fn clusters(round: &Round) -> BTreeMap<FleetKey, BTreeSet<ResourceKey>> {
    let mut clusters: BTreeMap<FleetKey, BTreeSet<ResourceKey>> = BTreeMap::new();
    for resource in round.checked.catalog.resources.values() {
        if let Spec::Cluster(cluster) = &resource.spec {
            let fleet = FleetKey {
                organization: cluster.organization.clone(),
                fleet: cluster.infrastructure.clone(),
            };
            clusters.entry(fleet).or_default().insert(resource.key.clone());
        }
    }
    for plan in &round.plan.fleets {
        let changed = plan.changes.iter().map(|change| &change.resource);
        let changed = changed.filter(|resource| resource.kind == Kind::Cluster).cloned();
        clusters.entry(plan.fleet.clone()).or_default().extend(changed);
    }
    clusters
}

fn line(round: &Round, resource: ResourceKey, kafka_units: Option<Gauge>, clusters: Option<Gauge>) -> Line {
    let Standing { status, reason, since, .. } = round.standing(&resource);
    Line { resource, status, reason, since: since.map(interface::timestamp), kafka_units, clusters }
}
