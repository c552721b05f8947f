//! `streamfleet validate`: checks a tree.

use clap::Args;
use jiff::Timestamp;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::problem;

/// Check a tree and report every mistake with its line. Nothing is written but what is fetched from git.
#[derive(Debug, Args)]
pub struct Validate {
    #[command(flatten)]
    tree: TreeArgs,
    /// Print the problems as text, JSON or YAML.
    #[arg(long, value_enum, default_value_t = super::OutputFormat::Human)]
    format: super::OutputFormat,
    /// Judge expiry as of this time, as in 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
}

pub fn run(verb: &Validate, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let checked = round::check(&settings, StateAccess::ReadOnly, round::time(verb.at), console)?;
    let problems = &checked.catalog.problems;
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    match verb.format.data(problems)? {
        Some(text) => console.print(&text)?,
        None => {
            let told = problem::render(problems, console.err_has_color());
            console.tell(&if told.is_empty() { told } else { told + "\n" });
            console.print(&summary(checked.catalog.resources.len(), errors, problems.len() - errors))?;
        }
    }
    Ok(if errors > 0 { exit::PROBLEM } else { exit::OK })
}

fn summary(resources: usize, errors: usize, warnings: usize) -> String {
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => format!("{} checked, no problems found.\n", count(resources, "resource")),
        (0, _) => format!("{} checked, {}.\n", count(resources, "resource"), count(warnings, "warning")),
        (_, 0) => format!("{} found.\n", count(errors, "error")),
        (_, _) => format!("{} and {} found.\n", count(errors, "error"), count(warnings, "warning")),
    }
}
