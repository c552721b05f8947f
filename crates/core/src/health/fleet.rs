//! The health of a fleet: its operator and its clusters.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::{Condition, ResourceStatus, Status};
use crate::component::health::timing::{DEADLINE, DEBOUNCE, OBSERVATION_GAP, first_after};
use crate::component::health::{
    self, AppliedClusters, FleetObservation, HealthMemory, Judgement, OperatorState,
};
use crate::names::{Kind, ResourceKey};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHealth {
    pub status: ResourceStatus,
    pub clusters: BTreeMap<ResourceKey, Judgement>,
    /// The topics and users of clusters, as their operator judges them.
    pub on_clusters: BTreeMap<ResourceKey, ResourceStatus>,
    /// The clusters that no probe has reached since they were changed.
    pub unconfirmed: BTreeSet<ResourceKey>,
}

impl FleetHealth {
    /// Returns the status of the fleet or of something on it; `None` if nothing of it was ever applied.
    pub fn status_of(&self, resource: &ResourceKey) -> Option<&ResourceStatus> {
        match resource.kind {
            Kind::Fleet => Some(&self.status),
            Kind::Cluster => self.clusters.get(resource).map(|judgement| &judgement.status),
            _ => self.on_clusters.get(resource),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetMemories {
    pub fleet: FleetMemory,
    pub clusters: BTreeMap<ResourceKey, HealthMemory>,
}

impl FleetMemories {
    /// When a status may next change by the passing of time alone, if it can.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let clusters = self.clusters.values().filter_map(|memory| memory.due(now));
        let of_fleet = self.fleet.down.into_iter().chain(self.fleet.unserved);
        clusters.chain(first_after(of_fleet, now)).min()
    }
}

/// Judges a fleet and everything on it. May be called after each observed change and every few seconds in
/// between, or once for a command: see [`health::judge`].
pub fn judge_all(
    wanted: &AppliedClusters,
    seen: &FleetObservation,
    before: &FleetMemories,
    now: Timestamp,
) -> (FleetHealth, FleetMemories) {
    let unknown = seen.unobservable.first().map(|hidden| hidden.message.clone());
    let (mut clusters, mut memories) = (BTreeMap::new(), BTreeMap::new());
    for (key, wanted) in wanted {
        let known = before.clusters.get(key).cloned().unwrap_or_default();
        let (judgement, memory) = match seen.clusters.get(key) {
            Some(seen) => health::judge(wanted, seen, &known, now),
            None => (health::judge_unobserved(wanted, unknown.clone(), &known, now), known),
        };
        clusters.insert(key.clone(), judgement);
        memories.insert(key.clone(), memory);
    }
    let statuses: Vec<Status> = clusters.values().map(|judgement| judgement.status.status).collect();
    let (mut status, mut fleet) = judge(&seen.operator, &statuses, &before.fleet, now);
    let is_fine = |_: &&Condition| [Status::Healthy, Status::Pending].contains(&status.status);
    let unserved = unserved(seen, &mut fleet, now);
    let no_room = no_room(&clusters);
    let known = || seen.unobservable.iter().chain(&unserved).chain(&no_room);
    if let Some(bad) = known().find(|condition| condition.degraded).filter(is_fine) {
        (status.status, status.reason) = (Status::Degraded, Some(bad.message.clone()));
    } else if let Some(waits) = no_room.as_ref().filter(is_fine) {
        // A node autoscaler may be adding nodes.
        (status.status, status.reason) = (Status::Updating, Some(waits.message.clone()));
    }
    status.conditions.extend(known().cloned());
    if seen.gateway.is_some() {
        fleet.gateway.clone_from(&seen.gateway);
    }
    (
        FleetHealth { status, clusters, on_clusters: seen.on_clusters.clone(), unconfirmed: BTreeSet::new() },
        FleetMemories { fleet, clusters: memories },
    )
}

/// The fleet has no room for a pod of one of its clusters. Degrades the fleet only if the cluster is degraded
/// by it.
fn no_room(clusters: &BTreeMap<ResourceKey, Judgement>) -> Option<Condition> {
    let in_trouble = |status: Status| [Status::Degraded, Status::Failed].contains(&status);
    let waits = clusters.iter().filter(|(_, it)| it.status.status != Status::Deleting);
    let waits =
        waits.filter_map(|(key, it)| Some((in_trouble(it.status.status), key, it.unschedulable.as_ref()?)));
    let waits: Vec<_> = waits.collect();
    let (degraded, cluster, why) = waits.iter().max_by_key(|(degraded, ..)| degraded)?;
    let more = match waits.len() {
        1 => String::new(),
        count => format!(" (and pods of {} more of its clusters)", count - 1),
    };
    let message = format!("no node accepts a pod of {cluster}: {why}{more}");
    Some(Condition { kind: "PodsUnschedulable".to_owned(), degraded: *degraded, message })
}

/// The Gateway has had no address for longer than any controller needs. If it never had one, the time is
/// counted from its creation.
fn unserved(seen: &FleetObservation, memory: &mut FleetMemory, now: Timestamp) -> Option<Condition> {
    let Some(waits) = &seen.unserved else {
        memory.unserved = None;
        return None;
    };
    let made = waits.made.filter(|_| memory.gateway.is_none());
    let since = *memory.unserved.get_or_insert(made.unwrap_or(now));
    (now.duration_since(since) >= DEADLINE).then(|| waits.condition(since))
}

/// The memory of a fleet for its next judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMemory {
    /// Whether the operator has ever been ready.
    worked: bool,
    /// Since when the operator is down.
    down: Option<Timestamp>,
    /// The last reported status.
    told: Option<ResourceStatus>,
    judged: Option<Timestamp>,
    /// The last known address of its Gateway.
    gateway: Option<String>,
    /// Since when the Gateway has no address.
    unserved: Option<Timestamp>,
}

impl FleetMemory {
    pub fn gateway(&self) -> Option<&str> {
        self.gateway.as_deref()
    }
}

/// Judges a fleet by its operator and the statuses of its clusters. A cluster in trouble is mentioned but
/// doesn't make the fleet Degraded. An operator that is down does, since nothing looks after the fleet's
/// clusters then.
pub fn judge(
    operator: &OperatorState,
    clusters: &[Status],
    before: &FleetMemory,
    now: Timestamp,
) -> (ResourceStatus, FleetMemory) {
    let mut memory = before.clone();
    memory.worked |= matches!(operator, OperatorState::Found { ready: 1.., .. });
    // After a long gap, the present state is reported without a debounce.
    let watched = memory.judged.is_some_and(|judged| now.duration_since(judged) < OBSERVATION_GAP);
    let began = || if watched || !memory.worked { now } else { now.saturating_sub(DEBOUNCE).unwrap_or(now) };
    memory.down = operator.is_down().then(|| memory.down.unwrap_or_else(began));
    let lasted = memory.down.map(|since| now.duration_since(since));
    let (status, reason) = match (operator, lasted) {
        (OperatorState::Unknown, _) => before.told.clone().map_or_else(
            || (Status::Pending, Some("the Strimzi operator has not been observed yet".to_owned())),
            |told| (told.status, told.reason),
        ),
        (_, None) => (Status::Healthy, None),
        (_, Some(lasted)) if !memory.worked && lasted < DEADLINE => {
            (Status::Provisioning, Some(operator.explanation()))
        }
        (_, Some(_)) if !memory.worked => (Status::Failed, Some(operator.explanation())),
        (_, Some(lasted)) if lasted < DEBOUNCE => {
            memory.told.clone().map_or((Status::Healthy, None), |told| (told.status, told.reason))
        }
        _ => (Status::Degraded, Some(operator.explanation())),
    };
    let since = memory.told.as_ref().filter(|told| told.status == status).map_or(now, |told| told.since);
    let told =
        ResourceStatus { status, reason, conditions: in_trouble(clusters).into_iter().collect(), since };
    memory.told = Some(told.clone());
    memory.judged = Some(now);
    (told, memory)
}

fn in_trouble(clusters: &[Status]) -> Option<Condition> {
    let bad = [Status::Degraded, Status::Failed, Status::Unreachable];
    let count = clusters.iter().filter(|status| bad.contains(status)).count();
    (count > 0).then(|| Condition {
        kind: "ClustersInTrouble".to_owned(),
        degraded: false,
        message: format!("{count} of {} clusters are not healthy", clusters.len()),
    })
}
