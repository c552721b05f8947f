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
    /// What can be remembered of the look at the fleet.
    pub(super) quiet: Option<Quiet>,
}

impl FleetPart {
    /// What can be remembered of the look at the fleet; none where it found something to do or to report.
    pub fn quiet(&self) -> Option<&Quiet> {
        self.quiet.as_ref()
    }
}

/// What a look at a fleet gave that found every object as it should be: all that the rest of planning needs of it. It holds
/// as long as what the fleet should hold, what is recorded of it and what it holds stay as they were.
#[derive(Debug, Clone)]
pub struct Quiet {
    /// What was looked at, by hash.
    observed: Digest,
    /// Whose objects are there.
    owners: BTreeSet<ResourceKey>,
}

/// What the objects of a fleet are found to be.
struct Look {
    reach: Reach,
    differences: BTreeMap<ResourceKey, Differences>,
    /// The owners of objects that don't work.
    unhealthy: BTreeSet<ResourceKey>,
}

impl Look {
    fn at(world: &World, site: &Site) -> Self {
        let target = Target::of(site, infra_type(world, site.fleet).unwrap_or(InfraType::Byok));
        let wanted = site.desired.into_iter().flat_map(|manifests| manifests.values());
        let wanted = wanted.filter(|manifest| world.absence(&manifest.owner).is_none());
        let differences = differences(wanted, &target);
        let unhealthy = target.unhealthy().into_iter().cloned().collect();
        Self { reach: target.reach, differences, unhealthy }
    }

    /// Everything is as it should be.
    fn quiet() -> Self {
        Self { reach: Reach::Reached, differences: BTreeMap::new(), unhealthy: BTreeSet::new() }
    }

    fn is_quiet(&self) -> bool {
        self.reach == Reach::Reached && self.differences.is_empty() && self.unhealthy.is_empty()
    }
}

/// Plans one fleet.
pub(super) fn part(world: &World, site: &Site) -> FleetPart {
    let look = Look::at(world, site);
    let (here, observed) = (site.owners(world.catalog), inputs::target(site));
    let owners = known(world, site.fleet, here.iter().copied());
    let is_quiet = look.is_quiet() && here == site.all_owners() && all_are_named(world, &owners);
    let quiet =
        is_quiet.then(|| Quiet { observed: observed.clone(), owners: here.into_iter().cloned().collect() });
    let (plan, problems) = plan(world, site.fleet, look, &owners, Some(site));
    FleetPart { fleet: site.fleet.clone(), plan, problems, observed, owners, quiet }
}

/// Plans one fleet that was found quiet before; none where it has to be looked at again, since a resource that has
/// something there is no longer named.
pub(super) fn quiet_part(world: &World, fleet: &FleetKey, quiet: &Quiet) -> Option<FleetPart> {
    let owners = known(world, fleet, quiet.owners.iter());
    if !all_are_named(world, &owners) {
        return None;
    }
    let (plan, problems) = plan(world, fleet, Look::quiet(), &owners, None);
    let (observed, quiet) = (quiet.observed.clone(), Some(quiet.clone()));
    Some(FleetPart { fleet: fleet.clone(), plan, problems, observed, owners, quiet })
}

/// Everyone with something on the fleet, by specs and records or because it is there.
fn known<'a>(
    world: &World,
    fleet: &FleetKey,
    here: impl Iterator<Item = &'a ResourceKey>,
) -> BTreeSet<ResourceKey> {
    world.owners.get(fleet).into_iter().flatten().copied().cloned().chain(here.cloned()).collect()
}

/// Whether specs name all of these. What happens to the others depends on more of the target than its differences.
fn all_are_named(world: &World, owners: &BTreeSet<ResourceKey>) -> bool {
    let is_named =
        |owner: &ResourceKey| world.catalog.resources.contains_key(owner) && world.absence(owner).is_none();
    owners.iter().all(is_named)
}

/// The plan of a fleet and the problems that refused changes are; no plan for a fleet that is gone.
fn plan(
    world: &World,
    key: &FleetKey,
    look: Look,
    known: &BTreeSet<ResourceKey>,
    site: Option<&Site>,
) -> (Option<FleetPlan>, Vec<Problem>) {
    let Look { reach, mut differences, unhealthy } = look;
    let foreign = foreign(&differences);
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    for owner in owners(known, &differences) {
        let differences = differences.remove(&owner).unwrap_or_default();
        if let Some(absence) = world.absence(&owner) {
            changes.extend(deletion::of(world, &owner, absence, differences, site));
        } else if let Some(resource) = world.catalog.resources.get(&owner) {
            let Some((change, refusals)) = change::of(world, resource, differences) else {
                continue;
            };
            problems.extend(refusals.iter().map(|refused| refusal::problem(world, &change, refused)));
            changes.push(change);
        }
    }
    waiting::for_target(&reach, &mut changes);
    mention_unreachable(world, key, &reach, &mut changes);
    disruption::queue_software(&mut changes);
    let guarded = guard::apply(world, key, &mut changes);
    let void_approvals = if reach == Reach::Reached { guarded.void } else { Vec::new() };
    disruption::one_at_a_time(&mut changes, &unhealthy);
    let resolved = world.catalog.fleets.get(key);
    if resolved.is_none() && changes.is_empty() {
        return (None, problems);
    }
    let gauge = |gauge: fn(&ResolvedFleet) -> Gauge| resolved.map(gauge).unwrap_or_default();
    let plan = FleetPlan {
        fleet: key.clone(),
        infra_type: infra_type(world, key),
        reach,
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
