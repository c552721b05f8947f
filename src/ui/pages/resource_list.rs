//! Lists of resources, filtered and paged by the server.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CLUSTERS, KAFKA_UNITS, KindPages, may, with_query};
use crate::api::answer::{ClusterFitList, FleetFit, ListAnswer};
use crate::api::route::{self, LARGEST_PAGE};
use crate::catalog::Status;
use crate::names::{Identifier, Kind};
use crate::record::has_status;
use crate::ui::client::Refusal;
use crate::ui::view::{self, Cell, Frame, filters, shown};
use crate::ui::{Shown, Visit};

const PAGE: &str = "50";

#[derive(Template)]
#[template(path = "resource_list.html")]
struct ResourceList {
    frame: Frame,
    pages: &'static KindPages,
    /// Organizations to choose from; empty if there is no choice.
    organizations: Organizations,
    organization: String,
    /// The text that was searched for.
    text: String,
    status: String,
    /// The tag that clusters have: `key` or `key=value`.
    tag: String,
    /// The fleet that clusters are on.
    fleet: String,
    /// The cluster that topics and users are of.
    cluster: String,
    sort: String,
    rows: Vec<Row>,
    total: usize,
    /// The address of the next page; empty on the last.
    next: String,
    may_create: bool,
}

struct Row {
    /// Its page, as a path below `/ui`.
    path: String,
    organization: String,
    name: String,
    cells: Vec<Cell>,
}

impl ResourceList {
    fn has_status(&self) -> bool {
        has_status(self.pages.kind)
    }

    /// Whether it lists the resources of all organizations unless one is chosen.
    fn is_of_all(&self) -> bool {
        self.pages.kind == Kind::Cluster
    }

    /// The address with the list sorted by a column: once more, and it is in the other direction. Empty if the API can't
    /// sort by it.
    fn sorted_by(&self, pointer: &str) -> String {
        let field = pointer.trim_start_matches('/');
        if !(matches!(field, "identifier" | "updated_at") || field == "status" && self.has_status()) {
            return String::new();
        }
        let order = if self.sort == field { format!("-{field}") } else { field.to_owned() };
        self.address(&order, "")
    }

    fn direction(&self, pointer: &str) -> &'static str {
        let field = pointer.trim_start_matches('/');
        match self.sort.strip_prefix('-') {
            Some(sort) if sort == field => "descending",
            None if self.sort == field => "ascending",
            _ => "none",
        }
    }

    /// The address of the list with another order, or another page.
    fn address(&self, sort: &str, page: &str) -> String {
        let shown = [
            ("organization", self.organization.as_str()),
            ("q", &self.text),
            ("status", &self.status),
            ("tag", &self.tag),
            ("fleet", &self.fleet),
            ("cluster", &self.cluster),
            ("sort", sort),
            ("page", page),
        ];
        with_query(format!("/{}", self.pages.slug), &shown)
    }

    fn statuses(&self) -> Vec<String> {
        Status::ALL.iter().map(ToString::to_string).collect()
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let pages = KindPages::of_path(visit)?;
    let mut organizations = match pages.kind {
        Kind::Organization => Organizations::default(),
        _ => organizations(visit).await?,
    };
    organizations.may_be_all = pages.kind == Kind::Cluster;
    let is_global = organizations.may_be_all || pages.kind == Kind::Organization;
    let organization = organizations.chosen(visit.parameter("organization"));
    let organization = organization.as_str();
    let (text, status, sort) = (visit.parameter("q"), visit.parameter("status"), visit.parameter("sort"));
    let of_cluster = |name: &str| if pages.kind == Kind::Cluster { visit.parameter(name) } else { "" };
    let (tag, fleet) = (of_cluster("tag"), of_cluster("fleet"));
    let cluster = if pages.kind.is_on_cluster() { visit.parameter("cluster") } else { "" };
    let of = if pages.kind == Kind::Cluster { organization } else { "" };
    let filters = [
        ("q", text),
        ("status", status),
        ("tag", tag),
        ("infrastructure", fleet),
        ("cluster", cluster),
        ("sort", sort),
        ("organization", of),
    ];
    let page = [("page_size", PAGE), ("page_token", visit.parameter("page"))];
    let path = with_query(pages.list_path(organization), &[filters.as_slice(), &page].concat());
    // A fresh installation has no organization, and so nothing in one.
    let list = match organization.is_empty() && !is_global {
        true => ListAnswer { items: Vec::new(), next_page_token: None, total: 0 },
        false => visit.api.get::<ListAnswer<Value>>(&path).await?,
    };
    let fits = if pages.kind == Kind::Fleet { room(visit, organization).await } else { Vec::new() };
    let rows = list.items.iter().map(|record| row(pages, record, &fits)).collect();
    let mut page = ResourceList {
        frame: visit.frame(pages.slug),
        pages,
        organization: organization.to_owned(),
        organizations,
        text: text.to_owned(),
        status: status.to_owned(),
        tag: tag.to_owned(),
        fleet: fleet.to_owned(),
        cluster: cluster.to_owned(),
        sort: sort.to_owned(),
        rows,
        total: list.total,
        next: String::new(),
        may_create: may(&visit.me, pages.kind, route::Method::Post, None),
    };
    if let Some(token) = list.next_page_token {
        page.next = page.address(sort, &token);
    }
    Ok(shown(StatusCode::OK, &page))
}

/// Leads from an address with an organization alone to the page that it means.
pub async fn of_organization(visit: &Visit) -> Shown {
    let pages = KindPages::of_path(visit)?;
    let organization = visit.segment(1);
    Ok(visit.go(&match pages.kind {
        Kind::Organization => pages.page_path(organization, organization),
        _ => with_query(format!("/{}", pages.slug), &[("organization", organization)]),
    }))
}

/// The organizations that a visitor may choose from.
#[derive(Default)]
pub struct Organizations {
    /// The first ones, without `root`, which owns nothing.
    pub names: Vec<String>,
    pub total: usize,
    /// Whether these are not all.
    pub are_more: bool,
    /// Whether a page is of all of them unless one is chosen.
    pub may_be_all: bool,
}

impl Organizations {
    /// The one that the address names, or else the first.
    pub fn chosen(&self, named: &str) -> String {
        let first = self.names.first().filter(|_| named.is_empty() && !self.may_be_all);
        first.map_or(named, String::as_str).to_owned()
    }
}

/// The first organizations that the session may see.
pub async fn organizations(visit: &Visit) -> Result<Organizations, Refusal> {
    let list: ListAnswer<Value> = visit.api.get(&format!("/organizations?page_size={LARGEST_PAGE}")).await?;
    let names = list.items.iter().filter_map(|record| record["identifier"].as_str());
    let names = names.filter(|name| *name != Identifier::ROOT).map(str::to_owned).collect();
    let are_more = list.next_page_token.is_some();
    Ok(Organizations { names, total: list.total, are_more, may_be_all: false })
}

/// How full the fleets of an organization are; empty if that is unknown.
pub async fn room(visit: &Visit, organization: &str) -> Vec<FleetFit> {
    let smallest = json!({"organization": organization, "kafka_units": 1, "tenancy_mode": "Shared"});
    let answer = visit.api.send(Method::POST, "/v1/fit", Some(&smallest)).await;
    let list = answer.ok().and_then(|answer| serde_json::from_value::<ClusterFitList>(answer).ok());
    list.map(|list| list.items).unwrap_or_default()
}

fn row(pages: &'static KindPages, record: &Value, fits: &[FleetFit]) -> Row {
    let text = |name: &str| view::field(record, name).to_owned();
    let name = pages.name_of(record);
    let organization = if pages.kind == Kind::Organization { name.clone() } else { text("organization") };
    let value = |pointer: &str| record.pointer(pointer).unwrap_or(&Value::Null);
    let fit = fits.iter().find(|fit| fit.fleet.fleet.as_str() == name);
    let cell = |(title, pointer): &(&str, &'static str)| match (fit, *pointer) {
        (Some(fit), KAFKA_UNITS) => Cell::gauge(&fit.kafka_units),
        (Some(fit), CLUSTERS) => Cell::gauge(&fit.clusters),
        (_, pointer) => Cell::of(title, value(pointer)),
    };
    let cells = pages.columns.iter().map(cell).collect();
    Row { path: pages.page_path(&organization, &name), organization, name, cells }
}
