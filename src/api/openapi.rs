//! The OpenAPI 3.1 document, generated from the table of routes and the schemas of the types, so that it
//! can't contradict the code.

mod components;
mod examples;

use serde_json::{Map, Value, json};

use super::route::{Method, ROUTES, RequestBody, RequiredAccess, ResponseContent, Route};
use crate::http::problem::code;
use crate::http::problem::{PROBLEM, ProblemDocument};
use crate::names::Kind;
use crate::spec::schema::Sent;
use components::{Components, named};

/// The content type of bodies and answers.
pub const JSON: &str = "application/json";

/// The content type of merge patches (RFC 7396).
pub const MERGE_PATCH: &str = "application/merge-patch+json";

const ABOUT: &str = "The REST API of a Streamfleet installation. A write becomes an edit of the spec tree, and the daemon \
                     applies it.\n\n- A slash at the end of a path is optional, and `HEAD` works wherever `GET` does.\n- \
                     `null`, `\"\"` and `{}` in an optional field are the same as leaving it out. Answers have every \
                     field.\n- Times are in UTC and end in `Z`, with microseconds; times in a plan may be more precise.\n- \
                     Lists have pages: `next_page_token` of one page is the `page_token` of the next, and is null on the \
                     last one.\n- `ETag` identifies the current spec. `If-Match` is supported; `If-None-Match` is not, \
                     because the status of a resource changes without its tag.\n- An error is a problem document (RFC \
                     9457). Its `code` is for programs; `/v1/errors` lists all codes.\n- Each answer has an id in \
                     `X-Request-Id`, which is also in the daemon's log.\n- A resource that the caller may not see is \
                     answered like a missing one.";

/// Tags other than the kinds of resources.
const OTHERS: [(&str, &str); 4] = [
    ("plans", "Plans, proposals and approvals."),
    ("events", "Decisions and their outcomes."),
    ("tokens", "Tokens of callers."),
    ("api", "Error codes, and this description."),
];

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
    let responses = refusals(&mut components);
    let mut components = components.document();
    components["responses"] = responses;
    components["securitySchemes"] = json!({
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token from `streamfleet token create` or `POST /v1/tokens`.",
        },
    });
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
        "components": components,
    })
}

fn about(kind: Kind) -> String {
    crate::spec::describe::document(kind, kind.singular()).text()
}

fn path(route: &Route, components: &mut Components) -> Value {
    let parameter = |name: &str| {
        let text = match (name, route.path) {
            ("organization", _) => "The organization, by its id or identifier.",
            (_, path) if path.contains("base-domains") => "Its id, or the domain.",
            (_, path) if path.contains("/plans/") || path.contains("/tokens/") => "Its id.",
            _ => "Its id, or its identifier.",
        };
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 253});
        components.parameter(
            json!({"name": name, "in": "path", "required": true, "description": text, "schema": schema}),
        )
    };
    let parameters: Vec<Value> = route.parameters().map(parameter).collect();
    if parameters.is_empty() { json!({}) } else { json!({"parameters": parameters}) }
}

fn operation(route: &Route, components: &mut Components) -> Value {
    let query = route.query.iter().map(|query| {
        let schema = (query.schema)();
        components.parameter(
            json!({"name": query.name, "in": "query", "description": query.text, "schema": schema}),
        )
    });
    let mut parameters: Vec<Value> = query.collect();
    if route.is_conditional() {
        let text = match route.method {
            Method::Post => {
                "A list has no `ETag`: only `*` matches, and with any other value nothing is created."
            }
            _ => {
                "The `ETag` of the resource to change. The change is refused if the resource changed since. Several tags \
                 are separated by commas, and one of them must match; `*` matches any. A weak tag never matches."
            }
        };
        parameters.push(components.parameter(json!({
            "name": "If-Match",
            "in": "header",
            "description": text,
            "schema": {"type": "string", "maxLength": 2000},
        })));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "description": needs(route.needs),
        "parameters": parameters,
        "responses": responses(route, components),
    });
    operation["tags"] = json!([tag(route)]);
    if route.needs == RequiredAccess::Nobody {
        operation["security"] = json!([]);
    }
    if let Some(takes) = route.takes {
        operation["requestBody"] = body(takes, components);
    }
    operation
}

fn tag(route: &Route) -> &'static str {
    let of_path = |name: &str| route.path.starts_with(&format!("/v1/{}", name.trim_end_matches('s')));
    let other = OTHERS.iter().map(|(name, _)| *name).find(|name| of_path(name));
    route.kind().map(Kind::plural).or(other).unwrap_or("api")
}

/// The permission that a route needs, as a sentence.
pub fn needs(needs: RequiredAccess) -> &'static str {
    match needs {
        RequiredAccess::Nobody => "No token is required.",
        RequiredAccess::Read => "Requires a token that may read.",
        RequiredAccess::Write => {
            "Requires a token that may write, of an editor or an administrator of the organization."
        }
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
        let response = responses.entry(status.to_string()).or_insert_with(|| json!({}));
        add(response, route, (*status, *gives), components);
    }
    let refused = refused(route).into_iter().filter(|status| OWN_REFUSALS.contains(status));
    for status in refused.map(|status| status.to_string()).chain(["default".to_owned()]) {
        let name = format!("#/components/responses/{}", refusal_name(&status));
        responses.insert(status, json!({"$ref": name}));
    }
    Value::Object(responses)
}

/// Adds a content to a response, which may already have one.
fn add(
    response: &mut Value,
    route: &Route,
    (status, gives): (u16, ResponseContent),
    components: &mut Components,
) {
    let (text, schema) = match gives {
        ResponseContent::Record(kind) => (told(status, kind), Some(components.record(kind))),
        ResponseContent::List(kind) => (format!("A page of {}.", plural(kind)), Some(components.list(kind))),
        ResponseContent::Schema(schema) if route.kind().is_some() => {
            ("With `dry_run`: the plan of the change.".to_owned(), Some(components.put(schema())))
        }
        ResponseContent::Schema(schema) => {
            let schema = schema();
            let text = schema["description"].as_str().unwrap_or("The result.").to_owned();
            (text, Some(components.put(schema)))
        }
        ResponseContent::Nothing => ("Done.".to_owned(), None),
    };
    let text = match response["description"].as_str() {
        Some(first) => format!("{first} {text}"),
        None => text,
    };
    response["description"] = text.into();
    response["headers"]["X-Request-Id"] = request_id(components);
    if matches!(gives, ResponseContent::Record(_)) {
        let text = "Identifies the current spec, for `If-Match`.";
        response["headers"]["ETag"] = components.header("ETag", text, json!({"type": "string"}));
    }
    if status == 201 && matches!(gives, ResponseContent::Record(_)) {
        let schema = json!({"type": "string", "format": "uri-reference"});
        response["headers"]["Location"] =
            components.header("Location", "The address of the resource.", schema);
    }
    let Some(schema) = schema else { return };
    let content = &mut response["content"][JSON]["schema"];
    *content = match content.take() {
        Value::Null => schema,
        first => json!({"anyOf": [first, schema]}),
    };
}

fn told(status: u16, kind: Kind) -> String {
    let noun = kind.noun();
    match status {
        201 => format!("The {noun}, as created. Its secrets are shown only once."),
        202 => format!("The {noun}, which is being deleted."),
        _ => format!("The {noun}."),
    }
}

fn plural(kind: Kind) -> String {
    format!("{}s", kind.noun())
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

/// The statuses of refusals that depend on the resource or on the body. Routes share one response for the others.
const OWN_REFUSALS: [u16; 4] = [404, 409, 412, 422];

fn refusal_name(status: &str) -> String {
    if status == "default" { "Refused".to_owned() } else { format!("Refused{status}") }
}

fn refusals(components: &mut Components) -> Value {
    let others: Vec<u16> = ROUTES.iter().flat_map(refused).filter(|it| !OWN_REFUSALS.contains(it)).collect();
    let own = OWN_REFUSALS.map(|status| (refusal_name(&status.to_string()), refusal(&[status], components)));
    own.into_iter().chain([(refusal_name("default"), refusal(&others, components))]).collect()
}

fn refusal(statuses: &[u16], components: &mut Components) -> Value {
    let codes = code::ALL.iter().filter(|code| statuses.contains(&code.status));
    let words = codes.clone().map(|code| match statuses {
        [_] => format!("`{}`: {}", code.word, code.title),
        _ => format!("{} `{}`: {}", code.status, code.word, code.title),
    });
    let words: Vec<String> = words.collect();
    let mut headers = json!({"X-Request-Id": request_id(components)});
    if statuses.contains(&401) {
        let (text, schema) = ("`Bearer`, with status 401.", json!({"type": "string"}));
        headers["WWW-Authenticate"] = components.header("WWW-Authenticate", text, schema);
    }
    if statuses.iter().any(|status| [429, 503].contains(status)) {
        let (text, schema) = (
            "The number of seconds to wait before the next attempt, with status 429 or 503.",
            json!({"type": "integer", "minimum": 1}),
        );
        headers["Retry-After"] = components.header("Retry-After", text, schema);
    }
    let example = codes.clone().next().map(|code| {
        let document =
            ProblemDocument::new(code, "the reason of the error, in a sentence").document(None, "");
        serde_json::from_slice::<Value>(&document).unwrap_or_default()
    });
    json!({
        "description": words.join(" "),
        "headers": headers,
        "content": {PROBLEM: {"schema": named("Problem"), "example": example}},
    })
}

fn request_id(components: &mut Components) -> Value {
    let text = "The id of the request, which is also in the daemon's log.";
    components.header("X-Request-Id", text, json!({"type": "string", "format": "uuid"}))
}

#[cfg(test)]
mod tests;
