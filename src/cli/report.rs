//! How a plan is shown to a person: its problems, then what it does.

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::plan::{self, Plan};
use crate::problem;

/// Shows a plan, with commands that name the tree in these words: the problems on standard error, the plan on standard output.
///
/// # Errors
/// When standard output is gone.
pub fn plan(plan: &Plan, tree: &str, console: &mut Console) -> Result<(), Failure> {
    let reader = plan::Reader { color: console.out_has_color(), width: console.width(), tree };
    let text = plan::display(plan, reader);
    console.print(&text)?;
    if !plan.problems.is_empty() {
        let told = problem::render(&plan.problems, console.err_has_color());
        console.tell(&format!("\n{told}"));
    }
    Ok(())
}
