//! A file's text as it may be shown: with secrets masked, split into lines.

mod document;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::names::SpecPath;
use crate::problem::Location;
use crate::spec::yaml::Span;

pub use document::{DocumentPlace, DocumentText};

/// Replaces each byte of a secret. No parsed file contains it, since control characters are refused.
const MASK: char = '\u{7f}';

pub struct MaskedText {
    path: SpecPath,
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
}

/// Prints only the path, since the text may be long.
impl fmt::Debug for MaskedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskedText({})", self.path)
    }
}

impl MaskedText {
    /// Masks the secrets of a text. Line breaks are kept, and so are the positions of everything else.
    pub fn new(path: SpecPath, text: &str, secrets: impl IntoIterator<Item = Span>) -> Arc<Self> {
        let text = mask(text, secrets);
        let lines = line_starts(&text);
        Arc::new(Self { path, text, lines })
    }

    pub fn whole(&self) -> Location {
        Location::file(self.path.clone())
    }

    /// Returns the line of a byte, counted from 1.
    pub fn line(&self, at: usize) -> u32 {
        u32::try_from(self.lines.partition_point(|start| *start <= at)).unwrap_or(u32::MAX)
    }

    /// Returns the location of a range of bytes: its first line, with the part of it that is in the range.
    pub fn locate(&self, span: Span) -> Location {
        let number = self.line(span.start).max(1);
        let index = number as usize - 1;
        let start = self.lines.get(index).copied().unwrap_or(0);
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
        let from = span.start.saturating_sub(start).min(line.len());
        let to = span.end.saturating_sub(start).clamp(from, line.len());
        let column = characters(line, 0..from) + 1;
        let text = shown(line);
        let width = characters(&line[from..to], 0..to - from);
        let room = u32::try_from(text.chars().count()).unwrap_or(u32::MAX).saturating_sub(column - 1);
        Location { path: self.path.clone(), line: number, column, width: width.min(room).max(1), text }
    }
}

fn mask(text: &str, secrets: impl IntoIterator<Item = Span>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for span in secrets {
        for range in whole_characters(text, span) {
            bytes[range].fill(MASK as u8);
        }
    }
    // Whole characters were replaced by ASCII, so nothing is lost here.
    String::from_utf8_lossy(&bytes).into_owned()
}

fn characters(text: &str, range: Range<usize>) -> u32 {
    let count = text.get(range).map_or(0, |part| part.chars().count());
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Formats a line for quoting: a secret at the end of the line becomes one character, which hides its length
/// too.
fn shown(line: &str) -> String {
    let open = line.trim_end_matches(MASK);
    let mut shown: String = open.chars().take(Location::MAX_QUOTED).collect();
    if open.len() < line.len() || shown.len() < open.len() {
        shown.push('…');
    }
    shown.replace(MASK, "*")
}

/// Splits a span at line breaks, extended to whole characters and without leading spaces.
fn whole_characters(text: &str, span: Span) -> Vec<Range<usize>> {
    let mut start = span.start.min(text.len());
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let mut ranges = Vec::new();
    let mut at = start;
    for line in text[start..end].split_inclusive(['\n', '\r']) {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start().len();
        ranges.push(at + indent..at + content.len());
        at += line.len();
    }
    ranges
}

/// Returns the starts of all lines: after a line feed, a carriage return, or both.
fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let breaks = bytes.iter().enumerate().filter(|(i, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(i + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(breaks.map(|(i, _)| i + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(text: &str, secrets: &[&str], meant: &str) -> (u32, u32, u32, String) {
        let span = |part: &str| {
            let start = text.find(part).unwrap();
            Span { start, end: start + part.len() }
        };
        let masked =
            MaskedText::new("a.yaml".parse().unwrap(), text, secrets.iter().map(|secret| span(secret)));
        let place = masked.locate(span(meant));
        (place.line, place.column, place.width, place.text)
    }

    #[test]
    fn places_are_counted_in_characters_whatever_the_line_breaks() {
        assert_eq!(locate("a: b\nc: d\n", &[], "d"), (2, 4, 1, "c: d".into()));
        assert_eq!(locate("a: b\r\nc: d\r\n", &[], "d"), (2, 4, 1, "c: d".into()));
        assert_eq!(locate("a: b\rc: d", &[], "d"), (2, 4, 1, "c: d".into()));
        assert_eq!(locate("日本: größe x", &[], "x"), (1, 11, 1, "日本: größe x".into()));
    }

    #[test]
    fn a_secret_is_hidden_with_its_length_and_on_all_its_lines() {
        assert_eq!(locate("key: hunter2\n", &["hunter2"], "hunter2"), (1, 6, 1, "key: …".into()));
        let block = "key: |\n  hunter\n  zwölf\n";
        assert_eq!(locate(block, &["hunter\n  zwölf"], "zwölf"), (3, 3, 1, "  …".into()));
        assert_eq!(locate("{k: hunter2, b: c}", &["hunter2"], "c"), (1, 17, 1, "{k: *******, b: c}".into()));
    }

    #[test]
    fn a_long_line_is_cut() {
        let long = "x".repeat(500);
        let (_, column, width, text) = locate(&long, &[], &long);
        assert_eq!((column, width, text.chars().count()), (1, 161, 161));
    }
}
