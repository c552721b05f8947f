//! How a plan is shown to a person: its problems, then what it does.

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::round::Look;
use crate::{plan, problem};

/// Shows a plan: the problems on standard error, the plan on standard output.
///
/// # Errors
/// When standard output is gone.
pub fn plan(look: &Look, console: &mut Console) -> Result<(), Failure> {
    let tree = look.settings.arguments.as_str();
    let reader = plan::Reader { color: console.out_has_color(), width: console.width(), tree };
    let text = plan::display(&look.round.plan, reader);
    console.print(&text)?;
    if !look.round.plan.problems.is_empty() {
        let told = problem::render(&look.round.plan.problems, console.err_has_color());
        console.tell(&format!("\n{told}"));
    }
    Ok(())
}
