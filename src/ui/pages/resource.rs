//! One resource: its record, and for a cluster why it is as it is and how clients connect.

use askama::Template;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{KindPages, may, resource_list, with_query};
use crate::api::answer::{FleetFit, ListAnswer, PlanChangeList, ResourceHistory, SpecFile};
use crate::api::route::Method;
use crate::names::{Kind, ResourceKey};
use crate::ui::chart::Usage;
use crate::ui::client::Refusal;
use crate::ui::form::{label, label_below, steps};
use crate::ui::view::{self, Cell, Frame, filters, shown};
use crate::ui::{Shown, Visit};
use crate::views::clients::ClusterListeners;
use crate::views::cost::CostReport;
use crate::views::why::WhyReport;

/// The tabs of a resource's pages, with their paths below its own, and the kinds that have them.
const TABS: [(&str, &str, &[Kind]); 7] = [
    ("Overview", "", &Kind::ALL),
    ("Why", "why", &[Kind::Cluster]),
    ("Plan", PLAN, &Kind::ALL),
    ("File", "file", &Kind::ALL),
    ("History", "history", &Kind::ALL),
    ("Events", "events", &Kind::ALL),
    ("Connect", "connect", &[Kind::Cluster, Kind::User]),
];

/// The tab that is a part of the page of the plan.
pub const PLAN: &str = "plan";

/// The resource that pages are about, and the tab that is shown.
pub struct Head {
    pub pages: &'static KindPages,
    pub organization: String,
    pub name: String,
    /// The path of its page, below `/ui`.
    pub path: String,
    tab: &'static str,
}

impl Head {
    pub fn of(visit: &Visit, tab: &'static str) -> Result<Head, Refusal> {
        Ok(Head::new(KindPages::of_path(visit)?, visit.segment(1), visit.segment(2), tab))
    }

    pub fn new(pages: &'static KindPages, organization: &str, name: &str, tab: &'static str) -> Head {
        let path = pages.page_path(organization, name);
        Head { pages, organization: organization.to_owned(), name: name.to_owned(), path, tab }
    }

    fn title(&self) -> &'static str {
        TABS.iter().find(|(_, tab, _)| *tab == self.tab).map_or("", |(title, ..)| title)
    }

    /// `None` if the name of the organization can't be one.
    fn key(&self) -> Option<ResourceKey> {
        Some(ResourceKey::new(self.pages.kind, &self.organization.parse().ok()?, &self.name))
    }

    /// The title, the path below `/ui` and whether it is shown, for each tab.
    pub fn tabs(&self) -> impl Iterator<Item = (&'static str, String, bool)> {
        TABS.iter().filter(|(.., kinds)| kinds.contains(&self.pages.kind)).map(|(title, tab, _)| {
            let path = match *tab {
                "" => self.path.clone(),
                PLAN => self.key().as_ref().map(view::plan_of).unwrap_or_default(),
                tab => format!("{}/{tab}", self.path),
            };
            (*title, path, *tab == self.tab)
        })
    }

    /// The path of something of it in the API.
    pub fn api_path(&self, below: &str) -> String {
        self.pages.record_path(&self.organization, &self.name, below, "")
    }
}

#[derive(Template)]
#[template(path = "resource.html")]
struct Resource {
    frame: Frame,
    head: Head,
    record: Value,
    /// Its fields: those of the record itself, and those of each of its objects.
    groups: Vec<Group>,
    /// Why its planned change waits.
    waiting: Vec<String>,
    /// How full a fleet is; empty for other kinds.
    room: Vec<(&'static str, Cell)>,
    /// The sizes and the cost of the last 30 days, where the settings have prices.
    usage: Option<Usage>,
    /// The first clusters of a fleet, and the number of all.
    clusters: Vec<Value>,
    all_clusters: usize,
    may_change: bool,
    may_delete: bool,
}

struct Group {
    /// The label of the object; empty for the record itself.
    title: String,
    rows: Vec<Row>,
}

struct Row {
    label: String,
    /// As the API and files name it.
    name: String,
    cell: Cell,
}

/// Fields that are elsewhere on the pages.
const ELSEWHERE: [&str; 4] = ["client_properties", "conditions", "status", "status_reason"];

impl Resource {
    fn conditions(&self) -> &[Value] {
        self.record["conditions"].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let head = Head::of(visit, "")?;
    let Head { pages: KindPages { kind, slug, .. }, organization, name, .. } = &head;
    let record: Value = visit.api.get(&head.api_path("")).await?;
    let may = |method| may(&visit.me, *kind, method, Some(organization));
    let (may_change, may_delete) = (may(Method::Patch), may(Method::Delete));
    let (mut room, mut clusters, mut all_clusters, mut usage) = (Vec::new(), Vec::new(), 0, None);
    if *kind == Kind::Fleet {
        let fits = resource_list::room(visit, organization).await;
        let own = fits.into_iter().find(|fit| fit.fleet.fleet.as_str() == name);
        room = own.iter().flat_map(of_limits).collect();
        let of = [("organization", organization.as_str()), ("infrastructure", name), ("page_size", "20")];
        let list: ListAnswer<Value> = visit.api.get(&with_query("/v1/clusters".to_owned(), &of)).await?;
        (clusters, all_clusters) = (list.items, list.total);
    }
    if matches!(kind, Kind::Fleet | Kind::Cluster) {
        let from = (Timestamp::now() - DAYS).to_string();
        let path = with_query(head.api_path("/cost"), &[("from", &from)]);
        // Without prices in the settings there is none.
        usage = visit.api.get::<CostReport>(&path).await.ok().map(|report| Usage::of(&report));
    }
    let key = head.key().map(String::from).unwrap_or_default();
    let path = with_query("/v1/plan/changes".to_owned(), &[("resource", &key)]);
    // Without specs that can be read there is no plan, and still a page.
    let plan = visit.api.get::<PlanChangeList>(&path).await.ok();
    let waiting = plan.into_iter().flat_map(|plan| plan.sections).flat_map(|section| section.items);
    let waiting = waiting.flat_map(|item| item.waiting).collect();
    let (frame, groups) = (visit.frame(slug), groups(*kind, &record));
    #[rustfmt::skip]
    let page = Resource { frame, head, record, groups, waiting, room, usage, clusters, all_clusters, may_change, may_delete };
    Ok(shown(StatusCode::OK, &page))
}

/// The time of a page's sparklines.
const DAYS: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The fields of a record: those that its form asks for in its order, and then the others.
fn groups(kind: Kind, record: &Value) -> Vec<Group> {
    let mut groups = vec![Group { title: String::new(), rows: Vec::new() }];
    let fields = record.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        let is_group = value.is_object() && !is_redacted(value)
            || value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
        let pointer = format!("/{name}");
        if is_group {
            let mut rows = Vec::new();
            flatten(&FieldPlace { group: &pointer, pointer: pointer.clone() }, value, &mut rows);
            let title = Some(label(&pointer)).filter(|title| !title.is_empty());
            groups.push(Group { title: title.unwrap_or_else(|| "Advanced".to_owned()), rows });
        } else {
            flatten(&FieldPlace { group: "", pointer }, value, &mut groups[0].rows);
        }
    }
    groups.retain(|group| !group.rows.is_empty());
    let known: Vec<String> =
        steps(kind).iter().flat_map(|step| step.fields).map(|pointer| dotted(pointer)).collect();
    let place = |row: &Row| known.iter().position(|known| *known == row.name).unwrap_or(known.len());
    groups.iter_mut().for_each(|group| group.rows.sort_by_key(place));
    groups
}

/// A field's path as the API and files name it.
fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn of_limits(fit: &FleetFit) -> [(&'static str, Cell); 2] {
    [("Kafka units", Cell::gauge(&fit.kafka_units)), ("clusters", Cell::gauge(&fit.clusters))]
}

fn is_redacted(value: &Value) -> bool {
    value.get("redacted") == Some(&Value::Bool(true))
}

/// The place of a field in a record.
struct FieldPlace<'g> {
    /// The group whose title is above its rows; empty for the record itself.
    group: &'g str,
    /// Its JSON pointer.
    pointer: String,
}

/// The output field that says why others have no value.
const NULL_REASONS: &str = "/null_reasons";

/// The output field with the address of a page for people.
const CONSOLE_URL: &str = "/console_url";

impl FieldPlace<'_> {
    fn below(&self, name: &str) -> Self {
        FieldPlace { group: self.group, pointer: format!("{}/{name}", self.pointer) }
    }

    fn row(&self, label: String, cell: Cell) -> Row {
        Row { label, name: dotted(&self.pointer), cell }
    }
}

/// The fields below a value as rows, without those that have no value.
fn flatten(place: &FieldPlace<'_>, value: &Value, rows: &mut Vec<Row>) {
    let label = || label_below(place.group, &place.pointer);
    match value {
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) if place.group == NULL_REASONS => {
            rows.push(place.row(label(), Cell::Sentence(text.clone())));
        }
        Value::String(url) if place.pointer == CONSOLE_URL => {
            rows.push(place.row(label(), Cell::Link(url.clone())));
        }
        Value::Object(_) if is_redacted(value) => {
            rows.push(place.row(label(), Cell::Text("a secret, which isn't shown".to_owned())));
        }
        // Tags.
        Value::Object(fields)
            if fields.len() == 2 && fields.contains_key("key") && fields.contains_key("value") =>
        {
            rows.push(place.row(view::field(value, "key").to_owned(), Cell::of("", &fields["value"])));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&place.below(name), value, rows));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, value) in items.iter().enumerate() {
                flatten(&place.below(&(index + 1).to_string()), value, rows);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        value => rows.push(place.row(label(), Cell::of("", value))),
    }
}

#[derive(Template)]
#[template(path = "resource_tab.html")]
struct Tab {
    frame: Frame,
    head: Head,
    content: TabContent,
}

impl Tab {
    /// Not what asks a Kubernetes cluster, or walks through a repository.
    fn is_live(&self) -> bool {
        matches!(self.content, TabContent::File(_) | TabContent::Events(_))
    }
}

enum TabContent {
    Why(Box<WhyReport>),
    Connect(ClusterListeners),
    File(SpecFile),
    History(ResourceHistory),
    Events(ListAnswer<Value>),
}

pub async fn tab(visit: &Visit) -> Shown {
    let known = TABS.iter().find(|(_, tab, _)| *tab == visit.segment(3) && !tab.is_empty());
    let (_, tab, kinds) = *known.ok_or_else(Refusal::no_page)?;
    let head = Head::of(visit, tab)?;
    if !kinds.contains(&head.pages.kind) {
        return Err(Refusal::no_page());
    }
    let page = [("page_token", visit.parameter("page"))];
    let path = head.api_path(&format!("/{tab}"));
    let content = match tab {
        "why" => TabContent::Why(Box::new(visit.api.get(&path).await?)),
        "connect" => {
            // Those of a user are among its cluster's.
            let (cluster, user) = head.name.split_once('/').unwrap_or((&head.name, ""));
            let cluster = Head::new(KindPages::of(Kind::Cluster), &head.organization, cluster, tab);
            let path = with_query(cluster.api_path("/client-properties"), &[("user", user)]);
            TabContent::Connect(visit.api.get(&path).await?)
        }
        "file" => TabContent::File(visit.api.get(&path).await?),
        "history" => TabContent::History(visit.api.get(&with_query(path, &page)).await?),
        _ => {
            // Of what the caller may not see there are no events and no plan, either.
            visit.api.get::<Value>(&head.api_path("")).await?;
            let key = head.key().ok_or_else(Refusal::no_page)?;
            if tab == PLAN {
                return Ok(visit.go(&view::plan_of(&key)));
            }
            let of = [("resource", String::from(key)), ("order", "desc".to_owned())];
            let of = of.each_ref().map(|(name, value)| (*name, value.as_str()));
            let path = with_query("/v1/events".to_owned(), &[of.as_slice(), &page].concat());
            TabContent::Events(visit.api.get(&path).await?)
        }
    };
    let frame = visit.frame(head.pages.slug);
    Ok(shown(StatusCode::OK, &Tab { frame, head, content }))
}
