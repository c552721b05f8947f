//! Checks for nodes that accept the pods: in as many zones as a cluster asks for, and reserved for it if it
//! has its own nodes. Nodes may be added on demand, so a new cluster doesn't wait for them. A running cluster
//! would lose the first pod that is restarted.

use std::collections::{BTreeMap, BTreeSet};

use super::context::{PreflightContext, PreflightFinding, listed};
use super::node::NodeConstraints;
use crate::component::labels::{DEDICATED, ZONE};
use crate::component::{self, ObjectRole, PlacementNeeds};
use crate::names::ResourceKey;
use crate::plan::{Change, compare::effects};

fn wanted<'a>(look: &PreflightContext<'a>) -> BTreeMap<&'a ResourceKey, PlacementNeeds> {
    let mut all: BTreeMap<&ResourceKey, PlacementNeeds> = BTreeMap::new();
    for pool in look.desired_as(ObjectRole::Nodes) {
        let wants = (pool.facts().placement)(&pool.body);
        let cluster = all.entry(&pool.owner).or_default();
        cluster.zones = cluster.zones.max(wants.zones);
        cluster.tenant = wants.tenant.or(cluster.tenant.take());
    }
    all
}

/// Whether a change spreads existing pods over more zones than before and than exist. It restarts pods, and
/// the first one could not be scheduled.
fn spreads_further(change: &Change, there: usize) -> bool {
    change.steps.iter().any(|step| {
        let placement = component::facts(&step.object.kind).placement;
        let zones = step.before.as_ref().zip(step.after.as_ref());
        let zones = zones.map(|(before, after)| (placement(before).zones, placement(&after.body).zones));
        zones.is_some_and(|(before, after)| after > before && after > there)
    })
}

pub(super) fn unfit(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some(places) = &look.facts.places else { return Vec::new() };
    let wanted = wanted(look);
    let mut findings = missing_zones(look, places, &wanted);
    findings.extend(reserved_nodes(places, &wanted));
    findings
}

/// Reports clusters whose pods are spread over more zones than exist: some of their pods never start.
fn missing_zones(
    look: &PreflightContext,
    places: &BTreeSet<NodeConstraints>,
    wanted: &BTreeMap<&ResourceKey, PlacementNeeds>,
) -> Vec<PreflightFinding> {
    let mut short: BTreeMap<(usize, BTreeSet<&str>), Vec<&ResourceKey>> = BTreeMap::new();
    for (&cluster, &PlacementNeeds { zones, ref tenant }) in wanted {
        let mut takes = places.iter().filter(|place| place.takes(tenant.as_deref())).peekable();
        // Having no node at all is reported by other checks.
        if takes.peek().is_none() {
            continue;
        }
        let there: BTreeSet<&str> = takes.filter_map(|place| place.zone.as_deref()).collect();
        if there.len() < zones {
            short.entry((zones, there)).or_default().push(cluster);
        }
    }
    let finding = |((zones, there), clusters): ((usize, BTreeSet<&str>), Vec<&ResourceKey>)| {
        let stopped = look
            .changes
            .iter()
            .filter(|change| clusters.contains(&&change.resource) && spreads_further(change, there.len()));
        let clusters: Vec<String> = clusters.iter().map(ToString::to_string).collect();
        let number = effects::count(there.len() as u64, "zone");
        let names: Vec<String> = there.iter().map(|&zone| zone.to_owned()).collect();
        let has = match there.len() {
            0 => format!("are in no zone by the label `{ZONE}`"),
            _ => format!("are in {number}: {}", listed(&names)),
        };
        let verb = if clusters.len() == 1 { "spreads its" } else { "spread their" };
        let why = format!(
            "{} {verb} pods over {zones} zones, and the nodes that accept them {has}; the remaining pods never start",
            listed(&clusters)
        );
        let remedy = format!("add nodes in more zones, with the label `{ZONE}`, or lower `number_of_zones`");
        PreflightFinding::warning("ZonesMissing", why, remedy).stops(stopped.map(|change| &change.resource))
    };
    short.into_iter().map(finding).collect()
}

/// Reports clusters with reserved nodes if there are none, or if other pods may run on them.
fn reserved_nodes(
    places: &BTreeSet<NodeConstraints>,
    wanted: &BTreeMap<&ResourceKey, PlacementNeeds>,
) -> Vec<PreflightFinding> {
    let mut findings = Vec::new();
    for (cluster, PlacementNeeds { tenant, .. }) in wanted {
        let Some(tenant) = tenant else { continue };
        let labelled = || places.iter().filter(|place| place.labelled.as_ref() == Some(tenant));
        let mark = format!("{DEDICATED}={tenant}");
        if !labelled().any(|place| place.takes(Some(tenant))) {
            let why =
                format!("no node that accepts pods is reserved for {cluster}, so none of its pods starts");
            let remedy = format!(
                "reserve nodes for it: `kubectl label node NODE {mark}` and `kubectl taint node NODE {mark}:NoSchedule`"
            );
            findings.push(PreflightFinding::warning("ReservedNodesMissing", why, remedy));
        } else if labelled().any(|place| place.tainted.is_none()) {
            let why =
                format!("other pods may run on nodes that are reserved for {cluster}: they lack the taint");
            let remedy = format!("keep other pods off: `kubectl taint node NODE {mark}:NoSchedule`");
            findings.push(PreflightFinding::warning("ReservedNodesShared", why, remedy));
        }
    }
    findings
}
