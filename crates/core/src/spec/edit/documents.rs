//! Finds, removes and appends whole documents of a file.

use super::refusal::{EditRefusal, RefusalReason};
use super::source::Source;
use crate::names::{Kind, ResourceKey};
use crate::spec::identity;
use crate::spec::yaml::{Node, YamlDocument};

/// Returns the only document of the file that describes this resource.
pub fn find<'d, 'a>(
    documents: &'d [YamlDocument<'a>],
    key: &ResourceKey,
) -> Result<(usize, &'d Node<'a>), EditRefusal> {
    let mut found = documents.iter().enumerate().filter_map(|(index, document)| {
        let root = document.root.as_ref().ok()?.as_ref()?;
        let mut findings = Vec::new();
        let kind = identity::kind(root, &mut findings)?;
        (identity::key(kind, root, &mut findings).as_ref() == Some(key)).then_some((index, root))
    });
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err(EditRefusal::of_file(RefusalReason::DocumentMissing(key.clone()))),
        (Some(_), Some(_)) => Err(EditRefusal::of_file(RefusalReason::DuplicateDocument(key.clone()))),
    }
}

pub fn kind(document: &serde_json::Value) -> Option<Kind> {
    document.get("kind")?.as_str()?.parse().ok()
}

pub fn without(source: Source<'_>, documents: &[YamlDocument<'_>], index: usize) -> String {
    let end = match documents.get(index + 1) {
        Some(next) => begin(source, documents[index].start, next.start),
        None => source.text.len(),
    };
    let before = index.checked_sub(1).and_then(|before| documents.get(before));
    if let Some(before) = before {
        let start = begin(source, before.start, documents[index].start);
        return joined(source, start, end);
    }
    let start = documents[index].start;
    if is_marker(source, start, "---") {
        // Directives apply to the document that follows them.
        let directive = |line: &usize| source.slice(*line, start).starts_with('%');
        let lines = std::iter::successors(Some(0), |line| Some(source.next_line(*line)));
        let start = lines.take_while(|line| *line < start).find(directive).unwrap_or(start);
        return joined(source, start, end);
    }
    // Comments directly above the first document are removed with it; those further up are about the file.
    let mut start = source.line_start(start);
    while let Some(above) = start.checked_sub(1).map(|above| source.line_start(above)) {
        if source.comment_column(above).is_none() {
            break;
        }
        start = above;
    }
    let next = source.slice(end, source.content_end(end)).trim_end();
    match source.slice(0, start).trim().is_empty() && next == "---" {
        true => joined(source, 0, source.next_line(end)),
        false => joined(source, start, end),
    }
}

/// Returns the start of the text that belongs to a document: after the `...` of the one before, or at its own
/// `---`.
fn begin(source: Source<'_>, before: usize, start: usize) -> usize {
    let mut line = source.line_start(before);
    let mut begin = source.line_start(start);
    while line < source.line_start(start) {
        if is_marker(source, line, "...") {
            begin = source.next_line(line);
        }
        line = source.next_line(line);
    }
    begin
}

fn is_marker(source: Source<'_>, at: usize, marker: &str) -> bool {
    let rest = source.slice(at, source.text.len()).strip_prefix(marker);
    source.column(at) == 0
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn joined(source: Source<'_>, start: usize, end: usize) -> String {
    source.slice(0, start).to_owned() + source.slice(end, source.text.len())
}

pub fn with(source: Source<'_>, documents: &[YamlDocument<'_>], document: &str) -> String {
    let line_end = source.line_end(0);
    let mut text = source.text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(line_end);
    }
    if !documents.is_empty() {
        text.push_str("---");
        text.push_str(line_end);
    }
    text.push_str(document);
    text
}
