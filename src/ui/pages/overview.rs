//! The first page: what waits for a person, what isn't well, and what happened last.

use askama::Template;
use axum::http::StatusCode;
use serde_json::Value;

use super::resource_list::organizations;
use super::{KindPages, may};
use crate::api::answer::{ExpiringCertificate, ListAnswer, PlanChangeList};
use crate::api::route;
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
    /// The first fleets and clusters that aren't well.
    unwell: Vec<StatusLine>,
    counts: StatusCounts,
    /// The certificates that expire first.
    certificates: ListAnswer<ExpiringCertificate>,
    events: Vec<Value>,
    /// The kinds that the visitor may create, in the order in which they are needed, while there are no clusters.
    starts: Vec<(&'static KindPages, Start)>,
}

#[derive(PartialEq)]
enum Start {
    Done,
    Next,
    Later,
}

impl Overview {
    /// The first changes that wait for an approval, with the fleet or organization that they belong to.
    fn waiting(&self) -> Vec<(&OutlineSection, &OutlineItem)> {
        let all = self.plan.sections.iter().flat_map(|of| of.items.iter().map(move |item| (of, item)));
        all.filter(|(_, item)| item.approval.is_some()).collect()
    }

    /// How many fleets and clusters are neither healthy nor amiss.
    fn unseen(&self) -> usize {
        let StatusCounts { fleets, clusters, healthy, unwell } = self.counts;
        (fleets + clusters).saturating_sub(healthy + unwell)
    }

    /// The part of all fleets and clusters, in percent.
    fn share(&self, number: &usize) -> usize {
        let StatusCounts { fleets, clusters, .. } = self.counts;
        (number * 100).div_ceil((fleets + clusters).max(1)).min(100)
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let (plan, status, certificates, events) = futures_util::try_join!(
        visit.api.get::<PlanChangeList>("/v1/plan/changes?page_size=20"),
        visit.api.get::<StatusList>("/v1/status?unwell=true"),
        visit.api.get::<ListAnswer<ExpiringCertificate>>("/v1/certificates?page_size=5"),
        visit.api.get::<ListAnswer<Value>>("/v1/events?order=desc&page_size=10&about=resources"),
    )?;
    let StatusList { counts, items: unwell } = status;
    let starts = if counts.clusters == 0 {
        let organizations = organizations(visit).await?.names.len();
        starts(visit, [organizations, certificates.total, counts.fleets, counts.clusters])
    } else {
        Vec::new()
    };
    let (frame, events) = (visit.frame(""), events.items);
    let page = Overview { frame, plan, unwell, counts, certificates, events, starts };
    Ok(shown(StatusCode::OK, &page))
}

/// What to create first, by how many there are of each.
fn starts(visit: &Visit, numbers: [usize; 4]) -> Vec<(&'static KindPages, Start)> {
    let kinds = [Kind::Organization, Kind::BaseDomain, Kind::Fleet, Kind::Cluster];
    let first = numbers.iter().position(|number| *number == 0);
    let needed = kinds
        .into_iter()
        .enumerate()
        .filter(|(at, kind)| numbers[*at] > 0 || may(&visit.me, *kind, route::Method::Post, None));
    let state = |at| match (numbers[at] > 0, Some(at) == first) {
        (true, _) => Start::Done,
        (false, true) => Start::Next,
        (false, false) => Start::Later,
    };
    let starts: Vec<_> = needed.map(|(at, kind)| (KindPages::of(kind), state(at))).collect();
    if starts.iter().any(|(_, state)| *state == Start::Next) { starts } else { Vec::new() }
}
