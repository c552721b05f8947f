//! Plans: the current one, those of proposals, and approvals.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;

use super::proposal_limits::ProposalLimits;
use super::{Answered, Call, json_text, require, written};
use crate::api::answer::PlanApproval;
use crate::api::proposal;
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::plan::{FleetPlan, Plan};
use crate::problem::quote_untrusted;
use crate::round::{Approved, Installation, Round};
use crate::spec::{self, Documents};
use crate::state::Access;

/// The most mistakes of a proposal in one answer.
const MOST_FAULTS: usize = 100;

/// Answers with the current plan, or plans the present specs as of another time.
pub(super) fn read(call: &Call) -> Answered {
    match call.at()? {
        Some(at) => {
            call.may_plan("planning for another time")?;
            call.planned(&call.made.documents, Installation::clone(&call.made.installation), at)
        }
        None => Ok(call.with_current_plan(written(StatusCode::OK, &call.visible(&call.made.round)))),
    }
}

/// Plans a proposal and discards the result.
pub(super) fn propose(call: &Call) -> Answered {
    call.may_plan(call.route.doing)?;
    let at = call.at()?.unwrap_or_else(Timestamp::now);
    let source = call.made.documents.source.clone();
    let snapshot = proposal::read(call.json()?.into_value(), source).map_err(refused)?;
    let (allowance, present) = (ProposalLimits::of(call), &call.made.documents);
    allowance.iter().try_for_each(|allowance| allowance.check_files(&snapshot, present))?;
    let documents = spec::read(&snapshot, Some(present));
    allowance.iter().try_for_each(|allowance| allowance.check_documents(&documents, present))?;
    let own = Installation::clone(&call.made.installation);
    let secrets = match call.caller.is_user() {
        // As a command without a daemon does, whose user could open them anyway.
        true => own.secrets,
        // Untrusted specs must not open files, environment variables or sealed secrets.
        false => Arc::new(own.secrets.for_proposed_specs()),
    };
    call.planned(&Arc::new(documents), Installation { proposed: true, secrets, ..own }, at)
}

fn refused(faults: Vec<FieldError>) -> ProblemDocument {
    let mut problem = ProblemDocument::mistakes(faults);
    problem.errors.truncate(MOST_FAULTS);
    problem
}

/// Approves guarded steps, if the caller is an administrator of the fleet's organization.
pub(super) fn approve(call: &Call) -> Answered {
    let id = call.parameter("id");
    let missing = || {
        let id = quote_untrusted(id);
        let why = format!("nothing waits for approval `{id}`, or the caller may not see it");
        ProblemDocument::new(&code::NOT_WAITING, why)
    };
    if !call.caller.is_super() {
        let fleets = &call.made.round.plan.fleets;
        let waits = |plan: &&FleetPlan| plan.guard.as_ref().is_some_and(|guard| guard.id == id);
        let fleet = fleets.iter().find(waits).map(|plan| &plan.fleet);
        let fleet = fleet.filter(|fleet| call.caller.sees(&fleet.organization)).ok_or_else(missing)?;
        call.may(&fleet.organization, call.route.needs)?;
    }
    let by = call.caller.actor();
    let approved = call.runtime.block_on(call.service.request_queue.approve(id.to_owned(), by.clone()))?;
    let (fleet, changes, approved_by) = match approved {
        Approved::Now { fleet, changes } => (Some(fleet), Some(changes), by),
        Approved::Before { by } => (None, None, by),
        Approved::Unknown { .. } => return Err(missing()),
    };
    Ok(written(StatusCode::OK, &PlanApproval { id: id.to_owned(), fleet, changes, approved_by }))
}

impl Call {
    /// Checks the permission to have a plan made, which takes time that others wait for.
    fn may_plan(&self, doing: &str) -> Result<(), ProblemDocument> {
        let mut organizations = self.made.round.checked.catalog.capacity.keys();
        let may = self.caller.is_super() || organizations.any(|it| self.caller.may(it, Access::Write));
        require(may, || self.caller.lacks_everywhere(doing, Access::Write))
    }

    /// Makes a plan that isn't carried out.
    pub(super) fn planned(
        &self,
        documents: &Arc<Documents>,
        installation: Installation,
        at: Timestamp,
    ) -> Answered {
        let memory = self.service.request_queue.memory.copy();
        let round = installation
            .plan(documents, at, &self.runtime, Some(&memory))
            .map_err(|error| self.of_state(&error))?;
        let text = ProposalLimits::write(ProposalLimits::of(self).as_ref(), &self.visible(&round))?;
        Ok(self.with_plan(json_text(text.into()), &round, None))
    }

    /// The part of a plan that the caller may see.
    pub(super) fn visible<'r>(&self, round: &'r Round) -> Cow<'r, Plan> {
        if self.caller.is_super() {
            return Cow::Borrowed(&round.plan);
        }
        let resources = round.checked.catalog.resources.keys();
        let resources = resources.filter(|key| self.caller.sees(&key.organization)).count();
        Cow::Owned(round.plan.restricted_to(|organization| self.caller.sees(organization), resources))
    }
}
