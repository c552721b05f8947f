//! Fields of our objects that another field manager owns, and objects without them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A field of an object that Streamfleet would set and another manager owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// The name of the field manager that owns it.
    pub manager: String,
    /// The field's path, as Kubernetes servers write it: `.spec.hard.pods`, `.spec.rules[name="a"].port`.
    pub field: String,
}

/// Removes a field and the parents that it leaves empty. Returns whether it existed.
///
/// A name in a path may contain dots and isn't quoted (`.data.tls.key`), so the object's keys split the path.
pub fn take_out(object: &mut Value, field: &str) -> bool {
    match object {
        Value::Object(entries) => {
            let Some(path) = field.strip_prefix('.') else { return false };
            let names: Vec<String> = entries.keys().filter(|name| begins(path, name)).cloned().collect();
            // The longest name first: `.a.b` means the key `a.b` if there is one.
            names.into_iter().rev().any(|name| {
                let rest = path.get(name.len()..).unwrap_or_default();
                let gone = rest.is_empty() || entries.get_mut(&name).is_some_and(|it| take_out(it, rest));
                if gone && (rest.is_empty() || entries.get(&name).is_some_and(is_hollow)) {
                    entries.remove(&name);
                }
                gone
            })
        }
        Value::Array(items) => {
            let Some((selector, rest)) = split_selector(field) else { return false };
            let Some(index) = items.iter().position(|item| is_selected(item, &selector)) else {
                return false;
            };
            match (rest, items.get_mut(index)) {
                ("", _) => {
                    items.remove(index);
                    true
                }
                (rest, Some(item)) => take_out(item, rest),
                (_, None) => false,
            }
        }
        _ => false,
    }
}

/// Whether a path continues with this whole name.
fn begins(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn is_hollow(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

enum Selector {
    /// The item with these values: `[name="a",port=1]`.
    Keys(Vec<(String, Value)>),
    /// The item that equals this value: `[="a"]`.
    Itself(Value),
}

/// Parses `[…]` and returns it with the rest of the path.
fn split_selector(field: &str) -> Option<(Selector, &str)> {
    let mut rest = field.strip_prefix('[')?;
    let mut keys = Vec::new();
    loop {
        let (name, after) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = after.get(values.byte_offset()..)?;
        if name.is_empty() {
            return Some((Selector::Itself(value), rest.strip_prefix(']')?));
        }
        keys.push((name.to_owned(), value));
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((Selector::Keys(keys), rest.strip_prefix(']')?)),
        }
    }
}

fn is_selected(item: &Value, selector: &Selector) -> bool {
    match selector {
        Selector::Itself(value) => item == value,
        Selector::Keys(keys) => keys.iter().all(|(name, value)| item.get(name) == Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_taken_out_by_the_path_that_a_server_gives_it() {
        let object = || {
            json!({
                "data": {"tls.key": 1, "tls": {"key": 2}},
                "spec": {"hard": {"pods": 14}, "list": [{"name": "a", "port": 1, "x": 1}, {"name": "b", "port": 2}],
                    "set": ["p", "q"]},
            })
        };
        let cases = [
            (".data.tls.key", "/data/tls.key", true),
            (".spec.hard.pods", "/spec/hard", true),
            (".spec.hard", "/spec/hard", true),
            (r#".spec.list[name="a",port=1].x"#, "/spec/list/0/x", true),
            (r#".spec.list[name="b",port=2]"#, "/spec/list/1", true),
            (r#".spec.set[="q"]"#, "/spec/set/1", true),
            (".spec.har", "", false),
            (r#".spec.list[name="c"].x"#, "", false),
            (r#".spec.list[name="a"#, "", false),
            (".spec.hard[0]", "", false),
            ("", "", false),
        ];
        for (field, gone, expected) in cases {
            let (before, mut after) = (object(), object());
            assert_eq!(take_out(&mut after, field), expected, "{field}");
            match expected {
                true => assert!(
                    before.pointer(gone).is_some() && after.pointer(gone).is_none(),
                    "{field}: {after}"
                ),
                false => assert_eq!(after, before, "{field}"),
            }
        }
        let mut object = object();
        assert!(take_out(&mut object, ".data.tls.key") && object["data"]["tls"]["key"] == 2);
    }
}
