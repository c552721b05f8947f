//! The schemas of records, from the schemas of the spec and of the output fields.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::outputs::{BaseDomainOutputs, ClusterOutputs, FleetOutputs, ResourceOutputs, StandingOutputs};
use crate::names::Kind;
use crate::spec::describe::{self, Description};
use crate::spec::schema::fields_of;

/// The schema of a kind's records, in draft-07. A secret in it is a reference to `#/definitions/Secret`.
pub fn schema(kind: Kind) -> Value {
    let mut schema = answered(fields_of(kind));
    require_all(&mut schema);
    for outputs in outputs(kind) {
        overlay(&mut schema, outputs);
    }
    schema["title"] = kind.as_str().into();
    schema["definitions"] = json!({"Secret": {
        "description": "A secret: its fingerprint, or the value itself in the answer to the call that created it.",
        "oneOf": [
            {
                "type": "object",
                "properties": {"redacted": {"const": true}},
                "required": ["redacted"],
                "additionalProperties": false,
            },
            {"type": "string"},
        ],
    }});
    schema
}

/// The fields of a kind's records, described for people.
pub fn describe(kind: Kind) -> Description {
    describe::described(kind.singular(), schema(kind))
}

/// The fields of a kind's records that no spec can set.
pub fn output_fields(kind: Kind) -> &'static [String] {
    static FIELDS: LazyLock<Vec<(Kind, Vec<String>)>> =
        LazyLock::new(|| Kind::ALL.into_iter().map(|kind| (kind, fields_beside_spec(kind))).collect());
    FIELDS.iter().find(|(known, _)| *known == kind).map(|(_, fields)| fields.as_slice()).unwrap_or_default()
}

fn fields_beside_spec(kind: Kind) -> Vec<String> {
    let spec = fields_of(kind);
    let outputs = outputs(kind);
    let names = outputs.iter().flat_map(|outputs| outputs["properties"].as_object().into_iter().flatten());
    let names = names.map(|(name, _)| name.clone());
    names.filter(|name| spec["properties"].get(name).is_none()).collect()
}

fn outputs(kind: Kind) -> Vec<Value> {
    let of_kind = match kind {
        Kind::Fleet => Some(schema_of::<FleetOutputs>()),
        Kind::Cluster => Some(schema_of::<ClusterOutputs>()),
        Kind::BaseDomain => Some(schema_of::<BaseDomainOutputs>()),
        Kind::Organization | Kind::IdentityProvider | Kind::CloudAccount => None,
        Kind::Topic | Kind::User => Some(schema_of::<StandingOutputs>()),
    };
    [schema_of::<ResourceOutputs>()].into_iter().chain(of_kind).collect()
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft07().for_serialize().with(|settings| settings.inline_subschemas = true);
    answered(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// Puts the fields of an object's schema over those of another, at every depth. For its own fields, the
/// schema on top also says which of them every answer has.
fn overlay(under: &mut Value, over: Value) {
    let Value::Object(mut over) = over else { return };
    let (fields, required) = (over.remove("properties"), over.remove("required"));
    let Some(Value::Object(fields)) = fields else { return };
    let names = under["required"].as_array().cloned().unwrap_or_default();
    let names = names.into_iter().filter(|name| !name.as_str().is_some_and(|name| fields.contains_key(name)));
    let always = required.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let mut names: Vec<Value> = names.chain(always).collect();
    names.sort_unstable_by(|one, other| one.as_str().cmp(&other.as_str()));
    under["required"] = names.into();
    for (name, field) in fields {
        let known = &mut under["properties"][&name];
        match known.get("properties").is_some() && field.get("properties").is_some() {
            true => overlay(known, field),
            false => *known = field,
        }
    }
    // The type, which says that it is never null.
    if let Some(under) = under.as_object_mut() {
        under.extend(over.into_iter().filter(|(key, _)| key == "type"));
    }
}

/// An answer has every field of a spec, at every depth.
fn require_all(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                // Options of brokers and topics, recognized by the dots in names, are present only where they are given.
                let are_options = properties.keys().any(|name| name.contains('.'));
                let names: Vec<&String> = properties.keys().filter(|_| !are_options).collect();
                let names = json!(names);
                fields.insert("required".to_owned(), names);
            }
            fields.values_mut().for_each(require_all);
        }
        Value::Array(items) => items.iter_mut().for_each(require_all),
        _ => {}
    }
}

/// Converts the schema of a type to that of an answer: a secret is shown redacted, and clients must tolerate
/// new fields.
fn answered(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    if schema.get("x-secret").is_some() {
        let mut secret = json!({"$ref": "#/definitions/Secret"});
        if let Some(description) = schema.remove("description") {
            secret["description"] = description;
        }
        return secret;
    }
    schema.retain(|key, value| match key.as_str() {
        // An omitted list is returned as an empty one.
        "$schema" | "default" | "minItems" => false,
        "additionalProperties" => value.is_object(),
        key => !key.starts_with("x-"),
    });
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
        schema.remove("format");
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            *inner = answered(inner.take());
        }
    }
    for key in ["anyOf", "oneOf"] {
        for way in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            *way = answered(way.take());
        }
    }
    if let Some(Value::Object(fields)) = schema.remove("properties") {
        let fields: Map<String, Value> =
            fields.into_iter().map(|(name, field)| (name, answered(field))).collect();
        schema.insert("properties".to_owned(), Value::Object(fields));
    }
    Value::Object(schema)
}
