//! Prints a plan for people.

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::plan::{self, Plan};
use crate::problem;

/// Prints the plan on standard output and its problems on standard error. Suggested commands name the tree as
/// `tree`.
pub fn plan(plan: &Plan, tree: &str, console: &mut Console) -> Result<(), Failure> {
    let reader = plan::Audience { color: console.out_has_color(), width: console.width(), tree };
    let text = plan::display(plan, reader);
    console.print(&text)?;
    if !plan.problems.is_empty() {
        let told = problem::render(&plan.problems, console.err_has_color());
        console.tell(&format!("\n{told}"));
    }
    Ok(())
}
