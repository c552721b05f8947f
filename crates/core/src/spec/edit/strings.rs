//! Replaces strings in a file, whatever its documents are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

use super::pointer::escaped;
use super::refusal::EditRefusal;
use super::scalar::BlockLines;
use super::{change, open};
use crate::spec::yaml::{Node, Scalar, Style, YamlContent};

/// A string of a file that is the value of a key.
#[derive(Debug)]
pub struct StringField {
    document: usize,
    /// The JSON pointer in the document.
    pointer: String,
    pub text: String,
    /// Whether several lines like these can't be written in its style: a line break is a space in it, or lines
    /// below a `|` can't express them.
    pub is_unusual: bool,
    /// Counted from 1.
    pub line: u32,
}

/// Returns the strings that are values of this key, at any depth.
///
/// # Errors
/// If the file can't be read.
pub fn strings(text: &str, key: &str) -> Result<Vec<StringField>, EditRefusal> {
    let (_, source) = open(text);
    let line_ends: Vec<usize> = source.text.match_indices('\n').map(|(at, _)| at).collect();
    let mut found = Vec::new();
    for (document, read) in source.documents()?.iter().enumerate() {
        let mut add = |pointer: String, node: &Node<'_>, text: &str| {
            let line = line_ends.partition_point(|end| *end < node.span.start) + 1;
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            let is_unusual = match node.style {
                Style::Plain | Style::Folded => true,
                Style::Literal => BlockLines::of(text, false).is_none(),
                _ => false,
            };
            let text = text.to_owned();
            found.push(StringField { document, pointer, text, is_unusual, line });
        };
        if let Ok(Some(root)) = &read.root {
            search(root, "", key, &mut add);
        }
    }
    Ok(found)
}

fn search(node: &Node<'_>, pointer: &str, key: &str, add: &mut dyn FnMut(String, &Node<'_>, &str)) {
    match &node.content {
        YamlContent::Mapping(entries) => {
            for entry in entries {
                let Some(name) = entry.name() else { continue };
                let pointer = format!("{pointer}/{}", escaped(name));
                match entry.value.scalar() {
                    Some(Scalar::String(text)) if name == key => add(pointer, &entry.value, text),
                    _ => search(&entry.value, &pointer, key, add),
                }
            }
        }
        YamlContent::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                search(item, &format!("{pointer}/{index}"), key, add);
            }
        }
        YamlContent::Scalar { .. } | YamlContent::Tagged => {}
    }
}

/// Returns the text with these strings replaced.
///
/// # Errors
/// If that is impossible, or can't be proven to have changed nothing else.
pub fn set_strings(text: &str, new: &[(StringField, String)]) -> Result<String, EditRefusal> {
    if new.is_empty() {
        return Ok(text.to_owned());
    }
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let mut wanted: BTreeMap<usize, Value> = BTreeMap::new();
    for (field, new) in new {
        let Some(Ok(Some(root))) = documents.get(field.document).map(|document| &document.root) else {
            continue;
        };
        let value = match wanted.entry(field.document) {
            Entry::Vacant(entry) => entry.insert(source.value(root)?),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        if let Some(value) = value.pointer_mut(&field.pointer) {
            *value = Value::String(new.clone());
        }
    }
    let wanted = wanted.iter().map(|(index, wanted)| (*index, wanted)).collect();
    // The items of a list are the same ones as before, and so their comments stay.
    Ok(mark.to_owned() + &change(source, &documents, &wanted, false)?)
}
