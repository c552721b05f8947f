//! Decides what is done and what waits. All decisions are made here; the executor carries them out.

mod bucket;
mod certificate;
mod change;
mod compare;
pub mod cost;
mod deletion;
mod display;
mod dry_run;
mod fleet;
mod guard;
mod inputs;
mod memory;
mod model;
mod organization;
pub mod preflight;
mod record;
mod repair;
mod roster;
mod size;
mod summary;
#[cfg(test)]
mod tests;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::{Catalog, Recorded};
use crate::health::FleetHealth;
use crate::names::{FleetKey, ResourceKey};
use crate::render::Desired;

pub use crate::component::Size;
pub use bucket::BucketOrder;
pub use certificate::CertificateOrder;
pub use compare::field_effects;
pub use display::{
    Audience, EntryPlace, Outline, OutlineApproval, OutlineItem, OutlineSection, PlanEntry, display, entries,
    markdown, outline, plain, plain_lines, reason, sections, summary_sentence, wait_remedy,
};
pub use dry_run::{AlikeDryRuns, DryRunRequests};
pub use fleet::{ComparedFleet, IndexedFleet};
pub use guard::approval::{DELETIONS_WINDOW, is_approval_id};
pub use guard::awaited::LONG;
pub use guard::refusal::UNDO_BY_HAND;
pub use guard::unreached::{UNASKED, UNREACHED};
pub use memory::PlanMemory;
use memory::Settled;
pub use model::contest::{Contest, take_out};
pub use model::foreign_record::ForeignRecord;
pub use model::index::Index;
pub use model::json::{InvalidPlan, schema};
pub use model::observed::{Observed, ObservedFleet, ObservedObject, Reach, ResourceMark};
pub use model::part::NewerVersions;
pub use model::part::{FleetPart, UnchangedFleet};
pub use model::record_state::{RecordCounts, RecordState};
pub use model::remark::Remark;
pub use model::site::{DryRun, DryRuns, FleetInputs};
pub use model::{
    AddressChange, Announced, Cause, Change, FORMAT, FieldChange, Flapping, FleetPlan, Guard, Inputs,
    OrganizationPlan, Pauses, Plan, Policy, Repeated, Retry, SizeChange, Sizes, Step, Summary, Verb, Verdict,
    Waiting,
};
use world::PlanContext;
pub use world::changed_fields;

/// Compares specs, records and observations, and decides everything that will be done.
///
/// Pure and total: the same arguments give the same plan, to the byte. Every mistake becomes a problem or a
/// [`Waiting`] in the plan. Runs a [`Planner`] over one fleet after another.
pub fn plan(
    catalog: &Catalog,
    desired: &Desired,
    recorded: &Recorded,
    observed: &Observed,
    policy: &Policy,
) -> Plan {
    let planner = Planner::new(catalog, recorded, observed.protected(), policy, None);
    let mut fleets = planner.fleets();
    let known = desired.fleets.keys().chain(recorded.fleets.keys()).chain(observed.fleets.keys());
    fleets.extend(known.cloned());
    let part = |fleet: &FleetKey| {
        planner.fleet(&FleetInputs {
            fleet,
            desired: desired.fleets.get(fleet),
            recorded: recorded.fleets.get(fleet),
            observed: observed.fleets.get(fleet),
        })
    };
    let parts = fleets.iter().map(part).collect();
    planner.finish(parts)
}

/// Plans fleet by fleet, so that memory holds the manifests of one fleet and not of all.
pub struct Planner<'a> {
    world: PlanContext<'a>,
    memory: Option<&'a PlanMemory>,
    /// The organizations and fleets as the last plan with this memory left them.
    before: Arc<Settled>,
}

impl<'a> Planner<'a> {
    /// Plans after the last plan with this memory. `protected` holds what the targets remember as protected.
    /// The records of a fleet's objects come with its `FleetInputs`.
    pub fn new(
        catalog: &'a Catalog,
        recorded: &'a Recorded,
        protected: BTreeSet<ResourceKey>,
        policy: &'a Policy,
        memory: Option<&'a PlanMemory>,
    ) -> Self {
        let before = memory.map(PlanMemory::last).unwrap_or_default();
        Self { world: PlanContext::new(catalog, recorded, protected, policy, &before), memory, before }
    }

    /// Compares the resources that changed since the last plan, or all, with their records on all processors. Otherwise
    /// that is done for each at its first use, on one.
    pub fn compare_all(&self) {
        self.world.compare_all();
    }

    /// Returns every fleet in a spec or a record. The caller adds those that only a target or its record has.
    pub fn fleets(&self) -> BTreeSet<FleetKey> {
        self.world.catalog.fleets.keys().chain(self.world.fleets_with_owners()).cloned().collect()
    }

    /// Plans one fleet without preflight facts and dry runs.
    pub fn fleet(&self, site: &FleetInputs) -> FleetPart {
        self.index(*site).compare(None).part(None)
    }

    /// Begins to plan one fleet.
    pub fn index<'s>(&'s self, site: FleetInputs<'s>) -> IndexedFleet<'s> {
        IndexedFleet::of(&self.world, site)
    }

    /// Plans a fleet from a remembered comparison, which is valid while its inputs are unchanged. Returns
    /// `None` if the fleet has to be compared again. `health` is the fleet's current health.
    pub fn unchanged_fleet(
        &self,
        fleet: &FleetKey,
        quiet: &Arc<UnchangedFleet>,
        health: Option<&FleetHealth>,
    ) -> Option<FleetPart> {
        fleet::plan_unchanged_fleet(&self.world, fleet, quiet, health, &self.before)
    }

    pub fn finish(self, mut parts: Vec<FleetPart>) -> Plan {
        parts.sort_by(|a, b| a.fleet.cmp(&b.fleet));
        let settled =
            parts.iter_mut().filter_map(|it| Some((it.fleet.clone(), it.settled.take()?))).collect();
        guard::same_cluster::refuse(&mut parts);
        let world = self.world;
        guard::disruption::serialize_renewals(&world, &mut parts);
        repair::insert_repairs(&mut parts);
        guard::approval::keep_approvals(&mut parts);
        let mut problems = world.catalog.problems.clone();
        let (mut fleets, mut on_fleets, mut observed) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        for part in parts {
            on_fleets.extend(world.unsettled_of(&part.fleet, &part.owners).cloned());
            observed.insert(part.fleet, part.observed);
            fleets.extend(part.plan);
            problems.extend(part.problems);
        }
        let mut organizations = organization::plan(&world, &on_fleets);
        guard::disruption::announce_renewals(&mut organizations, &mut fleets);
        let remember = record::stale(&world, &organizations, &fleets);
        repair::keep_records(&world, &remember, &mut fleets);
        let summary = summary::of(&world, &organizations, &fleets, &problems);
        let mut plan = Plan {
            format: FORMAT,
            id: String::new(),
            created_at: world.policy.now,
            inputs: inputs::of(&world, observed),
            organizations,
            fleets,
            remember,
            problems,
            summary,
        };
        plan.id = inputs::id(&plan, world.recorded.is_new());
        if let Some(memory) = self.memory {
            memory.keep(Settled::of(&world, plan.changes(), &plan.remember, settled));
        }
        plan
    }
}
