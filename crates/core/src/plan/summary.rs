use std::collections::BTreeSet;

use crate::names::FleetKey;
use crate::plan::world::PlanContext;
use crate::plan::{Change, FleetPlan, OrganizationPlan, Plan, Summary, Verb};
use crate::problem::Problem;

pub(super) fn of(
    world: &PlanContext,
    organizations: &[OrganizationPlan],
    fleets: &[FleetPlan],
    problems: &[Problem],
) -> Summary {
    let changes = organizations.iter().flat_map(|plan| &plan.changes);
    let shown = changes.chain(fleets.iter().flat_map(|plan| &plan.changes)).map(|change| &change.resource);
    let shown: BTreeSet<_> = shown.collect();
    let wanted = &world.catalog.resources;
    let changed = shown.iter().filter(|key| wanted.contains_key(key)).count();
    let unchanged = number(wanted.len() - changed);
    Summary { unchanged, ..counted(organizations, fleets, problems) }
}

pub(super) fn counted(
    organizations: &[OrganizationPlan],
    fleets: &[FleetPlan],
    problems: &[Problem],
) -> Summary {
    let mut summary = Summary::default();
    let changes = organizations.iter().flat_map(|plan| &plan.changes);
    for change in changes.chain(fleets.iter().flat_map(|plan| &plan.changes)) {
        *counter(&mut summary, change) += 1;
    }
    summary.errors = number(problems.iter().filter(|problem| problem.is_error()).count());
    summary.warnings = number(problems.len()) - summary.errors;
    summary
}

fn counter<'a>(summary: &'a mut Summary, change: &Change) -> &'a mut u32 {
    match change.verb {
        _ if !change.waiting.is_empty() => &mut summary.waiting,
        Verb::Create => &mut summary.create,
        Verb::Update | Verb::Keep | Verb::Recreate | Verb::Adopt => &mut summary.change,
        Verb::Delete => &mut summary.delete,
    }
}

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Plan {
    /// Returns the changes of all organizations, then those of all fleets.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.placed_changes().map(|(_, change)| change)
    }

    /// Returns the same changes, each with its fleet; `None` for resources without a fleet.
    pub fn placed_changes(&self) -> impl Iterator<Item = (Option<&FleetKey>, &Change)> {
        let organizations = self.organizations.iter().flat_map(|plan| &plan.changes);
        let fleets = self.fleets.iter();
        let fleets = fleets.flat_map(|plan| plan.changes.iter().map(|change| (Some(&plan.fleet), change)));
        organizations.map(|change| (None, change)).chain(fleets)
    }

    pub fn has_work(&self) -> bool {
        self.changes().any(|change| change.waiting.is_empty())
    }

    pub fn step_count(&self) -> usize {
        self.fleets.iter().map(|fleet| fleet.ordered_steps().count()).sum()
    }

    /// Whether nothing changes and nothing waits. Records may still be filled in.
    pub fn is_empty(&self) -> bool {
        self.changes().next().is_none()
    }

    /// Returns the exit code of a plan: 1 for errors, else 3 if something waits, else 2 for changes, else 0.
    pub fn exit_code(&self) -> u8 {
        let Summary { create, change, delete, waiting, errors, warnings: _, unchanged: _ } = self.summary;
        match (errors, waiting, create + change + delete) {
            (1.., _, _) => 1,
            (0, 1.., _) => 3,
            (0, 0, 1..) => 2,
            (0, 0, 0) => 0,
        }
    }
}
