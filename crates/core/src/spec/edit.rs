//! Edits of spec files, as a person would make them: everything that a change doesn't name stays byte for
//! byte.
//!
//! A document is changed to a given value with the smallest change of its text:
//!
//! - A changed value replaces the old one in the same style: plain, quoted, in brackets, or as lines below a
//!   `|` or `>`. Quotes are added where a reader of YAML 1.1 or 1.2 would read the string as something else.
//! - A new field is inserted in the order of the type's declaration, if the fields around it are in that
//!   order, and otherwise last.
//! - A removed field or item takes along the comment after it, the comments directly above it at the same
//!   indentation, and those directly below it at a deeper one. Comments on top of a document are about all of
//!   it and stay.
//! - All other comments, empty lines, indentation and line ends stay, and so does the byte order mark.
//!
//! The result is parsed again and compared, document by document. So a bug here, or an unsupported syntax,
//! can only refuse an edit and never damage a file.

mod align;
mod anchors;
mod change;
mod documents;
mod flow;
mod merge_patch;
mod order;
mod pointer;
mod proof;
mod refusal;
mod scalar;
mod source;
mod strings;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::merge_patch::merge_patch;
pub use self::pointer::pointer_at;
pub use self::refusal::{EditRefusal, RefusalReason};
pub use self::strings::{StringField, set_strings, strings};

use self::change::DocumentEdits;
use self::order::FieldOrder;
use self::proof::{Expected, prove};
use self::source::Source;
use self::write::IndentStyle;
use crate::names::ResourceKey;
use crate::spec::yaml::YamlDocument;

/// Some Windows editors write it at the beginning of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the document of a resource as written: with its header, its secrets in their given form, and
/// without defaults. Merge patches are applied to this value. It must not be used for anything else and never
/// be shown, since it may contain plain secrets.
///
/// # Errors
/// If the file or the document can't be read, or the document doesn't exist.
pub fn read(text: &str, key: &ResourceKey) -> Result<Value, EditRefusal> {
    let (_, source) = open(text);
    source.value(documents::find(&source.documents()?, key)?.1)
}

/// Returns a text that is one YAML value.
///
/// # Errors
/// If it is none, or contains what documents may not: tags, complex keys or several documents.
pub fn value(text: &str) -> Result<Value, EditRefusal> {
    let (_, source) = open(text);
    match source.documents()?.as_slice() {
        [YamlDocument { root: Ok(Some(root)), .. }] => source.value(root),
        _ => Ok(Value::Null),
    }
}

/// Returns the text with the document of a resource changed to this value, header included.
///
/// # Errors
/// If that is impossible, or can't be proven to have changed nothing else.
pub fn set(text: &str, key: &ResourceKey, wanted: &Value) -> Result<String, EditRefusal> {
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let (index, root) = documents::find(&documents, key)?;
    if source.value(root)? == *wanted {
        return Ok(text.to_owned());
    }
    let wanted = BTreeMap::from([(index, wanted)]);
    // Comments in unusual positions between items may be ambiguous. The second attempt leaves them in place.
    let after = change(source, &documents, &wanted, true).or_else(|refusal| match refusal.reason {
        RefusalReason::Unproven => change(source, &documents, &wanted, false),
        _ => Err(refusal),
    })?;
    Ok(mark.to_owned() + &after)
}

/// Returns the text with each of these documents changed to its value.
fn change(
    source: Source<'_>,
    documents: &[YamlDocument<'_>],
    wanted: &BTreeMap<usize, &Value>,
    items_apart: bool,
) -> Result<String, EditRefusal> {
    let root = |index: &usize| documents[*index].root.as_ref().ok()?.as_ref();
    let others = (0..documents.len()).filter(|index| !wanted.contains_key(index));
    let house = source.indent_style(wanted.keys().copied().chain(others).filter_map(|index| root(&index)));
    let expected = |at| wanted.get(&at).map_or(Expected::AsBefore(at), |wanted| Expected::Wanted(wanted));
    let expected: Vec<_> = (0..documents.len()).map(expected).collect();
    let mut change = DocumentEdits { source, house, items_apart, edits: Vec::new() };
    for (root, wanted) in wanted.iter().filter_map(|(index, wanted)| Some((root(index)?, *wanted))) {
        let order = FieldOrder::of(documents::kind(wanted));
        change.document(&anchors::without_unused(root), wanted, &order)?;
    }
    let after = change.apply()?;
    prove(&after, documents, &expected).map(|()| after)
}

/// Returns the text without the document of a resource; `None` if the file contains nothing else and should
/// be deleted.
///
/// # Errors
/// If that is impossible, or can't be proven to have changed nothing else.
pub fn remove(text: &str, key: &ResourceKey) -> Result<Option<String>, EditRefusal> {
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let (index, _) = documents::find(&documents, key)?;
    let says_something = |at: usize| matches!(documents[at].root, Ok(Some(_)));
    let others = (0..documents.len()).filter(|at| *at != index);
    if !others.clone().any(says_something) {
        return Ok(None);
    }
    let after = documents::without(source, &documents, index);
    prove(&after, &documents, &others.map(Expected::AsBefore).collect::<Vec<_>>())?;
    Ok(Some(mark.to_owned() + &after))
}

/// Returns the text with one more document at the end.
///
/// # Errors
/// If the file can't be read, or the edit can't be proven to have changed nothing else.
pub fn append(text: &str, wanted: &Value) -> Result<String, EditRefusal> {
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let roots = documents.iter().filter_map(|document| document.root.as_ref().ok()?.as_ref());
    let house = IndentStyle { line_end: source.line_end(0), ..source.indent_style(roots) };
    let after = documents::with(source, &documents, &fresh(wanted, &house));
    let before = (0..documents.len()).map(Expected::AsBefore);
    prove(&after, &documents, &before.chain([Expected::Wanted(wanted)]).collect::<Vec<_>>())?;
    Ok(mark.to_owned() + &after)
}

/// Returns the text of a new file with one document.
///
/// # Errors
/// If the text can't be proven to have the wanted value.
pub fn write(wanted: &Value) -> Result<String, EditRefusal> {
    append("", wanted)
}

fn open(text: &str) -> (&str, Source<'_>) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, Source { text }),
        None => ("", Source { text }),
    }
}

fn fresh(wanted: &Value, house: &IndentStyle) -> String {
    let text = match wanted {
        Value::Object(fields) => house.fields(fields, 0, &FieldOrder::of(documents::kind(wanted))),
        other => other.to_string(),
    };
    text + house.line_end
}
