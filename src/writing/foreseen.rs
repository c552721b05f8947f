//! Checks whether a plan would carry out an edit. What every plan would refuse is refused at once.

use jiff::Timestamp;

use super::judge::{Edited, kindred};
use super::refused::{WriteRefusal, invalid, unreadable_state};
use super::write_request::WriteRequest;
use crate::catalog::{Catalog, Recorded};
use crate::http::problem::FieldError;
use crate::plan::foresee;
use crate::problem::Problem;
use crate::spec::HEADER;
use crate::writing::CurrentPlan;

impl Edited<'_> {
    /// Checks that a plan would carry out the edit. Refusals that exist without the edit don't count.
    ///
    /// # Errors
    /// With what a plan would refuse, in its words.
    pub fn is_done(
        &self,
        (made, recorded, now): (&CurrentPlan, &Recorded, Timestamp),
        request: &WriteRequest,
        unedited: &Catalog,
    ) -> Result<(), WriteRefusal> {
        let is_changing = made.round.change(&request.key).is_some();
        let suspect = foresee::possible_refusal(self.catalog, recorded, &request.key, is_changing);
        if suspect.fleets.is_empty() {
            return Ok(());
        }
        let foresee = |catalog: &Catalog| {
            let refused = made.installation.foresee((catalog, recorded), &suspect, &made.round.health, now);
            refused.map_err(unreadable_state)
        };
        let new = but_for(foresee(self.catalog)?, &made.round.plan.problems);
        if new.is_empty() {
            return Ok(());
        }
        // Another writer may have caused the refusal since.
        let new = but_for(new, &foresee(unedited)?);
        let faults: Vec<FieldError> =
            new.iter().map(|problem| self.foreseen(request, problem, suspect.pointer.as_deref())).collect();
        if faults.is_empty() { Ok(()) } else { Err(invalid(faults)) }
    }

    /// Maps a plan's refusal to a mistake in a field.
    fn foreseen(&self, request: &WriteRequest, problem: &Problem, pointer: Option<&str>) -> FieldError {
        let fault = match self.is_own(&request.key, problem) {
            true => self.own_fault(request, problem),
            false => self.fault_elsewhere(request, problem),
        };
        // If the document lacks the field, the plan's problem points to the document.
        let is_field = |found: &String| !HEADER.iter().any(|name| found.strip_prefix('/') == Some(*name));
        FieldError { pointer: fault.pointer.filter(is_field).or(pointer.map(str::to_owned)), ..fault }
    }
}

fn but_for(problems: Vec<Problem>, known: &[Problem]) -> Vec<Problem> {
    let is_known = |problem: &Problem| known.iter().any(|known| kindred(known) == kindred(problem));
    problems.into_iter().filter(|problem| problem.is_error() && !is_known(problem)).collect()
}
