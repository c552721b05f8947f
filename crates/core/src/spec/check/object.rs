//! Mappings: unknown, missing and duplicate keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::scalar::{control_character, nearest};
use super::{CheckedPosition, Checker, SpecFinding, explain, place};
use crate::problem::quote_untrusted;
use crate::spec::HEADER;
use crate::spec::shape::{self, Field, Rule, Shape};
use crate::spec::yaml::{MapEntry, Node, Scalar, Span, YamlContent};

/// How many fields the message about an unknown key lists.
const FIELDS: usize = 24;

impl Checker {
    pub(super) fn object(
        &mut self,
        fields: &[Field],
        shape: &Shape,
        node: &Node<'_>,
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let Some(entries) = node.entries() else {
            self.wrong_type(shape, node, at);
            return None;
        };
        let mut values = Map::new();
        let mut given: Vec<&str> = Vec::new();
        let secret = |name: &str| fields.iter().any(|field| field.name == name && field.shape.holds_secret());
        for (name, entry) in self.named(entries, secret) {
            let field = fields.iter().find(|field| field.name == name);
            match field {
                Some(field) if field.required || !is_absent(&entry.value, &field.shape) => {
                    given.push(name);
                    if field.required && entry.value.is_null() {
                        self.no_value(field, entry);
                    } else {
                        let value = self.field(&field.shape, name, entry, at);
                        values.extend(value.map(|value| (name.to_owned(), value)));
                    }
                }
                Some(_) => {}
                None if at.document && HEADER.contains(&name) => {}
                None => self.unknown_key(fields, name, entry, at),
            }
        }
        for field in fields.iter().filter(|field| field.required && !given.contains(&field.name.as_str())) {
            self.missing_key(field, at);
        }
        Some(Value::Object(values))
    }

    pub(super) fn map(
        &mut self,
        values: &Shape,
        shape: &Shape,
        node: &Node<'_>,
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let Some(entries) = node.entries() else {
            self.wrong_type(shape, node, at);
            return None;
        };
        let mut map = Map::new();
        for (name, entry) in self.named(entries, |_| values.holds_secret()) {
            if let Some(finding) = control_character(name, entry.key.span, &format!("a key of `{}`", at.name))
            {
                self.findings.push(*finding);
            } else if !entry.value.is_null() {
                let value = self.field(values, name, entry, at);
                map.extend(value.map(|value| (name.to_owned(), value)));
            }
        }
        Some(Value::Object(map))
    }

    fn field(
        &mut self,
        shape: &Shape,
        name: &str,
        entry: &MapEntry<'_>,
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let pointer = format!("{}/{}", at.pointer, name.replace('~', "~0").replace('/', "~1"));
        let inner = CheckedPosition { pointer: &pointer, place: entry.key.span, name, document: false };
        self.places.push((pointer.as_str().into(), place(&entry.value, &inner)));
        self.value(shape, &entry.value, &inner)
    }

    /// Returns the entries whose keys are strings and not duplicates; the others become findings.
    fn named<'e, 'a>(
        &mut self,
        entries: &'e [MapEntry<'a>],
        secret: impl Fn(&str) -> bool,
    ) -> Vec<(&'e str, &'e MapEntry<'a>)> {
        let mut first: BTreeMap<&str, Span> = BTreeMap::new();
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(name) = entry.name() else {
                self.no_name(entry);
                continue;
            };
            if let Some(before) = first.get(name) {
                let mut finding = SpecFinding::new(
                    entry.key.span,
                    "duplicate-key",
                    format!("`{}` is repeated", quote_untrusted(name)),
                )
                .label("repeated here")
                .hint("remove one of the two");
                finding.related.push((*before, "first one here".to_owned()));
                self.findings.push(finding);
                if secret(name) {
                    self.hide(&entry.value);
                }
            } else {
                first.insert(name, entry.key.span);
                named.push((name, entry));
            }
        }
        named
    }

    fn no_name(&mut self, entry: &MapEntry<'_>) {
        let span = entry.key.span;
        let finding = if entry.is_merge() {
            SpecFinding::new(span, "yaml-merge", "merge keys are not supported")
                .label("not part of YAML 1.2")
                .hint("write the fields out")
        } else {
            let hint = match (&entry.key.content, entry.key.scalar()) {
                (
                    YamlContent::Scalar { text, .. },
                    Some(Scalar::Integer(_) | Scalar::Float | Scalar::Bool(_)),
                ) => {
                    format!("put the key in quotes: \"{}\"", quote_untrusted(text))
                }
                _ => "write a name before the colon".to_owned(),
            };
            SpecFinding::new(span, "yaml-key", "a key must be a string").label("not a string").hint(hint)
        };
        self.findings.push(finding);
        self.hide(&entry.value);
    }

    fn unknown_key(&mut self, fields: &[Field], name: &str, entry: &MapEntry<'_>, at: &CheckedPosition<'_>) {
        let names = || fields.iter().map(|field| field.name.as_str());
        let reason = explain::reason(self.kind, at.pointer, name);
        let near = nearest(name, names()).filter(|_| reason.is_none());
        // Unless the key is a misspelt name of a harmless field, the value could be a secret under a misspelt
        // key or at the wrong level.
        let harmless =
            |near: &str| fields.iter().any(|field| field.name == near && !field.shape.holds_secret());
        if !near.is_some_and(harmless) {
            self.hide(&entry.value);
        }
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => match (reason, within(fields, name)) {
                (Some(reason), _) => reason.to_owned(),
                (None, Some(outer)) => format!("`{}` belongs in `{outer}`", quote_untrusted(name)),
                (None, None) if fields.len() > FIELDS => explain::hint(self.kind, at.pointer),
                (None, None) => format!("the fields are {}", shape::list(names(), "and")),
            },
        };
        let owner = if at.document { at.name.to_owned() } else { format!("`{}`", quote_untrusted(at.name)) };
        let finding = SpecFinding::new(
            entry.key.span,
            "unknown-key",
            format!("unknown key `{}`", quote_untrusted(name)),
        )
        .label(format!("not a field of {owner}"))
        .hint(hint);
        self.findings.push(finding);
    }

    fn missing_key(&mut self, field: &Field, at: &CheckedPosition<'_>) {
        let name = &field.name;
        let owner = if at.document { format!("this {}", at.name) } else { format!("`{}`", at.name) };
        let finding = SpecFinding::new(at.place, "missing-key", format!("missing key `{name}`"))
            .label(format!("{owner} needs `{name}`"))
            .hint(format!("add `{name}`: {}", field.shape.expected));
        self.findings.push(finding);
    }

    fn no_value(&mut self, field: &Field, entry: &MapEntry<'_>) {
        let finding =
            SpecFinding::new(entry.key.span, "missing-value", format!("`{}` has no value", field.name))
                .hint(format!("set it to {}", field.shape.expected));
        self.findings.push(finding);
    }
}

/// Whether an optional field counts as absent: null, `""`, `{}`, or an object whose fields are all absent.
fn is_absent(node: &Node<'_>, shape: &Shape) -> bool {
    match (&node.content, &shape.rule) {
        (YamlContent::Mapping(entries), Rule::Object(fields)) => entries.iter().all(|entry| {
            let field = fields.iter().find(|field| entry.name() == Some(&field.name));
            field.is_some_and(|field| is_absent(&entry.value, &field.shape))
        }),
        (YamlContent::Mapping(entries), _) => entries.is_empty(),
        _ => matches!(node.scalar(), Some(Scalar::Null | Scalar::String(""))),
    }
}

/// Returns the field that has an inner field of this name, for a key that was indented too little.
fn within<'f>(fields: &'f [Field], name: &str) -> Option<&'f str> {
    let holds = |field: &&Field| matches!(&field.shape.rule, Rule::Object(inner) if inner.iter().any(|inner| inner.name == name));
    fields.iter().find(holds).map(|field| field.name.as_str())
}
