//! `streamfleet forget`: for a target that is gone for good.

use camino::Utf8PathBuf;
use clap::Args;
use jiff::Timestamp;
use uuid::Uuid;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::names::{FleetKey, Kind};
use crate::round::Installation;
use crate::state::RecordedEvent;
use crate::target::DirectoryTarget;

/// Forget what was applied to a fleet's target, because the target is gone for good. No target is touched.
///
/// The fleet and its clusters are forgotten as if they had never been applied. The audit trail records this.
#[derive(Debug, Args)]
pub struct Forget {
    /// The fleet, as ORGANIZATION/FLEET.
    #[arg(value_name = "FLEET")]
    fleet: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Don't ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

pub fn run(verb: &Forget, console: &mut Console) -> Result<u8, Failure> {
    let fleet = FleetKey::try_from(verb.fleet.clone())
        .map_err(|error| Failure::usage(error.to_string()).hint("for example: streamfleet forget acme/eu"))?;
    let settings = Settings::settle(&verb.tree)?;
    let installation = round::open(&settings, StateAccess::Existing, console)?;
    let Some(state) = &installation.state else {
        return Err(Failure::new(format!("nothing is recorded in `{}`", settings.state_dir)));
    };
    let recorded = state.recorded().map_err(|error| Failure::of_state("cannot read the state", &error))?;
    if !recorded.resources.contains_key(&fleet.resource()) && !recorded.fleets.contains_key(&fleet) {
        let known: Vec<String> = recorded.fleets.keys().map(ToString::to_string).collect();
        let failure = Failure::new(format!("fleet {fleet} is not recorded"));
        return Err(match known.as_slice() {
            [] => failure,
            _ => failure.hint(format!("recorded: {}", known.join(", "))),
        });
    }
    refuse_folder(&settings, &fleet, recorded.installation)?;
    refuse_cluster(&settings, &installation, &fleet)?;
    let objects = recorded.fleets.get(&fleet).map_or(0, |fleet| fleet.objects.len());
    console.tell(&format!(
        "Forgetting fleet {fleet} and its clusters: streamfleet will no longer manage {objects} objects on its target, and \
         nothing will delete them.\n"
    ));
    if !verb.yes && !console.confirm(&format!("Is the target of fleet {fleet} gone for good?"))? {
        console.tell("Nothing was forgotten.\n");
        return Ok(exit::PROBLEM);
    }
    let now = Timestamp::now();
    let what = format!("forgot fleet {fleet} and its clusters with {objects} objects");
    state
        .audit_person(RecordedEvent::done(now, round::actor(), what))
        .map_err(|error| Failure::of_state("cannot write the audit trail", &error))?;
    let forgotten =
        state.forget_fleet(&fleet, now).map_err(|error| Failure::of_state(attempt(&fleet), &error))?;
    let clusters = forgotten.iter().filter(|key| key.kind == Kind::Cluster);
    clusters.for_each(|cluster| console.tell(&format!("Forgot {cluster}.\n")));
    console.print(&format!("Forgot fleet {fleet}.\n"))?;
    Ok(exit::OK)
}

/// Refuses a fleet whose folder still has an inventory: the next round would take its objects up again.
fn refuse_folder(settings: &Settings, fleet: &FleetKey, installation: Uuid) -> Result<(), Failure> {
    let target =
        DirectoryTarget::new(settings.output_dir.clone(), fleet.clone(), Utf8PathBuf::new(), installation);
    let inventory = target
        .inventory()
        .map_err(|error| Failure::during(attempt(fleet), &error).hint(error.hint().to_owned()))?;
    match inventory {
        None => Ok(()),
        Some(inventory) => {
            Err(still_there(fleet, inventory.as_str(), "move the fleet's folder away and forget it then"))
        }
    }
}

/// As [`refuse_folder`], for a Kubernetes cluster. One that can't be reached may be gone.
fn refuse_cluster(settings: &Settings, installation: &Installation, fleet: &FleetKey) -> Result<(), Failure> {
    let (documents, runtime) = (round::read(settings)?, round::runtime()?);
    let inventory = installation
        .cluster_inventory(&documents, fleet, Timestamp::now(), runtime.handle())
        .map_err(round::unreadable_state)?;
    match inventory {
        None => Ok(()),
        Some(inventory) => Err(still_there(
            fleet,
            &inventory,
            "delete the namespace of that ConfigMap on the Kubernetes cluster and forget it then",
        )),
    }
}

fn attempt(fleet: &FleetKey) -> String {
    format!("cannot forget fleet {fleet}")
}

fn still_there(fleet: &FleetKey, inventory: &str, give_up: &str) -> Failure {
    let attempt = attempt(fleet);
    Failure::new(format!("{attempt}: its target still exists, and `{inventory}` lists streamfleet's objects"))
        .hint(format!(
            "to delete its clusters, remove their specs and apply; to leave the objects there, {give_up}"
        ))
}
