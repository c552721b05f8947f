//! `streamfleet approve`: let guarded steps run.

use clap::Args;
use jiff::Timestamp;

use crate::catalog::Approval;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, Access};
use crate::cli::settings::{Settings, TreeArgs};
use crate::plan::{FleetPlan, Guard, Waiting};
use crate::state::AuditEntry;

/// Approve the guarded steps of one fleet, by the id that the plan prints beside them.
///
/// The approval is for exactly those steps, is used once, and ends after a day unless the config says otherwise.
#[derive(Debug, Args)]
pub struct Approve {
    /// The id that `streamfleet plan` prints.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    tree: TreeArgs,
}

/// Runs the verb.
pub fn run(verb: &Approve, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let now = Timestamp::now();
    let look = round::look(settings, Access::Write, now, console)?;
    let guarded =
        look.round.plan.fleets.iter().filter_map(|fleet| fleet.guard.as_ref().map(|guard| (fleet, guard)));
    let Some((fleet, guard)) = guarded.clone().find(|(_, guard)| guard.id == verb.id) else {
        return Err(unknown_id(&verb.id, &guarded.collect::<Vec<_>>()));
    };
    if let Some(by) = &guard.approved_by {
        console.print(&format!("{} was approved already, by {by}.\n", guard.id))?;
        return Ok(exit::OK);
    }
    let Some(state) = &look.installation.state else {
        return Err(Failure::new("nothing can be approved without a state"));
    };
    let approval = Approval { fleet: fleet.fleet.clone(), id: guard.id.clone(), by: round::actor(), at: now };
    let what =
        format!("approved {} on fleet {}: {}", guard.id, fleet.fleet, guarded_changes(fleet, &guard.id));
    let entry = AuditEntry {
        at: now,
        who: round::actor(),
        what,
        plan: Some(look.round.plan.id.clone()),
        commit: look.round.plan.inputs.commit.clone(),
    };
    state
        .audit_person(&entry)
        .map_err(|error| Failure::of_state("could not write the audit trail", &error))?;
    state.approve(approval).map_err(|error| Failure::of_state("could not record the approval", &error))?;
    console.print(&format!(
        "Approved {} on fleet {}: {}.\nIt is used by the next apply: streamfleet apply {}\n",
        guard.id,
        fleet.fleet,
        guarded_changes(fleet, &guard.id),
        look.settings.tree_as_given
    ))?;
    Ok(exit::OK)
}

fn asks_for(waiting: &Waiting, id: &str) -> bool {
    matches!(waiting, Waiting::Approval { id: asked, .. } if asked == id)
}

/// What the approval is for, as the plan showed it beside the id.
fn guarded_changes(fleet: &FleetPlan, id: &str) -> String {
    let named: Vec<String> = fleet
        .changes
        .iter()
        .filter(|change| change.waiting.iter().any(|waiting| asks_for(waiting, id)))
        .map(|change| format!("{} {}", change.verb, change.resource))
        .collect();
    named.join(", ")
}

fn unknown_id(id: &str, guarded: &[(&FleetPlan, &Guard)]) -> Failure {
    let failure = Failure::new(format!("no step of the current plan waits for approval as `{id}`"));
    match guarded {
        [] => failure.hint("nothing waits for approval; see `streamfleet plan`"),
        _ => {
            let ids: Vec<String> = guarded
                .iter()
                .map(|(fleet, guard)| format!("{} on fleet {}", guard.id, fleet.fleet))
                .collect();
            failure.hint(format!(
                "what waits now: {}; the steps may have changed since you saw them",
                ids.join(", ")
            ))
        }
    }
}
