//! The first page: what waits for a person, what isn't well, and what happened last.

use askama::Template;
use axum::http::StatusCode;
use futures_util::future::join_all;
use serde_json::Value;

use super::resource_list::organizations;
use super::{KindPages, may, review};
use crate::api::answer::{ListAnswer, PlanChangeList};
use crate::api::route::{self, LARGEST_PAGE};
use crate::names::Kind;
use crate::plan::{OutlineItem, OutlineSection};
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};
use crate::views::status::{StatusCounts, StatusLine, StatusList};

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    plan: PlanChangeList,
    /// The first changes that wait for an approval, with the fleet or organization that they belong to.
    waiting: Vec<Waiting>,
    /// The first fleets and clusters that aren't well.
    unwell: Vec<StatusLine>,
    counts: StatusCounts,
    /// The certificates that expire first: the base domain's page, its name and the time.
    certificates: Vec<(String, String, String)>,
    events: Vec<Value>,
    /// The kinds that the visitor may create, in the order in which they are needed, while there are no clusters.
    starts: Vec<&'static KindPages>,
}

struct Waiting {
    section: String,
    text: String,
    why: String,
}

impl Overview {
    /// The part of all fleets and clusters, in percent.
    fn share(&self, number: &usize) -> usize {
        let StatusCounts { fleets, clusters, .. } = self.counts;
        (number * 100).div_ceil((fleets + clusters).max(1)).min(100)
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let (plan, status, events) = futures_util::try_join!(
        visit.api.get::<PlanChangeList>("/v1/plan/changes?page_size=20"),
        visit.api.get::<StatusList>("/v1/status?unwell=true"),
        visit.api.get::<ListAnswer<Value>>("/v1/events?order=desc&page_size=10"),
    )?;
    let StatusList { counts, items: unwell } = status;
    let certificates = certificates(visit).await;
    let needed = [Kind::Organization, Kind::BaseDomain, Kind::Fleet, Kind::Cluster].map(review::pages_of);
    let may_create =
        |pages: &&KindPages| counts.clusters == 0 && may(&visit.me, pages.kind, route::Method::Post, None);
    let starts = needed.into_iter().filter(may_create).collect();
    let (frame, events) = (visit.frame("/"), events.items);
    let waiting = plan.sections.iter().flat_map(waiting_in).collect();
    let page = Overview { frame, plan, waiting, unwell, counts, certificates, events, starts };
    Ok(shown(StatusCode::OK, &page))
}

/// How many certificates are listed, and of how many organizations they are looked up.
const CERTIFICATES: usize = 5;
const ORGANIZATIONS: usize = 20;

/// The certificates that expire first. Without those of an organization that can't be read now.
async fn certificates(visit: &Visit) -> Vec<(String, String, String)> {
    let Some(pages) = KindPages::of_slug("base-domains") else { return Vec::new() };
    let mut found = Vec::new();
    let organizations = organizations(visit).await.unwrap_or_default();
    let lists = organizations.iter().take(ORGANIZATIONS).map(|organization| async {
        let path = format!("{}?page_size={LARGEST_PAGE}", pages.list_path(organization));
        visit.api.get::<ListAnswer<Value>>(&path).await
    });
    for list in join_all(lists).await.into_iter().flatten() {
        found.extend(list.items.iter().filter_map(|record| {
            let (name, until) = (record["domain"].as_str()?, record["not_after"].as_str()?);
            let organization = record["organization"].as_str()?;
            Some((until.to_owned(), pages.page_path(organization, name), name.to_owned()))
        }));
    }
    found.sort();
    found.truncate(CERTIFICATES);
    found.into_iter().map(|(until, page, name)| (page, name, until)).collect()
}

fn waiting_in(section: &OutlineSection) -> impl Iterator<Item = Waiting> {
    let waits = section.items.iter().filter(|item| item.approval.is_some());
    waits.map(|item: &OutlineItem| Waiting {
        section: format!("{} {}", section.noun, section.name),
        text: format!("{} {} {}", item.action, item.noun, item.name),
        why: item.waiting.join("; "),
    })
}
