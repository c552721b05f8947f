//! The table of all HTTP routes: the router, the OpenAPI document, the reference and the tests are derived
//! from it. [`Route::id`] determines the handler.
//!
//! Paths use the router's syntax. A trailing slash is always optional.

mod parts;
mod queries;
mod shapes;
#[cfg(test)]
mod tests;

use axum::http;

use super::answer::{
    About, CallerDescription, ClusterFitList, CreatedSignInLink, FleetCheck, Offers, PlanApproval,
    PlanChangeList, ProposedEdit, ResourceHistory, SpecFile,
};
use crate::names::Kind;
use crate::spec::schema;
use crate::views::clients::ClusterListeners;
use crate::views::cost::CostReport;
use crate::views::status::StatusList;
use crate::views::why::WhyReport;

use queries::{
    ABOUT, AFTER, AS_USER, AT, BROKER, CHANGES_OF_FLEET, CHANGES_OF_RESOURCE, DRY_RUN, FOLLOW, FROM,
    IN_ORGANIZATION, LOG_SINCE, OF_CLUSTER, OF_FLEET, OF_ORGANIZATION, OF_RESOURCE, OFFERED_TO, ORDER,
    PAGE_SIZE, PAGE_TOKEN, SEARCH, SINCE, SORT, SORT_OR_STATUS, STATUS, TAG, TO, UNWELL, VERB,
};

pub use parts::{Method, Query, QueueKind, RequestBody, RequiredAccess, ResponseContent};
pub use shapes::{LARGEST_PAGE, USUAL_PAGE, page_of, problem};

#[derive(Debug)]
pub struct Route {
    pub method: Method,
    /// The path below the base address, with parameters in braces: `/v1/clusters/{id}`.
    pub path: &'static str,
    /// A unique name: the `operationId` of the OpenAPI document.
    pub id: &'static str,
    pub summary: &'static str,
    /// The action as the subject of a sentence: `changing clusters`.
    pub doing: &'static str,
    pub needs: RequiredAccess,
    /// The queue for its requests.
    pub queue: QueueKind,
    pub query: &'static [Query],
    pub takes: Option<RequestBody>,
    /// The successful answers by status. A status that appears twice has one of several contents.
    pub gives: &'static [(u16, ResponseContent)],
}

impl Route {
    /// A quick read without a body, until the methods below say otherwise.
    const fn new(method: Method, path: &'static str, id: &'static str) -> Route {
        Route {
            method,
            path,
            id,
            summary: "",
            doing: "",
            needs: RequiredAccess::Read,
            queue: QueueKind::Light,
            query: &[],
            takes: None,
            gives: &[],
        }
    }

    const fn about(self, summary: &'static str, doing: &'static str) -> Route {
        Route { summary, doing, ..self }
    }

    const fn needs(self, needs: RequiredAccess, queue: QueueKind) -> Route {
        Route { needs, queue, ..self }
    }

    const fn query(self, query: &'static [Query]) -> Route {
        Route { query, ..self }
    }

    const fn takes(self, body: RequestBody) -> Route {
        Route { takes: Some(body), ..self }
    }

    const fn gives(self, gives: &'static [(u16, ResponseContent)]) -> Route {
        Route { gives, ..self }
    }

    /// The names of the path parameters, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// The kind of resource concerned; `None` for none or several.
    pub fn kind(&self) -> Option<Kind> {
        self.gives.iter().find_map(|(_, gives)| match gives {
            ResponseContent::Record(kind)
            | ResponseContent::List(kind)
            | ResponseContent::Of(kind, _)
            | ResponseContent::Text(kind)
            | ResponseContent::Metrics(kind) => Some(*kind),
            ResponseContent::Schema(_) | ResponseContent::Stream(_) | ResponseContent::Nothing => None,
        })
    }

    /// Whether it writes a resource, so that `If-Match` is honoured.
    pub fn is_conditional(&self) -> bool {
        self.kind().is_some() && self.method != Method::Get
    }
}

/// Whether a request proposes a tree of specs, whose body may be larger than others.
pub(super) fn is_proposal(method: &http::Method, path: &str) -> bool {
    *method == http::Method::POST && path.strip_suffix('/').unwrap_or(path).ends_with("/v1/plans")
}

/// The path at which the resources of a kind are listed.
pub fn list_path(kind: Kind) -> &'static str {
    let lists = |route: &&Route| {
        route.gives.iter().any(|(_, gives)| matches!(gives, ResponseContent::List(of) if *of == kind))
    };
    ROUTES.iter().find(lists).map_or("/", |route| route.path)
}

/// The answers of a dry run.
const PLAN: (u16, ResponseContent) = (200, ResponseContent::Schema(crate::plan::schema));
const EDIT: (u16, ResponseContent) = (200, ResponseContent::Schema(schema::of::<ProposedEdit>));

/// Expands to the routes of each kind, followed by all other routes.
macro_rules! table {
    (
        kinds: { $($kind:ident: $one:literal, $many:literal, $noun:literal, $nouns:literal, $plain:literal at $path:literal / $id:literal,
            lists by $filters:expr, finds by [$($finds:expr),*], needs $create:ident $change:ident $delete:ident;)* }
        others: [$($other:expr,)*]
    ) => {
        &[
            $(
                Route::new(Method::Get, $path, concat!("list_", $many))
                    .about(concat!("List ", $nouns), concat!("reading ", $plain))
                    .query($filters)
                    .gives(&[(200, ResponseContent::List(Kind::$kind))]),
                Route::new(Method::Post, $path, concat!("create_", $one))
                    .about(concat!("Create ", $noun), concat!("creating ", $plain))
                    .needs(RequiredAccess::$create, QueueKind::Turn)
                    .query(&[DRY_RUN])
                    .takes(RequestBody::Create(Kind::$kind))
                    .gives(&[(201, ResponseContent::Record(Kind::$kind)), PLAN, EDIT]),
                Route::new(Method::Get, concat!($path, "/", $id), concat!("read_", $one))
                    .about(concat!("Read ", $noun), concat!("reading ", $plain))
                    .query(&[$($finds),*])
                    .gives(&[(200, ResponseContent::Record(Kind::$kind))]),
                Route::new(Method::Put, concat!($path, "/", $id), concat!("replace_", $one))
                    .about(concat!("Replace ", $noun), concat!("changing ", $plain))
                    .needs(RequiredAccess::$change, QueueKind::Turn)
                    .query(&[$($finds,)* DRY_RUN])
                    .takes(RequestBody::Replace(Kind::$kind))
                    .gives(&[(200, ResponseContent::Record(Kind::$kind)), PLAN, EDIT]),
                Route::new(Method::Patch, concat!($path, "/", $id), concat!("patch_", $one))
                    .about(concat!("Change fields of ", $noun), concat!("changing ", $plain))
                    .needs(RequiredAccess::$change, QueueKind::Turn)
                    .query(&[$($finds,)* DRY_RUN])
                    .takes(RequestBody::Patch(Kind::$kind))
                    .gives(&[(200, ResponseContent::Record(Kind::$kind)), PLAN, EDIT]),
                Route::new(Method::Delete, concat!($path, "/", $id), concat!("delete_", $one))
                    .about(concat!("Delete ", $noun), concat!("deleting ", $plain))
                    .needs(RequiredAccess::$delete, QueueKind::Turn)
                    .query(&[$($finds,)* DRY_RUN])
                    .gives(&[(202, ResponseContent::Record(Kind::$kind)), PLAN, EDIT]),
                Route::new(Method::Get, concat!($path, "/", $id, "/file"), concat!("read_", $one, "_file"))
                    .about(concat!("Read the document of ", $noun, " as its file has it"), concat!("reading ", $plain))
                    .query(&[$($finds),*])
                    .gives(&[(200, ResponseContent::Of(Kind::$kind, schema::of::<SpecFile>))]),
                Route::new(Method::Get, concat!($path, "/", $id, "/history"), concat!("read_", $one, "_history"))
                    .about(concat!("List the git commits that changed the file of ", $noun), concat!("reading ", $plain))
                    .needs(RequiredAccess::Read, QueueKind::Heavy)
                    .query(&[$($finds,)* PAGE_TOKEN])
                    .gives(&[(200, ResponseContent::Of(Kind::$kind, schema::of::<ResourceHistory>))]),
            )*
            $($other,)*
        ]
    };
}

pub static ROUTES: &[Route] = table! {
    kinds: {
    Organization: "organization", "organizations", "an organization", "organizations", "organizations"
        at "/organizations" / "{organization}",
        lists by &[SEARCH, SORT, PAGE_SIZE, PAGE_TOKEN], finds by [], needs Super Admin Super;
    Fleet: "fleet", "fleets", "a fleet", "the fleets of an organization", "fleets"
        at "/organizations/{organization}/infrastructure" / "{id}",
        lists by &[STATUS, SEARCH, SORT_OR_STATUS, PAGE_SIZE, PAGE_TOKEN], finds by [], needs Write Write Write;
    BaseDomain: "base_domain", "base_domains", "a base domain", "the base domains of an organization",
        "base domains"
        at "/organizations/{organization}/base-domains" / "{id}",
        lists by &[SEARCH, SORT, PAGE_SIZE, PAGE_TOKEN], finds by [], needs Write Write Write;
    IdentityProvider: "identity_provider", "identity_providers", "an identity provider",
        "the identity providers of an organization", "identity providers"
        at "/organizations/{organization}/identity-providers" / "{id}",
        lists by &[SEARCH, SORT, PAGE_SIZE, PAGE_TOKEN], finds by [], needs Write Write Write;
    CloudAccount: "cloud_account", "cloud_accounts", "a cloud account", "the cloud accounts of an organization",
        "cloud accounts"
        at "/organizations/{organization}/cloud-accounts" / "{id}",
        lists by &[SEARCH, SORT, PAGE_SIZE, PAGE_TOKEN], finds by [], needs Write Write Write;
    Cluster: "cluster", "clusters", "a cluster", "clusters", "clusters"
        at "/v1/clusters" / "{id}",
        lists by &[OF_ORGANIZATION, OF_FLEET, STATUS, SEARCH, TAG, SORT_OR_STATUS, PAGE_SIZE, PAGE_TOKEN],
        finds by [IN_ORGANIZATION], needs Write Write Write;
    Topic: "topic", "topics", "a topic", "the topics of an organization", "topics"
        at "/organizations/{organization}/topics" / "{id}",
        lists by &[OF_CLUSTER, STATUS, SEARCH, SORT_OR_STATUS, PAGE_SIZE, PAGE_TOKEN], finds by [],
        needs Write Write Write;
    User: "user", "users", "a user", "the users of an organization", "users"
        at "/organizations/{organization}/users" / "{id}",
        lists by &[OF_CLUSTER, STATUS, SEARCH, SORT_OR_STATUS, PAGE_SIZE, PAGE_TOKEN], finds by [],
        needs Write Write Write;
    }
    others: [
        Route::new(Method::Get, "/v1/status", "read_status")
            .about("Read the status of all fleets and clusters, by the last plan and the writes since", "reading the status")
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[UNWELL])
            .gives(&[(200, ResponseContent::Schema(schema::of::<StatusList>))]),
        Route::new(Method::Get, "/v1/clusters/{id}/why", "explain_cluster")
            .about(
                "Explain the status of a cluster: what the plan does or waits for, its faulty objects, the last \
                 warnings, and what to do next",
                "reading clusters",
            )
            .needs(RequiredAccess::Read, QueueKind::Observation)
            .query(&[IN_ORGANIZATION])
            .gives(&[(200, ResponseContent::Schema(schema::of::<WhyReport>))]),
        Route::new(Method::Get, "/v1/clusters/{id}/client-properties", "read_client_properties")
            .about(
                "Read the properties for clients of a cluster, for each of its listeners",
                "reading clusters",
            )
            .query(&[IN_ORGANIZATION, AS_USER])
            .gives(&[(200, ResponseContent::Schema(schema::of::<ClusterListeners>))]),
        Route::new(Method::Get, "/v1/clusters/{id}/logs", "read_cluster_logs")
            .about(
                "Read the logs of a cluster's brokers, the oldest line first, and follow them",
                "reading clusters",
            )
            .needs(RequiredAccess::Read, QueueKind::Observation)
            .query(&[IN_ORGANIZATION, BROKER, LOG_SINCE, FOLLOW])
            .gives(&[(200, ResponseContent::Text(Kind::Cluster))]),
        Route::new(Method::Get, "/organizations/{organization}/infrastructure/{id}/logs", "read_fleet_logs")
            .about(
                "Read the logs of the brokers of all clusters of a fleet: the fleet's `logs_endpoint`",
                "reading fleets",
            )
            .needs(RequiredAccess::Read, QueueKind::Observation)
            .query(&[BROKER, LOG_SINCE, FOLLOW])
            .gives(&[(200, ResponseContent::Text(Kind::Fleet))]),
        Route::new(Method::Get, "/v1/clusters/{id}/metrics", "read_cluster_metrics")
            .about(
                "Read metrics of a cluster's brokers and controllers, at most a minute old: its `metrics_endpoint`",
                "reading clusters",
            )
            .needs(RequiredAccess::Read, QueueKind::Observation)
            .query(&[IN_ORGANIZATION])
            .gives(&[(200, ResponseContent::Metrics(Kind::Cluster))]),
        Route::new(Method::Get, "/organizations/{organization}/infrastructure/{id}/metrics", "read_fleet_metrics")
            .about(
                "Read metrics of the brokers and controllers of all clusters of a fleet, at most a minute old: its \
                 `metrics_endpoint`",
                "reading fleets",
            )
            .needs(RequiredAccess::Read, QueueKind::Observation)
            .gives(&[(200, ResponseContent::Metrics(Kind::Fleet))]),
        Route::new(Method::Get, "/v1/clusters/{id}/cost", "read_cluster_cost")
            .about(
                "Read what a cluster cost between two times, by its recorded sizes and the prices of the settings",
                "reading clusters",
            )
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[IN_ORGANIZATION, FROM, TO])
            .gives(&[(200, ResponseContent::Of(Kind::Cluster, schema::of::<CostReport>))]),
        Route::new(Method::Get, "/organizations/{organization}/infrastructure/{id}/cost", "read_fleet_cost")
            .about(
                "Read what the clusters of a fleet cost between two times, deleted ones too: the fleet's `cost_endpoint`",
                "reading fleets",
            )
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[FROM, TO])
            .gives(&[(200, ResponseContent::Of(Kind::Fleet, schema::of::<CostReport>))]),
        Route::new(Method::Get, "/v1/offers", "read_offers")
            .about(
                "Read what specs may choose here, and what each fleet offers to its clusters; what isn't offered is \
                 listed with the reason",
                "reading the offers",
            )
            .query(&[OFFERED_TO])
            .gives(&[(200, ResponseContent::Schema(schema::of::<Offers>))]),
        Route::new(Method::Post, "/v1/fit", "fit_cluster")
            .about(
                "Check which fleets of an organization a new cluster fits on, and what is missing on the others. Nothing is \
                 changed or reserved",
                "checking where a cluster fits",
            )
            .takes(RequestBody::Schema(shapes::cluster_to_fit))
            .gives(&[(200, ResponseContent::Schema(schema::of::<ClusterFitList>))]),
        Route::new(Method::Post, "/v1/checks", "check_kubernetes_cluster")
            .about(
                "Connect once with the kubeconfig of a new or changed fleet, and read what its Kubernetes cluster has. Nothing \
                 is changed or kept",
                "checking Kubernetes clusters",
            )
            .needs(RequiredAccess::Admin, QueueKind::Observation)
            .takes(RequestBody::Schema(shapes::fleet_to_check))
            .gives(&[(200, ResponseContent::Schema(schema::of::<FleetCheck>))]),
        Route::new(Method::Get, "/v1/plan", "read_plan")
            .about(
                "Read the last plan: changes, and what waits. It is at most a minute old (see `created_at`), and \
                 includes everything that was written through the API before",
                "reading the plan",
            )
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[AT])
            .gives(&[PLAN]),
        Route::new(Method::Get, "/v1/plan/changes", "list_changes")
            .about(
                "List the changes of the last plan in sentences, the gravest first, by pages",
                "reading the plan",
            )
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[OF_ORGANIZATION, CHANGES_OF_FLEET, CHANGES_OF_RESOURCE, PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Schema(schema::of::<PlanChangeList>))]),
        Route::new(Method::Post, "/v1/plans", "propose_plan")
            .about(
                "Plan a tree of specs from the request, and change nothing",
                "planning a tree from a request",
            )
            .needs(RequiredAccess::Write, QueueKind::Proposal)
            .query(&[AT])
            .takes(RequestBody::Schema(shapes::proposal))
            .gives(&[PLAN]),
        Route::new(Method::Post, "/v1/plans/{id}/approve", "approve_plan")
            .about("Approve, once, the steps that wait for an approval id", "approving")
            .needs(RequiredAccess::Admin, QueueKind::Approval)
            .gives(&[(200, ResponseContent::Schema(schema::of::<PlanApproval>))]),
        Route::new(Method::Get, "/v1/events", "list_events")
            .about("Read recent decisions and their outcomes", "reading events")
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[OF_ORGANIZATION, OF_RESOURCE, VERB, ABOUT, SINCE, ORDER, PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Schema(shapes::events))]),
        Route::new(Method::Get, "/v1/events/stream", "stream_events")
            .about("Follow events as they happen, as server-sent events", "reading events")
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[OF_ORGANIZATION, AFTER])
            .gives(&[(200, ResponseContent::Stream(shapes::event))]),
        Route::new(Method::Get, "/v1/tokens", "list_tokens")
            .about(
                "List the caller's tokens, without sessions; for a super user, all tokens",
                "listing tokens",
            )
            .needs(RequiredAccess::Read, QueueKind::Tokens)
            .query(&[PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Schema(shapes::tokens))]),
        Route::new(Method::Get, "/v1/sessions", "list_sessions")
            .about(
                "List the caller's sessions of the web UI; for a super user, all sessions",
                "listing sessions",
            )
            .needs(RequiredAccess::Read, QueueKind::Tokens)
            .query(&[PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Schema(shapes::sessions))]),
        Route::new(Method::Delete, "/v1/sessions/{id}", "end_session")
            .about("End one of the caller's sessions; as a super user, any session", "ending a session")
            .needs(RequiredAccess::Read, QueueKind::Revoking)
            .gives(&[(204, ResponseContent::Nothing)]),
        Route::new(Method::Post, "/v1/sessions", "create_session")
            .about(
                "Begin a session of the web UI: a token with at most the access of the caller's own, for a day at most",
                "beginning a session",
            )
            .needs(RequiredAccess::Read, QueueKind::Tokens)
            .takes(RequestBody::Schema(shapes::session))
            .gives(&[(201, ResponseContent::Schema(shapes::shown_token))]),
        Route::new(Method::Post, "/v1/tokens", "create_token")
            .about(
                "Create a token with at most the access of the caller's own. It is shown only once",
                "creating a token",
            )
            .needs(RequiredAccess::Read, QueueKind::Tokens)
            .takes(RequestBody::Schema(shapes::new_token))
            .gives(&[(201, ResponseContent::Schema(shapes::shown_token))]),
        Route::new(Method::Delete, "/v1/tokens/{id}", "revoke_token")
            .about("Revoke one of the caller's tokens; as a super user, any token", "revoking a token")
            .needs(RequiredAccess::Read, QueueKind::Revoking)
            .gives(&[(204, ResponseContent::Nothing)]),
        Route::new(Method::Post, "/v1/sign-in-links", "create_sign_in_link")
            .about(
                "Create a link that signs a person in to the web UI, once and within 15 minutes",
                "creating sign-in links",
            )
            .needs(RequiredAccess::Super, QueueKind::Tokens)
            .takes(RequestBody::Schema(shapes::new_sign_in_link))
            .gives(&[(201, ResponseContent::Schema(schema::of::<CreatedSignInLink>))]),
        Route::new(Method::Delete, "/v1/sign-in-accounts/{email}", "release_account")
            .about(
                "Release an e-mail address from the account at the OpenID Connect issuer that it is bound to, so that \
                 another account may sign in with it",
                "releasing an e-mail address from its account",
            )
            .needs(RequiredAccess::Super, QueueKind::Tokens)
            .gives(&[(204, ResponseContent::Nothing)]),
        Route::new(Method::Get, "/organizations/{organization}/members", "list_members")
            .about(
                "List the members of an organization by their addresses, each with the line of the file that makes them one",
                "reading organizations",
            )
            .query(&[PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Of(Kind::Organization, shapes::members))]),
        Route::new(Method::Get, "/v1/certificates", "list_certificates")
            .about(
                "List when the certificates of base domains expire, the first one to do so at the front",
                "reading base domains",
            )
            .needs(RequiredAccess::Read, QueueKind::Heavy)
            .query(&[OF_ORGANIZATION, PAGE_SIZE, PAGE_TOKEN])
            .gives(&[(200, ResponseContent::Of(Kind::BaseDomain, shapes::certificates))]),
        Route::new(Method::Get, "/v1/about", "read_about")
            .about(
                "Read about this installation: its version and mode, and the specs and time of the last plan",
                "reading about the installation",
            )
            .gives(&[(200, ResponseContent::Schema(schema::of::<About>))]),
        Route::new(Method::Get, "/v1/me", "read_me")
            .about("Read who the caller is: the token, and its owner's roles", "reading about the caller")
            .gives(&[(200, ResponseContent::Schema(schema::of::<CallerDescription>))]),
        Route::new(Method::Get, "/v1/errors", "list_errors")
            .about("List the error codes, what they mean and what to do", "listing errors")
            .needs(RequiredAccess::Nobody, QueueKind::Open)
            .gives(&[(200, ResponseContent::Schema(shapes::errors))]),
        Route::new(Method::Get, "/openapi.json", "read_openapi")
            .about("Read this description of the API", "reading the description")
            .needs(RequiredAccess::Nobody, QueueKind::Open)
            .gives(&[(200, ResponseContent::Schema(shapes::openapi))]),
    ]
};
