//! The page of the API: every route by its subject, and every error code.

use std::fmt::Write as _;

use serde_json::Value;
use streamfleet::api::openapi::{MERGE_PATCH, needs, refused};
use streamfleet::api::route::{ROUTES, RequestBody, ResponseContent, Route};
use streamfleet::http::problem::code;
use streamfleet::names::Kind;

use super::{WRITTEN, page_of, text};

const HEAD: &str = "The REST API of `serve`, at `api.listen`, in JSON. [`schemas/openapi.json`](../../schemas/openapi.json) describes it for programs, with every field; a running `serve` has it at `/openapi.json`.

- A token goes into a header `Authorization: Bearer TOKEN`, and a body has a header `Content-Type: application/json`.
- A slash at the end of a path is optional. `HEAD` works wherever `GET` does.
- A path names a resource by id or identifier, a base domain by id or domain.
- What is created, replaced or changed has the fields of its document, without `apiVersion` and `kind`. Secrets are sent as strings, and shown only in the answer to the call that created them.
- A patch is a merge patch (RFC 7396) with the fields that change.
- With `?dry_run=true`, nothing is changed, and the answer is the plan of the change; with `?dry_run=file`, it is the file that would be written.
- `ETag` identifies the current spec; with `If-Match`, a change is refused if the spec changed since. `If-Match` may list several tags, and one of them must match; `*` matches any. `If-None-Match` is not supported, because the status of a resource changes without its tag.
- Lists have pages: `next_page_token` of one page is the `page_token` of the next, and is null on the last one. Resources that are created or deleted meanwhile don't shift the others.
- A body is at most 1 MiB, and a proposal at most `api.max_proposal_mib`.
- With `api.base_url`, the API is below its path on the port; on the socket, paths don't change.";

pub fn page() -> String {
    let mut page = format!("{WRITTEN}\n\n# The API\n\n{HEAD}\n");
    for kind in Kind::ALL {
        let fields = page_of(kind);
        let about = format!("The fields are those of [{}]({fields}).", kind.as_str());
        page +=
            &section(&format!("{}s", capitalized(kind.noun())), &about, |route| route.kind() == Some(kind));
    }
    page += &section("Everything else", "", |route| route.kind().is_none());
    page += "\n## Errors\n\nAn error is a problem document (RFC 9457), sent as `application/problem+json`: `type`, \
             `title`, `status`, `code`, `detail`, `hint`, `errors` (each with `pointer`, `detail`, `hint`, `file` and `line`) and \
             `request_id`, which is also in the header `X-Request-Id` and in the daemon's log. Invalid HTTP, or more than 16 KiB or \
             100 headers, is answered with 400 or 431 without a document, and the connection is closed.\n\n\
             | status | code | meaning | what to do |\n|---|---|---|---|\n";
    for code in code::ALL {
        writeln!(page, "| {} | `{}` | {} | {} |", code.status, code.word, text(code.title), text(code.next))
            .unwrap();
    }
    page
}

fn section(title: &str, about: &str, of: impl Fn(&Route) -> bool) -> String {
    let mut section = format!("\n## {title}\n");
    if !about.is_empty() {
        write!(section, "\n{about}\n").unwrap();
    }
    for route in ROUTES.iter().filter(|route| of(route)) {
        section += &entry(route);
    }
    section
}

fn entry(route: &Route) -> String {
    let mut entry = format!(
        "\n### `{} {}`\n\n{}. {}\n",
        route.method.as_str(),
        route.path,
        route.summary,
        needs(route.needs)
    );
    let mut facts = Vec::new();
    for query in route.query {
        facts.push(format!("`?{}`: {}{}", query.name, text(query.text), values(&(query.schema)())));
    }
    if let Some(takes) = route.takes {
        facts.push(format!("takes {}", taken(takes)));
    }
    let given: Vec<String> =
        route.gives.iter().map(|(status, gives)| format!("{status}, {}", given(*gives, route))).collect();
    facts.push(format!("answers {}", given.join("; ")));
    let refused: Vec<String> = refused(route).iter().map(u16::to_string).collect();
    facts.push(format!("refuses with {}", refused.join(", ")));
    entry += "\n";
    facts.iter().for_each(|fact| writeln!(entry, "- {fact}").unwrap());
    entry
}

/// The values that a schema accepts, as a sentence to append; empty where there is nothing to say.
fn values(schema: &Value) -> String {
    let bounds = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(greatest)) => Some(format!("from {least} to {greatest}")),
        _ => None,
    };
    let words = schema["enum"].as_array().map(|words| {
        let words: Vec<String> =
            words.iter().filter_map(|word| Some(format!("`{}`", word.as_str()?))).collect();
        format!("one of {}", words.join(", "))
    });
    let boolean = (schema["type"] == "boolean").then(|| "`true` or `false`".to_owned());
    let default = match &schema["default"] {
        Value::Null => None,
        Value::String(default) => Some(format!("by default `{default}`")),
        default => Some(format!("by default {default}")),
    };
    let all: Vec<String> = [bounds, words, boolean, default].into_iter().flatten().collect();
    if all.is_empty() { String::new() } else { format!(" It is {}.", all.join(", ")) }
}

fn taken(takes: RequestBody) -> String {
    match takes {
        RequestBody::Create(kind) | RequestBody::Replace(kind) => format!("the whole {}", kind.noun()),
        RequestBody::Patch(kind) => {
            format!("the fields of the {} that change, as `{MERGE_PATCH}`", kind.noun())
        }
        RequestBody::Schema(schema) => {
            let schema = schema();
            let each = schema["properties"].as_object().into_iter().flatten();
            let each = each.map(|(name, field)| sent(name, field, &schema["required"]));
            format!("{}{}", fields(&schema), each.collect::<String>())
        }
    }
}

/// A field of a request body with its possible values.
fn sent(name: &str, field: &serde_json::Value, required: &serde_json::Value) -> String {
    let is_needed = required.as_array().is_some_and(|names| names.iter().any(|it| it == name));
    let number = |key: &str| field[key].as_u64();
    // A field that may be null names its other type first.
    let kind = field["type"].as_str().or(field["type"][0].as_str());
    let values = match (field["enum"].as_array(), kind) {
        (Some(values), _) => {
            let values: Vec<String> =
                values.iter().filter_map(|it| Some(format!("`{}`", it.as_str()?))).collect();
            format!("one of {}", values.join(", "))
        }
        (None, Some("integer")) => {
            format!("an integer from {} to {}", number("minimum").unwrap(), number("maximum").unwrap())
        }
        (None, Some("string")) => match (number("minLength"), number("maxLength")) {
            (Some(least), Some(most)) => format!("a string of {least} to {most} characters"),
            (None, Some(most)) => format!("a string of at most {most} characters"),
            _ => "a string".to_owned(),
        },
        (None, Some(other)) => format!("an {other}"),
        (None, None) => "a string".to_owned(),
    };
    let default = field["default"].as_u64().map(|it| format!(", by default {it}")).unwrap_or_default();
    let needed = if is_needed { ", required" } else { "" };
    let description = text(field["description"].as_str().unwrap_or_default());
    format!("\n  - `{name}`: {values}{default}{needed}. {description}")
}

fn given(gives: ResponseContent, route: &Route) -> String {
    match gives {
        ResponseContent::Record(kind) => format!("the record of the {}", kind.noun()),
        ResponseContent::List(kind) => {
            format!("`items`, the records of {}s, with `next_page_token` and `total`", kind.noun())
        }
        ResponseContent::Schema(schema) if route.kind().is_some() => {
            match schema()["title"] == "ProposedEdit" {
                true => format!("with `?dry_run=file`, {}", fields(&schema())),
                false => "the plan, with `?dry_run=true`".to_owned(),
            }
        }
        ResponseContent::Schema(schema) | ResponseContent::Of(_, schema) => fields(&schema()),
        ResponseContent::Stream(schema) => {
            format!("a stream of events (`text/event-stream`) with {}", fields(&schema()))
        }
        ResponseContent::Text(_) => "lines of text (`text/plain`)".to_owned(),
        ResponseContent::Metrics(_) => {
            "metrics in Prometheus' text format (`text/plain; version=0.0.4`)".to_owned()
        }
        ResponseContent::Nothing => "nothing".to_owned(),
    }
}

/// The fields of an object; for a page of a list, those of its items.
fn fields(schema: &Value) -> String {
    let item = &schema["properties"]["items"]["items"];
    let defined = item["$ref"].as_str().and_then(|path| schema.pointer(path.trim_start_matches('#')));
    let item = defined.unwrap_or(item);
    if item.is_object() {
        return format!("`items`, each {}", fields(item));
    }
    let description = schema["description"].as_str().unwrap_or_default().trim_end_matches('.');
    let first = description.chars().next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    let what = format!("{first}{}", description.get(first.len()..).unwrap_or_default());
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() { text(&what) } else { format!("{}: {}", text(&what), names.join(", ")) }
}

fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
