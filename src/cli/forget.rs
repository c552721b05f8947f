//! `streamfleet forget`: for a target that is gone for good.

use clap::Args;
use jiff::Timestamp;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, Access};
use crate::cli::settings::{Settings, TreeArgs};
use crate::names::FleetKey;
use crate::state::AuditEntry;

/// Forget what a fleet's target held, because the target is gone for good. Nothing on any target is touched.
///
/// The fleet and its clusters are forgotten as if they had never been applied. The audit trail keeps who did it and when.
#[derive(Debug, Args)]
pub struct Forget {
    /// The fleet, as ORGANIZATION/FLEET.
    #[arg(value_name = "FLEET")]
    fleet: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Don't ask.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the verb.
pub fn run(verb: &Forget, console: &mut Console) -> Result<u8, Failure> {
    let fleet = FleetKey::try_from(verb.fleet.clone())
        .map_err(|error| Failure::usage(error.to_string()).hint("for example: streamfleet forget acme/eu"))?;
    let settings = Settings::settle(&verb.tree)?;
    let Some(state) = round::open_state(&settings, Access::ReadOnly, console)? else {
        return Err(Failure::new(format!("nothing is recorded in `{}`", settings.state_dir)));
    };
    let recorded = state.recorded().map_err(|error| Failure::of_state("could not read the state", &error))?;
    if !recorded.resources.contains_key(&fleet.resource()) && !recorded.fleets.contains_key(&fleet) {
        let known: Vec<String> = recorded.fleets.keys().map(ToString::to_string).collect();
        let failure = Failure::new(format!("no fleet {fleet} is recorded"));
        return Err(match known.as_slice() {
            [] => failure,
            _ => failure.hint(format!("recorded are: {}", known.join(", "))),
        });
    }
    let objects = recorded.fleets.get(&fleet).map_or(0, |fleet| fleet.objects.len());
    console.tell(&format!(
        "Forgetting fleet {fleet}: {objects} objects on its target will no longer be known as ours, and nothing will \
         ever remove them.\n"
    ));
    if !verb.yes && !console.confirm(&format!("Is the target of fleet {fleet} gone for good?"))? {
        console.tell("Nothing was forgotten.\n");
        return Ok(exit::PROBLEM);
    }
    let entry = AuditEntry {
        at: Timestamp::now(),
        who: round::actor(),
        what: format!("forgot fleet {fleet} with {objects} objects"),
        plan: None,
    };
    state.audit(&entry).map_err(|error| Failure::of_state("could not write the audit trail", &error))?;
    state
        .forget_fleet(&fleet)
        .map_err(|error| Failure::of_state(format!("could not forget fleet {fleet}"), &error))?;
    console.print(&format!("Forgot fleet {fleet}.\n"))?;
    Ok(exit::OK)
}
