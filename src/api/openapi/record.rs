//! Schemas of records: the spec fields of a kind as the API returns them, and the output fields.

use serde_json::{Map, Value, json};

use super::components::named;
use crate::catalog::Status;
use crate::names::Kind;
use crate::spec::schema::fields_of;

pub(super) const SECRET: &str = "Secret";

pub(super) fn schema(kind: Kind) -> Value {
    let mut schema = given(fields_of(kind));
    schema["title"] = kind.as_str().into();
    if kind == Kind::Cluster {
        never_null(&mut schema["properties"]["advanced_config"]["properties"]);
    }
    let optional: &[&str] = if kind == Kind::BaseDomain { &["cloud_account"] } else { &[] };
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.extend(outputs(kind).into_iter().map(|(name, schema)| (name.to_owned(), schema)));
        let names: Vec<String> =
            fields.keys().filter(|name| !optional.contains(&name.as_str())).cloned().collect();
        schema["required"] = names.into();
    }
    schema
}

/// Replaces types that may be null in a spec by those that the interface specification demands: strings, and
/// an object.
fn never_null(config: &mut Value) {
    for name in ["oauth", "tiered_storage_bucket_name"] {
        config[name] = text(config[name]["description"].as_str().unwrap_or_default());
    }
    let provider = &mut config["tiered_storage_provider"];
    provider["properties"]["cloud_region"] =
        text(provider["properties"]["cloud_region"]["description"].as_str().unwrap_or_default());
    if let Some(provider) = provider.as_object_mut() {
        provider.insert("type".to_owned(), "object".into());
        // The object is empty where no provider is given.
        provider.remove("required");
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": format!("{description} Empty if unset.")})
}

/// Fields that a record has beyond its spec, or with another schema.
fn outputs(kind: Kind) -> Vec<(&'static str, Value)> {
    let id = json!({
        "type": ["string", "null"],
        "format": "uuid",
        "description": "Its id. None before the first apply.",
    });
    let mut outputs = vec![
        ("id", id),
        ("created_at", time("The time of its creation.")),
        ("updated_at", time("The time of its last change.")),
    ];
    match kind {
        Kind::Fleet => {
            let later = "Unknown.";
            let names = ["provisioner_name", "destroyer_name", "kubeconfig", "kubeconfig_str"];
            let endpoints = ["metrics_endpoint", "cost_endpoint", "logs_endpoint"];
            outputs.extend(names.into_iter().chain(endpoints).map(|name| (name, maybe(later))));
            outputs.push(("advanced_properties", json!({"type": "object"})));
            outputs.push(("metadata", json!({"type": "object"})));
            outputs.push(("domain", text("The base domain of its clusters.")));
            outputs.push(("network", json!({"description": "Unknown."})));
            outputs.push(("loadbalancer_dns", maybe("The address of the fleet for clients.")));
        }
        Kind::Cluster => {
            let names = ["destroyer_name", "version_updater_name", "console_url"];
            outputs.extend(names.map(|name| (name, maybe("Unknown."))));
            outputs.push(("provisioner_name", json!({"type": "string", "description": "As it was sent."})));
            outputs.push(("region", text("A label for people.")));
            outputs.push(("cloud_provider", text("The `infra_type` of its fleet.")));
            outputs.push((
                "client_properties",
                json!({"type": ["object", "null"], "description": "The properties that clients need to connect, without \
                                                                   secrets."}),
            ));
            outputs.push(("new_version", maybe("The newest supported version of Kafka, if it is newer.")));
            outputs.push((
                "storage_manifests_file_path",
                maybe(
                    "The path of its manifests, if they are files: for super users the folder on the daemon's host, for \
                     others the same below the folder of all manifests.",
                ),
            ));
        }
        Kind::BaseDomain => outputs.push((
            "dns_base_domain",
            json!({"type": "string", "description": "The domain that the DNS provider serves."}),
        )),
        Kind::Organization | Kind::IdentityProvider | Kind::CloudAccount => {}
    }
    if matches!(kind, Kind::Fleet | Kind::Cluster) {
        outputs.push(("status", json!({"type": "string", "enum": Status::ALL.map(Status::as_str)})));
        outputs.push(("status_reason", maybe("The reason, if the status alone is ambiguous.")));
        outputs.push(("conditions", conditions()));
    }
    outputs
}

fn maybe(description: &str) -> Value {
    json!({"type": ["string", "null"], "description": description})
}

fn time(description: &str) -> Value {
    json!({
        "type": ["string", "null"],
        "format": "date-time",
        "description": description,
        "examples": ["2026-11-22T09:30:00.000000Z"],
    })
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "What a person should know.",
        "items": {
            "type": "object",
            "required": ["kind", "degraded", "message"],
            "properties": {
                "kind": {"type": "string", "description": "The kind of condition: `OverCommitted`."},
                "degraded": {"type": "boolean", "description": "Whether it makes the resource Degraded."},
                "message": {"type": "string", "description": "One sentence for a person."},
            },
        },
    })
}

/// Converts a request schema to an answer schema: alternatives become one form, all fields are present, and
/// clients must tolerate new fields.
fn given(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else { return schema };
    if schema.get("x-secret").is_some() {
        let mut secret = named(SECRET);
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
            *inner = given(inner.take());
        }
    }
    for key in ["anyOf", "oneOf"] {
        for way in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            *way = given(way.take());
        }
    }
    if let Some(Value::Object(fields)) = schema.remove("properties") {
        let fields: Map<String, Value> =
            fields.into_iter().map(|(name, field)| (name, given(field))).collect();
        // A broker option, recognized by the dots in its name, is present only where it is given.
        let names: Vec<&String> = fields.keys().filter(|name| !name.contains('.')).collect();
        schema.insert("required".to_owned(), json!(names));
        schema.insert("properties".to_owned(), Value::Object(fields));
    }
    Value::Object(schema)
}
