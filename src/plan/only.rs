//! A plan as somebody sees it who may see some organizations only.

use std::collections::BTreeSet;

use crate::names::Identifier;
use crate::plan::{Plan, Summary, summary};
use crate::problem::{Location, Problem};
use crate::spec::SourceId;

impl Plan {
    /// What a plan says of some organizations, with numbers that count nothing else. `unchanged` is how many resources of
    /// theirs there should be. Mistakes in files outside of their folders are nobody's but the administrators'.
    pub fn only(&self, sees: impl Fn(&Identifier) -> bool, resources: usize) -> Plan {
        let mut plan = self.clone();
        plan.organizations.retain(|part| sees(&part.organization));
        plan.fleets.retain(|part| sees(&part.fleet.organization));
        // Others may have committed, and where the specs are is for those to know who run this.
        plan.inputs.commit = None;
        plan.inputs.source = SourceId("the specs of this installation".to_owned());
        plan.inputs.observed.retain(|fleet, _| sees(&fleet.organization));
        plan.remember.retain(|resource, _| sees(&resource.organization));
        plan.problems.retain(|problem| is_theirs(problem, &sees));
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
