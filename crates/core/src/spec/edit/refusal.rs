//! Why an edit was refused, in words for a person who may edit the file by hand.

use std::fmt;

use crate::names::{ResourceKey, SpecPath};
use crate::problem::{Problem, quote_untrusted};
use crate::spec::redact;
use crate::spec::text::MaskedText;
use crate::spec::yaml::Span;

/// An edit that was not made. The file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditRefusal {
    pub reason: RefusalReason,
    /// The line of the obstacle, counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// The column in characters, counted from 1; 0 for the file as a whole.
    pub column: u32,
    /// The byte offset, without the byte order mark.
    at: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalReason {
    /// A document of the file can't be read, so the structure of the file is unknown.
    Unreadable {
        message: String,
        hint: &'static str,
    },
    DocumentMissing(ResourceKey),
    DuplicateDocument(ResourceKey),
    Anchor,
    Alias,
    MergeKey,
    Tag,
    DuplicateKey(String),
    /// A key is not a string, or is written with a `?` before it.
    Key,
    /// A number that other programs read differently.
    Number,
    CarriageReturn,
    /// A removal would affect a comment in brackets.
    CommentInBrackets,
    /// The value is written in an unsupported way.
    Unusual,
    TooLong,
    /// The result of the edit was checked and is not the expected one.
    Unproven,
}

impl EditRefusal {
    pub(super) fn of_file(reason: RefusalReason) -> Self {
        Self { reason, line: 0, column: 0, at: None }
    }

    pub(super) fn at(text: &str, at: usize, reason: RefusalReason) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let count = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        let line = count(before.matches('\n').count());
        Self { reason, line, column: count(before[line_start..].chars().count()), at: Some(at) }
    }

    /// Converts the refusal to a problem of the file. The quoted line is masked where it may contain a
    /// secret.
    pub fn problem(&self, path: &SpecPath, text: &str) -> Problem {
        let text = text.strip_prefix(super::BYTE_ORDER_MARK).unwrap_or(text);
        let masked = MaskedText::new(path.clone(), text, redact::suspects(text));
        let place = self.at.map_or_else(|| masked.whole(), |at| masked.locate(Span { start: at, end: at }));
        Problem::error(self.code(), self.message()).at(place, "").hint(self.hint())
    }

    pub fn code(&self) -> &'static str {
        match self.reason {
            RefusalReason::Unreadable { .. } => "edit-unreadable",
            RefusalReason::DocumentMissing(_) => "edit-not-there",
            RefusalReason::DuplicateDocument(_) => "edit-twice",
            RefusalReason::Anchor => "edit-anchor",
            RefusalReason::Alias => "edit-alias",
            RefusalReason::MergeKey => "edit-merge-key",
            RefusalReason::Tag => "edit-tag",
            RefusalReason::DuplicateKey(_) => "edit-duplicate-key",
            RefusalReason::Key => "edit-key",
            RefusalReason::Number => "edit-number",
            RefusalReason::CarriageReturn => "edit-carriage-return",
            RefusalReason::CommentInBrackets => "edit-comment-in-brackets",
            RefusalReason::Unusual => "edit-unusual",
            RefusalReason::TooLong => "edit-too-long",
            RefusalReason::Unproven => "edit-unproven",
        }
    }

    pub fn hint(&self) -> &'static str {
        match &self.reason {
            RefusalReason::Unreadable { hint, .. } => hint,
            RefusalReason::DocumentMissing(_) => "check whether it was moved to another file, and try again",
            RefusalReason::DuplicateDocument(_) => "remove one of the two",
            RefusalReason::Anchor => "replace its aliases by the value, or make the change in the file",
            RefusalReason::Alias => "replace the alias by the value, or make the change in the file",
            RefusalReason::MergeKey => "write the fields out",
            RefusalReason::Tag => "remove the tag: `!!str 1` is \"1\"",
            RefusalReason::DuplicateKey(_) => "remove one of the two",
            RefusalReason::Key => "write the key as a plain word with a colon behind it",
            RefusalReason::Number => "put it in quotes, or write it as an integer of at most 64 bits",
            RefusalReason::CarriageReturn => "save the file with the line ends of Unix or Windows",
            RefusalReason::CommentInBrackets => {
                "move the comment out of the brackets, or make the change in the file"
            }
            RefusalReason::Unusual => {
                "write this part as `key: value`, one per line, or make the change in the file"
            }
            RefusalReason::TooLong => "shorten it, or move other documents of the file to files of their own",
            RefusalReason::Unproven => "make the change in the file",
        }
    }

    /// Returns what was attempted and why it failed, in one sentence without a full stop.
    pub fn message(&self) -> String {
        format!("the file was not changed: {}", self.why())
    }

    /// Returns why the text can't be read or edited, as a clause.
    pub fn why(&self) -> String {
        let why = match &self.reason {
            RefusalReason::Unreadable { message, .. } => message,
            RefusalReason::DocumentMissing(key) => &format!("it has no document of {key}"),
            RefusalReason::DuplicateDocument(key) => &format!("it has more than one document of {key}"),
            RefusalReason::Anchor => {
                "the value to change has an anchor, and every alias of it would change too"
            }
            RefusalReason::Alias => "the value to change is an alias of another one",
            RefusalReason::MergeKey => "merge keys are not supported",
            RefusalReason::Tag => "values with a tag are not supported",
            RefusalReason::DuplicateKey(name) => &format!("`{}` is repeated", quote_untrusted(name)),
            RefusalReason::Key => "a key is written in a form that can't be edited",
            RefusalReason::Number => "a number is too large, or not a JSON number",
            RefusalReason::CarriageReturn => "its lines end with a bare carriage return",
            RefusalReason::CommentInBrackets => "there is a comment within the brackets to change",
            RefusalReason::Unusual => "the value to change is written in an unusual form",
            RefusalReason::TooLong => "the file would become larger than 1 MiB",
            RefusalReason::Unproven => "the edit would change more or less than requested",
        };
        why.to_owned()
    }
}

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " (line {line}, column {})", self.column),
        }
    }
}

impl std::error::Error for EditRefusal {}
