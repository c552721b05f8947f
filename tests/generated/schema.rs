//! Names of fields and values, in schemas and in documents: `cluster advanced_config.profile dev`.

use std::collections::BTreeSet;

use serde_json::Value;
use streamfleet::names::Kind;

use crate::support::Tree;

/// Every field of the kinds that make a cluster, and every value that a field enumerates.
pub fn names() -> BTreeSet<String> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Organization);
    let mut names = BTreeSet::new();
    for kind in kinds.map(Kind::singular) {
        let text = Tree::empty().run(&format!("schema {kind}")).expect(0).out;
        let schema: Value = serde_json::from_str(&text).unwrap();
        walk(&schema, kind, &mut Vec::new(), &mut names);
    }
    names
}

fn walk(schema: &Value, kind: &str, path: &mut Vec<String>, names: &mut BTreeSet<String>) {
    let alternatives = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|word| schema[word].as_array());
    alternatives.flatten().for_each(|schema| walk(schema, kind, path, names));
    let listed = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    names.extend(listed.filter(|it| !it.is_null()).map(|it| format!("{} {}", name(kind, path), plain(it))));
    if let Some(items) = schema.get("items") {
        walk(items, kind, path, names);
    }
    for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
        path.push(field.clone());
        names.insert(name(kind, path));
        walk(schema, kind, path, names);
        path.pop();
    }
}

fn name(kind: &str, path: &[String]) -> String {
    format!("{kind} {}", path.join("."))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The names in a field's value: of the field and its parents, of the value, and of nested fields.
pub fn names_in(kind: &str, path: &str, value: &Value) -> Vec<String> {
    let kind = kind.parse::<Kind>().unwrap().singular();
    let mut names = Vec::new();
    let mut above = path;
    while !above.is_empty() {
        names.push(format!("{kind} {above}"));
        above = above.rsplit_once('.').map_or("", |(above, _)| above);
    }
    within(kind, path, value, &mut names);
    names
}

fn within(kind: &str, path: &str, value: &Value, names: &mut Vec<String>) {
    names.push(format!("{kind} {path}"));
    match value {
        Value::Object(fields) => {
            let inner =
                |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            fields.iter().for_each(|(field, value)| within(kind, &inner(field), value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| within(kind, path, item, names)),
        value => names.push(format!("{kind} {path} {}", plain(value))),
    }
}
