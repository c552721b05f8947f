//! The plan, with its differences, and approvals of what was read.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

use super::resource::{Head, PLAN};
use super::{KindPages, with_query};
use crate::api::answer::{CallerDescription, PlanChangeList};
use crate::http::query::encoded;
use crate::names::ResourceKey;
use crate::plan::{OutlineApproval, OutlineItem, OutlineSection};
use crate::problem::Severity;
use crate::state::Access;
use crate::ui::client::blocking;
use crate::ui::read_plans::{Mark, ReadPlan};
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    frame: Frame,
    list: PlanChangeList,
    me: CallerDescription,
    /// The fleet or organization whose changes are shown; empty for all.
    scope: String,
    is_whole: bool,
    is_of_resource: bool,
    /// The resource whose changes are shown, if it has pages.
    head: Option<Head>,
    /// The addresses of the first page and the next, below `/ui`; the next is empty on the last one.
    first: String,
    next: String,
    /// Whether something was approved just now.
    approved: bool,
    /// Whether an approval was for another plan than this one, and what the visitor read of that.
    other: bool,
    read: Option<ReadPlan>,
}

/// The most changes that a button names.
const NAMED: usize = 5;

/// The most mistakes that are shown at once.
const FOLDED: usize = 8;

impl PlanPage {
    /// Whether the caller may approve what waits in a part of the plan.
    fn may_approve(&self, section: &OutlineSection) -> bool {
        self.me.may(section.name.split('/').next().unwrap_or_default(), Access::Admin)
    }

    /// Whether everything that an approval is for is on this page.
    fn shows_all(&self, section: &OutlineSection, approval: &OutlineApproval) -> bool {
        let its = |item: &&OutlineItem| item.approval.as_deref() == Some(approval.id.as_str());
        section.items.iter().filter(its).count() >= approval.total
    }

    fn part_page(&self, section: &OutlineSection) -> String {
        let (organization, fleet) = section.name.split_once('/').unwrap_or((&section.name, ""));
        with_query("/plan".to_owned(), &[("organization", organization), ("fleet", fleet)])
    }

    /// How many changes are on this page.
    fn shown(&self) -> usize {
        self.list.sections.iter().map(|section| section.items.len().max(1)).sum()
    }

    /// How many changes are on other pages.
    fn elsewhere(&self) -> usize {
        self.list.total.saturating_sub(self.shown())
    }

    fn all_problems(&self) -> usize {
        (self.list.summary.errors + self.list.summary.warnings) as usize
    }

    fn mark(&self, section: &OutlineSection, item: &OutlineItem) -> Mark {
        self.read.as_ref().map_or(Mark::Same, |read| read.mark(section, item))
    }

    fn gone(&self) -> Vec<String> {
        let is_whole = self.elsewhere() == 0 && !self.is_of_resource;
        self.read.as_ref().map(|read| read.gone(&self.list.sections, is_whole)).unwrap_or_default()
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let (organization, fleet) = (visit.parameter("organization"), visit.parameter("fleet"));
    let resource = visit.parameter("resource");
    let of = [("organization", organization), ("infrastructure", fleet), ("resource", resource)];
    let path = with_query("/v1/plan/changes".to_owned(), &of);
    let path = with_query(path, &[("page_token", visit.parameter("page"))]);
    let list: PlanChangeList = visit.api.get(&path).await?;
    let me = visit.me.clone();
    let owner = me.email.as_deref().unwrap_or_default();
    let other = visit.query.iter().any(|(name, _)| name == "other");
    let approved = is_just_now(visit.parameter("approved"));
    let read = visit.ui.read_plans.find(owner, visit.parameter("other")).filter(|_| other);
    list.sections.iter().for_each(|section| visit.ui.read_plans.remember(owner, section));
    let scope = if fleet.is_empty() { organization.to_owned() } else { format!("{organization}/{fleet}") };
    // Topics and users have no pages of their own.
    let key = ResourceKey::try_from(resource.to_owned()).ok();
    let key = key.map(|key| key.within_cluster().map_or(key.clone(), |(cluster, _)| cluster));
    let of_key =
        |key: ResourceKey| Head::new(KindPages::of(key.kind), key.organization.as_str(), &key.name, PLAN);
    let mut head = key.map(of_key);
    // Resources of others count as missing.
    if let Some(of) = &head
        && visit.api.get::<Value>(&of.api_path("")).await.is_err()
    {
        head = None;
    }
    let of_page = [("organization", organization), ("fleet", fleet), ("resource", resource)];
    let first = with_query("/plan".to_owned(), &of_page);
    let next = list.next_page_token.as_ref();
    // Differences are marked on the pages that follow, too.
    let of_next = [("other", visit.parameter("other"))];
    let next = next.map(|token| with_query(with_query(first.clone(), &of_next), &[("page", token)]));
    let next = next.unwrap_or_default();
    let is_of_resource = !resource.is_empty();
    let is_whole = scope.is_empty() && !is_of_resource;
    let frame = visit.frame(head.as_ref().map_or("plan", |head| head.pages.slug));
    blocking(move || {
        let page = PlanPage {
            frame,
            list,
            me,
            scope,
            is_whole,
            is_of_resource,
            head,
            first,
            next,
            approved,
            other,
            read,
        };
        shown(StatusCode::OK, &page)
    })
    .await
}

/// Approves the steps of an approval id. It is bound to what the plan said, so what changed since is refused.
pub async fn approve(visit: &Visit) -> Shown {
    if let Some(sign_in) = visit.signs_in_again() {
        return Ok(sign_in);
    }
    let id = visit.field("id");
    let path = format!("/v1/plans/{}/approve", encoded(id));
    // The page of the whole plan, or that of a part.
    let from = Some(visit.field("from")).filter(|from| from.starts_with("/plan?")).unwrap_or("/plan");
    let from = from.to_owned();
    match visit.api.send(Method::POST, &path, None).await {
        Err(refusal) if refusal.status == StatusCode::CONFLICT => {
            Ok(visit.go(&with_query(from, &[("other", id)])))
        }
        answer => {
            let now = Timestamp::now().as_second().to_string();
            answer.map(|_| visit.go(&with_query(from, &[("approved", &now)])))
        }
    }
}

/// How long a page says what was done, in seconds: it may be loaded again later.
const TOLD: i64 = 30;

/// Whether a parameter is a time a moment ago, in seconds.
pub fn is_just_now(parameter: &str) -> bool {
    let now = Timestamp::now().as_second();
    parameter.parse::<i64>().is_ok_and(|at| (now - TOLD..=now).contains(&at))
}
