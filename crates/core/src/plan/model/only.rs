//! A plan restricted to some organizations.

use std::collections::BTreeSet;

use crate::names::Identifier;
use crate::plan::{FleetPlan, Inputs, OrganizationPlan, Plan, Summary, summary};
use crate::problem::{Location, Problem};
use crate::spec::SourceId;

impl Plan {
    /// Returns the part of a plan about some organizations, with counts of nothing else. `resources` is the
    /// number of their resources. Problems outside of their folders are only for administrators.
    pub fn restricted_to(&self, sees: impl Fn(&Identifier) -> bool, resources: usize) -> Plan {
        let Plan { format, id, created_at, inputs, organizations, fleets, remember, problems, summary: _ } =
            self;
        let of_theirs = |part: &&OrganizationPlan| sees(&part.organization);
        let organizations: Vec<_> = organizations.iter().filter(of_theirs).cloned().collect();
        let fleets = fleets.iter().filter(|part| sees(&part.fleet.organization));
        let fleets = fleets.cloned().map(FleetPlan::for_tenants).collect();
        let remember = remember.iter().filter(|(resource, _)| sees(&resource.organization));
        let remember = remember.map(|(resource, record)| (resource.clone(), record.clone())).collect();
        let problems = problems.iter().filter(|problem| is_theirs(problem, &sees)).cloned().collect();
        let Inputs { source: _, revision, commit: _, software, recorded, settings, observed } = inputs;
        let observed = observed.iter().filter(|(fleet, _)| sees(&fleet.organization));
        let inputs = Inputs {
            // Others may have made the commit, and the location of the specs is only for administrators.
            commit: None,
            source: SourceId("the specs of this installation".to_owned()),
            revision: revision.clone(),
            software: software.clone(),
            recorded: recorded.clone(),
            settings: settings.clone(),
            observed: observed.map(|(fleet, digest)| (fleet.clone(), digest.clone())).collect(),
        };
        let (format, id, created_at, summary) = (*format, id.clone(), *created_at, Summary::default());
        let mut plan =
            Plan { format, id, created_at, inputs, organizations, fleets, remember, problems, summary };
        let changed: BTreeSet<_> = plan.changes().map(|change| &change.resource).collect();
        let unchanged = resources.saturating_sub(changed.len());
        plan.summary = Summary {
            unchanged: summary::number(unchanged),
            ..summary::counted(&plan.organizations, &plan.fleets, &plan.problems)
        };
        plan
    }
}

fn is_theirs(problem: &Problem, sees: impl Fn(&Identifier) -> bool) -> bool {
    let theirs = |place: &Location| {
        let folder: Option<Identifier> = place.path.top_folder().and_then(|folder| folder.parse().ok());
        folder.is_some_and(|folder| sees(&folder))
    };
    let related = problem.related.iter().map(|(place, _)| place);
    problem.location.as_ref().is_some_and(theirs) && related.into_iter().all(theirs)
}
