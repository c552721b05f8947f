//! `streamfleet status`: shows the status of all fleets and clusters.

use clap::Args;

use crate::catalog::Gauge;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::OutputFormat;
use crate::cli::round::{self, CommandRound, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::plan::plain;
use crate::state::JournalEntry;
use crate::views::status::{self, StatusLine, StatusList};

/// Show the status of every fleet and cluster, and what an interrupted apply left unfinished.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

pub fn run(verb: &Status, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let shown = settings.shown();
    let (lines, left) = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => {
            let list: StatusList = daemon.ask(DaemonRequest::get("/v1/status"), console)?;
            (list.items, String::new())
        }
        None => {
            let look = round::plan_tree(settings, StateAccess::ReadOnly, round::time(None), console)?;
            (status::list(&look.round, &[], |key| look.round.standing(key), |_| true).items, left(&look)?)
        }
    };
    match verb.format.data(&lines)? {
        Some(text) => console.print(&text)?,
        None => console.print(&table(&lines, &left, &shown))?,
    }
    Ok(exit::OK)
}

/// Lists the steps that an interrupted apply left. A running daemon finishes them itself.
fn left(look: &CommandRound) -> Result<String, Failure> {
    let Some(state) = &look.installation.state else {
        return Ok("Nothing has been applied yet.\n".to_owned());
    };
    let unfinished =
        state.journal_unfinished().map_err(|error| Failure::of_state("cannot read the journal", &error))?;
    let line = |JournalEntry { fleet, description, .. }: &JournalEntry| {
        let what = plain(description);
        format!("An apply was interrupted on fleet {fleet}: {what}. The next one completes it.\n")
    };
    Ok(unfinished.iter().map(line).collect())
}

fn table(lines: &[StatusLine], left: &str, tree: &str) -> String {
    if lines.is_empty() {
        return format!("No fleet in {tree}.\n");
    }
    let name = |line: &StatusLine| {
        let indent = if line.kafka_units.is_some() { "" } else { "  " };
        format!("{indent}{}", line.resource)
    };
    let width = lines.iter().map(|line| name(line).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let use_of = line
            .kafka_units
            .zip(line.clusters)
            .map(|(units, clusters)| format!("units {}, clusters {}", used(units), used(clusters)));
        let detail = plain(&line.reason.clone().or(use_of).unwrap_or_default());
        let row = format!("{:width$}  {:12}  {detail}", name(line), line.status.to_string());
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text + left
}

fn used(gauge: Gauge) -> String {
    match gauge.limit {
        Some(limit) => format!("{} of {limit}", gauge.before),
        None => gauge.before.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Status;
    use crate::names::is_deceptive;

    #[test]
    fn what_a_server_says_commands_no_terminal() {
        let line = StatusLine {
            resource: "Cluster/acme/orders".to_owned().try_into().unwrap(),
            status: Status::Degraded,
            reason: Some("pod\r\u{1b}[2J\u{202e}\u{200b}\u{9b}31m".to_owned()),
            since: None,
            kafka_units: None,
            clusters: None,
        };
        let table = table(&[line], "", "tree");
        assert!(table.contains("cluster acme/orders  Degraded      pod"), "{table:?}");
        assert_eq!(table.find(|it: char| it != '\n' && is_deceptive(it)), None, "{table:?}");
    }
}
