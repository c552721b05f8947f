//! A base domain's new certificate, taken to one cluster after another.
//!
//! A certificate that clients don't trust is wrong on every fleet alike, so the first cluster that has it shows whether it
//! works, and the fleets of a domain are no longer independent in this. A fleet that can't be reached holds up nobody: how
//! its clusters are isn't known, and the others' certificates would expire meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use super::{NOT_HEALTHY, disrupts};
use crate::catalog::{Catalog, ResolvedCluster, Status};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::fleet::FleetPart;
use crate::plan::{Change, FleetPlan, OrganizationPlan, Reach, Verb, Waiting};
use crate::render::SecretSlot;

/// The clusters that take a domain's certificate now, were it not for the others.
#[derive(Default)]
struct Turns {
    /// Those that don't work as they should. They can only get better, so nothing holds them up.
    disturbed: Vec<ResourceKey>,
    /// All others.
    well: Vec<ResourceKey>,
}

/// Lets one cluster of a base domain take its new certificate, and the next one when that is Healthy.
pub(in crate::plan) fn one_after_another(catalog: &Catalog, parts: &mut [FleetPart]) {
    let mut turns: BTreeMap<ResourceKey, Turns> = BTreeMap::new();
    for plan in plans(parts) {
        for (change, domain) in plan.changes.iter().filter_map(renewed).filter(|(it, _)| disrupts(it)) {
            let turns = turns.entry(domain).or_default();
            match plan.unwell.get(&change.resource).map(|it| it.status) {
                // It has never worked, so there is nothing to disrupt.
                Some(Status::Failed) => {}
                Some(status) if NOT_HEALTHY.contains(&status) => {
                    turns.disturbed.push(change.resource.clone())
                }
                _ => turns.well.push(change.resource.clone()),
            }
        }
    }
    for (domain, Turns { disturbed, well }) in turns {
        let first = renewing(catalog, parts, &domain).or_else(|| being_changed(catalog, parts, &domain));
        let first = first.or_else(|| disturbed.into_iter().next());
        let Some(first) = first.or_else(|| well.first().cloned()) else { continue };
        let waits = |change: &&mut Change| change.resource != first && well.contains(&change.resource);
        let changes =
            parts.iter_mut().filter_map(|part| part.plan.as_mut()).flat_map(|plan| &mut plan.changes);
        changes.filter(waits).for_each(|change| {
            change.waiting.push(Waiting::OneDisruption { after: first.clone() });
        });
    }
}

/// A cluster that has the certificate already and isn't Healthy with it.
fn renewing(catalog: &Catalog, parts: &[FleetPart], domain: &ResourceKey) -> Option<ResourceKey> {
    let uses = |key: &ResourceKey| {
        let used = catalog.clusters.get(key).and_then(|cluster| cluster.domain.as_ref());
        used.is_some_and(|used| used.key == *domain)
    };
    plans(parts).filter(|plan| plan.reach == Reach::Reached).find_map(|plan| {
        let pending: BTreeSet<_> =
            plan.changes.iter().filter_map(renewed).map(|(it, _)| &it.resource).collect();
        let unwell = plan.unwell.iter().filter(|(_, status)| NOT_HEALTHY.contains(&status.status));
        let mut unwell = unwell.map(|(key, _)| key).filter(|key| uses(key) && !pending.contains(key));
        unwell.next().cloned()
    })
}

/// A cluster on a fleet that is being changed just now: nobody knows whether it is getting the certificate.
fn being_changed(catalog: &Catalog, parts: &[FleetPart], domain: &ResourceKey) -> Option<ResourceKey> {
    let fleets = plans(parts).filter(|plan| matches!(plan.reach, Reach::UnderWay { .. }));
    let fleets: BTreeSet<&FleetKey> = fleets.map(|plan| &plan.fleet).collect();
    let uses = |cluster: &&ResolvedCluster| {
        fleets.contains(&cluster.fleet) && cluster.domain.as_ref().is_some_and(|used| used.key == *domain)
    };
    let mut using = catalog.clusters.values().filter(uses);
    using.next().map(|cluster| cluster.key.clone())
}

fn plans(parts: &[FleetPart]) -> impl Iterator<Item = &FleetPlan> {
    parts.iter().filter_map(|part| part.plan.as_ref())
}

/// A change that gives a cluster another certificate of a base domain, with the domain.
fn renewed(change: &Change) -> Option<(&Change, ResourceKey)> {
    let secrets =
        change.steps.iter().filter(|step| step.verb == Verb::Update && step.object.kind == "Secret");
    let mut slots =
        secrets.filter_map(|step| step.after.as_ref()).flat_map(|it| SecretSlot::all_in(&it.body));
    let domain = slots.find(|slot| slot.reference.resource.kind == Kind::BaseDomain)?.reference.resource;
    Some((change, domain))
}

/// Says of each base domain that changes how many clusters take its certificate, and how.
pub(in crate::plan) fn tell(organizations: &mut [OrganizationPlan], fleets: &[FleetPlan]) {
    let mut clusters: BTreeMap<ResourceKey, u64> = BTreeMap::new();
    for (_, domain) in fleets.iter().flat_map(|plan| &plan.changes).filter_map(renewed) {
        *clusters.entry(domain).or_default() += 1;
    }
    for change in organizations.iter_mut().flat_map(|plan| &mut plan.changes) {
        // Of a single one its own change says all.
        if let Some(number @ 2..) = clusters.get(&change.resource) {
            change.effects.push(format!(
                "{number} clusters restart their brokers with the new certificate, one cluster after another, each when the \
                 one before is Healthy"
            ));
        }
    }
}
