//! `streamfleet why`: why a cluster is as it is, from its file to the events of its pods, in one screen.

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::catalog::{Hold, Status};
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::Format;
use crate::cli::round::{self, Access, Look};
use crate::cli::settings::{Settings, TreeArgs};
use crate::health::objects::{self, Drifted, Objects};
use crate::interface::{self, Standing};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{self, Cause, Change, Reach, Verb, Waiting};
use crate::problem::Origin;
use crate::target::Target;

/// Show why a cluster is as it is: its spec, its status, what the plan does or waits for, the objects that are not as they
/// should be, the last warnings, and what to do next.
#[derive(Debug, Args)]
pub struct Why {
    /// The cluster: `acme/orders`, or `orders` where only one organization has it.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a page, JSON or YAML.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Everything there is to say.
#[derive(Debug, Serialize)]
struct Page {
    cluster: ResourceKey,
    fleet: Option<FleetKey>,
    spec: Option<Origin>,
    status: Status,
    reason: Option<String>,
    since: Option<String>,
    /// What was last told of one that can't be looked at now.
    last_known: Option<LastKnown>,
    plan: Vec<String>,
    /// Why no objects are told, where none are.
    unseen: Option<String>,
    /// What is amiss with the fleet as a whole.
    of_fleet: Vec<String>,
    objects: Objects,
    next: Vec<String>,
    #[serde(skip)]
    now: Timestamp,
}

/// How a cluster was when it was last looked at.
#[derive(Debug, Serialize)]
struct LastKnown {
    status: Status,
    reason: Option<String>,
    at: String,
    #[serde(skip)]
    age: SignedDuration,
}

/// Runs the verb.
pub fn run(verb: &Why, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let now = round::time(None);
    let look = round::look(settings, Access::ReadOnly, now, console)?;
    let cluster = look.find_cluster(&verb.cluster)?;
    let page = page(cluster, &look, now);
    match verb.format.data(&page)? {
        Some(text) => console.print(&text)?,
        None => console.print(&text(&page))?,
    }
    Ok(exit::OK)
}

fn page(cluster: ResourceKey, look: &Look, now: Timestamp) -> Page {
    let (round, checked) = (&look.round, &look.round.checked);
    let resource = checked.catalog.resources.get(&cluster);
    let recorded = checked.recorded.resources.get(&cluster);
    let change = round.plan.change(&cluster);
    let good = || recorded?.last_good.as_ref().map(|good| good.origin.clone());
    let Standing { status, reason, since, .. } = round.standing(&cluster);
    let fleet = round.fleet_of(&cluster);
    let drifted = drifted(change);
    let objects = round.sight(&cluster).map(|(wanted, seen)| objects::of(wanted, seen, &drifted));
    let mut page = Page {
        spec: change.and_then(|it| it.origin.clone()).or(resource.map(|it| it.origin.clone())).or_else(good),
        status,
        reason,
        since: since.map(interface::timestamp),
        last_known: last_known(&cluster, status, look, now),
        plan: change.map_or_else(
            || {
                vec![
                    if recorded.is_some() { "nothing to do" } else { "nothing of it was applied" }.to_owned(),
                ]
            },
            lines_of,
        ),
        unseen: objects.is_none().then(|| unseen(fleet.as_ref(), status, look)),
        objects: objects.unwrap_or_else(|| Objects::drifted(&drifted)),
        next: Vec::new(),
        of_fleet: of_fleet(fleet.as_ref(), look),
        fleet,
        cluster,
        now,
    };
    page.next = next(&page, change, look);
    page
}

/// What is amiss with the fleet as a whole, from which its clusters suffer alike.
fn of_fleet(fleet: Option<&FleetKey>, look: &Look) -> Vec<String> {
    let plans = look.round.plan.fleets.iter().filter(|plan| Some(&plan.fleet) == fleet);
    let conditions = plans.filter_map(|plan| plan.status.as_ref()).flat_map(|status| &status.conditions);
    let amiss = conditions.filter(|condition| condition.degraded);
    amiss.map(|condition| condition.message.clone()).collect()
}

/// The objects that somebody changed on the target.
fn drifted(change: Option<&Change>) -> Vec<Drifted<'_>> {
    let change = change.filter(|change| matches!(change.cause, Cause::Drift { .. }));
    let steps = change.into_iter().flat_map(|change| &change.steps);
    let steps = steps.filter(|step| step.verb != Verb::Delete);
    steps.map(|step| Drifted { object: &step.object, gone: step.verb == Verb::Create }).collect()
}

/// How one that can't be looked at was when it was looked at last.
fn last_known(cluster: &ResourceKey, status: Status, look: &Look, now: Timestamp) -> Option<LastKnown> {
    if status != Status::Unreachable {
        return None;
    }
    let (told, at) = look.round.last_known(cluster)?;
    let (status, reason) = (told.status, told.reason.clone());
    Some(LastKnown { status, reason, at: interface::timestamp(at), age: now.duration_since(at) })
}

fn unseen(fleet: Option<&FleetKey>, status: Status, look: &Look) -> String {
    let target = fleet.and_then(|fleet| look.round.targets.get(fleet));
    match (target, fleet, status) {
        (Some(Target::Directory(_)), Some(fleet), _) => {
            format!(
                "nothing is observed: fleet {fleet} is a folder, and whoever applies it knows how its objects are"
            )
        }
        (_, _, Status::Unreachable) => "not known, since they can't be looked at now".to_owned(),
        _ => "none were made yet".to_owned(),
    }
}

/// What the plan does, or waits for.
fn lines_of(change: &Change) -> Vec<String> {
    let done = match change.verb {
        Verb::Keep => Vec::new(),
        verb => {
            let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            let when = if change.waiting.is_empty() { "the next apply will" } else { "would" };
            vec![format!("{when} {verb} it{fields}")]
        }
    };
    let waits = change.waiting.iter().map(|waiting| format!("waits: {waiting}"));
    done.into_iter().chain(waits).collect()
}

/// What a person can do, the first thing first.
fn next(page: &Page, change: Option<&Change>, look: &Look) -> Vec<String> {
    let tree = look.settings.arguments.as_str();
    let waiting = |change: &Change| -> Vec<String> {
        change.waiting.iter().filter_map(|waiting| step(page, change, waiting, tree)).collect()
    };
    let mut next: Vec<String> =
        page.objects.amiss.iter().find_map(|it| it.next.clone()).into_iter().collect();
    next.extend(change.map(waiting).unwrap_or_default());
    if change.is_some_and(|change| change.waiting.is_empty() && change.verb != Verb::Keep) {
        next.push(format!("streamfleet apply {tree}"));
    }
    if next.is_empty() && page.status == Status::Unreachable {
        next.extend(hint_of_reach(page, look));
        next.push(format!("look again afterwards: streamfleet status {tree}"));
    }
    if next.is_empty() {
        next.push(if page.status == Status::Healthy { "nothing" } else { "wait, and look again" }.to_owned());
    }
    next
}

/// What a person can do about a target that can't be looked at.
fn hint_of_reach(page: &Page, look: &Look) -> Option<String> {
    let plans = &look.round.plan.fleets;
    let plan = plans.iter().find(|plan| Some(&plan.fleet) == page.fleet.as_ref())?;
    match &plan.reach {
        Reach::Unreachable { hint, .. } if !hint.is_empty() => Some(hint.clone()),
        _ => None,
    }
}

/// What a person can do about what a change waits for.
fn step(page: &Page, change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
    let spec = page.spec.as_ref().map_or_else(|| "its spec".to_owned(), ToString::to_string);
    match waiting {
        Waiting::Held(Hold::Invalid { .. }) => Some(format!("mend {spec}: streamfleet validate {tree}")),
        Waiting::Refused { .. } => match change.cause {
            Cause::Drift { .. } => Some(plan::UNDO_BY_HAND.to_owned()),
            _ => Some(format!("put {spec} back as it was, or do it another way")),
        },
        Waiting::Unreachable { hint, .. } if !hint.is_empty() => Some(hint.clone()),
        _ => plan::way_out(change, waiting, tree),
    }
}

/// The page for people: a word at the left, and what it says beside it.
fn text(page: &Page) -> String {
    let since = page.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    let spec = page.spec.as_ref().map_or_else(|| "no file names it".to_owned(), ToString::to_string);
    let fleet = page.fleet.as_ref().map(|fleet| format!(", on fleet {fleet}")).unwrap_or_default();
    let mut status = vec![format!("{}{since}", page.status)];
    status.extend(page.reason.clone());
    status.extend(page.of_fleet.iter().map(|amiss| format!("its fleet is Degraded: {amiss}")));
    status.extend(page.last_known.as_ref().map(|last| {
        let reason = last.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} ago it was {}{reason}", age(last.age), last.status)
    }));
    let events = page.objects.events.iter().map(|event| {
        let last =
            event.last.parse::<Timestamp>().map(|at| format!("{} ago", age(page.now.duration_since(at))));
        let last = last.unwrap_or_else(|_| "some time ago".to_owned());
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

fn object_lines(page: &Page) -> Vec<String> {
    let Objects { amiss, fine, .. } = &page.objects;
    let width = amiss.iter().map(|it| it.kind.len() + it.name.len() + 1).max().unwrap_or(0);
    let lines = amiss.iter().map(|it| format!("{:width$}  {}", format!("{} {}", it.kind, it.name), it.how));
    if let Some(unseen) = &page.unseen {
        return lines.chain([unseen.clone()]).collect();
    }
    let rest = match (fine, amiss.is_empty()) {
        (1, true) => "1 Kubernetes object is as it should be".to_owned(),
        (1, false) => "1 other Kubernetes object is as it should be".to_owned(),
        (fine, true) => format!("{fine} Kubernetes objects are as they should be"),
        (fine, false) => format!("{fine} other Kubernetes objects are as they should be"),
    };
    lines.chain([rest]).collect()
}

/// How long ago, as people say it.
fn age(age: SignedDuration) -> String {
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
            assert_eq!(age(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
