//! `streamfleet plan`: shows what would be done.

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use jiff::Timestamp;

use crate::api::proposal;
use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::failure::Failure;
use crate::cli::format::OutputFormat;
use crate::cli::last_used::SettingsComparison;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::cli::{checkout, report, saved_plan};
use crate::plan;
use crate::spec::Snapshot;

/// Show what `apply` would do, and why some of it waits. Nothing is changed.
///
/// Exit codes: 0 nothing to do, 2 changes, 3 something waits, 1 a problem.
#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    tree: TreeArgs,
    /// Plan these specs as if they were the tree's: a checkout, such as a pull request's. Nothing is written,
    /// and no Kubernetes cluster is connected to with a kubeconfig that was not applied. The settings, the
    /// state, the secrets and the output must be outside of the checkout.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    checkout: Option<Utf8PathBuf>,
    /// Print the plan as text, as Markdown for a comment on a pull request, or whole as JSON or YAML.
    #[arg(long, value_enum, default_value_t = PlanFormat::Human)]
    format: PlanFormat,
    /// Save the plan to this file, for `streamfleet apply FILE`.
    #[arg(long, value_name = "FILE")]
    out: Option<Utf8PathBuf>,
    /// Plan as of this time, as in 2027-01-31T00:00:00Z, to see what expires by then.
    #[arg(long, value_name = "TIME", conflicts_with = "out")]
    at: Option<Timestamp>,
}

/// Output formats of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlanFormat {
    /// Text for people.
    Human,
    /// Markdown, for a comment on GitHub, GitLab or Gitea.
    Markdown,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

pub fn run(verb: &Plan, console: &mut Console) -> Result<u8, Failure> {
    let proposed = verb.checkout.as_deref();
    let config = verb.tree.installation.config.as_deref();
    proposed.map_or(Ok(()), |proposed| checkout::refuse_its_settings(proposed, config))?;
    let settings = Settings::settle(&verb.tree)?;
    proposed.map_or(Ok(()), |proposed| checkout::refuse_its_folders(proposed, &settings))?;
    if let Some(proposed) = proposed.filter(|_| verb.tree.tree.is_none()) {
        checkout::refuse_no_tree(proposed, &settings)?;
    }
    verb.out.iter().try_for_each(|file| saved_plan::refuse_other(file, &settings))?;
    // A saved plan refers to secrets by keyed fingerprints. The key has to be stored, so that it is the same
    // when the plan is applied.
    let access = if verb.out.is_some() { StateAccess::Write } else { StateAccess::ReadOnly };
    let now = round::time(verb.at);
    let (arguments, flags) = (settings.arguments.clone(), settings.flags.clone());
    let proposed = proposed.map(|proposed| checkout::read(&settings, proposed)).transpose()?;
    let plan = match (RunningDaemon::of(&settings)?, &proposed) {
        (Some(mut daemon), None) => {
            daemon.ask(DaemonRequest::get("/v1/plan").with("at", verb.at), console)?
        }
        (Some(mut daemon), Some(proposed)) => {
            let request = DaemonRequest::post("/v1/plans", Some(sent(proposed)?));
            daemon.ask(request.with("at", verb.at), console)?
        }
        (None, None) => {
            SettingsComparison::of(&settings)?.warnings.iter().for_each(|warning| console.warn(warning));
            round::plan_tree(settings, access, now, console)?.round.plan
        }
        (None, Some(proposed)) => round::plan_checkout(settings, proposed, now, console)?.round.plan,
    };
    let text = match verb.format {
        PlanFormat::Human => None,
        PlanFormat::Markdown => Some(plan::markdown(&plan, &arguments)),
        PlanFormat::Json => OutputFormat::Json.data(&plan)?,
        PlanFormat::Yaml => OutputFormat::Yaml.data(&plan)?,
    };
    match text {
        Some(text) => console.print(&text)?,
        None => report::plan(&plan, &arguments, console)?,
    }
    if let Some(file) = &verb.out {
        saved_plan::write(file, &plan)?;
        let apply = command::line(&["apply", &command::quoted(file), &flags]);
        console.tell(&format!("saved to {file}; apply exactly this with: {apply}\n"));
    }
    Ok(plan.exit_code())
}

/// Serializes a proposal for a daemon, which may not be able to read the checkout itself.
fn sent(proposed: &Snapshot) -> Result<Vec<u8>, Failure> {
    let body = proposal::body(proposed);
    let body = body.map_err(|error| Failure::during("cannot write the specs of the checkout", &error))?;
    match body.len() {
        ..=proposal::LARGEST => Ok(body),
        length => Err(Failure::new(format!(
            "the specs of the checkout are too large for the running daemon: they have {} MiB when sent, and the limit is \
             {} MiB",
            length >> 20,
            proposal::LARGEST >> 20
        ))
        .hint("give a folder in it that contains only specs")),
    }
}
