//! The component schemas of the OpenAPI document. OpenAPI 3.1 uses JSON Schema draft 2020-12. Our schemas are
//! draft-07, which differs in the location of definitions and in tuples.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::route::page_of;
use crate::http::problem::code;
use crate::names::Kind;
use crate::record;
use crate::spec::schema::{self, Sent};

#[derive(Default)]
pub(super) struct Components {
    schemas: Map<String, Value>,
    parameters: Map<String, Value>,
    headers: Map<String, Value>,
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Components {
    /// All components but the responses.
    pub fn document(mut self) -> Value {
        self.schemas.insert("Problem".to_owned(), problem());
        self.schemas.values_mut().for_each(enumerate);
        for kind in Kind::ALL {
            let sent = format!("{kind}{:?}", Sent::New);
            let (record, Some(sent_schema)) = (kind.as_str(), self.schemas.get(&sent).cloned()) else {
                continue;
            };
            let Some(record) = self.schemas.get_mut(record) else { continue };
            describe_once(record, &sent_schema);
            let text = record["description"].as_str().unwrap_or_default();
            record["description"] = format!("{text} `{sent}` describes the other fields.").into();
        }
        json!({"schemas": shared(self.schemas), "parameters": self.parameters, "headers": self.headers})
    }

    pub fn record(&mut self, kind: Kind) -> Value {
        self.put(record::schema(kind))
    }

    pub fn list(&mut self, kind: Kind) -> Value {
        let name = format!("{kind}List");
        let page = page_of(&self.record(kind));
        self.schemas.entry(&name).or_insert(page);
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
        if self.schemas.contains_key(&title) {
            return named(&title);
        }
        let place = |name: &str| match name {
            "absent" => "Absent".to_owned(),
            "Secret" => name.to_owned(),
            name => format!("{title}{name}"),
        };
        let definitions = schema.as_object_mut().and_then(|schema| schema.remove("definitions"));
        modern(&mut schema, &place);
        let is_used = |name: &str| schema.to_string().contains(&format!("schemas/{}\"", place(name)));
        for (name, definition) in definitions.as_ref().and_then(Value::as_object).into_iter().flatten() {
            if name == "Secret" && !is_used(name) {
                continue;
            }
            let mut definition = definition.clone();
            modern(&mut definition, &place);
            self.schemas.insert(place(name), definition);
        }
        self.schemas.insert(title.clone(), schema);
        named(&title)
    }

    /// Returns a reference to a parameter. Different ones of a name are told apart by a number.
    pub fn parameter(&mut self, parameter: Value) -> Value {
        let text = |key: &str| parameter[key].as_str().map(camel).unwrap_or_default();
        let name = format!("{}{}", text("name"), text("in"));
        let names = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}{n}") });
        let is_it = |known: &String| self.parameters.get(known).is_none_or(|known| *known == parameter);
        let name = names.into_iter().find(is_it).unwrap_or_default();
        self.parameters.insert(name.clone(), parameter);
        json!({"$ref": format!("#/components/parameters/{name}")})
    }

    /// Returns a reference to the header of a response.
    pub fn header(&mut self, name: &str, description: &str, schema: Value) -> Value {
        let header = json!({"description": description, "schema": schema});
        self.headers.insert(name.to_owned(), header);
        json!({"$ref": format!("#/components/headers/{name}")})
    }
}

/// Removes the descriptions of a record's fields that the schema of what is sent has in the same words.
fn describe_once(record: &mut Value, sent: &Value) {
    let sent = sent["anyOf"][0].as_object().map_or(sent, |_| &sent["anyOf"][0]);
    if let Some(items) = record.get_mut("items") {
        describe_once(items, &sent["items"]);
    }
    for (name, field) in record.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let known = &sent["properties"][name];
        if field == known {
            continue;
        }
        describe_once(field, known);
        if let Some(field) =
            field.as_object_mut().filter(|field| field.get("description") == known.get("description"))
        {
            field.remove("description");
        }
    }
}

/// The size in bytes from which a schema that occurs several times becomes a component.
const WORTH_SHARING: usize = 120;

/// Moves each schema that occurs several times into a component of its own, named by where it occurs first: the
/// document has it once, and client generators make one type of it.
fn shared(mut schemas: Map<String, Value>) -> Map<String, Value> {
    let mut uses = BTreeMap::new();
    schemas.values().for_each(|schema| each(schema, &mut |inner| count(inner, &mut uses)));
    uses.retain(|_, uses| *uses > 1);
    let mut names = BTreeMap::new();
    let roots: Vec<String> = schemas.keys().cloned().collect();
    for root in roots {
        let Some(mut schema) = schemas.remove(&root) else { continue };
        let path = ["New", "Whole", "Patch"].iter().find_map(|end| root.strip_suffix(end)).unwrap_or(&root);
        replace_within(&mut schema, path, &uses, &mut names, &mut schemas);
        schemas.insert(root, schema);
    }
    schemas
}

/// Counts where a schema and those inside are used; inside of one that was counted before, they aren't again.
fn count(schema: &Value, uses: &mut BTreeMap<String, usize>) {
    let text = schema.to_string();
    if text.len() >= WORTH_SHARING {
        let uses = uses.entry(text).or_insert(0);
        *uses += 1;
        if *uses > 1 {
            return;
        }
    }
    each(schema, &mut |inner| count(inner, uses));
}

/// Calls a function for each schema directly inside of another.
fn each(schema: &Value, visit: &mut dyn FnMut(&Value)) {
    schema["properties"].as_object().into_iter().flatten().for_each(|(_, field)| visit(field));
    for key in ["items", "additionalProperties"] {
        schema.get(key).filter(|inner| inner.is_object()).into_iter().for_each(&mut *visit);
    }
    for key in ["anyOf", "oneOf"] {
        schema[key].as_array().into_iter().flatten().for_each(&mut *visit);
    }
}

fn replace_within(
    schema: &mut Value,
    path: &str,
    uses: &BTreeMap<String, usize>,
    names: &mut BTreeMap<String, String>,
    schemas: &mut Map<String, Value>,
) {
    let mut replace = |inner: &mut Value, path: &str| {
        let text = inner.to_string();
        if let Some(name) = names.get(&text) {
            *inner = named(name);
            return;
        }
        if !uses.contains_key(&text) {
            return replace_within(inner, path, uses, names, schemas);
        }
        let is_free =
            |name: &String| !schemas.contains_key(name) && !names.values().any(|known| known == name);
        let tries = (1..).map(|n| if n == 1 { path.to_owned() } else { format!("{path}{n}") });
        let name = tries.into_iter().find(is_free).unwrap_or_default();
        names.insert(text, name.clone());
        let mut component = std::mem::replace(inner, named(&name));
        replace_within(&mut component, path, uses, names, schemas);
        schemas.insert(name, component);
    };
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        replace(field, &format!("{path}{}", camel(name)));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key).filter(|inner| inner.is_object()) {
            replace(inner, &format!("{path}Item"));
        }
    }
    for key in ["anyOf", "oneOf"] {
        for way in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            replace(way, &format!("{path}Value"));
        }
    }
}

/// `advanced_config` as `AdvancedConfig`.
fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
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
