//! Whether a plan would ever do what a tree with an edit says: what would be refused forever is refused at once.

use jiff::Timestamp;

use super::judge::{Edited, kindred};
use super::refused::{Fault, Refused, unreadable_state};
use super::wish::Wish;
use crate::api::desk::Made;
use crate::catalog::{Catalog, Recorded};
use crate::plan::foresee;
use crate::problem::Problem;
use crate::spec::HEADER;

impl Edited<'_> {
    /// Whether a plan would do what a resource says now. What was refused before keeps nobody from anything else: `without`
    /// gives the tree without the edit, and is asked only where that isn't known from the last plan.
    ///
    /// # Errors
    /// With what a plan would refuse, in its words.
    pub fn is_done(
        &self,
        (made, recorded, now): (&Made, &Recorded, Timestamp),
        wish: &Wish,
        without: impl FnOnce() -> Catalog,
    ) -> Result<(), Refused> {
        let is_changing = made.round.change(&wish.key).is_some();
        let suspect = foresee::suspect(self.catalog, recorded, &wish.key, is_changing);
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
        // Somebody else may have asked for it since.
        let new = but_for(new, &foresee(&without())?);
        let faults: Vec<Fault> =
            new.iter().map(|problem| self.foreseen(wish, problem, suspect.pointer.as_deref())).collect();
        if faults.is_empty() { Ok(()) } else { Err(Refused::Invalid(faults)) }
    }

    /// What a plan would refuse, as something wrong with a field.
    fn foreseen(&self, wish: &Wish, problem: &Problem, pointer: Option<&str>) -> Fault {
        let fault = match self.is_own(&wish.key, problem) {
            true => self.own_fault(wish, problem),
            false => self.fault_elsewhere(wish, problem),
        };
        // Where the document leaves the field out, the plan names the document.
        let is_field = |found: &String| !HEADER.iter().any(|name| found.strip_prefix('/') == Some(*name));
        Fault { pointer: fault.pointer.filter(is_field).or(pointer.map(str::to_owned)), ..fault }
    }
}

/// The problems that are none of the known ones.
fn but_for(problems: Vec<Problem>, known: &[Problem]) -> Vec<Problem> {
    let is_known = |problem: &Problem| known.iter().any(|known| kindred(known) == kindred(problem));
    problems.into_iter().filter(|problem| problem.is_error() && !is_known(problem)).collect()
}
