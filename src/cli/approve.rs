//! `streamfleet approve`: lets guarded steps run.

use clap::Args;
use jiff::Timestamp;

use crate::api::answer::PlanApproval;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::http::problem::code;
use crate::http::query::encoded;
use crate::plan::{Plan, is_approval_id};
use crate::round::{Approved, waiting_approvals};

/// Approve the guarded steps of one fleet, by the id that the plan prints beside them.
///
/// The approval covers exactly those steps, is used once, and expires after a day unless the config says
/// otherwise. While `serve` runs, the approval is passed to it.
#[derive(Debug, Args)]
pub struct Approve {
    /// The id that `streamfleet plan` prints.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    tree: TreeArgs,
}

pub fn run(verb: &Approve, console: &mut Console) -> Result<u8, Failure> {
    if !is_approval_id(&verb.id) {
        let failure = Failure::usage(format!("`{}` is not the id of an approval", verb.id));
        return Err(failure.hint(
            "give the 12 hexadecimal digits that the plan prints after `streamfleet approve`, then the tree: \
                streamfleet plan shows what waits",
        ));
    }
    let settings = Settings::settle(&verb.tree)?;
    let arguments = settings.arguments.clone();
    let (approved, then) = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => (ask(&mut daemon, &verb.id, console)?, "It takes effect now.".to_owned()),
        None => {
            let then = format!("It takes effect with the next apply: streamfleet apply {arguments}");
            (approve(verb, settings, console)?, then)
        }
    };
    match approved {
        Approved::Unknown { waiting } => return Err(unknown_id(&verb.id, &waiting, &arguments)),
        Approved::Before { by } => console.print(&format!("{} was approved already, by {by}.\n", verb.id))?,
        Approved::Now { fleet, changes } => {
            console.print(&format!("Approved {} on fleet {fleet}: {changes}.\n{then}\n", verb.id))?
        }
    }
    Ok(exit::OK)
}

/// Records the approval in the state, where no daemon runs.
fn approve(verb: &Approve, settings: Settings, console: &mut Console) -> Result<Approved, Failure> {
    let now = Timestamp::now();
    let look = round::plan_tree(settings, StateAccess::Write, now, console)?;
    let Some(state) = &look.installation.state else {
        return Err(Failure::new("cannot approve without a state"));
    };
    let approved = look.round.approve(state, &verb.id, &round::actor(), now);
    approved.map_err(|error| Failure::of_state("cannot record the approval", &error))
}

fn ask(daemon: &mut RunningDaemon, id: &str, console: &mut Console) -> Result<Approved, Failure> {
    let request = DaemonRequest::post(format!("/v1/plans/{}/approve", encoded(id)), None);
    match daemon.ask(request, console) {
        Ok(PlanApproval { fleet: Some(fleet), changes: Some(changes), .. }) => {
            Ok(Approved::Now { fleet, changes })
        }
        Ok(PlanApproval { approved_by: by, .. }) => Ok(Approved::Before { by }),
        Err(refused) if refused.is(&code::NOT_WAITING) => {
            let plan: Plan = daemon.ask(DaemonRequest::get("/v1/plan"), console)?;
            Ok(Approved::Unknown { waiting: waiting_approvals(&plan) })
        }
        Err(error) => Err(error.into()),
    }
}

fn unknown_id(id: &str, waiting: &[String], arguments: &str) -> Failure {
    let failure = Failure::new(format!("no step of the current plan waits for approval as `{id}`"));
    match waiting {
        [] => failure.hint(format!("nothing waits for approval; see `streamfleet plan {arguments}`")),
        _ => failure.hint(format!(
            "waiting for approval now: {}; the steps may have changed since you saw them",
            waiting.join(", ")
        )),
    }
}
