//! One resource: its record, and for a cluster why it is as it is and how clients connect.

use askama::Template;
use axum::http::StatusCode;
use serde_json::Value;

use super::{KindPages, may, resource_list, with_query};
use crate::api::answer::{FleetFit, ListAnswer, ResourceHistory, SpecFile};
use crate::api::route::Method;
use crate::names::{Identifier, Kind, ResourceKey};
use crate::ui::client::Refusal;
use crate::ui::form::{label, label_below};
use crate::ui::view::{self, Cell, Frame, filters, shown};
use crate::ui::{Shown, Visit};
use crate::views::clients::ClusterListeners;
use crate::views::why::WhyReport;

/// The tabs of a resource's pages, with their paths below its own, and whether only clusters have them.
const TABS: [(&str, &str, bool); 6] = [
    ("Overview", "", false),
    ("Why", "why", true),
    ("File", "file", false),
    ("History", "history", false),
    ("Events", "events", false),
    ("Connect", "connect", true),
];

struct Head {
    pages: &'static KindPages,
    organization: String,
    name: String,
    path: String,
    tab: &'static str,
}

impl Head {
    fn of(visit: &Visit, tab: &'static str) -> Result<Head, Refusal> {
        let pages = KindPages::of_slug(visit.segment(0)).ok_or_else(Refusal::no_page)?;
        let (organization, name) = (visit.segment(1).to_owned(), visit.segment(2).to_owned());
        let path = pages.page_path(&organization, &name);
        Ok(Head { pages, organization, name, path, tab })
    }

    fn frame(&self, visit: &Visit) -> Frame {
        visit.frame(resource_list::section(self.pages))
    }

    fn tabs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_cluster = self.pages.kind == Kind::Cluster;
        TABS.iter()
            .filter(move |(.., of_cluster)| is_cluster || !of_cluster)
            .map(|(title, tab, _)| (*title, *tab))
    }

    fn api_path(&self, below: &str) -> String {
        self.api_page(below, "")
    }

    /// The path of a page of a list.
    fn api_page(&self, below: &str, page: &str) -> String {
        self.pages.record_path(&self.organization, &self.name, below, page)
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
    /// How full a fleet is; empty for other kinds.
    room: Vec<(&'static str, Cell)>,
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
    let record: Value = visit.api.get(&head.api_path("")).await?;
    let fields = record.as_object().into_iter().flatten();
    let mut groups = vec![Group { title: String::new(), rows: Vec::new() }];
    for (name, value) in fields.filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        let is_group = value.is_object() && !is_redacted(value)
            || value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
        if is_group {
            let (mut rows, pointer) = (Vec::new(), format!("/{name}"));
            flatten(&FieldPlace { group: &pointer, pointer: pointer.clone() }, value, &mut rows);
            let title = label(&pointer);
            let title = if title.is_empty() { "Advanced".to_owned() } else { title };
            groups.push(Group { title, rows });
        } else {
            let place = FieldPlace { group: "", pointer: format!("/{name}") };
            flatten(&place, value, &mut groups[0].rows);
        }
    }
    groups.retain(|group| !group.rows.is_empty());
    let may = |method| may(&visit.me, head.pages.kind, method, Some(&head.organization));
    let (may_change, may_delete) = (may(Method::Patch), may(Method::Delete));
    let (mut room, mut clusters, mut all_clusters) = (Vec::new(), Vec::new(), 0);
    if head.pages.kind == Kind::Fleet {
        let fits = resource_list::room(visit, &head.organization).await;
        let own = fits.into_iter().find(|fit| fit.fleet.fleet.as_str() == head.name);
        room = own.iter().flat_map(of_limits).collect();
        let of = [
            ("organization", head.organization.as_str()),
            ("infrastructure", &head.name),
            ("page_size", "20"),
        ];
        let list: ListAnswer<Value> = visit.api.get(&with_query("/v1/clusters".to_owned(), &of)).await?;
        (clusters, all_clusters) = (list.items, list.total);
    }
    let frame = head.frame(visit);
    let page = Resource { frame, head, record, groups, room, clusters, all_clusters, may_change, may_delete };
    Ok(shown(StatusCode::OK, &page))
}

fn of_limits(fit: &FleetFit) -> [(&'static str, Cell); 2] {
    [("Kafka units", Cell::gauge(&fit.kafka_units)), ("clusters", Cell::gauge(&fit.clusters))]
}

fn is_redacted(value: &Value) -> bool {
    value.get("redacted") == Some(&Value::Bool(true))
}

/// Where a field is in a record.
struct FieldPlace<'g> {
    /// The group whose title is above its rows; empty for the record itself.
    group: &'g str,
    /// Its JSON pointer.
    pointer: String,
}

/// The output field that says why others have no value.
const NULL_REASONS: &str = "/null_reasons";

impl FieldPlace<'_> {
    fn below(&self, name: &str) -> Self {
        FieldPlace { group: self.group, pointer: format!("{}/{name}", self.pointer) }
    }

    fn row(&self, label: String, cell: Cell) -> Row {
        Row { label, name: self.pointer.trim_start_matches('/').replace('/', "."), cell }
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
#[template(path = "why.html")]
struct Why {
    frame: Frame,
    head: Head,
    report: WhyReport,
}

#[derive(Template)]
#[template(path = "connect.html")]
struct Connect {
    frame: Frame,
    head: Head,
    clients: ClusterListeners,
}

#[derive(Template)]
#[template(path = "file.html")]
struct File {
    frame: Frame,
    head: Head,
    file: SpecFile,
}

#[derive(Template)]
#[template(path = "history.html")]
struct History {
    frame: Frame,
    head: Head,
    history: ResourceHistory,
}

#[derive(Template)]
#[template(path = "resource_events.html")]
struct ResourceEvents {
    frame: Frame,
    head: Head,
    list: ListAnswer<Value>,
}

fn organization_of(head: &Head) -> Result<Identifier, Refusal> {
    head.organization.parse().map_err(|_| Refusal::no_page())
}

pub async fn tab(visit: &Visit) -> Shown {
    let (_, tab, _) =
        *TABS.iter().find(|(_, tab, _)| *tab == visit.segment(3)).ok_or_else(Refusal::no_page)?;
    let head = Head::of(visit, tab)?;
    if tab.is_empty() || !head.tabs().any(|(_, known)| known == tab) {
        return Err(Refusal::no_page());
    }
    let frame = head.frame(visit);
    let answer = |below: &str| head.api_path(below);
    let page = match tab {
        "why" => shown(StatusCode::OK, &Why { report: visit.api.get(&answer("/why")).await?, frame, head }),
        "connect" => {
            let clients = visit.api.get(&answer("/client-properties")).await?;
            shown(StatusCode::OK, &Connect { clients, frame, head })
        }
        "events" => {
            // Of what the caller may not see there are no events, either.
            visit.api.get::<Value>(&head.api_path("")).await?;
            let key = String::from(ResourceKey::new(head.pages.kind, &organization_of(&head)?, &head.name));
            let query = [
                ("resource", key.as_str()),
                ("order", "desc"),
                ("page_size", "50"),
                ("page_token", visit.parameter("page")),
            ];
            let list = visit.api.get(&with_query("/v1/events".to_owned(), &query)).await?;
            shown(StatusCode::OK, &ResourceEvents { list, frame, head })
        }
        "file" => shown(StatusCode::OK, &File { file: visit.api.get(&answer("/file")).await?, frame, head }),
        _ => {
            let history = visit.api.get(&head.api_page("/history", visit.parameter("page"))).await?;
            shown(StatusCode::OK, &History { history, frame, head })
        }
    };
    Ok(page)
}
