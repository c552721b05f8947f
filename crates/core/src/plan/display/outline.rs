//! The plan as structured text: the sentences of a page or a comment, in parts that it arranges.

mod entries;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parts::{gauge, gauges, in_trouble, is_told, kind_and_status, summary_sentence, ways_out};
use super::terminal::{Audience, is_of_a_step, step_lines};
use super::{remarks, size, words};
use crate::names::ResourceKey;
use crate::plan::{Cause, Change, FleetPlan, OrganizationPlan, Plan, Remark, Sizes, Verb, Waiting};

pub use entries::{EntryPlace, PlanEntry, PlanPart, entries, sections};

pub struct Outline {
    pub summary: String,
    /// Organizations and fleets with changes or news.
    pub sections: Vec<OutlineSection>,
}

/// The part of a plan about one fleet or organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutlineSection {
    /// `fleet` or `organization`.
    pub noun: String,
    /// `acme/eu` or `acme`.
    pub name: String,
    /// The kind and status of a fleet: `byok, Healthy`. Empty for an organization.
    pub state: String,
    /// How much of each limit is in use: `units 1 → 2 of 40`.
    pub gauges: Vec<String>,
    /// Sentences about the whole.
    pub lines: Vec<String>,
    /// The changes, or those of them on the page.
    pub items: Vec<OutlineItem>,
    /// The number of all its changes.
    pub total: usize,
    /// The approvals that its changes wait for.
    pub approvals: Vec<OutlineApproval>,
}

/// The changes that one approval is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutlineApproval {
    /// The approval id.
    pub id: String,
    /// The changes, such as `delete cluster sandbox`, or the first of them.
    pub changes: Vec<String>,
    /// The number of all of them.
    pub total: usize,
    /// Whether something is deleted.
    pub deletes: bool,
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

/// The inputs of an outline's text.
#[derive(Clone, Copy)]
struct OutlineText<'a> {
    plan: &'a Plan,
    tree: &'a str,
    objects: bool,
}

/// A change of one resource, in sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutlineItem {
    pub verb: Verb,
    /// The action in words: `change`, `waiting to delete`.
    pub action: String,
    pub resource: ResourceKey,
    /// The kind of the resource: `cluster`.
    pub noun: String,
    pub name: String,
    /// The file and line; empty if unknown.
    pub place: String,
    /// The fields of the spec that changed.
    pub fields: Vec<String>,
    /// The reasons to wait, with their labels.
    pub waiting: Vec<String>,
    /// The way out of each wait.
    pub ways_out: Vec<String>,
    /// The cause if it isn't the spec, the consequences, and remarks.
    pub effects: Vec<String>,
    /// The id by which the change may be approved; null if it needs no approval.
    pub approval: Option<String>,
    /// The objects with their differences, as lines of text, or the first of them.
    pub objects: Vec<String>,
    /// The number of lines about objects that were left out.
    pub omitted: usize,
}

impl OutlineItem {
    /// Whether both say the same of a resource. Why it waits and what approves it may be told otherwise: an absence is
    /// remembered of the real tree only, and an approval is for all of a fleet.
    fn says_what(&self, other: &OutlineItem) -> bool {
        (self.verb, &self.action, &self.resource) == (other.verb, &other.action, &other.resource)
            && (&self.fields, &self.effects, &self.objects) == (&other.fields, &other.effects, &other.objects)
    }
}

/// `tree` is what commands in the text name. Without `objects`, the differences of objects are left out, which take
/// most of the time.
pub fn outline(plan: &Plan, tree: &str, objects: bool) -> Outline {
    let text = OutlineText { plan, tree, objects };
    let sections = entries::parts(plan).map(|part| section(part, part.changes(), text)).collect();
    Outline { summary: summary_sentence(plan.summary), sections }
}

/// A part of a plan with some of its changes.
fn section<'p>(
    part: PlanPart<'p>,
    changes: impl IntoIterator<Item = &'p Change>,
    text: OutlineText<'_>,
) -> OutlineSection {
    let items = |sizes| changes.into_iter().map(|change| item(change, sizes, text)).collect();
    let section = match part {
        PlanPart::Organization(of) => OutlineSection { items: items(None), ..organization(of) },
        PlanPart::Fleet(of) => OutlineSection { items: items(of.sizes.as_ref()), ..fleet(of) },
    };
    OutlineSection { total: part.changes().len(), approvals: approvals(part.changes()), ..section }
}

fn organization(of: &OrganizationPlan) -> OutlineSection {
    OutlineSection {
        noun: "organization".to_owned(),
        name: of.organization.to_string(),
        gauges: gauges(&of.capacity),
        ..OutlineSection::default()
    }
}

fn fleet(of: &FleetPlan) -> OutlineSection {
    let section = OutlineSection {
        noun: "fleet".to_owned(),
        name: of.fleet.to_string(),
        state: "no such fleet".to_owned(),
        ..OutlineSection::default()
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

/// The approvals that changes wait for. One may be for several changes.
fn approvals(changes: &[Change]) -> Vec<OutlineApproval> {
    let mut approvals: Vec<OutlineApproval> = Vec::new();
    for change in changes {
        let Some(id) = approval(change) else { continue };
        let action = words::action(change).trim_start_matches("waiting to ");
        let told = format!("{action} {} {}", change.resource.kind.noun(), change.resource.name);
        let deletes = matches!(change.verb, Verb::Delete | Verb::Recreate);
        match approvals.iter_mut().find(|known| known.id == id) {
            Some(known) => {
                known.changes.push(told);
                known.total += 1;
                known.deletes |= deletes;
            }
            None => {
                approvals.push(OutlineApproval { id: id.to_owned(), changes: vec![told], total: 1, deletes });
            }
        }
    }
    approvals
}

/// The id of the approval that a change waits for.
fn approval(change: &Change) -> Option<&str> {
    change.waiting.iter().find_map(|waiting| match waiting {
        Waiting::Approval { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

fn item(change: &Change, sizes: Option<&Sizes>, text: OutlineText<'_>) -> OutlineItem {
    let OutlineText { plan, tree, objects } = text;
    let size = sizes.and_then(|sizes| sizes.clusters.get(&change.resource));
    let size = size.filter(|_| change.verb != Verb::Delete).and_then(size::of_cluster);
    let cause = (change.cause != Cause::Spec).then(|| words::cause(&change.cause));
    let is_protected = change.waiting.contains(&Waiting::Protected);
    // With the objects, a remark about one is there.
    let is_there = |remark: &Remark| objects && is_of_a_step(change, remark);
    let remarks = change.remarks.iter().filter(|remark| !is_protected && !is_there(remark));
    let remarks = remarks.map(|remark| remarks::remark_alone(change, remark));
    let steps = change.steps.iter().filter(|_| objects && !is_protected);
    OutlineItem {
        verb: change.verb,
        action: words::action(change).to_owned(),
        resource: change.resource.clone(),
        noun: change.resource.kind.noun().to_owned(),
        name: change.resource.name.to_string(),
        place: words::place(change),
        fields: change.fields.iter().map(ToString::to_string).collect(),
        waiting: change.waiting.iter().map(Waiting::labelled).collect(),
        ways_out: ways_out(change, tree),
        effects: cause.into_iter().chain(change.effects.iter().cloned()).chain(size).chain(remarks).collect(),
        approval: approval(change).map(str::to_owned),
        omitted: 0,
        objects: steps
            .flat_map(|step| {
                step_lines(change, step, Audience { color: false, width: WIDTH, tree }, plan.created_at)
            })
            .collect(),
    }
}

/// In characters.
const WIDTH: usize = 120;
