//! `streamfleet apply`: carries out the plan.

use camino::Utf8PathBuf;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::failure::Failure;
use crate::cli::last_used::SettingsComparison;
use crate::cli::round::{self, CommandRound, StateAccess};
use crate::cli::settings::{InstallationArgs, Settings, TreeArgs};
use crate::cli::{exit, report, saved_plan};
use crate::execute::{ExecutionProgress, ExecutionReport};
use crate::plan::{Inputs, Plan};
use crate::state::State;

/// Show the plan, ask, and carry out exactly that plan.
///
/// While `serve` runs, it applies changes itself: this command then shows its plan and does nothing.
///
/// Exit codes: 0 all done or nothing to do, 3 something waits, 1 a problem.
#[derive(Debug, Args)]
pub struct Apply {
    /// The folder of spec files, or a plan that `plan --out` saved. Default: the git repository of the
    /// settings, otherwise the current folder.
    #[arg(value_name = "TREE|PLAN")]
    what: Option<Utf8PathBuf>,
    #[command(flatten)]
    installation: InstallationArgs,
    /// Don't ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

pub fn run(verb: &Apply, console: &mut Console) -> Result<u8, Failure> {
    let saved = verb.what.as_deref().filter(|what| what.is_file()).map(saved_plan::read).transpose()?;
    let settings = settle(verb, saved.as_ref())?;
    if let Some(mut daemon) = RunningDaemon::of(&settings)? {
        return leave_to(&mut daemon, &settings, console);
    }
    let mut used = SettingsComparison::of(&settings)?;
    used.warnings.iter().for_each(|warning| console.warn(warning));
    if verb.yes {
        used.refuse()?;
    }
    // Without `--yes` no state is created before the plan is confirmed: a no leaves nothing behind.
    let access = match State::exists(&settings.state_dir) || (verb.yes && !is_empty(&settings)) {
        true => StateAccess::Write,
        false => StateAccess::ReadOnly,
    };
    let look = round::plan_tree(settings, access, round::time(None), console)?;
    if let Some(saved) = &saved {
        refuse_stale(saved, &look)?;
    }
    report::plan(&look.round.plan, &look.settings.arguments, console)?;
    let ask = look.round.plan.has_work() && !verb.yes;
    if ask && !console.confirm("Apply this plan?")? {
        console.tell("Nothing was changed.\n");
        return Ok(exit::PROBLEM);
    }
    let look = match look.installation.state {
        Some(_) => look,
        None if !look.round.plan.has_work() => {
            return Ok(exit_code(&look.round.plan, &ExecutionReport::default()));
        }
        None => begin(&look, console)?,
    };
    used.remember(ask)?;
    let outcome = execute(&look)?;
    tell_outcome(&outcome, &look, console)?;
    Ok(exit_code(&look.round.plan, &outcome))
}

/// Whether a tree has no file at all, so that there is nothing to record. Read errors are reported later.
fn is_empty(settings: &Settings) -> bool {
    !settings.from_git && round::read(settings).is_ok_and(|documents| documents.files.is_empty())
}

/// A running `serve` holds the state and applies by itself, so this command only shows its plan.
fn leave_to(daemon: &mut RunningDaemon, settings: &Settings, console: &mut Console) -> Result<u8, Failure> {
    let plan: Plan = daemon.ask(DaemonRequest::get("/v1/plan"), console)?;
    let arguments = &settings.arguments;
    report::plan(&plan, arguments, console)?;
    if !plan.has_work() {
        return Ok(exit_code(&plan, &ExecutionReport::default()));
    }
    let failure = Failure::new(
        "this command changed nothing: the running daemon applies such a plan itself, immediately",
    );
    Err(failure.hint(format!(
        "follow its progress with `streamfleet status {arguments}` or `streamfleet events {arguments}`; to apply by \
            hand, stop the daemon first"
    )))
}

fn settle(verb: &Apply, saved: Option<&Plan>) -> Result<Settings, Failure> {
    let tree = match saved {
        Some(Plan { inputs: Inputs { source, commit: None, .. }, .. }) => Some(source.0.clone().into()),
        // The plan was made from the git repository that the settings name.
        Some(_) => None,
        None => verb.what.clone(),
    };
    Settings::settle(&TreeArgs { tree, installation: verb.installation.clone() })
}

/// Refuses a saved plan unless planning again gives the same: what was reviewed is what is applied.
fn refuse_stale(saved: &Plan, fresh: &CommandRound) -> Result<(), Failure> {
    let reasons = saved.staleness(&fresh.round.plan);
    if reasons.is_empty() {
        return Ok(());
    }
    let list: String = reasons.iter().map(|reason| format!("\n  - {reason}")).collect();
    Err(Failure::new(format!("the saved plan {} is out of date:{list}", saved.id)).hint(format!(
        "nothing was changed; plan again with: streamfleet plan {} --out FILE",
        fresh.settings.arguments
    )))
}

/// Creates the state of a new installation after its first plan was confirmed. Plans again with that state,
/// and refuses if the plan id changed: what was reviewed is what is applied.
fn begin(seen: &CommandRound, console: &mut Console) -> Result<CommandRound, Failure> {
    let look = round::plan_tree(seen.settings.clone(), StateAccess::Write, round::time(None), console)?;
    if look.round.plan.id == seen.round.plan.id {
        return Ok(look);
    }
    let message = format!("the inputs of plan {} changed while you read it", seen.round.plan.id);
    Err(Failure::new(message)
        .hint(format!("nothing was changed; plan again with: streamfleet plan {}", seen.settings.arguments)))
}

fn execute(look: &CommandRound) -> Result<ExecutionReport, Failure> {
    let bar = progress_bar(look.round.plan.step_count());
    let mut progress = |progress: ExecutionProgress<'_>| {
        if let ExecutionProgress::Step { fleet, object, .. } = progress {
            bar.set_message(format!("{fleet} {object}"));
            bar.inc(1);
        }
    };
    let report = look.execute(&mut progress);
    bar.finish_and_clear();
    report
}

/// Returns a bar on standard error. It is hidden for short plans and where that is no terminal.
fn progress_bar(steps: usize) -> ProgressBar {
    const LONG: usize = 20;
    let target = if steps < LONG { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
    match ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn tell_outcome(report: &ExecutionReport, look: &CommandRound, console: &mut Console) -> Result<(), Failure> {
    let mut text = String::new();
    if !report.done.is_empty() {
        let resources = count(report.done.len(), "resource");
        text = match report.steps {
            0 if report.failed.is_empty() => {
                format!("\nRecorded {resources}; the targets needed no changes.\n")
            }
            0 => format!("\nRecorded {resources}; nothing was changed on the targets.\n"),
            steps => format!("\nApplied {resources} in {}.\n", count(steps, "step")),
        };
    }
    for folder in look.written_folders() {
        text.push_str(&format!("Manifests are in {folder}\n"));
    }
    if look.got_certificate(report) {
        let again = &look.settings.arguments;
        text.push_str(&format!("A certificate was got; for clusters to use it: streamfleet apply {again}\n"));
    }
    console.print(&text)?;
    for failed in &report.failed {
        console.failed(&failed.to_string(), &failed.hint);
    }
    Ok(())
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Judges what remains after the run. Changes that were applied don't count, so the code is never 2.
fn exit_code(plan: &Plan, report: &ExecutionReport) -> u8 {
    if !report.failed.is_empty() || plan.summary.errors > 0 {
        exit::PROBLEM
    } else if plan.summary.waiting > 0 {
        exit::WAITING
    } else {
        exit::OK
    }
}
