use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::{CLUSTER_UID, Condition, Gauge, ResolvedFleet, ResourceStatus, Status};
use crate::component::dns_records;
use crate::config::Mode;
use crate::health::FleetHealth;
use crate::names::{Digest, FleetKey, Kind, ObjectKey, ResourceKey};
use crate::plan::compare::diff::{Differences, TargetContents, differences};
use crate::plan::compare::upgrade::Upgrades;
use crate::plan::memory::{Settled, SettledFleet};
use crate::plan::model::part::{FleetPart, Repair, UnchangedFleet};
use crate::plan::model::record_state::{self, RecordCounts};
use crate::plan::model::site::FleetInputs;
use crate::plan::model::troubles::TroubleCauses;
use crate::plan::preflight::{self, FleetSupport, PreflightFacts};
use crate::plan::repair;
use crate::plan::world::PlanContext;
use crate::plan::{
    Change, DryRuns, FleetPlan, Reach, Verb, Waiting, change, deletion, guard::approval, guard::disruption,
    guard::in_use, guard::maintenance, guard::pause, guard::refusal, guard::waiting,
    guard::withdrawn_secrets, inputs, size,
};
use crate::problem::Problem;

/// The inputs of one fleet, with an index of what its target contains. It serves all comparisons with the target.
pub struct IndexedFleet<'a> {
    world: &'a PlanContext<'a>,
    site: FleetInputs<'a>,
    target: TargetContents<'a>,
    /// The digest of what was observed.
    observed: Digest,
}

/// A fleet's desired objects compared with those on its target. Plans with and without the answers to dry runs are made
/// from the same comparison.
pub struct ComparedFleet<'a> {
    indexed: &'a IndexedFleet<'a>,
    facts: Option<&'a PreflightFacts>,
    upgrades: Upgrades,
    comparison: FleetComparison,
}

#[derive(Clone)]
struct FleetComparison {
    reach: Reach,
    differences: BTreeMap<ResourceKey, Differences>,
    status: Option<ResourceStatus>,
    /// The status of its clusters that aren't Healthy.
    unwell: BTreeMap<ResourceKey, ResourceStatus>,
    troubles: TroubleCauses,
}

impl FleetComparison {
    fn of(indexed: &IndexedFleet, site: &FleetInputs, facts: Option<&PreflightFacts>) -> Self {
        let IndexedFleet { world, target, .. } = indexed;
        let wanted = site.desired.into_iter().flat_map(|manifests| manifests.values());
        let wanted = wanted.filter(|manifest| world.absence(&manifest.owner).is_none());
        let adopts =
            |owner: &ResourceKey| world.catalog.resources.get(owner).is_some_and(|it| it.spec.adopts());
        let mut differences = differences(wanted, target, adopts);
        retain_permanent_objects(world, &mut differences);
        retain_undecided_records(world, site, &target.reach, &mut differences);
        if let Some(facts) = facts {
            preflight::leave_out(world, site, facts, &mut differences);
        }
        let health = site.observed.and_then(|observed| observed.health.as_ref());
        let (status, unwell, troubles) = split(health);
        Self { reach: target.reach.clone(), differences, status, unwell, troubles }
    }

    fn quiet(health: Option<&FleetHealth>) -> Self {
        let (status, unwell, troubles) = split(health);
        Self { reach: Reach::Reached, differences: BTreeMap::new(), status, unwell, troubles }
    }

    fn differs(&self, resource: &ResourceKey) -> bool {
        self.differences.get(resource).is_some_and(|differences| !differences.found.is_empty())
    }

    fn records(&self, site: &FleetInputs) -> RecordCounts {
        let found = self.differences.values().flat_map(|differences| &differences.found);
        record_state::count(site, &self.reach, found.map(|it| &it.step.object))
    }

    fn is_quiet(&self) -> bool {
        self.reach == Reach::Reached && self.differences.is_empty()
    }
}

/// Drops what would be done to DNS records of present resources without knowing enough. A cluster that goes takes
/// along its records in any case.
fn retain_undecided_records(
    world: &PlanContext,
    site: &FleetInputs,
    reach: &Reach,
    differences: &mut BTreeMap<ResourceKey, Differences>,
) {
    let undecided = site.observed.map(|observed| &observed.undecided);
    let is_undecided = |object: &ObjectKey| {
        let is_said = undecided.is_some_and(|undecided| undecided.contains(object));
        dns_records::is_record(object) && (*reach != Reach::Reached || is_said)
    };
    for (_, differences) in differences.iter_mut().filter(|(owner, _)| world.absence(owner).is_none()) {
        differences.found.retain(|it| !is_undecided(&it.step.object));
    }
    differences.retain(|_, differences| !differences.is_empty());
}

/// Drops the deletions of objects that stay as long as their resource: definitions, whose deletion would
/// delete every Kafka on the Kubernetes cluster, and the namespaces of a fleet's operator and Gateway.
fn retain_permanent_objects(world: &PlanContext, differences: &mut BTreeMap<ResourceKey, Differences>) {
    for (owner, differences) in differences.iter_mut().filter(|(owner, _)| world.absence(owner).is_none()) {
        let stays = |kind: &str| match kind {
            "CustomResourceDefinition" => true,
            "Namespace" => owner.kind == Kind::Fleet,
            _ => false,
        };
        differences.found.retain(|it| it.step.verb != Verb::Delete || !stays(&it.step.object.kind));
    }
    differences.retain(|_, differences| !differences.is_empty());
}

impl<'a> IndexedFleet<'a> {
    pub(super) fn of(world: &'a PlanContext<'a>, site: FleetInputs<'a>) -> Self {
        let target = TargetContents::of(&site, world.infra_type(site.fleet));
        Self { world, site, target, observed: inputs::target(&site) }
    }

    /// Compares with what preflight found, if that is known: changes wait for what is missing, with a condition.
    pub fn compare(&'a self, facts: Option<&'a PreflightFacts>) -> ComparedFleet<'a> {
        let Self { world, site, .. } = self;
        let mut upgrades = Upgrades::of(world, site, facts);
        let mut comparison = FleetComparison::of(self, &upgrades.site(site), facts);
        // Irreversible changes are made alone: no edit may be combined with them, even one that no object shows.
        let is_edited = |owner: &ResourceKey| world.current(owner).is_some_and(|it| !it.fields.is_empty());
        if upgrades.raise(site, |owner| comparison.differs(owner) || is_edited(owner)) {
            comparison = FleetComparison::of(self, &upgrades.site(site), facts);
        }
        ComparedFleet { indexed: self, facts, upgrades, comparison }
    }
}

impl ComparedFleet<'_> {
    /// Plans the fleet, with the target's answers to the dry runs of an earlier such part if it was asked.
    pub fn part(&self, dry_runs: Option<&DryRuns>) -> FleetPart {
        let Self { indexed, facts, upgrades, comparison } = self;
        let IndexedFleet { world, site: rendered, target, observed } = indexed;
        let site = &upgrades.site(rendered);
        let here = site.owners(world.catalog);
        let owners = known(world, site.fleet, here.iter().copied());
        let is_decided = site.observed.is_none_or(|it| it.undecided.is_empty() && it.conditions.is_empty());
        let is_quiet = is_decided
            && comparison.is_quiet()
            && upgrades.are_over()
            && here == site.all_owners()
            && all_are_named(world, &owners);
        let records = comparison.records(site);
        let seen = Observation { site, target, facts: *facts, dry_runs, upgrades };
        let FleetOutcome { plan, problems, lacks, troubles, approved, repairs } =
            plan(world, site.fleet, comparison.clone(), &owners, ObservationSource::Now(&seen));
        let here = here.into_iter().cloned().collect();
        let Upgrades { newer, awaits_operator, .. } = upgrades;
        let support = FleetSupport::of(rendered, *facts);
        let quiet = is_quiet.then(|| {
            Arc::new(UnchangedFleet {
                observed: observed.clone(),
                owners: here,
                lacks,
                newer: newer.clone(),
                support: support.clone(),
                records: records.clone(),
                awaits_operator: *awaits_operator,
            })
        });
        FleetPart {
            fleet: site.fleet.clone(),
            plan,
            problems,
            observed: observed.clone(),
            owners,
            cluster: site.observed.and_then(|observed| observed.cluster.clone()),
            newer: newer.clone(),
            support,
            records,
            troubles,
            approved,
            repairs,
            quiet,
            settled: None,
        }
    }
}

/// Plans one fleet from a remembered comparison; `None` if the spec of a resource with objects there is gone.
pub(super) fn plan_unchanged_fleet(
    world: &PlanContext,
    fleet: &FleetKey,
    quiet: &Arc<UnchangedFleet>,
    health: Option<&FleetHealth>,
    before: &Settled,
) -> Option<FleetPart> {
    if let Some(part) = before.part(world, fleet, (quiet, health)) {
        return Some(part);
    }
    let owners = known(world, fleet, quiet.owners.iter());
    if !all_are_named(world, &owners) {
        return None;
    }
    let look = FleetComparison::quiet(health);
    let FleetOutcome { plan, problems, troubles, approved, repairs, .. } =
        plan(world, fleet, look, &owners, ObservationSource::Before(&quiet.lacks));
    let (observed, newer) = (quiet.observed.clone(), quiet.newer.clone());
    let (support, records) = (quiet.support.clone(), quiet.records.clone());
    let quiet = Some(Arc::clone(quiet));
    let fleet = fleet.clone();
    let cluster = None;
    let part = FleetPart {
        fleet,
        plan,
        problems,
        observed,
        owners,
        cluster,
        newer,
        support,
        records,
        troubles,
        approved,
        repairs,
        quiet,
        settled: None,
    };
    Some(FleetPart { settled: SettledFleet::of(world, &part, health), ..part })
}

/// Returns all owners on the fleet, by specs and records or because an object of theirs exists.
fn known<'a>(
    world: &PlanContext,
    fleet: &FleetKey,
    here: impl Iterator<Item = &'a ResourceKey>,
) -> Arc<BTreeSet<ResourceKey>> {
    let mut owners = world.owners(fleet).map(Arc::clone).unwrap_or_default();
    for owner in here {
        if !owners.contains(owner) {
            Arc::make_mut(&mut owners).insert(owner.clone());
        }
    }
    owners
}

/// Whether specs name all of these resources. Deleting a resource depends on more than the differences.
fn all_are_named(world: &PlanContext, owners: &BTreeSet<ResourceKey>) -> bool {
    let is_named =
        |owner: &ResourceKey| world.catalog.resources.contains_key(owner) && world.absence(owner).is_none();
    owners.iter().all(is_named)
}

/// A fleet's target as it is planned from, with preflight facts and answers to dry runs if there are any.
pub(super) struct Observation<'a> {
    pub site: &'a FleetInputs<'a>,
    pub target: &'a TargetContents<'a>,
    pub facts: Option<&'a PreflightFacts>,
    pub dry_runs: Option<&'a DryRuns>,
    pub upgrades: &'a Upgrades,
}

/// The source of the facts about a fleet's target.
#[derive(Clone, Copy)]
enum ObservationSource<'a> {
    /// The target was observed now.
    Now(&'a Observation<'a>),
    /// The target was observed before, with these conditions.
    Before(&'a [Condition]),
}

struct FleetOutcome {
    plan: Option<FleetPlan>,
    problems: Vec<Problem>,
    lacks: Vec<Condition>,
    troubles: TroubleCauses,
    approved: BTreeSet<ResourceKey>,
    repairs: Vec<Repair>,
}

fn plan(
    world: &PlanContext,
    key: &FleetKey,
    look: FleetComparison,
    owning: &BTreeSet<ResourceKey>,
    seen: ObservationSource,
) -> FleetOutcome {
    let (site, facts, runs, upgrades) = match seen {
        ObservationSource::Now(&Observation { site, facts, dry_runs, upgrades, .. }) => {
            (Some(site), facts, dry_runs, Some(upgrades))
        }
        ObservationSource::Before(_) => (None, None, None, None),
    };
    let FleetComparison { reach, mut differences, status, unwell, troubles } = look;
    let foreign = foreign(&differences);
    let (mut changes, mut problems) = (Vec::new(), Vec::new());
    for owner in owners(owning, &differences) {
        let mut differences = differences.remove(&owner).unwrap_or_default();
        if let Some(absence) = world.absence(&owner) {
            changes.extend(deletion::resource_deletion(world, &owner, absence, differences, site));
        } else if let Some(resource) = world.catalog.resources.get(&owner) {
            let in_use = site.and_then(|site| in_use::keep(site, &owner, &mut differences));
            let stage = upgrades.and_then(|upgrades| upgrades.stage(&owner));
            let Some((mut change, mut refusals)) =
                change::resource_change(world, resource, differences, runs, stage)
            else {
                changes.extend(in_use.map(|waiting| Change {
                    waiting: vec![waiting],
                    record: world.recorded(&owner).cloned(),
                    ..change::kept_resource(&owner, Some(resource.origin.clone()))
                }));
                continue;
            };
            refusals.extend(site.map(|site| in_use::judge(world, site, &mut change)).unwrap_or_default());
            change.effects.extend(in_use.map(|waiting| waiting.to_string()));
            withdrawn_secrets::tell(world, key, &mut change);
            problems.extend(refusals.iter().map(|refused| refusal::problem(world, &change, refused)));
            changes.push(change);
        }
    }
    if let Some(site) = site {
        record_cluster_uid(site, &mut changes);
    }
    waiting::for_target(&reach, &mut changes);
    let lacks = match seen {
        ObservationSource::Now(&Observation { site, facts: Some(facts), .. }) => {
            preflight::judge(world, site, facts, &reach, &mut changes)
        }
        ObservationSource::Now(Observation { facts: None, .. }) => Vec::new(),
        ObservationSource::Before(lacks) => lacks.to_vec(),
    };
    waiting::for_fleet(key, &mut changes);
    waiting::for_clusters(&mut changes);
    pause::of_failure(world, key, &mut changes);
    let flapping = pause::of_flapping(world, key, &mut changes);
    mention_unreachable(world, key, &reach, &mut changes);
    maintenance::apply(world, key, &mut changes, &unwell);
    disruption::serialize_software_disruptions(&mut changes);
    if world.policy.mode == Mode::Approve {
        // In this mode every change needs approval, so the approval includes only changes that would run at once.
        disruption::serialize_disruptions(&mut changes, &unwell, &troubles);
    }
    let guarded = approval::apply(world, key, &mut changes);
    // Without an observation, or after a recent failure, the steps are unknown.
    let is_known = reach == Reach::Reached && !pause::is_paused(world, key);
    let void_approvals = if is_known { guarded.void } else { Vec::new() };
    pause::of_repetition(world, &mut changes);
    disruption::serialize_disruptions(&mut changes, &unwell, &troubles);
    waiting::for_clusters(&mut changes);
    pause::of_mode(world, &mut changes);
    let (repairs, undecided) = match seen {
        ObservationSource::Now(seen) if is_known => repair::of_fleet(world, seen, &changes),
        _ => Default::default(),
    };
    let resolved = world.catalog.fleets.get(key);
    if resolved.is_none() && changes.is_empty() {
        return FleetOutcome { plan: None, problems, lacks, troubles, approved: guarded.approved, repairs };
    }
    let gauge = |gauge: fn(&ResolvedFleet) -> Gauge| resolved.map(|fleet| gauge(fleet)).unwrap_or_default();
    let mut conditions = resolved.map(|fleet| fleet.conditions.clone()).unwrap_or_default();
    conditions.extend(lacks.iter().cloned().chain(flapping));
    conditions.extend(site.and_then(|site| site.observed).into_iter().flat_map(|it| it.conditions.clone()));
    conditions.extend(undecided.into_iter().filter(|it| !conditions.contains(it)).collect::<Vec<_>>());
    let plan = FleetPlan {
        fleet: key.clone(),
        infra_type: world.infra_type(key),
        reach,
        clusters: gauge(|fleet| fleet.clusters),
        kafka_units: gauge(|fleet| fleet.kafka_units),
        conditions,
        status,
        unwell,
        sizes: site
            .and_then(|site| size::of(site, &changes, facts, world.catalog.config.prices.table().as_ref())),
        changes,
        guard: guarded.guard,
        void_approvals,
        foreign,
    };
    FleetOutcome { plan: Some(plan), problems, lacks, troubles, approved: guarded.approved, repairs }
}

/// Splits health into the fleet's status, its unhealthy clusters, and the known causes of their trouble.
fn split(
    health: Option<&FleetHealth>,
) -> (Option<ResourceStatus>, BTreeMap<ResourceKey, ResourceStatus>, TroubleCauses) {
    let Some(health) = health else { return (None, BTreeMap::new(), TroubleCauses::default()) };
    let unwell = health.clusters.iter().filter(|(_, it)| it.status.status != Status::Healthy);
    let statuses = unwell.map(|(key, judgement)| (key.clone(), judgement.status.clone())).collect();
    (Some(health.status.clone()), statuses, TroubleCauses::of(health))
}

/// Adds the Kubernetes cluster to the record of an applied fleet, if it isn't recorded yet.
fn record_cluster_uid(site: &FleetInputs, changes: &mut [Change]) {
    let Some(cluster) = site.observed.and_then(|observed| observed.cluster.as_ref()) else { return };
    let fleet = site.fleet.resource();
    let records = changes.iter_mut().filter(|change| change.resource == fleet);
    for record in records.filter_map(|change| change.record.as_mut()) {
        record.durable.immutable.entry(CLUSTER_UID.to_owned()).or_insert_with(|| cluster.as_str().into());
    }
}

/// Mentions that a fleet is unreachable if no change says so: it may differ from its spec.
fn mention_unreachable(world: &PlanContext, key: &FleetKey, reach: &Reach, changes: &mut Vec<Change>) {
    let Some(waiting @ Waiting::Unreachable { .. }) = reach.waiting() else { return };
    let says_so = |change: &Change| change.waiting.iter().any(|it| matches!(it, Waiting::Unreachable { .. }));
    let resource = key.resource();
    let is_known = world.recorded(&resource).is_some() || world.catalog.resources.contains_key(&resource);
    if changes.iter().any(says_so) || !is_known {
        return;
    }
    if let Some(change) = changes.iter_mut().find(|change| change.resource == resource) {
        return change.waiting.push(waiting);
    }
    let named = world.catalog.resources.get(&resource).map(|named| named.origin.clone());
    let last_good = || world.recorded(&resource)?.cached.last_good.as_ref().map(|good| good.origin.clone());
    let record = world.recorded(&resource).cloned();
    let mention = change::kept_resource(&resource, named.or_else(last_good));
    changes.insert(0, Change { waiting: vec![waiting], record, ..mention });
}

/// Returns the owners on the fleet: the fleet, then its clusters by name. Resources that are neither desired
/// nor known to be absent are left alone.
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
