//! Schemas of everything but resources and plans, in the dialect of OpenAPI 3.1 (JSON Schema draft 2020-12).

use serde_json::{Value, json};

use crate::api::answer::{ExpiringCertificate, OrganizationMember};
use crate::api::proposal::LONGEST_REVISION;
use crate::catalog::Status;
use crate::http::problem::code;
use crate::names::{Identifier, Kind};
use crate::plan::Verb;
use crate::spec::schema::{self, Sent};

pub const LARGEST_PAGE: u32 = 200;

pub const USUAL_PAGE: u32 = 50;

pub(super) fn text() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 500})
}

pub(super) fn dry_run() -> Value {
    json!({"type": "string", "enum": ["true", "file", "false"], "default": "false"})
}

pub(super) fn broker() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
}

pub(super) fn truth() -> Value {
    json!({"type": "string", "enum": ["true", "false"], "default": "false"})
}

pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn page_size() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": USUAL_PAGE})
}

pub(super) fn order() -> Value {
    json!({"type": "string", "enum": ["asc", "desc"], "default": "asc"})
}

pub(super) fn verb() -> Value {
    json!({"type": "string", "enum": Verb::ALL})
}

pub(super) fn about() -> Value {
    json!({"type": "string", "enum": ["resources", "installation"]})
}

pub(super) fn sort() -> Value {
    sorted_by(&["identifier", "created_at", "updated_at"])
}

pub(super) fn sort_or_status() -> Value {
    sorted_by(&["identifier", "created_at", "updated_at", "status"])
}

fn sorted_by(fields: &[&str]) -> Value {
    let orders: Vec<String> =
        fields.iter().flat_map(|field| [(*field).to_owned(), format!("-{field}")]).collect();
    json!({"type": "string", "enum": orders})
}

pub(super) fn status() -> Value {
    json!({"type": "string", "enum": Status::ALL.map(Status::as_str)})
}

fn words(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn nullable(kind: &str, description: &str) -> Value {
    json!({"type": [kind, "null"], "description": description})
}

pub fn page_of(item: &Value) -> Value {
    let total = json!({"type": "integer", "minimum": 0, "description": "The number of items on all pages."});
    // References within an item lead to the root.
    let mut item = item.clone();
    let definitions = item.as_object_mut().and_then(|item| item.remove("definitions"));
    let mut page = object(
        "A page of a list.",
        json!({
            "items": {"type": "array", "items": item},
            "next_page_token": nullable("string", "The token of the next page; null on the last one."),
            "total": total,
        }),
    );
    if let Some(definitions) = definitions {
        page["definitions"] = definitions;
    }
    page
}

/// An object in which all fields are required.
fn object(description: &str, properties: Value) -> Value {
    let names: Vec<&String> = properties.as_object().into_iter().flat_map(|it| it.keys()).collect();
    json!({"type": "object", "description": description, "required": names, "properties": properties})
}

fn titled(title: &str, mut schema: Value) -> Value {
    schema["title"] = title.into();
    schema
}

pub(super) fn proposal() -> Value {
    let file = json!({"type": "string", "contentEncoding": "base64"});
    let text = json!({"type": "string"});
    json!({
        "title": "Proposal",
        "type": "object",
        "description": "A tree of specs, as a proposal to replace the current one.",
        "required": ["files"],
        "additionalProperties": false,
        "properties": {
            "files": {
                "type": "object",
                "description": "The files by their paths in the tree, such as `acme/clusters/orders.yaml`, each in base64. \
                                It must be the whole tree: files that are left out count as removed.",
                "additionalProperties": file,
            },
            "revision": {
                "type": ["string", "null"],
                "maxLength": LONGEST_REVISION,
                "description": "A name for this state of the tree, such as a commit id.",
            },
            "commit": {
                "type": ["object", "null"],
                "required": ["id", "author"],
                "additionalProperties": false,
                "properties": {"id": text, "author": text, "is_edited": {"type": "boolean"}},
                "description": "The commit of the tree. Secrets that are not sealed are refused, as after the merge.",
            },
            "skipped": {
                "type": ["object", "null"],
                "description": "Files that are not specs but may have been, such as copies, in base64.",
                "additionalProperties": file,
            },
            "unreadable": {
                "type": ["object", "null"],
                "description": "Files that could not be read. Nothing that they may describe is deleted.",
                "additionalProperties": {
                    "type": "object",
                    "required": ["code", "message", "hint"],
                    "additionalProperties": false,
                    "properties": {"code": text, "message": text, "hint": text},
                },
            },
        },
    })
}

pub(super) fn cluster_to_fit() -> Value {
    // A change of a cluster has the same fields, all optional.
    let fields = format!("#/components/schemas/{}{:?}", Kind::Cluster, Sent::Patch);
    json!({
        "title": "ClusterToFit",
        "description": "The fields of a new cluster, as far as they are known: at least `organization`, `kafka_units` and \
                        `tenancy_mode`. Its references and its name aren't judged. With `infrastructure`, only that fleet is.",
        "type": "object",
        "allOf": [{"$ref": fields}],
        "required": ["organization", "kafka_units", "tenancy_mode"],
    })
}

pub(super) fn fleet_to_check() -> Value {
    // A change of a fleet has the same fields, all optional.
    let fields = format!("#/components/schemas/{}{:?}", Kind::Fleet, Sent::Patch);
    json!({
        "title": "FleetToCheck",
        "description": "The fields of a fleet, as far as they are known: at least `organization` and \
                        `advanced_config.kubeconfig`. With `identifier`, the cluster has to be the one that this fleet was \
                        created on.",
        "type": "object",
        "allOf": [{"$ref": fields}],
        "required": ["organization", "advanced_config"],
    })
}

pub(super) fn event() -> Value {
    let mut event = titled("Event", an_event());
    let about = "Events, each in the field `data` and with its id. The stream ends after 50 s, or when the caller loses \
                 access; then it is resumed with the last id. A comment comes at least every 15 s.";
    event["description"] = about.into();
    event
}

pub(super) fn events() -> Value {
    titled("EventList", page_of(&an_event()))
}

fn an_event() -> Value {
    object(
        "A decision or an outcome.",
        json!({
            "id": words("Its id."),
            "at": time(),
            "actor": words("Who caused it. Members of an organization see a super user who changed something over HTTP \
                            as `a super user`."),
            "commit": nullable("object", "The commit of the specs, if they come from a git repository."),
            "plan": nullable("string", "The id of the plan."),
            "fleet": nullable("string", "The fleet, such as `acme/eu`."),
            "resource": nullable(
                "string",
                "The resource, such as `Cluster/acme/orders`; null for events of the installation.",
            ),
            "verb": nullable("string", "The change of the resource, if any."),
            "outcome": {"type": "string", "enum": ["decided", "waits", "done", "failed"]},
            "what": words("What happened, in words: `created`."),
            "why": words("Its cause, what it waits for, or why it failed."),
        }),
    )
}

/// The request for a session.
pub(super) fn session() -> Value {
    titled(
        "SessionOrder",
        json!({
            "type": "object",
            "description": "A session of the web UI.",
            "additionalProperties": false,
            "properties": {
                "organization": {
                    "type": ["string", "null"],
                    "description": "The organization that the session is for; `root` for all. By default all that the \
                                    caller's token is for.",
                },
            },
        }),
    )
}

/// A token without its secret.
fn token() -> Value {
    object(
        "A token. Its secret is shown once, when it is created.",
        json!({
            "id": {"type": "string", "format": "uuid"},
            "name": words("The name that its owner gave it."),
            "owner": words("The e-mail address of its owner."),
            "organization": reach(),
            "access": access(),
            "purpose": {
                "type": "string",
                "enum": ["api", "link", "session"],
                "description": "What it is for: calls of the API, a link that signs in to the web UI, or a session there.",
            },
            "created_at": time(),
            "expires_at": time(),
            "revoked_at": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "When it was revoked; null if it wasn't.",
            },
        }),
    )
}

fn reach() -> Value {
    json!({
        "description": "The organization, by its identifier, or `*` for all.",
        "anyOf": [
            {"type": "string", "const": "*"},
            {"type": "string", "pattern": Identifier::PATTERN, "maxLength": Identifier::MAX_LENGTH},
        ],
    })
}

fn access() -> Value {
    json!({
        "type": "string",
        "enum": ["read", "write", "admin"],
        "description": "Its highest access. The role of its owner limits it further.",
    })
}

pub(super) fn tokens() -> Value {
    titled("TokenList", page_of(&token()))
}

pub(super) fn members() -> Value {
    titled("MemberList", page_of(&schema::of::<OrganizationMember>()))
}

pub(super) fn certificates() -> Value {
    titled("CertificateList", page_of(&schema::of::<ExpiringCertificate>()))
}

pub(super) fn sessions() -> Value {
    titled("SessionList", page_of(&token()))
}

pub(super) fn new_token() -> Value {
    json!({
        "title": "TokenNew",
        "type": "object",
        "description": "The token to create.",
        "required": ["name", "organization", "access"],
        "additionalProperties": false,
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 64, "description": "Its name."},
            "owner": {
                "type": ["string", "null"],
                "maxLength": 254,
                "description": "The e-mail address of its owner. By default the caller's; only super users can create \
                                tokens for others.",
            },
            "organization": reach(),
            "access": access(),
            "days": {
                "type": ["integer", "null"],
                "minimum": 1,
                "maximum": 365,
                "description": "How many days it is valid. By default 90, or as many as the caller's own token is still \
                                valid if that is less; only super users can create tokens that are valid longer than their \
                                own.",
            },
        },
    })
}

pub(super) fn new_sign_in_link() -> Value {
    json!({
        "title": "SignInLinkNew",
        "type": "object",
        "description": "Who signs in, and where.",
        "required": ["email"],
        "additionalProperties": false,
        "properties": {
            "email": {"type": "string", "maxLength": 254, "description": "The person's e-mail address."},
            "organization": {
                "type": ["string", "null"],
                "pattern": Identifier::PATTERN,
                "maxLength": Identifier::MAX_LENGTH,
                "description": "The organization to sign in for, by its identifier; `root` for all. By default `root` for a \
                                super user, and otherwise the only organization that the person is a member of.",
            },
        },
    })
}

pub(super) fn shown_token() -> Value {
    let mut shown = titled("TokenShown", token());
    shown["properties"]["token"] = words("The token itself, which is never shown again.");
    shown["properties"]["warnings"] = json!({
        "type": "array",
        "items": {"type": "string"},
        "description": "A warning, such as that the owner has no role in the organization and the token is useless.",
    });
    if let Some(names) = shown["required"].as_array_mut() {
        names.extend(["token".into(), "warnings".into()]);
    }
    shown
}

pub(super) fn errors() -> Value {
    let code = object(
        "An error that may occur.",
        json!({
            "code": words("The value of `code` in a problem."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "title": words("Its meaning."),
            "next": words("What to do about it."),
        }),
    );
    titled("Errors", object("All errors that may occur.", json!({"items": {"type": "array", "items": code}})))
}

pub fn problem() -> Value {
    let codes: Vec<&str> = code::ALL.iter().map(|code| code.word).collect();
    let line = json!({"type": ["integer", "null"], "minimum": 1, "description": "The line, counted from 1."});
    json!({
        "title": "Problem",
        "description": "Why a request failed (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "code", "detail", "request_id"],
        "properties": {
            "type": {"type": "string", "format": "uri-reference", "description": "The address of the code's description."},
            "title": words("The meaning of the code."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {"type": "string", "description": "The code, for programs.", "enum": codes},
            "detail": words("Why."),
            "hint": words("What to do next."),
            "request_id": {"type": ["string", "null"], "format": "uuid", "description": "The id of the request."},
            "errors": {
                "type": "array",
                "description": "The wrong field, and what is wrong with it.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "detail", "hint", "file", "line"],
                    "properties": {
                        "pointer": nullable("string", "The field, as a JSON pointer into the request's body."),
                        "detail": words("What is wrong."),
                        "hint": nullable("string", "What to do next."),
                        "file": nullable("string", "The file of the spec tree that contains it."),
                        "line": line,
                    },
                },
            },
        },
    })
}

pub(super) fn openapi() -> Value {
    json!({"type": "object", "description": "An OpenAPI 3.1 document.", "required": ["openapi", "paths"]})
}
