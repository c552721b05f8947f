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
    pub counts: StatusCounts,
    /// The fleets in order, each followed by its clusters.
    pub items: Vec<StatusLine>,
}

/// How many fleets and clusters there are.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub struct StatusCounts {
    pub fleets: usize,
    pub clusters: usize,
    /// The fleets and clusters that are Healthy.
    pub healthy: usize,
    /// The fleets and clusters that a person should look at.
    pub unwell: usize,
}

/// How many fleets and clusters that aren't well are told of at a time.
const MOST_UNWELL: usize = 50;

impl StatusList {
    fn of(items: Vec<StatusLine>) -> StatusList {
        let count = |is_it: &dyn Fn(&StatusLine) -> bool| items.iter().filter(|line| is_it(line)).count();
        let fleets = count(&|line| line.kafka_units.is_some());
        let counts = StatusCounts {
            fleets,
            clusters: items.len() - fleets,
            healthy: count(&|line| line.status == Status::Healthy),
            unwell: count(&StatusLine::is_unwell),
        };
        StatusList { counts, items }
    }

    /// Leaves out what is well, and all but the first of the rest.
    #[must_use]
    pub fn first_unwell(mut self) -> StatusList {
        self.items.retain(StatusLine::is_unwell);
        self.items.truncate(MOST_UNWELL);
        self
    }
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

impl StatusLine {
    /// Whether a person should look at it: it isn't well, or there is a reason to tell. Of a folder nothing is known but
    /// that it was written.
    fn is_unwell(&self) -> bool {
        match self.status {
            Status::Healthy => self.reason.is_some(),
            Status::Written => self.reason.as_deref().is_some_and(|reason| reason != record::WRITTEN),
            _ => true,
        }
    }
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
    StatusList::of(items)
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
    for resource in round.checked.catalog.resources.values().map(|it| &**it).chain(written.iter().copied()) {
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
