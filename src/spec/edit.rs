//! Edits of spec files, as a person would make them: what a change doesn't name stays as it is, to the byte.
//!
//! A document is changed to say exactly what is wanted, with the least change of its text:
//!
//! - A changed value takes the place of the old one in the same style: without quotes, in them, in brackets, or as lines
//!   below a `|` or `>`. Quotes come where a reader of YAML 1.1 or 1.2 would take the string for something else.
//! - A new field comes where the type declares it, if the fields around it are in that order, and last otherwise.
//! - With a field or item that goes, so do the comment behind it, the comments directly above it that stand as far in, and
//!   those directly below that stand further in. What stands on top of a document is about all of it, and stays.
//! - All other comments, empty lines, indentations and line ends stay, and so does the byte order mark.
//!
//! What the edit gave is read again and compared, document by document. So a mistake here, or a way of writing that isn't
//! understood, can only refuse an edit, and never damage a file.

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
#[cfg(test)]
mod tests;
mod write;

use serde_json::Value;

pub use self::merge_patch::merge_patch;
pub use self::pointer::pointer_at;
pub use self::refusal::{Reason, Refusal};

use self::change::Change;
use self::order::Order;
use self::proof::{Expected, prove};
use self::source::Source;
use self::write::House;
use crate::names::ResourceKey;

/// What stands at the beginning of a file that some editors of Windows wrote.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What the document of a resource says, as it is written: with its header, its secrets in the form that they have, and
/// without defaults. A merge patch is applied to this. It is for that alone, and never to be shown: a secret may stand in it
/// in the clear.
///
/// # Errors
/// When the file or the document can't be read, or the document isn't there.
pub fn read(text: &str, key: &ResourceKey) -> Result<Value, Refusal> {
    let (_, source) = open(text);
    source.value(documents::find(&source.documents()?, key)?.1)
}

/// The text with the document of a resource changed to say exactly this, header included.
///
/// # Errors
/// When that can't be done, or not be proven to have changed nothing else.
pub fn set(text: &str, key: &ResourceKey, wanted: &Value) -> Result<String, Refusal> {
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let (index, root) = documents::find(&documents, key)?;
    if source.value(root)? == *wanted {
        return Ok(text.to_owned());
    }
    let others = documents.iter().filter_map(|document| document.root.as_ref().ok()?.as_ref());
    let house = source.house(std::iter::once(root).chain(others));
    let expected = |at| if at == index { Expected::Wanted(wanted) } else { Expected::AsBefore(at) };
    let expected: Vec<_> = (0..documents.len()).map(expected).collect();
    let attempt = |items_apart: bool| {
        let mut change = Change { source, house, items_apart, edits: Vec::new() };
        change.document(&anchors::without_unused(root), wanted, &Order::of(documents::kind(wanted)))?;
        let after = change.apply()?;
        prove(&after, &documents, &expected).map(|()| after)
    };
    // Comments that stand between items in an unusual way may not tell whose they are.
    let after = attempt(true).or_else(|refusal| match refusal.reason {
        Reason::Unproven => attempt(false),
        _ => Err(refusal),
    })?;
    Ok(mark.to_owned() + &after)
}

/// The text without the document of a resource; none when nothing else is in the file, which then goes as a whole.
///
/// # Errors
/// When that can't be done, or not be proven to have changed nothing else.
pub fn remove(text: &str, key: &ResourceKey) -> Result<Option<String>, Refusal> {
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

/// The text with one more document, behind the others.
///
/// # Errors
/// When the file can't be read, or it can't be proven that nothing else has changed.
pub fn append(text: &str, wanted: &Value) -> Result<String, Refusal> {
    let (mark, source) = open(text);
    let documents = source.documents()?;
    let roots = documents.iter().filter_map(|document| document.root.as_ref().ok()?.as_ref());
    let house = House { line_end: source.line_end(0), ..source.house(roots) };
    let after = documents::with(source, &documents, &fresh(wanted, &house));
    let before = (0..documents.len()).map(Expected::AsBefore);
    prove(&after, &documents, &before.chain([Expected::Wanted(wanted)]).collect::<Vec<_>>())?;
    Ok(mark.to_owned() + &after)
}

/// The text of a new file with one document.
///
/// # Errors
/// When it can't be proven to say what is wanted.
pub fn write(wanted: &Value) -> Result<String, Refusal> {
    append("", wanted)
}

fn open(text: &str) -> (&str, Source<'_>) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, Source { text }),
        None => ("", Source { text }),
    }
}

/// A document's text.
fn fresh(wanted: &Value, house: &House) -> String {
    let text = match wanted {
        Value::Object(fields) => house.fields(fields, 0, &Order::of(documents::kind(wanted))),
        other => other.to_string(),
    };
    text + house.line_end
}
