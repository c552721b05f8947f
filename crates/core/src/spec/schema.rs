//! The JSON Schemas of documents, for editors and other tools, generated from the spec types.
//!
//! They are draft-07, which the YAML and TOML language servers support best, and the types need nothing
//! newer. A schema accepts everything that the reader accepts:
//!
//! - `null`, `""` and `{}` in an optional field mean that it is absent. Such a field accepts its own values
//!   or [`absent`](ABSENT), a definition without a type or values that an editor would offer.
//! - Where case doesn't matter, the canonical spellings are listed, so that editors offer and document them;
//!   a pattern accepts the others.
//!
//! One difference remains: JSON Schema accepts `1.0` as an integer, and the reader does not. Only the reader
//! checks rules across fields and across documents.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::names::Kind;
use crate::spec::{
    API_VERSION, BaseDomain, CloudAccount, Cluster, Fleet, HEADER, IdentityProvider, Organization, Topic,
    User, shape,
};

/// The name of the definition for `null`, `""` and `{}`.
const ABSENT: &str = "absent";

const NO_CONTROL: &str = "^[^\\x00-\\x1f\\x7f-\\x9f]*$";

/// Keywords that describe a value and don't affect its validity.
const ANNOTATIONS: [&str; 4] = ["title", "description", "default", "examples"];

pub fn document(kind: Kind) -> Value {
    with_absent(&document_fields(kind))
}

/// How a resource is sent to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    New,
    /// As a replacement. A secret that is left out, or sent as it was shown, is kept.
    Whole,
    /// As the fields that change (RFC 7396).
    Patch,
}

/// Returns the schema of a resource that is sent to be written: the document without its header, and with
/// secrets as plain values.
pub fn sent(kind: Kind, sent: Sent) -> Value {
    let mut schema = fields_of(kind);
    on_one_line(&mut schema);
    as_sent(&mut schema, sent);
    with_absent(&schema)
}

fn as_sent(schema: &mut Value, sent: Sent) {
    let is_secret = |field: &Value| shape::without_null(field)["x-secret"] == true;
    if is_secret(schema) {
        let value = json!({"type": "string", "minLength": 1, "description": "The value itself."});
        let shown = json!({
            "type": "object",
            "description": "The redacted form of the value, which keeps the stored value.",
            "properties": {"redacted": {"const": true}},
            "required": ["redacted"],
            "additionalProperties": false,
        });
        let ways = if sent == Sent::New { vec![value] } else { vec![value, shown] };
        let description = shape::without_null(schema)["description"].take();
        *schema = json!({"description": description, "oneOf": ways, "writeOnly": true});
        return;
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let kept: Vec<String> =
        fields.filter(|(_, field)| is_secret(field)).map(|(name, _)| name.clone()).collect();
    if let Some(names) = schema.get_mut("required").and_then(Value::as_array_mut) {
        names.retain(|name| match sent {
            Sent::New => true,
            Sent::Whole => !kept.iter().any(|secret| name == secret),
            Sent::Patch => false,
        });
    }
    for (_, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        as_sent(field, sent);
    }
    for way in schema.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
        as_sent(way, sent);
    }
}

/// Extends a schema to everything that the reader accepts, in standard keywords.
fn with_absent(schema: &Value) -> Value {
    let Value::Object(mut schema) = lenient(schema) else { return Value::Bool(true) };
    // Exactly these three: no number, boolean or list, and only an empty string or mapping.
    let absent = json!({
        "$comment": "null, \"\" or {}: the same as leaving the field out",
        "not": {"type": ["boolean", "number", "array"]},
        "maxLength": 0,
        "maxProperties": 0,
    });
    schema.insert("definitions".to_owned(), json!({ABSENT: absent}));
    let mut schema = Schema::from(schema);
    tidy(&mut schema);
    schema.to_value()
}

/// Returns the schema of a type that is not a document, for editors: the settings, a plan.
pub fn of<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    tidy(&mut schema);
    schema.to_value()
}

/// Returns the schema of a type with all definitions inlined and with our own keywords.
pub(crate) fn inlined<T: JsonSchema>() -> Value {
    let inline = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    inline.into_generator().into_root_schema_for::<T>().to_value()
}

/// Returns the fields of a kind's documents without `apiVersion` and `kind`, with all definitions inlined and
/// with our own keywords.
pub fn fields_of(kind: Kind) -> Value {
    match kind {
        Kind::Organization => inlined::<Organization>(),
        Kind::BaseDomain => inlined::<BaseDomain>(),
        Kind::IdentityProvider => inlined::<IdentityProvider>(),
        Kind::CloudAccount => inlined::<CloudAccount>(),
        Kind::Fleet => inlined::<Fleet>(),
        Kind::Cluster => inlined::<Cluster>(),
        Kind::Topic => inlined::<Topic>(),
        Kind::User => inlined::<User>(),
    }
}

pub(super) fn document_fields(kind: Kind) -> Value {
    let mut schema = fields_of(kind);
    let header = [
        (API_VERSION, "The version of the document's format."),
        (kind.as_str(), "What this document describes."),
    ];
    for (name, (value, description)) in HEADER.into_iter().zip(header) {
        schema["properties"][name] = json!({"type": "string", "const": value, "description": description});
    }
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    schema["required"] = HEADER.into_iter().map(Value::from).chain(names).collect();
    schema
}

fn lenient(schema: &Value) -> Value {
    let Value::Object(mut schema) = shape::without_null(schema) else { return schema.clone() };
    // The default of a mapping follows from its fields, which have their own. An empty list is no default
    // where a list needs an item.
    let has_items = schema.contains_key("minItems");
    if schema.get("default").is_some_and(|usual| usual.is_object() || usual.is_array() && has_items) {
        schema.remove("default");
    }
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|n| n == name));
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for (name, field) in fields {
            *field = lenient(field);
            if !is_required(name) {
                let blank = blank(field);
                *field = or(field.take(), absent());
                if let Some(blank) = blank {
                    *field = or(field.take(), blank);
                }
            }
        }
    }
    if let Some(items) = schema.get_mut("items") {
        *items = lenient(items);
    }
    if let Some(Value::Array(ways)) = schema.get_mut("oneOf") {
        ways.iter_mut().for_each(|way| *way = lenient(way));
    }
    if let Some(values) = schema.get_mut("additionalProperties").filter(|values| values.is_object()) {
        *values = or(lenient(values), json!({"type": "null"}));
    }
    if schema.get("x-case-insensitive").is_none() {
        return Value::Object(schema);
    }
    let schema = Value::Object(schema);
    let spellings: Vec<String> =
        shape::choices(&schema).iter().flatten().map(|value| any_case(value)).collect();
    or(schema, json!({"type": "string", "pattern": format!("^({})$", spellings.join("|"))}))
}

fn absent() -> Value {
    json!({"$ref": format!("#/definitions/{ABSENT}")})
}

/// Accepts an object whose fields are all absent. Without required fields, the object's own schema accepts
/// that already.
fn blank(schema: &Value) -> Option<Value> {
    let fields = schema.get("properties")?.as_object()?;
    schema.get("required")?.as_array().filter(|names| !names.is_empty())?;
    let fields: Map<String, Value> = fields.keys().map(|name| (name.clone(), absent())).collect();
    Some(json!({"type": "object", "properties": fields, "additionalProperties": false}))
}

/// Refuses control characters in single-line texts, as the reader does.
fn on_one_line(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    let is_text = match fields.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => false,
    };
    let is_bound =
        ["pattern", "enum", "const", "x-lines", "x-secret"].iter().any(|key| fields.contains_key(*key));
    if is_text && !is_bound {
        fields.insert("pattern".to_owned(), NO_CONTROL.into());
    }
    for key in ["properties", "items", "additionalProperties", "anyOf", "oneOf"] {
        match fields.get_mut(key) {
            Some(Value::Object(inner)) if key == "properties" => inner.values_mut().for_each(on_one_line),
            Some(Value::Array(ways)) => ways.iter_mut().for_each(on_one_line),
            Some(inner) => on_one_line(inner),
            None => {}
        }
    }
}

/// Combines two schemas into one that accepts either, with the annotations of the first.
fn or(schema: Value, other: Value) -> Value {
    let Value::Object(mut first) = schema else { return schema };
    let mut both: Map<String, Value> =
        ANNOTATIONS.iter().filter_map(|key| first.remove_entry(*key)).collect();
    let mut ways = match first.remove("anyOf") {
        Some(Value::Array(ways)) if first.is_empty() => ways,
        _ => vec![Value::Object(first)],
    };
    ways.push(other);
    both.insert("anyOf".to_owned(), Value::Array(ways));
    Value::Object(both)
}

/// Returns a case-insensitive pattern for a word, in syntax that every regular expression dialect supports.
fn any_case(word: &str) -> String {
    let either = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    word.chars().map(either).collect()
}

/// Rewrites a schema in standard keywords.
fn tidy(schema: &mut Schema) {
    transform_subschemas(&mut tidy, schema);
    let Some(schema) = schema.as_object_mut() else { return };
    if let (Some(Value::String(expected)), true) =
        (schema.remove("x-expected"), schema.contains_key("pattern"))
    {
        // The YAML language server shows it instead of the pattern.
        schema.insert("patternErrorMessage".to_owned(), json!(format!("expected {expected}")));
    }
    // `uint32` and the like are not formats of JSON Schema, and strict programs fail on them.
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
        schema.remove("format");
    }
    // A null default only says that the field is optional.
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    schema.retain(|key, _| !key.starts_with("x-"));
}
