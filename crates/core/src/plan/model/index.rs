use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Change, FleetPlan, Plan};

/// The positions of a plan's changes and fleets, each sorted by key.
#[derive(Debug)]
pub struct Index {
    changes: Box<[ChangePosition]>,
    fleets: Box<[usize]>,
}

#[derive(Debug, Clone, Copy)]
enum ChangePosition {
    Organization { part: usize, change: usize },
    Fleet { part: usize, change: usize },
}

impl Index {
    /// Indexes a plan. The index is invalid for any other plan.
    pub fn of(plan: &Plan) -> Index {
        let organizations = plan.organizations.iter().enumerate().flat_map(|(part, organization)| {
            (0..organization.changes.len()).map(move |change| ChangePosition::Organization { part, change })
        });
        let on_fleets = plan.fleets.iter().enumerate().flat_map(|(part, fleet)| {
            (0..fleet.changes.len()).map(move |change| ChangePosition::Fleet { part, change })
        });
        let mut changes: Vec<ChangePosition> = organizations.chain(on_fleets).collect();
        changes.sort_by(|a, b| a.resource(plan).cmp(&b.resource(plan)));
        let mut fleets: Vec<usize> = (0..plan.fleets.len()).collect();
        fleets.sort_by(|&a, &b| plan.fleets[a].fleet.cmp(&plan.fleets[b].fleet));
        Index { changes: changes.into(), fleets: fleets.into() }
    }

    /// Returns the change of a resource, if there is one: the waiting change rather than its repair.
    pub fn change<'p>(&self, plan: &'p Plan, resource: &ResourceKey) -> Option<&'p Change> {
        let place = self.changes.partition_point(|place| place.resource(plan) < Some(resource));
        self.changes.get(place)?.change(plan).filter(|change| change.resource == *resource)
    }

    pub fn fleet<'p>(&self, plan: &'p Plan, fleet: &FleetKey) -> Option<&'p FleetPlan> {
        let of = |&place: &usize| plan.fleets.get(place).map(|plan| &plan.fleet);
        let place = self.fleets.binary_search_by(|place| of(place).cmp(&Some(fleet))).ok()?;
        plan.fleets.get(self.fleets[place])
    }
}

impl ChangePosition {
    fn resource(self, plan: &Plan) -> Option<&ResourceKey> {
        self.change(plan).map(|change| &change.resource)
    }

    fn change(self, plan: &Plan) -> Option<&Change> {
        match self {
            ChangePosition::Organization { part, change } => {
                plan.organizations.get(part)?.changes.get(change)
            }
            ChangePosition::Fleet { part, change } => plan.fleets.get(part)?.changes.get(change),
        }
    }
}
