//! The OpenAPI 3.1 document, generated from the table of routes and the schemas of the types, so that it
//! can't contradict the code.

mod components;
mod examples;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::route::{Method, ROUTES, RequestBody, RequiredAccess, ResponseContent, Route, list_path};
use crate::http::problem::{PROBLEM, ProblemDocument, code};
use crate::names::Kind;
use crate::record;
use crate::spec::schema::Sent;
use components::{Components, named};

/// The content type of bodies and answers.
pub const JSON: &str = "application/json";

/// The content type of merge patches (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";

/// The content type of server-sent events.
pub const EVENT_STREAM: &str = "text/event-stream";
pub const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// The content type of metrics in Prometheus' text format.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

const ABOUT: &str = "The REST API of a Streamfleet installation. A write becomes an edit of the spec tree, and the \
    daemon applies it.\n\n- A slash at the end of a path is optional, and `HEAD` works wherever `GET` does.\n- `null`, \
    `\"\"` and `{}` in an optional field are the same as leaving it out. Answers have every field.\n- Times are in UTC \
    and end in `Z`, with microseconds; times in a plan may be more precise.\n- Lists have pages: `next_page_token` of \
    one page is the `page_token` of the next, and is null on the last one.\n- `ETag` identifies the current spec. \
    `If-Match` is supported; `If-None-Match` is not, because the status of a resource changes without its tag.\n- An \
    error is a problem document (RFC 9457). Its `code` is for programs; `/v1/errors` lists all codes.\n- Each answer \
    has an id in `X-Request-Id`, which is also in the daemon's log.\n- A resource that the caller may not see is \
    answered like a missing one.";

/// The tags of routes about no kind of resource, with their descriptions.
const OTHERS: [(&str, &str); 11] = [
    ("offers", "What this installation offers."),
    ("fit", "Where a new cluster fits."),
    ("checks", "What a Kubernetes cluster has."),
    ("plans", "Plans, proposals and approvals."),
    ("events", "Decisions and their outcomes."),
    ("tokens", "Tokens of callers."),
    ("sessions", "Sessions of the web UI."),
    ("sign-in-links", "Links that sign in to the web UI."),
    ("sign-in-accounts", "Accounts at the OpenID Connect issuer, which people sign in to the web UI with."),
    ("me", "Who the caller is."),
    ("api", "Error codes, and this description."),
];

const CREATE_IF_MATCH: &str =
    "A list has no `ETag`: only `*` matches, and with any other value nothing is created.";

const CHANGE_IF_MATCH: &str = "The `ETag` of the resource to change. The change is refused if the resource changed \
    since. Several tags are separated by commas, and one of them must match; `*` matches any. A weak tag never \
    matches.";

/// `server` is an address or a path.
pub fn document(server: &str) -> Value {
    let mut components = Components::default();
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| path(route, &mut components));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route, &mut components);
    }
    let tags = Kind::ALL.map(|kind| json!({"name": kind.plural(), "description": about(kind)}));
    let others = OTHERS.map(|(name, description)| json!({"name": name, "description": description}));
    let tags: Vec<Value> = tags.into_iter().chain(others).collect();
    let (schemas, parameters) = components.document();
    let responses = share_responses(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Streamfleet",
            "description": ABOUT,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameters,
            "headers": headers(),
            "responses": responses,
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token from `streamfleet token create` or `POST /v1/tokens`.",
            }},
        },
    })
}

fn headers() -> Value {
    let text = json!({"type": "string"});
    json!({
        "X-Request-Id": {
            "description": "The id of the request, which is also in the daemon's log.",
            "schema": {"type": "string", "format": "uuid"},
        },
        "ETag": {"description": "Identifies the current spec, for `If-Match`.", "schema": text},
        "Location": {
            "description": "The address of the resource.",
            "schema": {"type": "string", "format": "uri-reference"},
        },
        "WWW-Authenticate": {"description": "`Bearer`, with status 401.", "schema": text},
        "Retry-After": {
            "description": "The number of seconds to wait before the next attempt, with status 429 or 503.",
            "schema": {"type": "integer", "minimum": 1},
        },
    })
}

fn headers_of(names: &[&str]) -> Value {
    let reference = |name: &str| json!({"$ref": format!("#/components/headers/{name}")});
    names.iter().map(|name| ((*name).to_owned(), reference(name))).collect()
}

fn about(kind: Kind) -> String {
    crate::spec::describe::document(kind, kind.singular()).text()
}

fn path(route: &Route, components: &mut Components) -> Value {
    let parameter = |name: &str| {
        let text = match (name, route.path) {
            ("organization", _) => "The organization, by its id or identifier.",
            ("email", _) => "The e-mail address.",
            (_, path) if path.contains("base-domains") => "Its id, or the domain.",
            (_, path) if ["/topics/", "/users/"].iter().any(|it| path.contains(it)) => {
                "Its id, or its cluster and name: `orders%2Fpayments`."
            }
            (_, path) if ["/plans/", "/tokens/", "/sessions/"].iter().any(|it| path.contains(it)) => {
                "Its id."
            }
            _ => "Its id, or its identifier.",
        };
        let longest = if name == "email" { 254 } else { 253 };
        let schema = json!({"type": "string", "minLength": 1, "maxLength": longest});
        components.parameter(
            json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema}),
        )
    };
    let parameters: Vec<Value> = route.parameters().map(parameter).collect();
    if parameters.is_empty() { json!({}) } else { json!({"parameters": parameters}) }
}

fn operation(route: &Route, components: &mut Components) -> Value {
    let query = route.query.iter().map(|query| (query.name, "query", query.text, (query.schema)()));
    let condition = route.is_conditional().then(|| {
        let text = match route.method {
            Method::Post => CREATE_IF_MATCH,
            _ => CHANGE_IF_MATCH,
        };
        ("If-Match", "header", text, json!({"type": "string", "maxLength": 2000}))
    });
    let parameters = query.chain(condition).map(|(name, place, text, schema)| {
        components.parameter(json!({"name": name, "in": place, "description": text, "schema": schema}))
    });
    let parameters: Vec<Value> = parameters.collect();
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": needs(route.needs),
        "responses": responses(route, components),
        "tags": [tag(route)],
    });
    if route.needs == RequiredAccess::Nobody {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(takes) = route.takes {
        operation["requestBody"] = body(takes, components);
    }
    operation
}

fn tag(route: &Route) -> &'static str {
    let of_path = |name: &str| route.path.starts_with(&format!("/v1/{}", name.trim_end_matches('s')));
    let other = OTHERS.iter().map(|(name, _)| *name).find(|name| of_path(name));
    let of_clusters = || route.path == "/v1/status" || route.path.starts_with(list_path(Kind::Cluster));
    let kind = route.kind().or_else(|| of_clusters().then_some(Kind::Cluster));
    kind.map(Kind::plural).or(other).unwrap_or("api")
}

/// The permission that a route needs, as a sentence.
pub fn needs(needs: RequiredAccess) -> &'static str {
    match needs {
        RequiredAccess::Nobody => "No token is required.",
        RequiredAccess::Read => "Requires a token that may read.",
        RequiredAccess::Write => "Requires a token that may write, of an editor or an administrator.",
        RequiredAccess::Admin => {
            "Requires a token that may administer, of an administrator of the organization."
        }
        RequiredAccess::Super => "Requires a token of a super user.",
    }
}

fn body(takes: RequestBody, components: &mut Components) -> Value {
    let (schema, kinds, examples) = match takes {
        RequestBody::Create(kind) => (components.sent(kind, Sent::New), vec![JSON], examples::created(kind)),
        RequestBody::Replace(kind) => (components.sent(kind, Sent::Whole), vec![JSON], json!({})),
        RequestBody::Patch(kind) => {
            (components.sent(kind, Sent::Patch), vec![MERGE_PATCH, JSON], examples::patched(kind))
        }
        RequestBody::Schema(schema) => (components.put(schema()), vec![JSON], json!({})),
    };
    let mut content = json!({"schema": schema});
    if examples.as_object().is_some_and(|examples| !examples.is_empty()) {
        content["examples"] = examples;
    }
    let content: Map<String, Value> =
        kinds.into_iter().map(|kind| (kind.to_owned(), content.clone())).collect();
    json!({"required": true, "content": content})
}

fn responses(route: &Route, components: &mut Components) -> Value {
    let mut responses = Map::new();
    for (status, gives) in route.gives {
        let headers: &[&str] = match (gives, status) {
            (ResponseContent::Record(_), 201) => &["ETag", "Location"],
            (ResponseContent::Record(_), _) => &["ETag"],
            _ => &[],
        };
        // A status may have one of several contents.
        let new = || if headers.is_empty() { json!({}) } else { json!({"headers": headers_of(headers)}) };
        let response = responses.entry(status.to_string()).or_insert_with(new);
        let (text, schema) = content(route, *status, *gives, components);
        response["description"] = match response["description"].as_str() {
            Some(first) => format!("{first} {text}").into(),
            None => text.into(),
        };
        if let Some(schema) = schema {
            let media = match gives {
                ResponseContent::Stream(_) => EVENT_STREAM,
                ResponseContent::Text(_) => PLAIN_TEXT,
                ResponseContent::Metrics(_) => PROMETHEUS_TEXT,
                _ => JSON,
            };
            let known = &mut response["content"][media]["schema"];
            *known = match known.take() {
                Value::Null => schema,
                first => json!({"anyOf": [first, schema]}),
            };
        }
    }
    responses.insert("default".to_owned(), response_named(REFUSED));
    Value::Object(responses)
}

/// The description and the schema of a content.
fn content(
    route: &Route,
    status: u16,
    gives: ResponseContent,
    components: &mut Components,
) -> (String, Option<Value>) {
    match gives {
        ResponseContent::Record(kind) => {
            let noun = kind.noun();
            let text = match status {
                201 => format!("The {noun}, as created. Its secrets are shown only once."),
                202 => format!("The {noun}, which is being deleted."),
                _ => format!("The {noun}."),
            };
            (text, Some(components.put(record::schema(kind))))
        }
        ResponseContent::List(kind) => (format!("A page of {}s.", kind.noun()), Some(components.list(kind))),
        ResponseContent::Schema(schema)
        | ResponseContent::Of(_, schema)
        | ResponseContent::Stream(schema) => {
            let schema = schema();
            let is_dry_run = route.kind().is_some() && !matches!(gives, ResponseContent::Of(..));
            let text = match (is_dry_run, schema["title"] == "ProposedEdit") {
                (true, false) => "With `dry_run=true`: the plan.",
                (true, true) => "With `dry_run=file`: what the change would write.",
                (false, _) => schema["description"].as_str().unwrap_or("The result."),
            };
            (text.to_owned(), Some(components.put(schema)))
        }
        ResponseContent::Text(_) => {
            let text = "Lines of text. Each begins with its time and, for several pods, the pod; one that begins with `#` \
                        is Streamfleet's own.";
            (text.to_owned(), Some(json!({"type": "string"})))
        }
        ResponseContent::Metrics(_) => {
            let text = "Metrics in Prometheus' text format. Each has the labels `organization`, `cluster` and, if it is of a \
                        broker or controller, `pod`. `up` is 0 for a pod that can't be read, and a comment says why.";
            (text.to_owned(), Some(json!({"type": "string"})))
        }
        ResponseContent::Nothing => ("Done.".to_owned(), None),
    }
}

/// The statuses with which a route may refuse a request.
pub fn refused(route: &Route) -> Vec<u16> {
    let names_organization = route.query.iter().any(|query| query.name == "organization");
    let is_found =
        !route.path.ends_with("/organizations") && route.parameters().next().is_some() || names_organization;
    let (changes, sends) = (route.method != Method::Get, route.takes.is_some());
    let all = [
        (400, true),
        (401, route.needs != RequiredAccess::Nobody),
        (403, route.needs != RequiredAccess::Nobody),
        (404, is_found || changes),
        (408, sends),
        (409, changes),
        (412, route.is_conditional()),
        (413, true),
        (415, sends),
        (422, changes),
        (429, true),
        (500, true),
        (503, true),
        (504, true),
        (507, changes && route.kind().is_some()),
    ];
    all.into_iter().filter(|(_, may)| *may).map(|(status, _)| status).collect()
}

/// The response of every refusal.
const REFUSED: &str = "Refused";

fn response_named(name: &str) -> Value {
    json!({"$ref": format!("#/components/responses/{name}")})
}

/// Makes responses that occur several times components, named after the first operation that has them.
fn share_responses(paths: &mut Map<String, Value>) -> Value {
    let mut seen: BTreeMap<String, (String, u32)> = BTreeMap::new();
    let mut each = |visit: &mut dyn FnMut(&str, &mut Value)| {
        for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
            for (status, response) in responses.into_iter().flatten() {
                if response.get("$ref").is_none() {
                    visit(&format!("{id}_{status}"), response);
                }
            }
        }
    };
    each(&mut |name, response| {
        seen.entry(response.to_string()).or_insert_with(|| (name.to_owned(), 0)).1 += 1;
    });
    let mut shared = json!({REFUSED: refusal()});
    each(&mut |_, response| {
        if let Some((name, _)) = seen.get(&response.to_string()).filter(|(_, count)| *count > 1) {
            shared[name] = response.take();
            *response = response_named(name);
        }
    });
    shared
}

fn refusal() -> Value {
    let statuses: Vec<u16> = ROUTES.iter().flat_map(refused).collect();
    let codes = code::ALL.iter().filter(|code| statuses.contains(&code.status));
    let words = codes.clone().map(|code| format!("{} `{}`: {}", code.status, code.word, code.title));
    let words: Vec<String> = words.collect();
    let headers: &[&str] = &["Retry-After", "WWW-Authenticate", "X-Request-Id"];
    let example = codes.clone().next().map(|code| {
        let document =
            ProblemDocument::new(code, "the reason of the error, in a sentence").document(None, "");
        serde_json::from_slice::<Value>(&document).unwrap_or_default()
    });
    json!({
        "description": words.join(" "),
        "headers": headers_of(headers),
        "content": {PROBLEM: {"schema": named("Problem"), "example": example}},
    })
}

#[cfg(test)]
mod tests;
