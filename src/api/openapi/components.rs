//! The component schemas of the OpenAPI document. OpenAPI 3.1 uses JSON Schema draft 2020-12. Our schemas are
//! draft-07, which differs in the location of definitions and in tuples.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::route::{page_of, problem};
use crate::names::Kind;
use crate::record;
use crate::spec::schema::{self, Sent};

#[derive(Default)]
pub(super) struct Components {
    schemas: Map<String, Value>,
    parameters: Map<String, Value>,
    /// The names of definitions, by their content. Those that refer to others are left out.
    definitions: BTreeMap<String, String>,
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Components {
    /// The schemas and the parameters.
    pub fn document(mut self) -> (Map<String, Value>, Map<String, Value>) {
        self.schemas.insert("Problem".to_owned(), problem());
        self.schemas.values_mut().for_each(|schema| each_object(schema, &mut enumerate));
        for kind in Kind::ALL {
            let sent = format!("{kind}{:?}", Sent::New);
            let (record, Some(sent_schema)) = (kind.as_str(), self.schemas.get(&sent).cloned()) else {
                continue;
            };
            let Some(record) = self.schemas.get_mut(record) else { continue };
            describe_once(record, &sent_schema);
            let text = record["description"].as_str().unwrap_or_default();
            record["description"] = format!("{text} `{sent}` describes the other fields.").into();
            each_object(record, &mut leave_out_options);
        }
        let mut schemas = shared(self.schemas);
        // The name of a component is its title.
        for (name, schema) in &mut schemas {
            if schema["title"] == name.as_str() {
                schema.as_object_mut().map(|schema| schema.remove("title"));
            }
        }
        (schemas, self.parameters)
    }

    pub fn list(&mut self, kind: Kind) -> Value {
        let name = format!("{kind}List");
        let page = page_of(&self.put(record::schema(kind)));
        self.schemas.entry(&name).or_insert(page);
        named(&name)
    }

    pub fn sent(&mut self, kind: Kind, sent: Sent) -> Value {
        let mut schema = schema::sent(kind, sent);
        // Without secrets, a replacement has the fields of a new resource.
        let sent = if schema == schema::sent(kind, Sent::New) { Sent::New } else { sent };
        let name = format!("{kind}{sent:?}");
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
        let definitions = schema.as_object_mut().and_then(|schema| schema.remove("definitions"));
        let definitions = definitions.as_ref().and_then(Value::as_object).into_iter().flatten();
        let names: BTreeMap<String, String> = definitions
            .clone()
            .map(|(name, definition)| (name.clone(), self.place(&title, name, definition)))
            .collect();
        each_object(&mut schema, &mut |fields| modern(fields, &names));
        let is_used = |name: &str| schema.to_string().contains(&format!("schemas/{name}\""));
        for (name, definition) in definitions {
            if name == "Secret" && !is_used(name) {
                continue;
            }
            let mut definition = definition.clone();
            each_object(&mut definition, &mut |fields| modern(fields, &names));
            self.schemas.insert(names[name].clone(), definition);
        }
        self.schemas.insert(title.clone(), schema);
        named(&title)
    }

    /// The component of a definition: the one with the same content, if there is one.
    fn place(&mut self, title: &str, name: &str, definition: &Value) -> String {
        let text = definition.to_string();
        match name {
            "absent" => "Absent".to_owned(),
            "Secret" => name.to_owned(),
            name if text.contains("\"$ref\"") => format!("{title}{name}"),
            name => self.definitions.entry(text).or_insert_with(|| format!("{title}{name}")).clone(),
        }
    }

    /// Returns a reference to a parameter. Different ones of a name are told apart by a number.
    pub fn parameter(&mut self, parameter: Value) -> Value {
        let text = |key: &str| parameter[key].as_str().map(camel).unwrap_or_default();
        let name = format!("{}{}", text("name"), text("in"));
        let fits = |known: &str| self.parameters.get(known).is_none_or(|known| *known == parameter);
        let name = numbered(&name, fits);
        self.parameters.insert(name.clone(), parameter);
        json!({"$ref": format!("#/components/parameters/{name}")})
    }
}

/// Leaves out the options of brokers and topics, recognized by the dots in their names: the schema of what is sent has
/// them.
fn leave_out_options(fields: &mut Map<String, Value>) {
    let properties = fields.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| properties.keys().any(|name| name.contains('.'))) {
        fields.remove("properties");
        fields.remove("required");
    }
}

/// The name, or the first of those with a number behind it that fits.
fn numbered(name: &str, fits: impl Fn(&str) -> bool) -> String {
    let names = (1..).map(|n| if n == 1 { name.to_owned() } else { format!("{name}{n}") });
    names.into_iter().find(|name| fits(name)).unwrap_or_default()
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
    schemas.values_mut().flat_map(inside).for_each(|(_, inner)| count(inner, &mut uses));
    uses.retain(|_, uses| *uses > 1);
    let mut names = schemas.iter().map(|(name, schema)| (schema.to_string(), name.clone())).collect();
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
fn count(schema: &mut Value, uses: &mut BTreeMap<String, usize>) {
    let text = schema.to_string();
    if text.len() >= WORTH_SHARING {
        let uses = uses.entry(text).or_insert(0);
        *uses += 1;
        if *uses > 1 {
            return;
        }
    }
    inside(schema).into_iter().for_each(|(_, inner)| count(inner, uses));
}

/// The schemas directly inside of another, with what is added to its name for theirs.
fn inside(schema: &mut Value) -> Vec<(String, &mut Value)> {
    let fields = schema.as_object_mut().into_iter().flatten();
    let inside = fields.flat_map(|(key, value)| match (key.as_str(), value) {
        ("properties", Value::Object(fields)) => {
            fields.iter_mut().map(|(name, field)| (camel(name), field)).collect()
        }
        ("items" | "additionalProperties", inner) if inner.is_object() => vec![("Item".to_owned(), inner)],
        ("anyOf" | "oneOf", Value::Array(ways)) => {
            ways.iter_mut().map(|way| ("Value".to_owned(), way)).collect()
        }
        _ => Vec::new(),
    });
    inside.collect()
}

fn replace_within(
    schema: &mut Value,
    path: &str,
    uses: &BTreeMap<String, usize>,
    names: &mut BTreeMap<String, String>,
    schemas: &mut Map<String, Value>,
) {
    for (end, inner) in inside(schema) {
        let (path, text) = (format!("{path}{end}"), inner.to_string());
        if let Some(name) = names.get(&text) {
            *inner = named(name);
        } else if !uses.contains_key(&text) {
            replace_within(inner, &path, uses, names, schemas);
        } else {
            let is_free =
                |name: &str| !schemas.contains_key(name) && !names.values().any(|known| known == name);
            let name = numbered(&path, is_free);
            names.insert(text, name.clone());
            let mut component = std::mem::replace(inner, named(&name));
            replace_within(&mut component, &path, uses, names, schemas);
            schemas.insert(name, component);
        }
    }
}

/// `advanced_config` as `AdvancedConfig`.
fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

/// Calls a function for each object within a value, the outer ones first.
fn each_object(value: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            visit(fields);
            fields.values_mut().for_each(|value| each_object(value, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, visit)),
        _ => {}
    }
}

/// Turns a `oneOf` of described constants into an `enum`: client generators then make one type of it.
fn enumerate(fields: &mut Map<String, Value>) {
    let ways = fields.get("oneOf").and_then(Value::as_array);
    let words: Option<Vec<(&str, &str)>> = ways.and_then(|ways| ways.iter().map(word).collect());
    let Some(words) = words else { return };
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

/// A constant with its description; `None` for any other schema.
fn word(way: &Value) -> Option<(&str, &str)> {
    Some((way.get("const")?.as_str()?, way["description"].as_str().unwrap_or_default()))
}

/// Converts draft-07 to draft 2020-12. `names` has the new names of definitions.
fn modern(fields: &mut Map<String, Value>, names: &BTreeMap<String, String>) {
    fields.remove("$schema");
    // A keyword that only the YAML language server knows.
    fields.remove("patternErrorMessage");
    if let Some(Value::String(reference)) = fields.get_mut("$ref")
        && let Some(name) = reference.strip_prefix("#/definitions/").and_then(|name| names.get(name))
    {
        *reference = format!("#/components/schemas/{name}");
    }
    if fields.get("items").is_some_and(Value::is_array)
        && let Some(items) = fields.remove("items")
    {
        fields.insert("prefixItems".to_owned(), items);
    }
}
