//! The status of all fleets and clusters.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{Gauge, Status};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::Reach;
use crate::record::{self, Audience, Standing};
use crate::round::Round;
use crate::spec::Spec;

/// The status of all fleets and clusters, by the last plan.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatusList {
    /// The fleets in order, each followed by its clusters.
    pub items: Vec<StatusLine>,
}

/// The status of a fleet or a cluster.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatusLine {
    pub resource: ResourceKey,
    pub status: Status,
    /// Set where the status alone raises a question.
    pub reason: Option<String>,
    /// The time since which it has the status; null if unknown.
    pub since: Option<String>,
    /// A fleet's use of Kafka units; null for a cluster.
    pub kafka_units: Option<Gauge>,
    /// A fleet's number of clusters; null for a cluster.
    pub clusters: Option<Gauge>,
}

/// The fleets and clusters of the tree, and those that still exist, as far as `sees` allows.
pub fn list(round: &Round, audience: Audience, sees: impl Fn(&ResourceKey) -> bool) -> StatusList {
    let catalog = &round.checked.catalog;
    let mut clusters = clusters(round);
    let mut items = Vec::new();
    let planned = round.plan.fleets.iter().map(|plan| &plan.fleet);
    let fleets: BTreeSet<&FleetKey> = catalog.fleets.keys().chain(planned).collect();
    for key in fleets.into_iter().filter(|key| sees(&key.resource())) {
        let (units, of_clusters) =
            catalog.fleets.get(key).map(|fleet| (fleet.kafka_units, fleet.clusters)).unwrap_or_default();
        items.push(line(round, key.resource(), (Some(units), Some(of_clusters)), audience));
        let clusters = clusters.remove(key).unwrap_or_default();
        let unreached = unreached(round, key);
        let clusters = clusters.into_iter().map(|cluster| line(round, cluster, (None, None), audience));
        items.extend(clusters.map(|line| match (&unreached, line.status) {
            (Some(why), Status::Unreachable) => StatusLine { reason: Some(why.clone()), ..line },
            _ => line,
        }));
    }
    StatusList { items }
}

/// The reason for each cluster of an unreachable fleet. The fleet's own line has the details.
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

fn line(
    round: &Round,
    resource: ResourceKey,
    (kafka_units, clusters): (Option<Gauge>, Option<Gauge>),
    audience: Audience,
) -> StatusLine {
    let Standing { status, reason, since, .. } = round.standing_for(&resource, None, audience);
    StatusLine { resource, status, reason, since: since.map(record::timestamp), kafka_units, clusters }
}
