//! `streamfleet approve`: let guarded steps run.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, Access};
use crate::cli::settings::{Settings, TreeArgs};
use crate::round::Approved;
use crate::state::{self, Answer, Request, StateError};

/// How long the process that uses the state may take to answer: a target that is silent may hold up its plan.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often is looked whether it has.
const TICK: Duration = Duration::from_millis(50);

/// Approve the guarded steps of one fleet, by the id that the plan prints beside them.
///
/// The approval is for exactly those steps, is used once, and ends after a day unless the config says otherwise. Where `serve`
/// runs, it is given to that.
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
    if let Some(holder) = holder(&settings)? {
        return hand_over(verb, &settings, &holder, console);
    }
    let now = Timestamp::now();
    let look = round::look(settings, Access::Write, now, console)?;
    let Some(state) = &look.installation.state else {
        return Err(Failure::new("nothing can be approved without a state"));
    };
    let approved = look.round.approve(state, &verb.id, &round::actor(), now);
    let approved = approved.map_err(|error| Failure::of_state("could not record the approval", &error))?;
    match approved {
        Approved::Unknown { waiting } => {
            return Err(unknown_id(&verb.id, &waiting, &look.settings.arguments));
        }
        Approved::Before { by } => console.print(&format!("{} was approved already, by {by}.\n", verb.id))?,
        Approved::Now { fleet, changes } => console.print(&format!(
            "Approved {} on fleet {fleet}: {changes}.\nIt is used by the next apply: streamfleet apply {}\n",
            verb.id, look.settings.arguments
        ))?,
    }
    Ok(exit::OK)
}

/// The process that uses the state; none where none does.
fn holder(settings: &Settings) -> Result<Option<StateError>, Failure> {
    state::holder(&settings.state_dir).map_err(|error| {
        Failure::of_state(format!("could not open the state in `{}`", settings.state_dir), &error)
    })
}

/// Has the process approve that uses the state. Only `serve` hears it; what else uses the state is soon done.
fn hand_over(
    verb: &Approve,
    settings: &Settings,
    holder: &StateError,
    console: &mut Console,
) -> Result<u8, Failure> {
    let attempt = || format!("could not approve {}", verb.id);
    let failed = |error: &StateError| Failure::of_state(attempt(), error);
    let request = Request { approve: verb.id.clone(), by: round::actor() };
    let asked = state::ask(&settings.state_dir, &request).map_err(|error| failed(&error))?;
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(Answer { done, said, hint }) = asked.answer().map_err(|error| failed(&error))? {
            let answered = Failure { hint, ..Failure::new(said.clone()) };
            let mut letters = said.chars();
            let said = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters);
            return match done {
                true => console.print(&format!("{}.\n", said.collect::<String>())).map(|()| exit::OK),
                false => Err(answered),
            };
        }
        sleep(TICK);
    }
    Err(failed(holder))
}

fn unknown_id(id: &str, waiting: &[String], arguments: &str) -> Failure {
    let failure = Failure::new(format!("no step of the current plan waits for approval as `{id}`"));
    match waiting {
        [] => failure.hint(format!("nothing waits for approval; see `streamfleet plan {arguments}`")),
        _ => failure.hint(format!(
            "what waits now: {}; the steps may have changed since you saw them",
            waiting.join(", ")
        )),
    }
}
