//! Rolls a base domain's new certificate out to one cluster after another.
//!
//! A certificate that clients don't trust is wrong on every fleet alike. So the first cluster that gets it
//! shows whether it works, and the fleets of a domain are not independent in this. An unreachable fleet holds
//! up no others: the health of its clusters is unknown, and the certificates of the others would expire
//! meanwhile. Nor does a cluster whose trouble isn't from the certificate: its trouble is older, or it was
//! Healthy with the certificate before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::effect::{NOT_HEALTHY, disrupts};
use crate::catalog::{Catalog, ResolvedCluster, Status};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::compare::verdict::keeps_certificate;
use crate::plan::guard::approval;
use crate::plan::model::part::FleetPart;
use crate::plan::world::PlanContext;
use crate::plan::{Change, FleetPlan, OrganizationPlan, Reach, Verb, Waiting, compare::effects};
use crate::render::{SecretEncoding, SecretSlot};

/// The clusters that are ready to take a domain's new certificate.
#[derive(Default)]
struct RenewalCandidates {
    /// Degraded clusters. They can only improve, so they come first.
    degraded: Vec<ResourceKey>,
    others: Vec<ResourceKey>,
}

/// Lets one cluster of a base domain take its new certificate, and the next one when the first is Healthy.
/// Degraded clusters come first, since they can only improve. While the certificate may be the cause of a
/// cluster's trouble, no other cluster gets it.
///
/// The cause of a cluster's trouble may be forgotten, for example with the state. Then another cluster that
/// is Healthy with the certificate proves that it works, or a person approves the next one.
pub(in crate::plan) fn serialize_renewals(world: &PlanContext, parts: &mut [FleetPart]) {
    for (domain, RenewalCandidates { degraded, others }) in turns(parts) {
        let RenewedClusters { holds, unconfirmed, doubtful, passed_over } =
            renewing(world.catalog, parts, &domain);
        let (next, wait) = match (holds, being_changed(world.catalog, parts, &domain), unconfirmed) {
            (Some(holder), ..) => (None, Waiting::Renewal { after: holder, domain: domain.clone() }),
            (None, Some(changing), _) => (None, Waiting::OneDisruption { after: changing }),
            (None, None, Some(cluster)) => (None, Waiting::Unconfirmed { cluster }),
            (None, None, None) => {
                let Some(next) = degraded.first().or(others.first()) else { continue };
                (Some(next), Waiting::OneDisruption { after: next.clone() })
            }
        };
        for change in parts.iter_mut().filter_map(|it| it.plan.as_mut()).flat_map(|it| &mut it.changes) {
            if Some(&change.resource) == next {
                change.effects.extend(passed_over.iter().map(|key| {
                    format!("it doesn't wait for {key}, whose trouble isn't caused by the new certificate")
                }));
            } else if degraded.contains(&change.resource) || others.contains(&change.resource) {
                change.waiting.push(wait.clone());
            }
        }
        if let (Some(next), Some(doubtful)) = (next, doubtful) {
            let why = format!(
                "{doubtful} has the new certificate and isn't Healthy, and whether the certificate is the cause is \
                 unknown: once another cluster is Healthy with it, the others continue by themselves"
            );
            let hold = Waiting::Renewal { after: doubtful, domain };
            parts.iter_mut().for_each(|part| approval::require_approval(world, part, next, &why, &hold));
        }
    }
}

fn turns(parts: &[FleetPart]) -> BTreeMap<ResourceKey, RenewalCandidates> {
    let mut turns: BTreeMap<ResourceKey, RenewalCandidates> = BTreeMap::new();
    for plan in plans(parts) {
        for (change, domain) in plan.changes.iter().filter_map(renewed).filter(|(it, _)| disrupts(it)) {
            let turns = turns.entry(domain).or_default();
            match plan.unwell.get(&change.resource).map(|it| it.status) {
                // The cluster has never worked, so there is nothing to disrupt.
                Some(Status::Failed) => {}
                Some(Status::Degraded) => turns.degraded.push(change.resource.clone()),
                _ => turns.others.push(change.resource.clone()),
            }
        }
    }
    turns
}

/// The clusters that already have the certificate and aren't known to work with it.
#[derive(Default)]
struct RenewedClusters {
    /// A cluster whose trouble the certificate may have caused.
    holds: Option<ResourceKey>,
    /// A cluster that is Healthy, and that no probe has reached since it was changed.
    unconfirmed: Option<ResourceKey>,
    /// A cluster whose trouble has an unknown cause, if no cluster with the certificate is Healthy.
    doubtful: Option<ResourceKey>,
    /// Clusters whose trouble has another cause.
    passed_over: Vec<ResourceKey>,
}

fn renewing(catalog: &Catalog, parts: &[FleetPart], domain: &ResourceKey) -> RenewedClusters {
    let uses = |key: &ResourceKey| {
        let used = catalog.clusters.get(key).and_then(|cluster| cluster.domain.as_ref());
        used.is_some_and(|used| used.key == *domain)
    };
    let (mut renewing, mut doubtful, mut works) = (RenewedClusters::default(), Vec::new(), false);
    for part in parts {
        let Some(plan) = part.plan.as_ref().filter(|plan| plan.reach == Reach::Reached) else { continue };
        let pending: BTreeSet<_> =
            plan.changes.iter().filter_map(renewed).map(|(it, _)| &it.resource).collect();
        let has = |key: &ResourceKey| uses(key) && !pending.contains(key);
        works |= part.troubles.healthy.iter().any(has);
        let unconfirmed = part.troubles.unconfirmed.iter().find(|key| has(key));
        renewing.unconfirmed = renewing.unconfirmed.or_else(|| unconfirmed.cloned());
        let unwell = plan.unwell.iter().filter(|(_, status)| NOT_HEALTHY.contains(&status.status));
        for key in unwell.map(|(key, _)| key).filter(|key| has(key)) {
            if part.troubles.other_cause.contains(key) {
                renewing.passed_over.push(key.clone());
            } else if part.troubles.unknown_cause.contains(key) {
                doubtful.push(key.clone());
            } else {
                renewing.holds.get_or_insert_with(|| key.clone());
            }
        }
    }
    match works {
        true => renewing.passed_over.extend(doubtful),
        false => renewing.doubtful = doubtful.into_iter().next(),
    }
    renewing
}

pub(in crate::plan::guard) fn is_renewal(change: &Change) -> bool {
    renewed(change).is_some()
}

/// Returns a cluster on a fleet that is being changed, since it may be getting the certificate right now.
fn being_changed(catalog: &Catalog, parts: &[FleetPart], domain: &ResourceKey) -> Option<ResourceKey> {
    let fleets = plans(parts).filter(|plan| matches!(plan.reach, Reach::UnderWay { .. }));
    let fleets: BTreeSet<&FleetKey> = fleets.map(|plan| &plan.fleet).collect();
    let uses = |cluster: &&Arc<ResolvedCluster>| {
        fleets.contains(&cluster.fleet) && cluster.domain.as_ref().is_some_and(|used| used.key == *domain)
    };
    let mut using = catalog.clusters.values().filter(uses);
    using.next().map(|cluster| cluster.key.clone())
}

fn plans(parts: &[FleetPart]) -> impl Iterator<Item = &FleetPlan> {
    parts.iter().filter_map(|part| part.plan.as_ref())
}

/// Returns a change with the base domain whose new certificate it gives to its cluster. A change of only the
/// chain above the certificate, or of how its key is written, restarts no broker and doesn't count.
fn renewed(change: &Change) -> Option<(&Change, ResourceKey)> {
    let secrets =
        change.steps.iter().filter(|step| step.verb == Verb::Update && step.object.kind == "Secret");
    let secrets = secrets.filter(|step| !keeps_certificate(step));
    let mut slots =
        secrets.filter_map(|step| step.after.as_ref()).flat_map(|it| SecretSlot::all_in(&it.body));
    // What else is made of the domain's key is no certificate of brokers.
    let is_key = |slot: &SecretSlot| slot.encoding == SecretEncoding::Pkcs8;
    let domain = slots.find(|slot| is_key(slot) && slot.reference.resource.kind == Kind::BaseDomain)?;
    let domain = domain.reference.resource;
    Some((change, domain))
}

#[derive(Default)]
struct RenewalCounts {
    /// Clusters whose health is observed, so that the next one can wait for it.
    seen: u64,
    /// Clusters on directory fleets, whose health is unknown.
    unseen: u64,
}

/// Adds to each base domain's change how many clusters take its certificate, and to each cluster on a
/// directory fleet that its health isn't observed.
pub(in crate::plan) fn announce_renewals(organizations: &mut [OrganizationPlan], fleets: &mut [FleetPlan]) {
    let mut domains: BTreeMap<ResourceKey, RenewalCounts> = BTreeMap::new();
    for plan in &*fleets {
        let is_seen = plan.observes() != Some(false);
        for (_, domain) in plan.changes.iter().filter_map(renewed) {
            let takers = domains.entry(domain).or_default();
            *(if is_seen { &mut takers.seen } else { &mut takers.unseen }) += 1;
        }
    }
    for change in organizations.iter_mut().flat_map(|plan| &mut plan.changes) {
        let Some(takers) = domains.get(&change.resource) else { continue };
        // With a single cluster, its change already says so.
        if takers.seen + takers.unseen > 1 {
            change.effects.extend(takers.sentences());
        }
    }
    let unseen = |plan: &&mut FleetPlan| plan.observes() == Some(false);
    for change in fleets.iter_mut().filter(unseen).flat_map(|plan| &mut plan.changes) {
        let others = renewed(change).and_then(|(_, domain)| domains.get(&domain));
        if others.is_some_and(|others| others.seen + others.unseen > 1) {
            change.effects.push(UNSEEN.to_owned());
        }
    }
}

/// Applies to every cluster on a directory fleet, whatever it waited for before it was written.
const UNSEEN: &str = "the tool that applies the files decides when brokers restart, and streamfleet can't see whether \
    they are healthy: the next cluster doesn't wait for this one";

impl RenewalCounts {
    fn sentences(&self) -> impl Iterator<Item = String> {
        let Self { seen, unseen } = *self;
        let in_turn = match seen {
            0 => None,
            1 => Some("1 cluster restarts its brokers with the new certificate".to_owned()),
            _ => Some(format!(
                "{seen} clusters restart their brokers with the new certificate, one cluster after another, each when \
                    the one before is Healthy"
            )),
        };
        let at_once = (unseen > 0).then(|| {
            let clusters = effects::count(unseen, "cluster");
            format!(
                "{clusters} on directory fleets may restart at the same time: each apply writes one, and streamfleet \
                 doesn't wait for the tool that applies the files"
            )
        });
        in_turn.into_iter().chain(at_once)
    }
}
