//! Commit messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::write_request::WriteAction;
use crate::names::ResourceKey;
use crate::problem::quote_untrusted;
use crate::spec::SECRET_FIELDS;

const NAMED: usize = 3;

/// One line that describes the change. It never contains a secret.
pub fn message(
    key: &ResourceKey,
    what: &WriteAction,
    before: Option<&Value>,
    after: Option<&Value>,
) -> String {
    match what {
        WriteAction::Create(_) => return format!("Create {key}"),
        WriteAction::Delete => return format!("Delete {key}"),
        WriteAction::Replace(_) | WriteAction::Patch(_) => {}
    }
    let (before, after) = (fields(before), fields(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed: Vec<&String> =
        names.into_iter().filter(|name| before.get(*name) != after.get(*name)).collect();
    match changed.as_slice() {
        [] => format!("Rewrite {key} without a change"),
        [name] => match after.get(*name) {
            None => format!("Remove {} of {key}", quote_untrusted(name)),
            Some(value) => match shown(key, name, value) {
                Some(value) => format!("Set {} of {key} to {value}", quote_untrusted(name)),
                None => format!("Change {} of {key}", quote_untrusted(name)),
            },
        },
        [first @ .., last] if changed.len() <= NAMED => {
            let first: Vec<String> = first.iter().map(|name| quote_untrusted(name)).collect();
            format!("Change {} and {} of {key}", first.join(", "), quote_untrusted(last))
        }
        changed => format!("Change {} fields of {key}", changed.len()),
    }
}

/// A value, if it fits in the line and isn't a secret.
fn shown(key: &ResourceKey, name: &str, value: &Value) -> Option<String> {
    let is_secret = |(kind, _, pointer): &(crate::names::Kind, &str, &str)| {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        *kind == key.kind && (name == field || name.starts_with(&format!("{field}.")))
    };
    if SECRET_FIELDS.iter().any(is_secret) {
        return None;
    }
    match value {
        Value::String(text) if text.contains('\n') => None,
        Value::String(text) => Some(quote_untrusted(text)),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The leaf values and lists of a document by dotted name. A secret is one value in any form.
fn fields(document: Option<&Value>) -> BTreeMap<String, Value> {
    fn walk(value: &Value, name: &str, found: &mut BTreeMap<String, Value>) {
        let is_secret = |(_, _, pointer): &(crate::names::Kind, &str, &str)| {
            pointer.trim_start_matches('/').replace('/', ".") == name
        };
        match value {
            Value::Object(fields) if !fields.is_empty() && !SECRET_FIELDS.iter().any(is_secret) => {
                for (inner, value) in fields {
                    let name = if name.is_empty() { inner.clone() } else { format!("{name}.{inner}") };
                    walk(value, &name, found);
                }
            }
            value => drop(found.insert(name.to_owned(), value.clone())),
        }
    }
    let mut found = BTreeMap::new();
    if let Some(document) = document {
        walk(document, "", &mut found);
    }
    found
}
