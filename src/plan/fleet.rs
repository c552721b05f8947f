//! What happens on one fleet.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Gauge, ResolvedFleet};
use crate::names::{Digest, FleetKey, ResourceKey};
use crate::plan::diff::{Differences, Target, differences};
use crate::plan::site::Site;
use crate::plan::world::{World, recorded_spec};
use crate::plan::{
    Change, FleetPlan, Reach, Waiting, change, deletion, disruption, guard, inputs, refusal, waiting,
};
use crate::problem::Problem;
use crate::spec::{InfraType, Spec};

/// What planning one fleet gives.
#[derive(Debug)]
pub struct FleetPart {
    pub(super) fleet: FleetKey,
    /// None for a fleet that is gone.
    pub(super) plan: Option<FleetPlan>,
    /// What refused changes are.
    pub(super) problems: Vec<Problem>,
    /// What of the target was looked at, by hash.
    pub(super) observed: Digest,
    /// Whose changes are, or would be, here.
    pub(super) owners: BTreeSet<ResourceKey>,
}

/// Plans one fleet.
pub(super) fn part(world: &World, site: &Site) -> FleetPart {
    let here = site.owners(world.catalog);
    let owners = world.owners.get(site.fleet).into_iter().flatten().copied().chain(here).cloned().collect();
    let (plan, problems) = plan(world, site, &owners);
    FleetPart { fleet: site.fleet.clone(), plan, problems, observed: inputs::target(site), owners }
}

/// The plan of a fleet and the problems that refused changes are; no plan for a fleet that is gone.
fn plan(world: &World, site: &Site, known: &BTreeSet<ResourceKey>) -> (Option<FleetPlan>, Vec<Problem>) {
    let key = site.fleet;
    let infra_type = infra_type(world, key);
    // One that nothing is known of is taken for a Kubernetes cluster, the kind that can't be looked at by accident.
    let target = Target::of(site, infra_type.unwrap_or(InfraType::Byok));
    let wanted = site.desired.into_iter().flat_map(|manifests| manifests.values());
    let wanted = wanted.filter(|manifest| world.absence(&manifest.owner).is_none());
    let mut differences = differences(wanted, &target);
    let foreign = foreign(&differences);
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    for owner in owners(known, &differences) {
        let differences = differences.remove(&owner).unwrap_or_default();
        if let Some(absence) = world.absence(&owner) {
            changes.extend(deletion::of(world, &owner, absence, differences, Some(site)));
        } else if let Some(resource) = world.catalog.resources.get(&owner) {
            let Some((change, refusals)) = change::of(world, resource, differences) else {
                continue;
            };
            problems.extend(refusals.iter().map(|refused| refusal::problem(world, &change, refused)));
            changes.push(change);
        }
    }
    waiting::for_target(&target.reach, &mut changes);
    mention_unreachable(world, key, &target.reach, &mut changes);
    disruption::queue_software(&mut changes);
    let guarded = guard::apply(world, key, &mut changes);
    let void_approvals = if target.reach == Reach::Reached { guarded.void } else { Vec::new() };
    disruption::one_at_a_time(&mut changes, &target.unhealthy());
    let resolved = world.catalog.fleets.get(key);
    if resolved.is_none() && changes.is_empty() {
        return (None, problems);
    }
    let gauge = |gauge: fn(&ResolvedFleet) -> Gauge| resolved.map(gauge).unwrap_or_default();
    let plan = FleetPlan {
        fleet: key.clone(),
        infra_type,
        reach: target.reach,
        clusters: gauge(|fleet| fleet.clusters),
        kafka_units: gauge(|fleet| fleet.kafka_units),
        conditions: resolved.map(|fleet| fleet.conditions.clone()).unwrap_or_default(),
        changes,
        guard: guarded.guard,
        void_approvals,
        foreign,
    };
    (Some(plan), problems)
}

/// Says of a fleet that can't be reached that it can't, where no change says so: that it is as it should be is not known.
fn mention_unreachable(world: &World, key: &FleetKey, reach: &Reach, changes: &mut Vec<Change>) {
    let Reach::Unreachable { reason, .. } = reach else { return };
    let says_so = |change: &Change| change.waiting.iter().any(|it| matches!(it, Waiting::Unreachable { .. }));
    let resource = key.resource();
    let is_known = world.recorded(&resource).is_some() || world.catalog.resources.contains_key(&resource);
    if changes.iter().any(says_so) || !is_known {
        return;
    }
    let waiting = Waiting::Unreachable { reason: reason.clone() };
    if let Some(change) = changes.iter_mut().find(|change| change.resource == resource) {
        return change.waiting.push(waiting);
    }
    let named = world.catalog.resources.get(&resource).map(|named| named.origin.clone());
    let last_good = || world.recorded(&resource)?.last_good.as_ref().map(|good| good.origin.clone());
    let record = world.recorded(&resource).cloned();
    let mention = change::mention(&resource, named.or_else(last_good));
    changes.insert(0, Change { waiting: vec![waiting], record, ..mention });
}

/// Everyone with something on the fleet: the fleet itself, then its clusters by name. Whoever is neither wanted nor
/// known to be gone is left alone.
fn owners(
    known: &BTreeSet<ResourceKey>,
    differences: &BTreeMap<ResourceKey, Differences>,
) -> BTreeSet<ResourceKey> {
    known.iter().chain(differences.keys()).cloned().collect()
}

fn foreign(differences: &BTreeMap<ResourceKey, Differences>) -> Vec<crate::names::ObjectKey> {
    let objects: BTreeSet<_> = differences.values().flat_map(|differences| &differences.foreign).collect();
    objects.into_iter().cloned().collect()
}

/// What kind of target a fleet is, or was.
fn infra_type(world: &World, key: &FleetKey) -> Option<InfraType> {
    let resource = key.resource();
    let resolved = world.catalog.fleets.get(key).map(|fleet| fleet.spec.infra_type);
    let recorded = || world.recorded(&resource);
    let applied = || match recorded_spec(recorded()?, resource.kind)? {
        Spec::Fleet(fleet) => Some(fleet.infra_type),
        _ => None,
    };
    let immutable = || serde_json::from_value(recorded()?.immutable.get("/infra_type")?.clone()).ok();
    resolved.or_else(applied).or_else(immutable)
}
