//! The table of pages. Each answers from the API.

mod about;
mod change;
mod create;
mod delete;
mod draft;
mod events;
mod members;
mod overview;
mod plan;
mod resource;
mod resource_list;
mod review;
mod tokens;
mod you;

use axum::routing::MethodFilter;
use serde_json::Value;

pub use create::next_step;
pub use draft::keep;
pub use plan::is_just_now;

use super::client::Refusal;
use super::view::field;
use super::{Answer, Page, Visit};
use crate::api::answer::CallerDescription;
use crate::api::route::{Method, ROUTES, RequiredAccess, Route};
use crate::http::query::encoded;
use crate::names::{Kind, ResourceKey};
use crate::state::{Access, Reach};

/// The addresses of the forms for a new resource and for one that exists.
const NEW: &str = "/new/{kind}";
const EDIT: &str = "/{kind}/{organization}/{name}/edit";

/// The folder of what was typed and isn't carried out yet.
pub const DRAFTS: &str = "/drafts";

macro_rules! page {
    ($method:ident $path:expr => $answer:path) => {
        Page {
            method: MethodFilter::$method,
            path: $path,
            answer: |visit: &Visit| -> Answer<'_> { Box::pin($answer(visit)) },
        }
    };
}

pub static PAGES: &[Page] = &[
    page!(GET "/" => overview::show),
    page!(GET "/plan" => plan::show),
    page!(POST "/plan/approve" => plan::approve),
    page!(GET "/events" => events::show),
    page!(GET "/tokens" => tokens::show),
    page!(POST "/tokens" => tokens::create),
    page!(POST "/tokens/{id}/revoke" => tokens::revoke),
    page!(GET "/you" => you::show),
    page!(GET "/about" => about::show),
    page!(GET "/members" => members::show),
    page!(POST "/members/{organization}" => members::change),
    page!(GET NEW => create::show),
    page!(POST NEW => draft::no_form),
    page!(GET "/drafts/{id}" => draft::show),
    page!(GET "/drafts/{id}/edit" => draft::edit),
    page!(POST "/drafts/{id}/check" => draft::check),
    page!(POST "/carry-out" => draft::carry_out),
    page!(GET "/{kind}" => resource_list::show),
    page!(GET "/{kind}/{organization}" => resource_list::of_organization),
    page!(GET "/{kind}/{organization}/{name}" => resource::show),
    page!(GET EDIT => change::show),
    page!(POST EDIT => draft::no_form),
    page!(GET "/{kind}/{organization}/{name}/delete" => delete::show),
    page!(POST "/{kind}/{organization}/{name}/delete" => delete::carry_out),
    page!(GET "/{kind}/{organization}/{name}/{tab}" => resource::tab),
];

/// A kind of resource as pages show it.
pub struct KindPages {
    pub kind: Kind,
    /// The first segment of its pages' paths.
    pub slug: &'static str,
    pub title: &'static str,
    /// The field that names a resource.
    pub name: &'static str,
    /// The columns of the list after the name, each with the JSON pointer of its value.
    pub columns: &'static [(&'static str, &'static str)],
    /// What a list without any says.
    pub empty: &'static str,
}

/// The columns of fleets that show how much of a limit is in use.
const KAFKA_UNITS: &str = "/max_kafka_units";
const CLUSTERS: &str = "/max_tenants";

#[rustfmt::skip]
pub static KINDS: [KindPages; 8] = [
    KindPages { kind: Kind::Fleet, slug: "fleets", title: "Fleets", name: "identifier",
        columns: &[("Status", "/status"), ("Provider", "/infra_type"), ("Base domain", "/domain"), ("Kafka units", KAFKA_UNITS),
            ("Clusters", CLUSTERS), ("Changed", "/updated_at")],
        empty: "A fleet is a Kubernetes cluster that hosts Kafka clusters." },
    KindPages { kind: Kind::Cluster, slug: "clusters", title: "Clusters", name: "identifier",
        columns: &[("Status", "/status"), ("Fleet", "/infrastructure"), ("Kafka units", "/kafka_units"),
            ("Version", "/advanced_config/version"), ("Tags", "/tags"), ("Changed", "/updated_at")],
        empty: "A cluster is an Apache Kafka cluster on a fleet." },
    KindPages { kind: Kind::Topic, slug: "topics", title: "Topics", name: "name",
        columns: &[("Status", "/status"), ("Partitions", "/partitions"), ("Protected", "/deletion_protection"), ("Changed", "/updated_at")],
        empty: "Topics that no file describes aren't listed, and are left alone." },
    KindPages { kind: Kind::User, slug: "users", title: "Users", name: "identifier",
        columns: &[("Status", "/status"), ("Writes to", "/produce"), ("Changed", "/updated_at")],
        empty: "A user of a cluster logs in as its cluster says, and has the rights that its file gives it." },
    KindPages { kind: Kind::BaseDomain, slug: "base-domains", title: "Base domains", name: "domain",
        columns: &[("DNS", "/dns_provider"), ("Certificate until", "/not_after"), ("Changed", "/updated_at")],
        empty: "Clusters are reached at subdomains of a base domain, with its certificate." },
    KindPages { kind: Kind::IdentityProvider, slug: "identity-providers", title: "Identity providers", name: "identifier",
        columns: &[("Issuer", "/issuer"), ("Changed", "/updated_at")],
        empty: "An identity provider lets clients sign in to a cluster with OAuth." },
    KindPages { kind: Kind::CloudAccount, slug: "cloud-accounts", title: "Cloud accounts", name: "identifier",
        columns: &[("Provider", "/provider"), ("Region", "/region"), ("Changed", "/updated_at")],
        empty: "A cloud account has the credentials for tiered storage and managed DNS." },
    KindPages { kind: Kind::Organization, slug: "organizations", title: "Organizations", name: "identifier",
        columns: &[("Display name", "/display_name"), ("Changed", "/updated_at")],
        empty: "An organization owns fleets and clusters, and has members with roles." },
];

impl KindPages {
    pub fn of(kind: Kind) -> &'static KindPages {
        KINDS.iter().find(|pages| pages.kind == kind).unwrap_or(&KINDS[0])
    }

    pub fn of_slug(slug: &str) -> Option<&'static KindPages> {
        KINDS.iter().find(|pages| pages.slug == slug)
    }

    /// The name of a resource in its organization, which for a topic or user has its cluster's in front.
    pub fn name_of(&self, record: &Value) -> String {
        let name = field(record, self.name);
        if self.kind.is_on_cluster() {
            format!("{}/{name}", field(record, "cluster"))
        } else {
            name.to_owned()
        }
    }

    /// The pages of the kind that the path of a visit begins with.
    pub fn of_path(visit: &Visit) -> Result<&'static KindPages, Refusal> {
        KindPages::of_slug(visit.segment(0)).ok_or_else(Refusal::no_page)
    }

    /// The path of the list in the API.
    pub fn list_path(&self, organization: &str) -> String {
        match self.kind {
            Kind::Organization => "/organizations".to_owned(),
            Kind::Cluster => "/v1/clusters".to_owned(),
            Kind::Fleet => format!("/organizations/{}/infrastructure", encoded(organization)),
            _ => format!("/organizations/{}/{}", encoded(organization), self.slug),
        }
    }

    /// The path of a resource in the API, with the query that its organization needs and one for a page.
    pub fn record_path(&self, organization: &str, name: &str, below: &str, page: &str) -> String {
        let of = if self.kind == Kind::Cluster { organization } else { "" };
        let path = format!("{}/{}{below}", self.list_path(organization), encoded(name));
        with_query(path, &[("organization", of), ("page_token", page)])
    }

    /// The path of a resource's page, below `/ui`.
    pub fn page_path(&self, organization: &str, name: &str) -> String {
        format!("/{}/{}/{}", self.slug, encoded(organization), encoded(name))
    }
}

/// The path of the page of a resource, as API answers name it: `Cluster/acme/orders`.
pub fn page_of(key: &ResourceKey) -> String {
    KindPages::of(key.kind).page_path(key.organization.as_str(), &key.name)
}

/// The route of the API that changes a kind's resources by a method.
fn route(kind: Kind, method: Method) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.kind() == Some(kind) && route.method == method)
}

/// Whether somebody may change a kind's resources by a method: in an organization, or in any if none is named.
pub fn may(me: &CallerDescription, kind: Kind, method: Method, organization: Option<&str>) -> bool {
    let needed = route(kind, method).map_or(RequiredAccess::Super, |route| route.needs);
    let access = match needed {
        RequiredAccess::Nobody | RequiredAccess::Read => Access::Read,
        RequiredAccess::Write => Access::Write,
        RequiredAccess::Admin => Access::Admin,
        RequiredAccess::Super => {
            return me.is_super_user && me.organization == Reach::All && me.access == Access::Admin;
        }
    };
    organization.map_or_else(|| me.may_somewhere(access), |organization| me.may(organization, access))
}

/// Refuses a form before somebody fills it in who may not send it.
pub fn require(visit: &Visit, kind: Kind, method: Method, organization: Option<&str>) -> Result<(), Refusal> {
    match route(kind, method) {
        Some(route) if !may(&visit.me, kind, method, organization) => {
            Err(Refusal::lacks(route, organization))
        }
        _ => Ok(()),
    }
}

/// The path of a call that changes nothing, and answers with what would follow: `true` for the plan, `file` for the
/// file.
pub fn dry_run(path: &str, answer: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}dry_run={answer}")
}

/// Adds parameters to a path, but for those without a value.
pub fn with_query(path: String, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let mark = if path.contains('?') { '&' } else { '?' };
    if query.is_empty() { path } else { format!("{path}{mark}{}", query.join("&")) }
}
