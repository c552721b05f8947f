//! The plan as structured text: the sentences of a page or a comment, in parts that it arranges.

use super::parts::{
    gauge, gauges, has_news, in_trouble, is_told, kind_and_status, summary_sentence, ways_out,
};
use super::terminal::{Audience, is_of_a_step, step_lines};
use super::{remarks, size, words};
use crate::plan::{Cause, Change, FleetPlan, OrganizationPlan, Plan, Remark, Sizes, Verb, Waiting};

pub struct Outline {
    pub summary: String,
    /// Organizations and fleets with changes or news.
    pub sections: Vec<OutlineSection>,
}

pub struct OutlineSection {
    /// `fleet` or `organization`.
    pub noun: &'static str,
    /// `acme/eu` or `acme`.
    pub name: String,
    /// The kind and status of a fleet: `byok, Healthy`.
    pub state: String,
    pub gauges: Vec<String>,
    /// Sentences about the whole.
    pub lines: Vec<String>,
    pub items: Vec<OutlineItem>,
}

impl Outline {
    /// Leaves out what another outline says, too.
    pub fn beside(mut self, known: &Outline) -> Outline {
        for section in &mut self.sections {
            let is_same = |it: &&OutlineSection| it.noun == section.noun && it.name == section.name;
            if let Some(same) = known.sections.iter().find(is_same) {
                section.items.retain(|item| !same.items.iter().any(|known| item.says_what(known)));
                section.lines.retain(|line| !same.lines.contains(line));
            }
        }
        self.sections.retain(|section| !section.items.is_empty() || !section.lines.is_empty());
        self
    }
}

/// What the text of an outline depends on.
#[derive(Clone, Copy)]
struct OutlineText<'a> {
    plan: &'a Plan,
    tree: &'a str,
    objects: bool,
}

/// A change of one resource.
pub struct OutlineItem {
    pub verb: Verb,
    /// The action in words: `change`, `waiting to delete`.
    pub action: &'static str,
    pub noun: &'static str,
    pub name: String,
    /// The file and line; empty if unknown.
    pub place: String,
    pub fields: Vec<String>,
    /// The reasons to wait, with their labels.
    pub waiting: Vec<String>,
    /// What resolves each wait.
    pub ways_out: Vec<String>,
    /// The cause if it isn't the spec, the consequences, and remarks.
    pub effects: Vec<String>,
    /// The id by which the change may be approved.
    pub approval: Option<String>,
    /// The objects with their differences, as lines of text.
    pub objects: Vec<String>,
}

impl OutlineItem {
    /// Whether both say the same of a resource. Why it waits and what approves it may be told otherwise: an absence is
    /// remembered of the real tree only, and an approval is for all of a fleet.
    fn says_what(&self, other: &OutlineItem) -> bool {
        (self.verb, self.action, self.noun, &self.name) == (other.verb, other.action, other.noun, &other.name)
            && (&self.fields, &self.effects, &self.objects) == (&other.fields, &other.effects, &other.objects)
    }
}

/// `tree` is what commands in the text name. Without `objects`, the differences of objects are left out, which take
/// most of the time.
pub fn outline(plan: &Plan, tree: &str, objects: bool) -> Outline {
    let text = OutlineText { plan, tree, objects };
    let organizations = plan.organizations.iter().filter(|plan| !plan.changes.is_empty());
    let fleets = plan.fleets.iter().filter(|plan| has_news(plan));
    let sections =
        organizations.map(|of| organization(of, text)).chain(fleets.map(|of| fleet(of, text))).collect();
    Outline { summary: summary_sentence(plan.summary), sections }
}

fn organization(of: &OrganizationPlan, text: OutlineText<'_>) -> OutlineSection {
    OutlineSection {
        noun: "organization",
        name: of.organization.to_string(),
        state: String::new(),
        gauges: gauges(&of.capacity),
        lines: Vec::new(),
        items: of.changes.iter().map(|change| item(change, None, text)).collect(),
    }
}

fn fleet(of: &FleetPlan, text: OutlineText<'_>) -> OutlineSection {
    let section = OutlineSection {
        noun: "fleet",
        name: of.fleet.to_string(),
        state: "no such fleet".to_owned(),
        gauges: Vec::new(),
        lines: Vec::new(),
        items: of.changes.iter().map(|change| item(change, of.sizes.as_ref(), text)).collect(),
    };
    let Some(infra_type) = of.infra_type else { return section };
    let mut lines: Vec<String> = of.status.iter().filter_map(|status| status.reason.clone()).collect();
    let conditions = of.conditions.iter().filter(|condition| !is_told(of, condition));
    lines.extend(conditions.map(|condition| format!("{}: {}", condition.kind, condition.message)));
    lines.extend(in_trouble(of).map(|(cluster, status)| {
        let reason = status.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("cluster {} is {}{reason}", cluster.name, status.status)
    }));
    lines.extend(of.sizes.as_ref().and_then(size::of_fleet));
    OutlineSection {
        state: kind_and_status(of, infra_type),
        gauges: vec![gauge("units", &of.kafka_units), gauge("clusters", &of.clusters)],
        lines,
        ..section
    }
}

fn item(change: &Change, sizes: Option<&Sizes>, text: OutlineText<'_>) -> OutlineItem {
    let OutlineText { plan, tree, objects } = text;
    let size = sizes.and_then(|sizes| sizes.clusters.get(&change.resource));
    let size = size.filter(|_| change.verb != Verb::Delete).and_then(size::of_cluster);
    let approval = change.waiting.iter().find_map(|waiting| match waiting {
        Waiting::Approval { id, .. } => Some(id.clone()),
        _ => None,
    });
    let cause = (change.cause != Cause::Spec).then(|| words::cause(&change.cause));
    let is_protected = change.waiting.contains(&Waiting::Protected);
    // With the objects, a remark about one is there.
    let is_there = |remark: &Remark| objects && is_of_a_step(change, remark);
    let remarks = change.remarks.iter().filter(|remark| !is_protected && !is_there(remark));
    let remarks = remarks.map(|remark| remarks::remark_alone(change, remark));
    let steps = change.steps.iter().filter(|_| objects && !is_protected);
    OutlineItem {
        verb: change.verb,
        action: words::action(change),
        noun: change.resource.kind.noun(),
        name: change.resource.name.to_string(),
        place: words::place(change),
        fields: change.fields.iter().map(ToString::to_string).collect(),
        waiting: change.waiting.iter().map(Waiting::labelled).collect(),
        ways_out: ways_out(change, tree),
        effects: cause.into_iter().chain(change.effects.iter().cloned()).chain(size).chain(remarks).collect(),
        approval,
        objects: steps
            .flat_map(|step| {
                step_lines(change, step, Audience { color: false, width: WIDTH, tree }, plan.created_at)
            })
            .collect(),
    }
}

/// In characters.
const WIDTH: usize = 120;
