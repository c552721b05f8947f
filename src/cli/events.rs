//! `streamfleet events`: recent decisions and their outcomes, from the file that every writer of the state
//! appends to.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use jiff::{Span, SpanRelativeTo, Timestamp};

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::{self, OutputFormat};
use crate::cli::settings::{Settings, TreeArgs};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::plain;
use crate::record;
use crate::spec::Commit;
use crate::state::{Follower, RecordedEvent};

/// The polling interval of `--follow`.
const TICK: Duration = Duration::from_millis(200);

/// Show recent decisions and outcomes: who did what, why, by which plan and commit, or what it waits for.
///
/// At least the latest 8 MiB of events are kept. The audit trail keeps what was done for ever.
#[derive(Debug, Args)]
pub struct EventsVerb {
    #[command(flatten)]
    tree: TreeArgs,
    /// Keep running, and print events as they happen.
    #[arg(long, short)]
    follow: bool,
    /// Only events on a fleet: ORGANIZATION/FLEET.
    #[arg(long, value_name = "FLEET", value_parser = fleet)]
    fleet: Option<FleetKey>,
    /// Only events about a resource: NAME, ORGANIZATION/NAME, or KIND/ORGANIZATION/NAME.
    #[arg(long, value_name = "RESOURCE")]
    resource: Option<String>,
    /// Only events since a time, `2026-11-22T07:00:00Z`, or within a duration, `30m`, `12h`, `7d`.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Print a line for each event, JSON with one event on each line, or YAML documents.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

pub fn run(verb: &EventsVerb, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let mut follower = Follower::of(&settings.state_dir);
    let mut is_first = true;
    loop {
        let news =
            follower.unread_events().map_err(|error| Failure::of_state("cannot read the events", &error))?;
        let shown = news.iter().filter(|event| verb.shows(event)).map(|event| verb.text(event));
        let text = shown.collect::<Result<String, Failure>>()?;
        // With nothing new, a closed pipe is no error yet.
        if !text.is_empty() {
            console.print(&text)?;
        }
        // With `--follow`, the first event of the named resource may still come.
        match verb.unknown(&news).filter(|_| is_first) {
            Some(Failure { chain, hint, .. }) if verb.follow => {
                console.warn(&[chain.concat(), hint.unwrap_or_default()].join("; "));
            }
            Some(unknown) => return Err(unknown),
            None => {}
        }
        is_first = false;
        if !verb.follow {
            return Ok(exit::OK);
        }
        sleep(TICK);
    }
}

impl EventsVerb {
    fn shows(&self, event: &RecordedEvent) -> bool {
        self.is_on_fleet(event) && self.is_about(event) && self.since.is_none_or(|since| event.at >= since)
    }

    fn is_on_fleet(&self, event: &RecordedEvent) -> bool {
        self.fleet.as_ref().is_none_or(|fleet| {
            event.fleet.as_ref() == Some(fleet) || event.resource.as_ref() == Some(&fleet.resource())
        })
    }

    fn is_about(&self, event: &RecordedEvent) -> bool {
        self.resource
            .as_ref()
            .is_none_or(|named| event.resource.as_ref().is_some_and(|resource| is_named(resource, named)))
    }

    /// Returns an error when no event at all is about the named fleet or resource, which may be misspelled.
    fn unknown(&self, all: &[RecordedEvent]) -> Option<Failure> {
        let listed = |names: BTreeSet<String>| match names.is_empty() {
            true => "there are no events yet".to_owned(),
            false => format!("there are events about {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        };
        if let Some(fleet) = self.fleet.as_ref().filter(|_| !all.iter().any(|event| self.is_on_fleet(event)))
        {
            let known = all.iter().filter_map(|event| event.fleet.as_ref().map(ToString::to_string));
            let failure = Failure::new(format!("there are no events on fleet {fleet}"));
            return Some(failure.hint(listed(known.collect())));
        }
        let named = self.resource.as_ref().filter(|_| !all.iter().any(|event| self.is_about(event)))?;
        let known = all.iter().filter_map(|event| event.resource.as_ref().map(ToString::to_string));
        Some(
            Failure::new(format!("there are no events about a resource {named}"))
                .hint(listed(known.collect())),
        )
    }

    fn text(&self, event: &RecordedEvent) -> Result<String, Failure> {
        match self.format {
            OutputFormat::Human => Ok(line(event)),
            OutputFormat::Json => serde_json::to_string(event)
                .map(|line| format::harmless_json(&line) + "\n")
                .map_err(|error| Failure::during("cannot write the data", &error)),
            OutputFormat::Yaml => Ok(format!("---\n{}", self.format.data(event)?.unwrap_or_default())),
        }
    }
}

fn is_named(resource: &ResourceKey, named: &str) -> bool {
    let path = resource.path();
    path == named
        || resource.name == named
        || named
            .split_once('/')
            .is_some_and(|(kind, rest)| Kind::meant_by(kind) == Some(resource.kind) && rest == path)
}

/// `2026-11-22T07:00:00Z  done     cluster acme/orders created on acme/eu: its spec is new
/// (acme/orders.yaml:1) [ann, plan 7c1e90]`.
fn line(event: &RecordedEvent) -> String {
    let RecordedEvent { at, actor, commit, plan, fleet, resource, outcome, what, why, .. } = event;
    let mut line = format!("{}  {:7}  ", record::timestamp(*at), outcome.as_str());
    // A user's action is already a whole sentence that names the resource.
    if let Some(resource) = resource.as_ref().filter(|resource| !what.contains(&resource.to_string())) {
        line.push_str(&format!("{resource} "));
    }
    line.push_str(what);
    if let Some(fleet) = fleet.as_ref().filter(|fleet| resource.as_ref() != Some(&fleet.resource())) {
        line.push_str(&format!(" on {fleet}"));
    }
    if !why.is_empty() {
        line.push_str(&format!(": {why}"));
    }
    let plan = plan.as_ref().map(|plan| format!("plan {plan}"));
    let commit = commit.as_ref().map(|Commit { id, author, .. }| format!("commit {id:.12} by {author}"));
    let by: Vec<String> = [Some(actor.clone()), plan, commit].into_iter().flatten().collect();
    let line = format!("{line} [{}]", by.join(", ")).replace("\n ", " ");
    plain(&line) + "\n"
}

fn fleet(text: &str) -> Result<FleetKey, String> {
    FleetKey::try_from(text.to_owned()).map_err(|error| error.to_string())
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    let span: Option<Span> = text.parse().ok();
    let duration = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    let at = duration
        .filter(|duration| duration.is_positive())
        .map(|duration| Timestamp::now().checked_sub(duration));
    match at {
        Some(Ok(at)) => Ok(at),
        _ => {
            Err("it is neither a time such as 2026-11-22T07:00:00Z nor an age such as 30m, 12h or 7d"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::EVENT_BYTES_KEPT;

    #[test]
    fn the_help_says_how_much_is_kept() {
        let help = EventsVerb::augment_args(clap::Command::new("events")).render_long_help().to_string();
        let kept = format!("At least the latest {} MiB of events are kept.", EVENT_BYTES_KEPT >> 20);
        assert!(help.contains(&kept), "{help}");
    }

    #[test]
    fn an_event_is_one_line_and_commands_no_terminal() {
        let event: RecordedEvent = serde_json::from_value(json!({
            "at": "2026-11-22T07:00:00Z", "actor": "ann", "plan": "7c1e90", "outcome": "failed",
            "fleet": "acme/eu", "resource": "Cluster/acme/orders", "what": "could not be changed",
            "why": "it said\n no\r\n2026-11-22T07:00:01Z  done\u{1b}[2J\u{202e}\u{200b}",
        }))
        .unwrap();
        assert_eq!(
            line(&event),
            "2026-11-22T07:00:00.000000Z  failed   cluster acme/orders could not be changed on acme/eu: it said no\\r\\n\
             2026-11-22T07:00:01Z  done\\u{1b}[2J\\u{202e}\\u{200b} [ann, plan 7c1e90]\n"
        );
    }
}
