//! Plans: the current one, those of proposals, and approvals.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::json;

use super::proposal_limits::ProposalLimits;
use super::{Answered, Call, forbidden, json_text, written};
use crate::api::problem::{FieldError, ProblemDocument, code};
use crate::api::proposal::Proposal;
use crate::plan::{FleetPlan, Plan};
use crate::problem::quote_untrusted;
use crate::round::{Approved, Installation, Round};
use crate::secret::SecretStore;
use crate::spec::{self, Documents};
use crate::state::Access;

/// The most mistakes of a proposal in one answer.
const MOST_FAULTS: usize = 100;

/// Answers with a recent plan: frequent polling doesn't cause new ones.
pub(super) fn read(call: &Call) -> Answered {
    let made = call.runtime.block_on(call.service.desk.current())?;
    Ok(written(StatusCode::OK, &call.visible(&made.round)))
}

/// Plans a proposal and discards the result.
pub(super) fn propose(call: &Call) -> Answered {
    let mut organizations = call.made.round.checked.catalog.capacity.keys();
    if !call.caller.is_super() && !organizations.any(|it| call.caller.may(it, Access::Write)) {
        return Err(forbidden(call.caller.lacks_everywhere(call.route.doing, Access::Write)));
    }
    let source = call.made.documents.source.clone();
    let snapshot =
        Proposal::posted(call.json()?.into_value(), source).and_then(Proposal::snapshot).map_err(refused)?;
    let (allowance, present) = (ProposalLimits::of(call), &call.made.documents);
    allowance.iter().try_for_each(|allowance| allowance.check_files(&snapshot, present))?;
    let documents = Arc::new(spec::read(&snapshot, Some(present)));
    allowance.iter().try_for_each(|allowance| allowance.check_documents(&documents, present))?;
    // Untrusted specs must not open files, environment variables or sealed secrets.
    call.planned(documents, Arc::new(call.made.installation.secrets.for_proposed_specs()))
}

fn refused(mut faults: Vec<FieldError>) -> ProblemDocument {
    let detail = match faults.as_slice() {
        [fault] => fault.detail.clone(),
        faults => format!("the request has {} errors", faults.len()),
    };
    faults.truncate(MOST_FAULTS);
    ProblemDocument::invalid(detail, faults)
}

/// Approves guarded steps, if the caller is an administrator of the fleet's organization.
pub(super) fn approve(call: &Call) -> Answered {
    let id = call.parameter("id");
    let missing = || {
        ProblemDocument::conflict(
            &code::NOT_WAITING,
            format!("nothing waits for approval `{}`, or the caller may not see it", quote_untrusted(id)),
        )
    };
    let fleets = &call.made.round.plan.fleets;
    let waits = |plan: &&FleetPlan| plan.guard.as_ref().is_some_and(|guard| guard.id == id);
    let fleet = fleets.iter().find(waits).map(|plan| &plan.fleet);
    let fleet = fleet.filter(|fleet| call.caller.sees(&fleet.organization)).ok_or_else(missing)?;
    call.may(&fleet.organization, call.route.needs)?;
    let by = call.caller.actor();
    let approved = call.runtime.block_on(call.service.desk.approve(id.to_owned(), by.clone()))?;
    let answer = match approved {
        Approved::Now { fleet, changes } => {
            json!({"id": id, "fleet": fleet, "changes": changes, "approved_by": by})
        }
        Approved::Before { by } => json!({"id": id, "fleet": null, "changes": null, "approved_by": by}),
        Approved::Unknown { .. } => return Err(missing()),
    };
    Ok(written(StatusCode::OK, &answer))
}

impl Call {
    /// Plans other specs than the current ones, with the given access to secrets. No connection is opened
    /// because of them.
    pub(super) fn planned(&self, documents: Arc<Documents>, secrets: Arc<SecretStore>) -> Answered {
        let own = Installation::clone(&self.made.installation);
        let installation = Installation { proposed: true, secrets, ..own };
        let memory = self.service.desk.memory.copy();
        let round = installation.plan(&documents, Timestamp::now(), &self.runtime, Some(&memory))?;
        let text = ProposalLimits::write(ProposalLimits::of(self).as_ref(), &self.visible(&round))?;
        Ok(json_text(text.into()))
    }

    /// The part of a plan that the caller may see.
    fn visible<'r>(&self, round: &'r Round) -> Cow<'r, Plan> {
        if self.caller.is_super() {
            return Cow::Borrowed(&round.plan);
        }
        let resources = round.checked.catalog.resources.keys();
        let resources = resources.filter(|key| self.caller.sees(&key.organization)).count();
        Cow::Owned(round.plan.restricted_to(|organization| self.caller.sees(organization), resources))
    }
}
