//! The changes of the current plan, in sentences and by pages: a whole plan may have as many as there are resources.

use axum::http::StatusCode;

use super::page::ListPage;
use super::{Answered, Call, written};
use crate::api::answer::PlanChangeList;
use crate::http::problem::ProblemDocument;
use crate::names::{Identifier, ResourceKey};
use crate::plan::{self, OutlineSection, PlanEntry};

/// The most of each in an answer. `GET /v1/plan` has the rest.
const PROBLEMS: usize = 50;
const LINES: usize = 50;
const APPROVED_CHANGES: usize = 50;
const OBJECT_LINES: usize = 60;

/// The placeholder for the tree in suggested commands.
const TREE: &str = "TREE";

/// Which changes are asked for.
struct ChangeFilter<'q> {
    organization: Option<Identifier>,
    fleet: Option<&'q str>,
    resource: Option<ResourceKey>,
}

pub(super) fn list(call: &Call) -> Answered {
    let filter = ChangeFilter::of(call)?;
    let whole = call.visible(&call.made.round);
    let plan = whole.as_ref();
    let mut entries = plan::entries(plan);
    let to_approve = entries.iter().filter(|entry| entry.waits_for_approval()).count();
    entries.retain(|entry| filter.has(entry));
    let page = ListPage::of(&call.query, entries, |entry| entry.place.clone())?;
    let mut sections = plan::sections(plan, &page.items, TREE);
    sections.iter_mut().for_each(|section| filter.shorten(section));
    let shown = page.answer(sections);
    let list = PlanChangeList {
        plan: plan.id.clone(),
        created_at: plan.created_at,
        commit: plan.inputs.commit.clone(),
        summary: plan.summary,
        sentence: plan::summary_sentence(plan.summary),
        to_approve,
        problems: plan.problems.iter().take(PROBLEMS).cloned().collect(),
        sections: shown.items,
        next_page_token: shown.next_page_token,
        total: shown.total,
    };
    Ok(call.with_current_plan(written(StatusCode::OK, &list)))
}

impl<'q> ChangeFilter<'q> {
    fn of(call: &'q Call) -> Result<ChangeFilter<'q>, ProblemDocument> {
        let resource = |text: &str| ResourceKey::try_from(text.to_owned()).ok();
        Ok(ChangeFilter {
            organization: call.queried_organization()?,
            fleet: call.query.get("infrastructure"),
            resource: call.query.parsed_by(
                "resource",
                "a resource such as `Cluster/acme/orders`",
                resource,
            )?,
        })
    }

    fn has(&self, entry: &PlanEntry<'_>) -> bool {
        let ChangeFilter { organization, fleet, resource } = self;
        organization.as_ref().is_none_or(|organization| entry.part.organization() == organization)
            && fleet.is_none_or(|fleet| entry.part.fleet() == Some(fleet))
            && resource.as_ref().is_none_or(|resource| entry.resource() == Some(resource))
    }

    /// Leaves out what would make a page large.
    fn shorten(&self, section: &mut OutlineSection) {
        let others = section.lines.len().saturating_sub(LINES);
        if others > 0 {
            section.lines.truncate(LINES);
            section.lines.push(format!("and {others} more"));
        }
        if self.fleet.is_none() {
            section.approvals.iter_mut().for_each(|approval| approval.changes.truncate(APPROVED_CHANGES));
        }
        if self.resource.is_none() {
            for item in &mut section.items {
                item.omitted = item.objects.len().saturating_sub(OBJECT_LINES);
                item.objects.truncate(OBJECT_LINES);
            }
        }
    }
}
