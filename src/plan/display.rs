//! The plan for people: what changes, why, what follows, and the way out of what waits.

mod objects;
mod text;
mod words;

use anstyle::{AnsiColor, Style};

use crate::catalog::{Condition, Gauge};
use crate::plan::{Cause, Change, FleetPlan, OrganizationPlan, Plan, Reach, Summary, Verb, Waiting};
use crate::spec::InfraType;
use text::plain;

/// For whom a plan is written.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// Whether colours are shown.
    pub color: bool,
    /// Where lines with a place in a file end, in columns. Names are never cut, so a line may be longer.
    pub width: usize,
    /// How the person names the spec tree, for the commands that the plan proposes.
    pub tree: &'a str,
}

/// Writes a plan for people. Problems are not part of it.
pub fn display(plan: &Plan, reader: Reader<'_>) -> String {
    let mut page = Page { text: String::new(), reader };
    for organization in plan.organizations.iter().filter(|plan| !plan.changes.is_empty()) {
        page.organization(organization);
    }
    for fleet in plan.fleets.iter().filter(|plan| !plan.changes.is_empty() || !plan.conditions.is_empty()) {
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

/// The text as far as it is written.
struct Page<'a> {
    text: String,
    reader: Reader<'a>,
}

impl Page<'_> {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.reader.color && style != NORMAL { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes one line. What a person wrote is made harmless here, whatever it is part of.
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
        let capacity = &plan.capacity;
        let gauges = [
            gauge("units", &capacity.kafka_units),
            gauge("clusters", &capacity.clusters),
            gauge("fleets", &capacity.fleets),
        ];
        self.header(&format!("organization {}", plan.organization), &gauges.join("    "));
        plan.changes.iter().for_each(|change| self.change(change));
        self.text.push('\n');
    }

    fn fleet(&mut self, plan: &FleetPlan) {
        let Some(infra_type) = plan.infra_type else {
            self.header(&format!("fleet {}", plan.fleet), "there is no such fleet");
            plan.changes.iter().for_each(|change| self.change(change));
            return self.text.push('\n');
        };
        let kind = match infra_type {
            InfraType::Byok => "byok",
            InfraType::Directory => "directory",
        };
        let state = match &plan.reach {
            Reach::Unreachable { .. } => ", Unreachable",
            Reach::Reached if plan.conditions.iter().any(|condition| condition.degraded) => ", Degraded",
            Reach::Reached => "",
        };
        let gauges = [gauge("units", &plan.kafka_units), gauge("clusters", &plan.clusters)].join("    ");
        self.header(&format!("fleet {}", plan.fleet), &format!("{kind}{state}      {gauges}"));
        plan.conditions.iter().for_each(|condition| self.condition(condition));
        plan.changes.iter().for_each(|change| self.change(change));
        self.text.push('\n');
    }

    fn condition(&mut self, condition: &Condition) {
        let line = format!("! {}: {}", condition.kind, condition.message);
        self.line(2, if condition.degraded { WAITS } else { CHANGED }, &line);
    }

    fn change(&mut self, change: &Change) {
        let (mark, style) = mark(change);
        let fields: Vec<String> = change.fields.iter().map(words::field).collect();
        let (detail, more) = match (change.waiting.first(), fields.as_slice()) {
            (Some(waiting), _) => (format!("waiting: {}", waiting), fields.as_slice()),
            (None, [field]) => (field.clone(), &[][..]),
            (None, fields) => (String::new(), fields),
        };
        let name = plain(&format!("{} {}", change.resource.kind.noun(), change.resource.name));
        self.with_place(&format!("{mark} {name}"), style, &plain(&detail), &words::place(change));
        more.iter().for_each(|field| self.line(6, NORMAL, field));
        change.waiting.iter().skip(1).for_each(|waiting| {
            self.line(6, WAITS, &format!("also waiting: {}", waiting));
        });
        change.waiting.iter().for_each(|waiting| self.way_out(change, waiting));
        if change.cause != Cause::Spec {
            self.line(6, FAINT, &words::cause(&change.cause));
        }
        change.effects.iter().for_each(|effect| self.line(6, NORMAL, effect));
        // What is far from being done is told, not listed.
        if !change.waiting.contains(&Waiting::Protected) {
            change.steps.iter().for_each(|step| self.step(step));
        }
    }

    fn way_out(&mut self, change: &Change, waiting: &Waiting) {
        if let Some(way_out) = words::way_out(change, waiting, self.reader.tree) {
            self.line(6, NORMAL, &way_out);
        }
    }

    /// A resource's line, with the place of its spec at the right.
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
        let Summary { create, change, delete, waiting, unchanged, errors, warnings: _ } = plan.summary;
        let id = self.paint(FAINT, &format!("plan {}", plan.id));
        let line = match (create + change + delete + waiting, unchanged) {
            (0, _) if errors == 1 => "Nothing is done, and 1 problem stands in the way of more.".to_owned(),
            (0, _) if errors > 1 => {
                format!("Nothing is done, and {errors} problems stand in the way of more.")
            }
            (0, 0) => "Nothing to do: there are no resources.".to_owned(),
            (0, 1) => "Nothing to do: 1 resource is as its spec says.".to_owned(),
            (0, unchanged) => format!("Nothing to do: {unchanged} resources are as their specs say."),
            _ => format!("{change} to change, {create} to create, {delete} to delete, {waiting} waiting."),
        };
        self.text.push_str(&format!("{line}    {id}\n"));
    }
}

fn mark(change: &Change) -> (&'static str, Style) {
    match change.verb {
        _ if !change.waiting.is_empty() => ("!", WAITS),
        Verb::Create => ("+", CREATED),
        Verb::Update => ("~", CHANGED),
        Verb::Delete => ("-", DELETED),
        Verb::Keep => ("!", WAITS),
    }
}

/// `units 6 → 7 of 40`, `clusters 3 of 10`.
fn gauge(what: &str, gauge: &Gauge) -> String {
    let limit = gauge.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    match gauge.before == gauge.after {
        true => format!("{what} {}{limit}", gauge.after),
        false => format!("{what} {} → {}{limit}", gauge.before, gauge.after),
    }
}
