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
use crate::target::{DirectoryTarget, InventoryPlace, Target};

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
    refuse_existing(&settings, &installation, &fleet, recorded.installation)?;
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

/// Refuses a fleet whose target still has an inventory: the next round would take its objects up again. A
/// target that can't be reached may be gone. A folder is looked for whatever the records say of the fleet.
fn refuse_existing(
    settings: &Settings,
    installation: &Installation,
    fleet: &FleetKey,
    id: Uuid,
) -> Result<(), Failure> {
    let runtime = round::runtime()?;
    let folder = DirectoryTarget::new(settings.output_dir.clone(), fleet.clone(), Utf8PathBuf::new(), id);
    let of_folder = runtime
        .block_on(Target::Directory(folder).inventory())
        .map_err(|error| Failure::during(attempt(fleet), &error).hint(error.hint().to_owned()))?;
    if let Some(inventory) = of_folder {
        return Err(still_there(fleet, &inventory));
    }
    let documents = round::read(settings)?;
    let of_target = installation
        .inventory(&documents, fleet, Timestamp::now(), runtime.handle())
        .map_err(round::unreadable_state)?;
    of_target.map_or(Ok(()), |inventory| Err(still_there(fleet, &inventory)))
}

fn attempt(fleet: &FleetKey) -> String {
    format!("cannot forget fleet {fleet}")
}

fn still_there(fleet: &FleetKey, inventory: &InventoryPlace) -> Failure {
    let (attempt, InventoryPlace { name, abandon }) = (attempt(fleet), inventory);
    Failure::new(format!("{attempt}: its target still exists, and `{name}` lists streamfleet's objects"))
        .hint(format!(
            "to delete its clusters, remove their specs and apply; to leave the objects there, {abandon}"
        ))
}
