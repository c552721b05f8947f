//! Why a file is left as it is, in words for the person who may edit it by hand.

use std::fmt;

use crate::names::ResourceKey;
use crate::problem::plain;

/// An edit that was not made. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The line that stands in the way, counted from 1; 0 when it is the file as a whole.
    pub line: u32,
    /// The column in characters, counted from 1; 0 when it is the file as a whole.
    pub column: u32,
}

/// What stands in the way of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A document of the file can't be read, so that nothing of the file can be relied on.
    Unreadable {
        /// What the reader says.
        message: String,
        /// What the reader advises.
        hint: &'static str,
    },
    /// The document isn't in the file.
    NotThere(ResourceKey),
    /// The document is in the file more than once.
    Twice(ResourceKey),
    /// The value to be changed has an anchor.
    Anchor,
    /// The value to be changed is an alias.
    Alias,
    /// The document has a merge key.
    MergeKey,
    /// The document has a tag.
    Tag,
    /// A key is given twice.
    DuplicateKey(String),
    /// A key is no string, or is written with a `?` in front.
    Key,
    /// A number that other programs don't read as the same one.
    Number,
    /// Lines end with a carriage return alone.
    CarriageReturn,
    /// A comment stands in brackets, where something is to go.
    CommentInBrackets,
    /// What is to be changed is written in a way that isn't understood well enough.
    Unusual,
    /// The edit was made and looked at, and is not what was asked for.
    Unproven,
}

impl Refusal {
    /// A refusal that means the file as a whole.
    pub(super) fn of_file(reason: Reason) -> Self {
        Self { reason, line: 0, column: 0 }
    }

    /// A refusal at a byte of a text.
    pub(super) fn at(text: &str, at: usize, reason: Reason) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let count = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        let line = count(before.matches('\n').count());
        Self { reason, line, column: count(before[line_start..].chars().count()) }
    }

    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self.reason {
            Reason::Unreadable { .. } => "edit-unreadable",
            Reason::NotThere(_) => "edit-not-there",
            Reason::Twice(_) => "edit-twice",
            Reason::Anchor => "edit-anchor",
            Reason::Alias => "edit-alias",
            Reason::MergeKey => "edit-merge-key",
            Reason::Tag => "edit-tag",
            Reason::DuplicateKey(_) => "edit-duplicate-key",
            Reason::Key => "edit-key",
            Reason::Number => "edit-number",
            Reason::CarriageReturn => "edit-carriage-return",
            Reason::CommentInBrackets => "edit-comment-in-brackets",
            Reason::Unusual => "edit-unusual",
            Reason::Unproven => "edit-unproven",
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match &self.reason {
            Reason::Unreadable { hint, .. } => hint,
            Reason::NotThere(_) => {
                "look whether somebody has moved it to another file meanwhile, and try again"
            }
            Reason::Twice(_) => "remove one of the two",
            Reason::Anchor => "write the value where its aliases are, or make the change in the file",
            Reason::Alias => "write the value itself in its place, or make the change in the file",
            Reason::MergeKey => "write the fields out",
            Reason::Tag => "leave the tag out: `!!str 1` is \"1\"",
            Reason::DuplicateKey(_) => "remove one of the two",
            Reason::Key => "write the key as a plain word with a colon behind it",
            Reason::Number => "put it in quotes, or write it as an integer of at most 64 bits",
            Reason::CarriageReturn => "save the file with the line ends of Unix or Windows",
            Reason::CommentInBrackets => {
                "move the comment out of the brackets, or make the change in the file"
            }
            Reason::Unusual => {
                "write this part as `key: value`, one line each, or make the change in the file"
            }
            Reason::Unproven => "make the change in the file",
        }
    }
}

/// What was attempted and why it failed, in one sentence without a full stop.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file is left as it is: ")?;
        match &self.reason {
            Reason::Unreadable { message, .. } => f.write_str(message),
            Reason::NotThere(key) => write!(f, "it has no document of {key}"),
            Reason::Twice(key) => write!(f, "it has more than one document of {key}"),
            Reason::Anchor => {
                f.write_str("what is to be changed has an anchor, and with it every alias would change")
            }
            Reason::Alias => f.write_str("what is to be changed is an alias of something else"),
            Reason::MergeKey => f.write_str("merge keys are not read"),
            Reason::Tag => f.write_str("values with a tag are not read"),
            Reason::DuplicateKey(name) => write!(f, "`{}` is given twice", plain(name)),
            Reason::Key => f.write_str("a key is written in a way that can't be edited"),
            Reason::Number => f.write_str("a number is too large, or none that JSON knows"),
            Reason::CarriageReturn => f.write_str("its lines end with a carriage return alone"),
            Reason::CommentInBrackets => {
                f.write_str("a comment stands in the brackets that are to be changed")
            }
            Reason::Unusual => f.write_str("what is to be changed is written in an unusual way"),
            Reason::Unproven => f.write_str("the edit would not say exactly what was asked for"),
        }?;
        match self.line {
            0 => Ok(()),
            line => write!(f, " (line {line}, column {})", self.column),
        }
    }
}

impl std::error::Error for Refusal {}
