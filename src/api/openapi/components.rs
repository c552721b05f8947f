//! The component schemas of the OpenAPI document. OpenAPI 3.1 uses JSON Schema draft 2020-12. Our schemas are
//! draft-07, which differs in the location of definitions and in tuples.

use serde_json::{Map, Value, json};

use super::record;
use crate::api::problem::code;
use crate::api::route::page_of;
use crate::names::Kind;
use crate::spec::schema::{self, Sent};

pub(super) struct Components(Map<String, Value>);

impl Default for Components {
    fn default() -> Self {
        let secret = json!({
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
        });
        let named = [("Problem", problem()), (record::SECRET, secret)];
        Self(named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect())
    }
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Components {
    pub fn schemas(self) -> Value {
        let mut schemas = Value::Object(self.0);
        enumerate(&mut schemas);
        schemas
    }

    pub fn record(&mut self, kind: Kind) -> Value {
        self.0.entry(kind.as_str()).or_insert_with(|| record::schema(kind));
        named(kind.as_str())
    }

    pub fn list(&mut self, kind: Kind) -> Value {
        let name = format!("{kind}List");
        let page = page_of(&self.record(kind));
        self.0.entry(&name).or_insert(page);
        named(&name)
    }

    pub fn sent(&mut self, kind: Kind, sent: Sent) -> Value {
        let name = format!("{kind}{sent:?}");
        let mut schema = schema::sent(kind, sent);
        schema["title"] = name.into();
        self.put(schema)
    }

    /// Returns a reference to a schema that has a title, after adding it and its definitions; returns any
    /// other schema inline.
    pub fn put(&mut self, mut schema: Value) -> Value {
        let Some(title) = schema["title"].as_str().map(str::to_owned) else { return schema };
        if self.0.contains_key(&title) {
            return named(&title);
        }
        let place =
            |name: &str| if name == "absent" { "Absent".to_owned() } else { format!("{title}{name}") };
        let definitions = schema.as_object_mut().and_then(|schema| schema.remove("definitions"));
        modern(&mut schema, &place);
        for (name, mut definition) in
            definitions.as_ref().and_then(Value::as_object).cloned().into_iter().flatten()
        {
            modern(&mut definition, &place);
            self.0.insert(place(&name), definition);
        }
        self.0.insert(title.clone(), schema);
        named(&title)
    }
}

/// Turns a `oneOf` of described constants into an `enum`: client generators then make one type of it.
fn enumerate(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let ways = fields.get("oneOf").and_then(Value::as_array);
            let words: Option<Vec<(&str, &str)>> = ways.and_then(|ways| ways.iter().map(word).collect());
            if let Some(words) = words {
                let told = words.iter().filter(|(_, what)| !what.is_empty());
                let told = told.map(|(word, what)| format!("- `{word}`: {what}"));
                let head = fields.get("description").and_then(Value::as_str).map(|text| format!("{text}\n"));
                let told: Vec<String> = head.into_iter().chain(told).collect();
                let words: Vec<Value> = words.iter().map(|(word, _)| (*word).into()).collect();
                fields.remove("oneOf");
                fields.insert("type".to_owned(), "string".into());
                fields.insert("enum".to_owned(), words.into());
                fields.insert("description".to_owned(), told.join("\n").into());
            }
            fields.values_mut().for_each(enumerate);
        }
        Value::Array(items) => items.iter_mut().for_each(enumerate),
        _ => {}
    }
}

/// A constant with its description; `None` for any other schema.
fn word(way: &Value) -> Option<(&str, &str)> {
    Some((way.get("const")?.as_str()?, way["description"].as_str().unwrap_or_default()))
}

/// Converts draft-07 to draft 2020-12. `place` returns the new name of a definition.
fn modern(schema: &mut Value, place: &dyn Fn(&str) -> String) {
    let Value::Object(fields) = schema else { return };
    fields.remove("$schema");
    // A keyword that only the YAML language server knows.
    fields.remove("patternErrorMessage");
    if let Some(Value::String(reference)) = fields.get_mut("$ref")
        && let Some(name) = reference.strip_prefix("#/definitions/")
    {
        *reference = format!("#/components/schemas/{}", place(name));
    }
    if fields.get("items").is_some_and(Value::is_array)
        && let Some(items) = fields.remove("items")
    {
        fields.insert("prefixItems".to_owned(), items);
    }
    for (name, value) in fields {
        match name.as_str() {
            "items" | "additionalProperties" | "not" => modern(value, place),
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                value.as_array_mut().into_iter().flatten().for_each(|schema| modern(schema, place));
            }
            "properties" | "patternProperties" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| modern(schema, place));
            }
            _ => {}
        }
    }
}

fn problem() -> Value {
    let words: Vec<&str> = code::ALL.iter().map(|code| code.word).collect();
    let text = |description: &str| json!({"type": "string", "description": description});
    let maybe = |description: &str| json!({"type": ["string", "null"], "description": description});
    json!({
        "title": "Problem",
        "description": "Why a request failed (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "code", "detail", "request_id"],
        "properties": {
            "type": {"type": "string", "format": "uri-reference", "description": "The address of the code's description."},
            "title": text("The meaning of the code."),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "code": {"type": "string", "description": "The code, for programs.", "enum": words},
            "detail": text("Why."),
            "hint": text("What to do next."),
            "request_id": {"type": ["string", "null"], "format": "uuid", "description": "The id of the request."},
            "errors": {
                "type": "array",
                "description": "The wrong field, and what is wrong with it.",
                "items": {
                    "type": "object",
                    "required": ["pointer", "detail", "hint", "file", "line"],
                    "properties": {
                        "pointer": maybe("The field, as a JSON pointer into the request's body."),
                        "detail": text("What is wrong."),
                        "hint": maybe("What to do next."),
                        "file": maybe("The file of the spec tree that contains it."),
                        "line": {
                            "type": ["integer", "null"], "minimum": 1, "description": "The line, counted from 1.",
                        },
                    },
                },
            },
        },
    })
}
