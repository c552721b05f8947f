//! The text of one document of a file, as it may be shown to those who may see its resource.

use std::iter;

use super::{MASK, MaskedText, mask};
use crate::spec::redact;

/// Stands for a secret that the file has in plain text, and for whatever may be one.
const HIDDEN: &str = "‹hidden›";

/// Stands for a sealed secret. It could be shown, but it is long and says nothing.
const SEALED: &str = "‹sealed›";

/// A document of a file.
#[derive(Debug, Clone, Copy)]
pub struct DocumentPlace {
    /// The line of its first key, counted from 1.
    pub line: u32,
    /// Whether the document has no mistakes. All of its secrets are known then; otherwise everything that looks
    /// like one is hidden.
    pub is_valid: bool,
    /// Whether all documents of the file belong to one organization. Otherwise comments before and after the
    /// document may be about another one's, and are left out.
    pub is_of_one: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    /// Its lines. A secret of several lines is one.
    pub text: String,
    /// Its first and last line in the file, counted from 1.
    pub first_line: u32,
    pub last_line: u32,
}

impl MaskedText {
    pub fn document(&self, place: DocumentPlace) -> DocumentText {
        let DocumentPlace { line, is_valid, is_of_one } = place;
        // Without the empty line after the last line break.
        let count = self.lines.len() - usize::from(self.lines.last() == Some(&self.text.len()));
        let at = (line.max(1) as usize - 1).min(count.saturating_sub(1));
        // Only a document's own line may begin with a marker: `--- {kind: Cluster}`.
        let before = (0..at).rev().take_while(|index| is_of_one && !is_marker(self.line_at(*index)));
        let first = if is_marker(self.line_at(at)) { at } else { before.last().unwrap_or(at) };
        let end = (at + 1..count).find(|index| is_marker(self.line_at(*index))).unwrap_or(count);
        let is_around = |index: &usize| {
            let line = self.line_at(*index).trim_end();
            line.is_empty() || (!is_of_one && line.starts_with('#'))
        };
        let end = end - (at + 1..end).rev().take_while(is_around).count();
        let text = (first..end).map(|index| self.line_at(index)).collect::<String>();
        let text = if is_valid { with_safe_comments(&text) } else { mask(&text, redact::suspects(&text)) };
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        DocumentText { text: shown(&text), first_line: number(first + 1), last_line: number(end) }
    }

    /// A line with its line break, counted from 0.
    fn line_at(&self, index: usize) -> &str {
        let start = self.lines.get(index).copied().unwrap_or(self.text.len());
        let end = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }
}

/// Whether a line separates documents. No other line of a valid document begins like that.
fn is_marker(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Masks what may be a secret in comments, such as a secret that was replaced and left as a comment. The comments
/// of neighbouring lines are searched together. Beside a secret and on the lines after it, a comment is masked
/// whole: it may say what the secret was before.
fn with_safe_comments(text: &str) -> String {
    let (mut safe, mut block, mut lines) = (String::with_capacity(text.len()), String::new(), Vec::new());
    let mut follows_secret = false;
    // The empty text ends the last block.
    for line in text.split_inclusive('\n').chain(iter::once("")) {
        let from = comment(line);
        let is_more = line.trim_start().starts_with('#') || (!line.is_empty() && line.trim().is_empty());
        follows_secret = line.contains(MASK) || (follows_secret && is_more);
        if let Some(from) = from.filter(|_| follows_secret) {
            safe.push_str(&line[..from]);
            safe.push(' ');
            safe.push(MASK);
            safe.push_str(&line[line.trim_end().len().max(from)..]);
            continue;
        }
        // An empty line doesn't end a secret that was begun.
        let goes_on = is_more && redact::is_open(&block);
        if let Some(from) = from.or(goes_on.then_some(line.len())) {
            block.extend(iter::repeat_n(' ', from));
            block.push_str(&line[from..]);
            lines.push((line, from));
            continue;
        }
        let masked = mask(&block, redact::suspects(&without_commands(&block)));
        let mut at = 0;
        for (line, from) in lines.drain(..) {
            safe.push_str(&line[..from]);
            safe.push_str(masked.get(at + from..at + line.len()).unwrap_or_default());
            at += line.len();
        }
        block.clear();
        safe.push_str(line);
    }
    safe
}

/// The words of our own commands, none of which is a secret.
const COMMAND_WORDS: [&str; 10] =
    ["streamfleet", "secret", "token", "encrypt", "seal", "rotate", "recipient", "create", "list", "--help"];

/// Replaces each command of ours that is quoted whole, such as `streamfleet secret encrypt --help`, by dots: the
/// word in it introduces no secret, unless a value follows.
fn without_commands(block: &str) -> String {
    let is_command = |quoted: &str| {
        quoted.starts_with("streamfleet ") && quoted.split(' ').all(|word| COMMAND_WORDS.contains(&word))
    };
    let parts: Vec<&str> = block.split('`').collect();
    let introduces = |index: usize| {
        let next = parts.get(index + 1).map(|next| next.trim_start());
        next.is_some_and(|next| next.starts_with([':', '=']))
    };
    let part = |(index, part): (usize, &&str)| match is_command(part) && !introduces(index) {
        true => ".".repeat(part.len()),
        false => (*part).to_owned(),
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Returns the byte after the `#` at which the comment of a line begins. It may be part of a string instead.
fn comment(line: &str) -> Option<usize> {
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    marks.find(|at| line[..*at].ends_with([' ', '\t', '\r']) || *at == 0).map(|at| at + 1)
}

/// Replaces each hidden part by one word, however long it is and however many lines it has.
fn shown(masked: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(masked.len()), masked);
    while let Some(start) = rest.find(MASK) {
        shown.push_str(&rest[..start]);
        shown.push_str(if is_sealed(&shown) { SEALED } else { HIDDEN });
        rest = &rest[start..];
        while rest.trim_start().starts_with(MASK) {
            rest = rest.trim_start().trim_start_matches(MASK);
        }
    }
    shown + rest
}

/// Whether the value after this text is a sealed secret.
fn is_sealed(before: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || c.is_ascii_digit() || "|>+-\"'".contains(c);
    let key = before.trim_end_matches(ends).strip_suffix(':');
    key.is_some_and(|key| key.trim_end_matches(ends).ends_with("encrypted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::yaml::Span;

    fn document(text: &str, secrets: &[&str], place: DocumentPlace) -> DocumentText {
        let span = |part: &&str| {
            let start = text.find(part).unwrap();
            Span { start, end: start + part.len() }
        };
        MaskedText::new("a.yaml".parse().unwrap(), text, secrets.iter().map(span)).document(place)
    }

    fn at(line: u32) -> DocumentPlace {
        DocumentPlace { line, is_valid: true, is_of_one: true }
    }

    fn valid(text: &str, secrets: &[&str]) -> String {
        document(text, secrets, at(1)).text
    }

    #[test]
    fn a_document_ends_at_the_markers_around_it() {
        let file =
            "# top\na: 1\n---\n# of b\nb: 2 # x\n  # in b\n\n# after\n\n---\n--- {c: 3}\n...\n# d\nd: 4";
        for (line, first, last, text) in [
            (2, 1, 2, "# top\na: 1\n"),
            (5, 4, 8, "# of b\nb: 2 # x\n  # in b\n\n# after\n"),
            (11, 11, 11, "--- {c: 3}\n"),
            (14, 13, 14, "# d\nd: 4"),
            (99, 13, 14, "# d\nd: 4"),
        ] {
            let expected = DocumentText { text: text.to_owned(), first_line: first, last_line: last };
            assert_eq!(document(file, &[], at(line)), expected, "{line}");
        }
        let among_others = DocumentPlace { is_of_one: false, ..at(5) };
        let expected = DocumentText { text: "b: 2 # x\n  # in b\n".to_owned(), first_line: 5, last_line: 6 };
        assert_eq!(document(file, &[], among_others), expected);
        assert_eq!(document("", &[], at(1)).text, "");
    }

    #[test]
    fn a_secret_becomes_a_word_with_its_length_and_lines() {
        for (text, secret, expected) in [
            ("key: hunter2\nb: c\n", "hunter2", "key: ‹hidden›\nb: c\n"),
            ("key: |\n  hunter\n\n  zwölf\nb: c\n", "hunter\n\n  zwölf", "key: |\n  ‹hidden›\nb: c\n"),
            ("{key: hunter2, b: c}", "hunter2", "{key: ‹hidden›, b: c}"),
            ("key: {encrypted: abc}\n", "abc", "key: {encrypted: ‹sealed›}\n"),
            (
                "key:\r\n  \"encrypted\": |-\r\n    abc\r\n    def\r\n",
                "abc\r\n    def",
                "key:\r\n  \"encrypted\": |-\r\n    ‹sealed›\r\n",
            ),
        ] {
            assert_eq!(valid(text, &[secret]), expected);
        }
    }

    #[test]
    fn what_may_be_a_secret_in_a_comment_is_hidden_and_the_rest_is_shown() {
        for (text, expected) in [
            ("# three brokers\na: 1 # enough\n", "# three brokers\na: 1 # enough\n"),
            ("a: 1 # password: hunter2\nb: 2\n", "a: 1 # password: ‹hidden›\nb: 2\n"),
            (
                "#tls_key: |\n#  hunter2\n#  more\nb: 2 # more\n",
                "#tls_key: ‹hidden›\n#  ‹hidden›\n#  ‹hidden›\nb: 2 # ‹hidden›\n",
            ),
            ("# tls_key: |\r\n#  hunter2\r\nb: 2\r\n", "# tls_key: ‹hidden›\r\n#  ‹hidden›\r\nb: 2\r\n"),
            ("# token\n\n# x\n", "# token\n\n# x\n"),
            (
                "# see `streamfleet secret encrypt --help`, so\n# that\n",
                "# see `streamfleet secret encrypt --help`, so\n# that\n",
            ),
            ("# `streamfleet secret encrypt`: hunter2\n", "# `streamfleet secret encrypt`: ‹hidden›\n"),
            ("# see `streamfleet secret hunter2`\n", "# see `streamfleet secret ‹hidden›\n"),
            (
                "# `streamfleet token list`, password: hunter2\n",
                "# `streamfleet token list`, password: ‹hidden›\n",
            ),
            (
                "# tls_key: |\n#  hunter2\n\n#  more\n\nb: 2\n",
                "# tls_key: ‹hidden›\n#  ‹hidden›\n\n#  ‹hidden›\n\nb: 2\n",
            ),
            ("ä: ö # AAAAAAAAAAAAAAAAAAAAAAAA\n", "ä: ö # ‹hidden›\n"),
            ("tls_key: {from_file: eu.key}\n", "tls_key: {from_file: eu.key}\n"),
        ] {
            assert_eq!(valid(text, &[]), expected);
        }
    }

    #[test]
    fn a_comment_beside_a_secret_is_hidden() {
        let text = "key: hunter2 # was hunter1\r\n\r\n  # and hunter0\r\nb: 2 # two\r\n# three\r\n";
        let expected = "key: ‹hidden› # ‹hidden›\r\n\r\n  # ‹hidden›\r\nb: 2 # two\r\n# three\r\n";
        assert_eq!(valid(text, &["hunter2"]), expected);
    }

    #[test]
    fn all_that_looks_like_a_secret_is_hidden_in_a_document_with_mistakes() {
        let place = DocumentPlace { is_valid: false, ..at(1) };
        let text = "tls_key: {from_file: eu.key}\nkafka_units: two\n";
        assert_eq!(document(text, &[], place).text, "tls_key: ‹hidden›\nkafka_units: two\n");
    }
}
