//! `streamfleet why`: explains the state of one cluster, from its file to the events of its pods.

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::cli::console::Console;
use crate::cli::daemon_client::RunningDaemon;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::OutputFormat;
use crate::cli::named_cluster;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::component::health::objects::ObjectFindings;
use crate::plan;
use crate::record::Audience;
use crate::views::find_cluster;
use crate::views::why::{self, LastKnown, WhyReport, WhySubject};

/// Show why a cluster is as it is: its spec, its status, what the plan does or waits for, the objects that
/// are not as they should be, the last warnings, and what to do next.
#[derive(Debug, Args)]
pub struct Why {
    /// The cluster: `acme/orders`, or `orders` if only one organization has a cluster of that name.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a page, JSON or YAML.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

pub fn run(verb: &Why, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let (now, tree) = (round::time(None), settings.arguments.clone());
    let mut page: WhyReport = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => {
            let request = named_cluster::request(&verb.cluster, "why");
            named_cluster::ask(&mut daemon, &verb.cluster, request, console)?
        }
        None => {
            let look = round::plan_tree(settings, StateAccess::ReadOnly, now, console)?;
            let cluster = find_cluster(&look.round.clusters(), &verb.cluster)?;
            let subject = WhySubject { cluster, unplanned: None, written: None };
            why::report(&look.round, subject, Audience::Host, look.runtime())
        }
    };
    page.name_tree(&tree);
    match verb.format.data(&page)? {
        Some(text) => console.print(&text)?,
        None => console.print(&text(&page, now))?,
    }
    Ok(exit::OK)
}

/// Lays the page out as text: a title at the left, its lines beside it.
fn text(page: &WhyReport, now: Timestamp) -> String {
    let ago =
        |at: &str| at.parse::<Timestamp>().map(|at| format!("{} ago", format_age(now.duration_since(at))));
    let since = page.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    let spec = page.spec.as_ref().map_or_else(|| "spec file missing".to_owned(), ToString::to_string);
    let fleet = page.fleet.as_ref().map(|fleet| format!(", on fleet {fleet}")).unwrap_or_default();
    let mut status = vec![format!("{}{since}", page.status)];
    status.extend(page.reason.clone());
    status.extend(page.of_fleet.iter().map(|amiss| format!("its fleet is Degraded: {amiss}")));
    status.extend(page.last_known.as_ref().map(|LastKnown { status, reason, at }| {
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} its status was {status}{reason}", ago(at).unwrap_or_else(|_| at.clone()))
    }));
    let events = page.objects.events.iter().map(|event| {
        let last = ago(&event.last).unwrap_or_else(|_| "some time ago".to_owned());
        format!("{last}  {}  {}: {}", event.object, event.reason, event.message)
    });
    let mut text = format!("{}{fleet}\n\n", page.cluster);
    for (title, lines) in [
        ("spec", vec![spec]),
        ("status", status),
        ("plan", page.plan.clone()),
        ("objects", object_lines(page)),
        ("warnings", events.collect()),
        ("next", page.next.clone()),
    ] {
        for (index, line) in lines.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            text += &format!("{title:10}{}\n", plan::plain(line));
        }
    }
    text
}

fn object_lines(page: &WhyReport) -> Vec<String> {
    let ObjectFindings { amiss, fine, .. } = &page.objects;
    let width = amiss.iter().map(|it| it.kind.len() + it.name.len() + 1).max().unwrap_or(0);
    let lines = amiss.iter().map(|it| format!("{:width$}  {}", format!("{} {}", it.kind, it.name), it.how));
    if let Some(unseen) = &page.unseen {
        return lines.chain([unseen.clone()]).collect();
    }
    let rest = match (fine, amiss.is_empty()) {
        (1, true) => "1 Kubernetes object is healthy".to_owned(),
        (1, false) => "1 other Kubernetes object is healthy".to_owned(),
        (fine, true) => format!("{fine} Kubernetes objects are healthy"),
        (fine, false) => format!("{fine} other Kubernetes objects are healthy"),
    };
    lines.chain([rest]).collect()
}

pub fn format_age(age: SignedDuration) -> String {
    match age.as_secs() {
        seconds @ ..120 => format!("{} s", seconds.max(0)),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_unit_that_a_person_would_use() {
        for (seconds, expected) in
            [(-3, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 days")]
        {
            assert_eq!(format_age(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
