//! The status of all fleets and clusters.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{Gauge, Resource, Status};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::Reach;
use crate::record::{self, Standing};
use crate::round::Round;
use crate::spec::Spec;

/// The status of all fleets and clusters, by the last plan and the writes since.
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

/// The fleets and clusters of the tree, those that still exist, and those that were `written` since the plan,
/// as far as `sees` allows.
pub fn list(
    round: &Round,
    written: &[&Resource],
    standing: impl Fn(&ResourceKey) -> Standing,
    sees: impl Fn(&ResourceKey) -> bool,
) -> StatusList {
    let mut clusters = clusters(round, written);
    let mut items = Vec::new();
    for (key, (units, of_clusters)) in fleets(round, written) {
        let fleet = key.resource();
        if !sees(&fleet) {
            continue;
        }
        items.push(line(fleet, (Some(units), Some(of_clusters)), &standing));
        let clusters = clusters.remove(&key).unwrap_or_default();
        let unreached = unreached(round, &key);
        let clusters = clusters.into_iter().map(|cluster| line(cluster, (None, None), &standing));
        items.extend(clusters.map(|line| match (&unreached, line.status) {
            (Some(why), Status::Unreachable) => StatusLine { reason: Some(why.clone()), ..line },
            _ => line,
        }));
    }
    StatusList { items }
}

/// The fleets, with their use of Kafka units and number of clusters.
fn fleets(round: &Round, written: &[&Resource]) -> BTreeMap<FleetKey, (Gauge, Gauge)> {
    let gauges = |resource: &Resource| match &resource.spec {
        Spec::Fleet(fleet) => {
            let unused = |limit: u32| Gauge { limit: Some(limit), ..Gauge::default() };
            Some((resource.fleet()?, (unused(fleet.max_kafka_units), unused(fleet.max_tenants))))
        }
        _ => None,
    };
    let mut fleets: BTreeMap<_, _> = written.iter().filter_map(|resource| gauges(resource)).collect();
    fleets.extend(round.plan.fleets.iter().map(|plan| (plan.fleet.clone(), Default::default())));
    let known = round.checked.catalog.fleets.iter();
    fleets.extend(known.map(|(key, fleet)| (key.clone(), (fleet.kafka_units, fleet.clusters))));
    fleets
}

/// The reason for each cluster of an unreachable fleet. The fleet's own line has the details.
fn unreached(round: &Round, fleet: &FleetKey) -> Option<String> {
    let plan = round.fleet_plan(fleet)?;
    matches!(plan.reach, Reach::Unreachable { .. }).then(|| format!("fleet {fleet} can't be reached"))
}

fn clusters(round: &Round, written: &[&Resource]) -> BTreeMap<FleetKey, BTreeSet<ResourceKey>> {
    let mut clusters: BTreeMap<FleetKey, BTreeSet<ResourceKey>> = BTreeMap::new();
    for resource in round.checked.catalog.resources.values().chain(written.iter().copied()) {
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
    resource: ResourceKey,
    (kafka_units, clusters): (Option<Gauge>, Option<Gauge>),
    standing: impl Fn(&ResourceKey) -> Standing,
) -> StatusLine {
    let Standing { status, reason, since, .. } = standing(&resource);
    StatusLine { resource, status, reason, since: since.map(record::timestamp), kafka_units, clusters }
}
