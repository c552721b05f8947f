//! The plan as text: each change with its cause, its consequences, and how to resolve what it waits for.

mod markdown;
mod objects;
mod reason;
mod remarks;
mod size;
mod text;
mod words;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;

use crate::catalog::{Condition, Gauge, OrganizationCapacity, ResourceStatus, Status};
use crate::component::health;
use crate::names::ResourceKey;
use crate::plan::preflight::OPERATOR_MISSING;
use crate::plan::{
    Cause, Change, FleetPlan, OrganizationPlan, Plan, Reach, Remark, SizeChange, Summary, Verb, Waiting,
};
use crate::spec::InfraType;
pub use markdown::markdown;
pub use reason::reason;
pub(super) use size::{left, tenths};
pub use text::{plain, plain_lines};
pub use words::wait_remedy;

#[derive(Debug, Clone, Copy)]
pub struct Audience<'a> {
    pub color: bool,
    /// The column at which a line with a file position ends. Names are never cut, so a line may be longer.
    pub width: usize,
    /// The spec tree as the user named it, for the commands that the plan suggests.
    pub tree: &'a str,
}

pub fn display(plan: &Plan, reader: Audience<'_>) -> String {
    let mut page = PlanText { text: String::new(), reader, now: plan.created_at, unreached: None };
    for organization in plan.organizations.iter().filter(|plan| !plan.changes.is_empty()) {
        page.organization(organization);
    }
    for fleet in plan.fleets.iter().filter(|plan| has_news(plan)) {
        page.fleet(fleet);
    }
    page.summary(plan);
    page.text
}

const CREATED: Style = AnsiColor::Green.on_default();
const CHANGED: Style = AnsiColor::Yellow.on_default();
const DELETED: Style = AnsiColor::Red.on_default();
const WAITS: Style = AnsiColor::Magenta.on_default().bold();
const HEADER: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const NORMAL: Style = Style::new();

/// How many clusters in trouble are shown per fleet.
const UNWELL: usize = 10;

struct PlanText<'a> {
    text: String,
    reader: Audience<'a>,
    now: Timestamp,
    /// The short wait shown for further changes on an unreachable fleet, once the reason was printed.
    unreached: Option<String>,
}

impl PlanText<'_> {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.reader.color && style != NORMAL { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes one line. Text from users is made safe for terminals here, wherever it comes from.
    fn line(&mut self, indent: usize, style: Style, text: &str) {
        let line = self.paint(style, &plain(text));
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn header(&mut self, name: &str, rest: &str) {
        let header = self.paint(HEADER, &plain(name));
        let line = format!("{header}   {}", plain(rest));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn organization(&mut self, plan: &OrganizationPlan) {
        self.header(&format!("organization {}", plan.organization), &gauges(&plan.capacity).join("    "));
        plan.changes.iter().for_each(|change| self.change(change, None));
        self.text.push('\n');
    }

    fn fleet(&mut self, plan: &FleetPlan) {
        let Some(infra_type) = plan.infra_type else {
            self.header(&format!("fleet {}", plan.fleet), "no such fleet");
            plan.changes.iter().for_each(|change| self.change(change, None));
            return self.text.push('\n');
        };
        let state = kind_and_status(plan, infra_type);
        let gauges = [gauge("units", &plan.kafka_units), gauge("clusters", &plan.clusters)].join("    ");
        self.header(&format!("fleet {}", plan.fleet), &format!("{state}      {gauges}"));
        if let Reach::Unreachable { last_seen, refused: false, .. } = &plan.reach {
            let line = words::last_known(*last_seen, self.now);
            self.line(2, WAITS, &line);
        }
        if let Some(reason) = plan.status.as_ref().and_then(|status| status.reason.as_ref()) {
            self.line(2, WAITS, &format!("! {reason}"));
        }
        let unreached = unreached(plan);
        if let Some(waiting) = unreached.filter(|_| says_once(plan)) {
            self.line(2, WAITS, &format!("! {waiting}"));
            self.unreached = Some(not_reached(plan));
        }
        let conditions = plan.conditions.iter().filter(|condition| !is_told(plan, condition));
        conditions.for_each(|condition| self.condition(condition));
        let sizes = plan.sizes.as_ref();
        let fleet = sizes.and_then(size::of_fleet);
        fleet.iter().for_each(|line| self.line(2, NORMAL, line));
        for change in &plan.changes {
            self.change(change, sizes.and_then(|sizes| sizes.clusters.get(&change.resource)));
            if waits_for_reach(change) {
                self.unreached = Some(not_reached(plan));
            }
        }
        self.unwell(plan);
        self.unreached = None;
        self.text.push('\n');
    }

    /// Describes what a change waits for. The reason why its fleet is unreachable is printed only once.
    fn waiting(&self, waiting: &Waiting) -> String {
        match (waiting, &self.unreached) {
            (Waiting::Unreachable { .. }, Some(unreached)) => format!("{}: {unreached}", waiting.label()),
            _ => waiting.labelled(),
        }
    }

    /// Writes one line for each cluster that needs attention, and what its operator is about to destroy.
    fn unwell(&mut self, plan: &FleetPlan) {
        let unwell: Vec<_> = in_trouble(plan).collect();
        for (cluster, status) in unwell.iter().take(UNWELL) {
            let reason = status.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.line(2, WAITS, &format!("! cluster {} is {}{reason}", cluster.name, status.status));
            let armed = armed(status).filter(|message| status.reason.as_ref() != Some(message));
            armed.for_each(|message| self.line(6, WAITS, message));
        }
        if let Some(more @ 1..) = unwell.len().checked_sub(UNWELL) {
            self.line(
                2,
                WAITS,
                &format!("! and {more} more clusters: streamfleet status {}", self.reader.tree),
            );
        }
    }

    fn condition(&mut self, condition: &Condition) {
        let line = format!("! {}: {}", condition.kind, condition.message);
        self.line(2, if condition.degraded { WAITS } else { CHANGED }, &line);
    }

    fn change(&mut self, change: &Change, size: Option<&SizeChange>) {
        let (mark, style) = mark(change);
        let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
        let (detail, more) = match (change.waiting.first(), fields.as_slice()) {
            (Some(waiting), _) => (self.waiting(waiting), fields.as_slice()),
            (None, [field]) => (field.clone(), &[][..]),
            (None, fields) => (String::new(), fields),
        };
        let name = plain(&format!("{} {}", change.resource.kind.noun(), change.resource.name));
        self.with_place(&format!("{mark} {name}"), style, &plain(&detail), &words::place(change));
        more.iter().for_each(|field| self.line(6, NORMAL, field));
        change.waiting.iter().skip(1).for_each(|waiting| {
            let line = format!("also {}", self.waiting(waiting));
            self.line(6, WAITS, &line);
        });
        let tree = self.reader.tree;
        ways_out(change, tree).iter().for_each(|way_out| self.line(6, NORMAL, way_out));
        if change.cause != Cause::Spec {
            self.line(6, FAINT, &words::cause(&change.cause));
        }
        change.effects.iter().for_each(|effect| self.line(6, NORMAL, effect));
        let size = size.filter(|_| change.verb != Verb::Delete).and_then(size::of_cluster);
        size.iter().for_each(|size| self.line(6, NORMAL, size));
        // A protected resource is far from being deleted, so its objects aren't listed.
        if !change.waiting.contains(&Waiting::Protected) {
            change.steps.iter().for_each(|step| self.step(change, step));
            let others = change.remarks.iter().filter(|remark| !is_of_a_step(change, remark));
            others.for_each(|remark| self.line(6, WAITS, &remarks::remark_alone(change, remark)));
        }
    }

    fn with_place(&mut self, name: &str, style: Style, detail: &str, place: &str) {
        const NAMES: usize = 18;
        let missing = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
        let gap = if detail.is_empty() { "" } else { "   " };
        let pad = if detail.is_empty() { String::new() } else { missing(name, NAMES) };
        let left = format!("  {name}{pad}{gap}{detail}");
        let place = plain(place);
        let room = missing(&left, self.reader.width.saturating_sub(place.chars().count() + 2));
        let line =
            format!("  {}{pad}{gap}{detail}{room}  {}", self.paint(style, name), self.paint(FAINT, &place));
        self.text.push_str(if place.is_empty() { line.trim_end() } else { &line });
        self.text.push('\n');
    }

    fn summary(&mut self, plan: &Plan) {
        let id = self.paint(FAINT, &format!("plan {}", plan.id));
        self.text.push_str(&format!("{}    {id}\n", summary_sentence(plan.summary)));
    }
}

fn summary_sentence(summary: Summary) -> String {
    let Summary { create, change, delete, waiting, unchanged, errors, warnings: _ } = summary;
    match (create + change + delete + waiting, unchanged) {
        (0, _) if errors == 1 => "Nothing to apply. 1 problem blocks further changes.".to_owned(),
        (0, _) if errors > 1 => format!("Nothing to apply. {errors} problems block further changes."),
        (0, 0) => "Nothing to do: there are no resources.".to_owned(),
        (0, 1) => "Nothing to do: 1 resource matches its spec.".to_owned(),
        (0, unchanged) => format!("Nothing to do: {unchanged} resources match their specs."),
        _ => format!("{change} to change, {create} to create, {delete} to delete, {waiting} waiting."),
    }
}

fn unreached(plan: &FleetPlan) -> Option<&Waiting> {
    let mut waits = plan.changes.iter().flat_map(|change| &change.waiting);
    waits.find(|waiting| matches!(waiting, Waiting::Unreachable { .. }))
}

/// Whether that wait is printed once before all changes: several have it, and not first the fleet's own.
fn says_once(plan: &FleetPlan) -> bool {
    let mut waiting = plan.changes.iter().filter(|change| waits_for_reach(change));
    let first = waiting.next();
    first.is_some_and(|change| change.resource != plan.fleet.resource()) && waiting.next().is_some()
}

fn waits_for_reach(change: &Change) -> bool {
    change.waiting.iter().any(|waiting| matches!(waiting, Waiting::Unreachable { .. }))
}

fn not_reached(plan: &FleetPlan) -> String {
    format!("fleet {} can't be reached", plan.fleet)
}

fn has_news(plan: &FleetPlan) -> bool {
    let unwell = plan.status.as_ref().is_some_and(|status| status.status != Status::Healthy);
    !plan.changes.is_empty() || !plan.conditions.is_empty() || unwell || in_trouble(plan).next().is_some()
}

/// Whether the fleet's status already says what a condition says.
fn is_told(plan: &FleetPlan, condition: &Condition) -> bool {
    condition.kind == OPERATOR_MISSING && plan.status.as_ref().is_some_and(health::lacks_operator)
}

/// `byok, Healthy`.
fn kind_and_status(plan: &FleetPlan, infra_type: InfraType) -> String {
    let kind = match infra_type {
        InfraType::Byok => "byok",
        InfraType::Directory => "directory",
    };
    match &plan.reach {
        Reach::Unreachable { refused: true, .. } => format!("{kind}, Failed"),
        Reach::Unreachable { .. } => format!("{kind}, Unreachable"),
        Reach::Reached | Reach::UnderWay { .. } => match status_word(plan) {
            Some(status) => format!("{kind}, {status}"),
            None => kind.to_owned(),
        },
    }
}

fn status_word(plan: &FleetPlan) -> Option<Status> {
    let judged = plan.status.as_ref().map(|status| status.status);
    let degraded = plan.conditions.iter().any(|condition| condition.degraded);
    if degraded && judged.is_none_or(|status| status == Status::Healthy) {
        Some(Status::Degraded)
    } else {
        judged
    }
}

/// Returns the clusters that need attention, or that lose brokers without another change.
fn in_trouble(plan: &FleetPlan) -> impl Iterator<Item = (&ResourceKey, &ResourceStatus)> {
    let is_bad = |status: &ResourceStatus| [Status::Degraded, Status::Failed].contains(&status.status);
    plan.unwell.iter().filter(move |(_, status)| is_bad(status) || armed(status).next().is_some())
}

fn armed(status: &ResourceStatus) -> impl Iterator<Item = &String> {
    let conditions =
        status.conditions.iter().filter(|condition| condition.kind == health::SCALE_DOWN_PREVENTION);
    conditions.map(|condition| &condition.message)
}

fn mark(change: &Change) -> (&'static str, Style) {
    match change.verb {
        _ if !change.waiting.is_empty() => ("!", WAITS),
        Verb::Create => ("+", CREATED),
        Verb::Update => ("~", CHANGED),
        Verb::Delete => ("-", DELETED),
        Verb::Keep => ("!", WAITS),
        Verb::Recreate => ("±", DELETED),
    }
}

fn ways_out(change: &Change, tree: &str) -> Vec<String> {
    let mut ways_out: Vec<String> = Vec::new();
    for way_out in change.waiting.iter().filter_map(|waiting| words::wait_remedy(change, waiting, tree)) {
        if !ways_out.contains(&way_out) {
            ways_out.push(way_out);
        }
    }
    ways_out
}

/// Whether a remark is shown below a step.
fn is_of_a_step(change: &Change, remark: &Remark) -> bool {
    change.steps.iter().any(|step| remark.object() == Some(&step.object))
}

/// Formats an organization's use of its limits. Plain counts of documents are shown only if they are limited.
fn gauges(capacity: &OrganizationCapacity) -> Vec<String> {
    let OrganizationCapacity {
        fleets,
        clusters,
        kafka_units,
        base_domains,
        identity_providers,
        cloud_accounts,
    } = capacity;
    let always = [("units", kafka_units), ("clusters", clusters), ("fleets", fleets)];
    let documents = [
        ("base domains", base_domains),
        ("identity providers", identity_providers),
        ("cloud accounts", cloud_accounts),
    ];
    let limited = documents.into_iter().filter(|(_, gauge)| gauge.limit.is_some());
    always.into_iter().chain(limited).map(|(what, of)| gauge(what, of)).collect()
}

/// `units 6 → 7 of 40`, `clusters 3 of 10`.
fn gauge(what: &str, gauge: &Gauge) -> String {
    let limit = gauge.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    match gauge.before == gauge.after {
        true => format!("{what} {}{limit}", gauge.after),
        false => format!("{what} {} → {}{limit}", gauge.before, gauge.after),
    }
}
