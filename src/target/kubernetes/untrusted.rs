//! Parsing of untrusted responses. A fleet's API server may belong to a tenant: what it sends must not fill
//! this process's memory or disk, and must not reach a terminal unescaped.
//!
//! Every response, every object of a list and every event is parsed here and nowhere else. The resulting tree
//! is bounded, names must be ones that Kubernetes allows, and the server's own texts become short lines. What
//! users wrote into objects (specs, data, annotations) is kept exactly, because it is compared; its length is
//! limited where it is shown.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::names::{Json, ObjectKey, one_line};
use crate::plan::preflight::PodRequest;

/// The longest object that is read, in bytes. etcd accepts requests of 1.5 MiB (`--max-request-bytes`), and
/// an API server of 3 MiB; beyond that it only adds fields of its own.
pub(super) const MAX_OBJECT: usize = 4 * 1024 * 1024;

/// The most memory that one object's tree may take, in bytes. The largest object that we apply, the
/// definition of Strimzi's Kafka, takes 2 MiB, and as much again for its `managedFields`.
const MAX_TREE: usize = 16 * 1024 * 1024;

/// The longest server text that is kept, in characters. Messages of events have at most 1,024 (`core/v1`,
/// `Event`).
const MAX_WORDS: usize = 2_048;

/// The size of a value without what it points to. This and the next three are estimates in bytes, the last
/// one for an allocation's overhead.
const NODE: usize = 32;

/// A non-empty map: one B-tree node with room for 11 entries.
const MAP: usize = 640;

/// Each further entry, with half-full nodes.
const ENTRY: usize = 110;

const ALLOCATION: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseFailure {
    NotJson,
    TooMuch,
}

/// An estimate of the memory that a value takes.
pub(super) trait Weigh {
    fn weight(&self) -> usize;
}

impl Weigh for Value {
    fn weight(&self) -> usize {
        NODE + match self {
            Value::String(text) => text.len() + ALLOCATION,
            Value::Array(items) => items.iter().map(Weigh::weight).sum::<usize>() + ALLOCATION,
            Value::Object(fields) => {
                let first = if fields.is_empty() { 0 } else { MAP };
                let field = |(key, value): (&String, &Value)| ENTRY + key.len() + ALLOCATION + value.weight();
                first + fields.iter().map(field).sum::<usize>()
            }
            _ => 0,
        }
    }
}

impl Weigh for PodRequest {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.node.len() + self.kafka.as_ref().map_or(0, String::len)
    }
}

/// The memory for one object of an inventory, beside its text.
const ENTRY_OF_INVENTORY: usize = 1_000;

/// A ConfigMap of an inventory counts with its parsed entries.
impl Weigh for Json {
    fn weight(&self) -> usize {
        let entries = if self.may_have("data") { self.as_str().matches("owner\\\":").count() } else { 0 };
        self.as_str().len() + ALLOCATION + ENTRY_OF_INVENTORY * entries
    }
}

pub(super) fn value(bytes: &[u8]) -> Result<Value, ParseFailure> {
    let mut value = tree(bytes)?;
    tame(&mut value);
    Ok(value)
}

pub(super) fn event(bytes: &[u8]) -> Result<(String, Value), ParseFailure> {
    let mut event = tree(bytes)?;
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut object = event.get_mut("object").map(Value::take).unwrap_or_default();
    tame(&mut object);
    Ok((kind, object))
}

/// Parses bytes within the memory limit of an object.
fn tree(bytes: &[u8]) -> Result<Value, ParseFailure> {
    let left = Cell::new(MAX_TREE);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = Tree(&left).deserialize(&mut deserializer);
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|_| if left.get() == 0 { ParseFailure::TooMuch } else { ParseFailure::NotJson })
}

/// Builds a value while memory is left in the limit.
struct Tree<'l>(&'l Cell<usize>);

impl Tree<'_> {
    fn takes<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().saturating_sub(bytes);
        self.0.set(left);
        if left == 0 { Err(E::custom("too large")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.takes(NODE).map(|()| Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.takes(NODE).map(|()| value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.takes(NODE).map(|()| value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.takes(NODE).map(|()| value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.takes(NODE).map(|()| value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.takes(NODE + ALLOCATION + value.len()).map(|()| value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.takes(NODE + ALLOCATION)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Tree(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.takes(NODE)?;
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let first = if map.is_empty() { MAP } else { 0 };
            self.takes::<A::Error>(first + ENTRY + ALLOCATION + key.len())?;
            map.insert(key, fields.next_value_seed(Tree(self.0))?);
        }
        Ok(Value::Object(map))
    }
}

/// Fields with users' content, which is compared byte by byte.
const CONTENT: [&str; 4] = ["spec", "data", "stringData", "binaryData"];

fn tame(object: &mut Value) {
    let Value::Object(fields) = object else { return words(object) };
    for (name, value) in fields {
        match name.as_str() {
            name if CONTENT.contains(&name) => {}
            "metadata" => tame_but(value, "annotations"),
            "status" => tame_status(value),
            _ => words(value),
        }
    }
}

fn tame_but(value: &mut Value, kept: &str) {
    let Value::Object(fields) = value else { return words(value) };
    fields.iter_mut().filter(|(name, _)| *name != kept).for_each(|(_, value)| words(value));
}

/// Certificates have several lines and are used as they are.
fn tame_status(status: &mut Value) {
    let Value::Object(fields) = status else { return words(status) };
    for (name, value) in fields {
        match value {
            Value::Array(listeners) if name == "listeners" => {
                listeners.iter_mut().for_each(|listener| tame_but(listener, "certificates"));
            }
            value => words(value),
        }
    }
}

/// Makes all texts in a value short lines.
pub(super) fn words(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(line) = one_line(text, MAX_WORDS) {
                *text = line;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(words),
        Value::Object(fields) => fields.values_mut().for_each(words),
        _ => {}
    }
}

/// The annotation of a service account token's Secret. It names the account.
pub(super) const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// Reduces an object of any kind to its identity, labels and owners.
pub(super) fn outline(mut object: Value) -> Option<Value> {
    let fields = object.as_object_mut()?;
    fields.retain(|name, _| ["metadata", "type"].contains(&name.as_str()));
    let metadata = fields.get_mut("metadata")?.as_object_mut()?;
    let account = metadata.get("annotations").and_then(|annotations| annotations.get(TOKEN_OF));
    let account = account.filter(|account| account.as_str().is_some_and(is_dns)).cloned();
    let kept = ["name", "namespace", "uid", "labels", "ownerReferences"];
    metadata.retain(|name, _| kept.contains(&name.as_str()));
    if let Some(account) = account {
        let annotations = Map::from_iter([(TOKEN_OF.to_owned(), account)]);
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    Some(object)
}

/// Kinds whose names may be any path segment of a URL. All other kinds that are read have DNS names.
const FREELY_NAMED: [&str; 5] = ["Event", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// The longest name of such a kind that is accepted. An event is named after its object, which has up to 253
/// characters, and the time.
const LONGEST_FREE_NAME: usize = 512;

/// The longest server-made identifier. A UID has 36 characters, a `resourceVersion` at most 20.
const LONGEST_IDENTIFIER: usize = 128;

/// Whether an object's names and identifiers are ones that Kubernetes allows. Missing ones are left to the
/// caller.
pub(super) fn is_named_properly(kind: &str, object: &Value) -> bool {
    let fits = |field: &str, fits: fn(&str, &str) -> bool| {
        let text = object.pointer("/metadata").and_then(|metadata| metadata.get(field)?.as_str());
        text.is_none_or(|text| fits(kind, text))
    };
    fits("name", is_name)
        && fits("namespace", |_, text| is_dns(text) && text.len() <= 63)
        && fits("uid", is_identifier)
        && fits("resourceVersion", is_identifier)
}

/// Whether Kubernetes would allow an object with this key.
pub(super) fn is_object_key(key: &ObjectKey) -> bool {
    let ObjectKey { api_version, kind, namespace, name } = key;
    let plain = |text: &str, more: &str| {
        text.len() <= 320 && text.chars().all(|it| it.is_ascii_alphanumeric() || more.contains(it))
    };
    plain(api_version, "-./")
        && plain(kind, "")
        && namespace.as_ref().is_none_or(|it| is_dns(it) && it.len() <= 63)
        && is_name(kind, name)
}

fn is_name(kind: &str, text: &str) -> bool {
    match FREELY_NAMED.contains(&kind) {
        true => {
            let plain = |it: char| !it.is_control() && !"/%".contains(it);
            text.len() <= LONGEST_FREE_NAME && text.chars().all(plain)
        }
        false => is_dns(text),
    }
}

/// Whether a text can be a DNS subdomain (RFC 1123), as object names are.
pub(super) fn is_dns(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    text.len() <= 253 && text.bytes().all(plain)
}

fn is_identifier(_: &str, text: &str) -> bool {
    text.len() <= LONGEST_IDENTIFIER && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_a_server_are_short_lines_and_what_people_wrote_stays() {
        let evil = "\u{1b}[2J\r\nred\u{202e}\u{200b}";
        let object = json!({
            "kind": "Kafka",
            "metadata": {"name": "n", "labels": {"a": evil}, "annotations": {"a": evil}},
            "spec": {"a": evil},
            "data": {"a": evil},
            "message": "m".repeat(MAX_WORDS + 1),
            "status": {
                "conditions": [{"message": evil}],
                "listeners": [{"name": evil, "certificates": ["-----BEGIN\nCERTIFICATE-----\n"]}],
            },
        });
        let line = "\\u{1b}[2J red\\u{202e}\\u{200b}";
        let expected = json!({
            "kind": "Kafka",
            "metadata": {"name": "n", "labels": {"a": line}, "annotations": {"a": evil}},
            "spec": {"a": evil},
            "data": {"a": evil},
            "message": "m".repeat(MAX_WORDS) + "…",
            "status": {
                "conditions": [{"message": line}],
                "listeners": [{"name": line, "certificates": ["-----BEGIN\nCERTIFICATE-----\n"]}],
            },
        });
        assert_eq!(value(object.to_string().as_bytes()), Ok(expected));
    }

    #[test]
    fn what_expands_to_more_than_any_object_is_refused_before_it_is_made() {
        for part in ["0,", "[],", "{\"\":0},", "\"\",", "null,"] {
            let text = format!("[{}0]", part.repeat((MAX_OBJECT - 3) / part.len()));
            assert!(text.len() <= MAX_OBJECT);
            assert_eq!(value(text.as_bytes()), Err(ParseFailure::TooMuch), "{part}");
        }
        let many = format!("{{{}\"\":0}}", (0..400_000).map(|it| format!("\"{it}\":0,")).collect::<String>());
        assert_eq!(value(many.as_bytes()), Err(ParseFailure::TooMuch));
        for text in ["", "{", "[0]x", "{\"a\":01}"] {
            assert_eq!(value(text.as_bytes()), Err(ParseFailure::NotJson), "{text}");
        }
        let text = r#"{"a":[1,-2,0.5,true,null,"x"],"b":{}}"#;
        assert_eq!(value(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn only_names_that_kubernetes_gives_are_read() {
        let named = |kind: &str, name: &str| is_named_properly(kind, &json!({"metadata": {"name": name}}));
        for name in ["orders-0", "a.b", "kafka-acme--orders"] {
            assert!(named("Pod", name), "{name}");
        }
        for name in ["A", "a b", "a\u{200b}", "a/b", "a\nb", "a`b", &"a".repeat(254)] {
            assert!(!named("Pod", name), "{name}");
        }
        assert!(named("ClusterRole", "system:node") && named("Event", "A.1") && !named("Event", "a\nb"));
        let metadata = |field: &str, text: &str| json!({"metadata": {"name": "a", field: text}});
        for (field, fits) in [("namespace", 63), ("uid", 128), ("resourceVersion", 128)] {
            assert!(is_named_properly("Pod", &metadata(field, &"a".repeat(fits))), "{field}");
            assert!(!is_named_properly("Pod", &metadata(field, &"a".repeat(fits + 1))), "{field}");
        }
    }
}
