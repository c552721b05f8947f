//! The plan as text for a terminal.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;

use super::parts::{
    armed, gauge, gauges, has_news, in_trouble, is_told, kind_and_status, summary_sentence, ways_out,
};
use super::text::plain;
use super::{remarks, size, words};
use crate::catalog::Condition;
use crate::plan::{
    Cause, Change, FleetPlan, OrganizationPlan, Plan, Reach, Remark, SizeChange, Step, Verb, Waiting,
};

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

pub const CREATED: Style = AnsiColor::Green.on_default();
pub const CHANGED: Style = AnsiColor::Yellow.on_default();
pub const DELETED: Style = AnsiColor::Red.on_default();
pub const WAITS: Style = AnsiColor::Magenta.on_default().bold();
const HEADER: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();
pub const NORMAL: Style = Style::new();

/// Formats a step of a change: its object, and the lines that differ.
pub(super) fn step_lines(change: &Change, step: &Step, reader: Audience<'_>, now: Timestamp) -> Vec<String> {
    let mut page = PlanText { text: String::new(), reader, now, unreached: None };
    page.step(change, step);
    page.text.lines().map(|line| line.get(STEP_INDENT..).unwrap_or(line).to_owned()).collect()
}

/// The indentation of a step's first line.
pub(super) const STEP_INDENT: usize = 6;

/// How many clusters in trouble are shown per fleet.
const UNWELL: usize = 10;

pub struct PlanText<'a> {
    text: String,
    reader: Audience<'a>,
    now: Timestamp,
    /// The short wait shown for further changes on an unreachable fleet, once the reason was printed.
    unreached: Option<String>,
}

impl PlanText<'_> {
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.reader.color && style != NORMAL { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes one line. Text from users is made safe for terminals here, wherever it comes from.
    pub fn line(&mut self, indent: usize, style: Style, text: &str) {
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

    /// Writes one line for each cluster that needs attention, with the data that its operator is about to destroy.
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
        // A protected resource isn't deleted soon, so its objects aren't listed.
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

fn unreached(plan: &FleetPlan) -> Option<&Waiting> {
    let mut waits = plan.changes.iter().flat_map(|change| &change.waiting);
    waits.find(|waiting| matches!(waiting, Waiting::Unreachable { .. }))
}

/// Whether the wait for an unreachable fleet is printed once, before all changes: several changes have it,
/// and the first of them isn't the fleet's own.
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

fn mark(change: &Change) -> (&'static str, Style) {
    match change.verb {
        _ if !change.waiting.is_empty() => ("!", WAITS),
        Verb::Create => ("+", CREATED),
        Verb::Update | Verb::Adopt => ("~", CHANGED),
        Verb::Delete => ("-", DELETED),
        Verb::Keep => ("!", WAITS),
        Verb::Recreate => ("±", DELETED),
    }
}

/// Whether a remark is shown below a step.
pub(super) fn is_of_a_step(change: &Change, remark: &Remark) -> bool {
    change.steps.iter().any(|step| remark.object() == Some(&step.object))
}
