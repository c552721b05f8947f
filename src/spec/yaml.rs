//! YAML as a tree that knows where everything stands, within fixed limits.
//!
//! The tree is ours because two things are wanted that no serde reader gives: every problem of a document at once,
//! and the place of every key and value. Tags and complex keys are kept as what they are, for the checker to refuse
//! with a message.

mod build;
mod scalar;
mod syntax;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use build::parse;
pub use scalar::Scalar;
pub use syntax::SyntaxError;

/// The largest file that is read, in bytes. A kubeconfig or a certificate chain is a few KiB; etcd, where such things
/// end up, takes 1.5 MiB.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The deepest nesting, in levels. A spec has fewer than ten.
pub const MAX_DEPTH: usize = 64;
/// The most nodes of a file, with aliases counted as what they stand for.
pub const MAX_NODES: usize = 100_000;

/// The first control character of a text that YAML does not allow, and where it stands. The parser would take NUL for the
/// end of the file and hide what follows it.
pub fn control_character(text: &str) -> Option<(usize, char)> {
    let control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    text.char_indices().find(|(_, c)| control(*c))
}

/// A range of bytes of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// One document of a file.
#[derive(Debug)]
pub struct YamlDocument<'a> {
    /// Where the document begins.
    pub start: usize,
    /// Its content; none when the document is empty.
    pub root: Result<Option<Node<'a>>, SyntaxError>,
}

/// A value with its place.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// Where it stands: for an alias, where the alias is.
    pub span: Span,
    /// For an alias, where what it stands for is.
    pub target: Option<Span>,
    /// How it is written.
    pub style: Style,
    /// It has an anchor, so that aliases may stand for it.
    pub anchored: bool,
    /// What it is.
    pub content: Content<'a>,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes.
    Double,
    /// As lines below a `|`.
    Literal,
    /// As lines below a `>`, whose single breaks are spaces.
    Folded,
    /// A list or mapping by indentation.
    Block,
    /// A list or mapping in brackets, or a pair in the brackets of a list.
    Flow,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum Content<'a> {
    /// A string, number, boolean or null.
    Scalar {
        /// The text, with quotes and escapes resolved.
        text: Cow<'a, str>,
        /// Written without quotes, so that it may be something else than a string.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node<'a>>),
    /// Keys and values in the order of the file, duplicates included.
    Mapping(Vec<Entry<'a>>),
    /// A value with an explicit tag, which could be meant to be of any type.
    Tagged,
}

/// One key with its value.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The key.
    pub key: Node<'a>,
    /// The value.
    pub value: Node<'a>,
}

impl<'a> Entry<'a> {
    /// The key as a string, if it is one: not a number, a list, an alias or a merge key.
    pub fn name(&self) -> Option<&str> {
        if self.key.target.is_some() {
            return None;
        }
        match &self.key.content {
            Content::Scalar { text, plain: true } if text == "<<" => None,
            _ => match self.key.scalar()? {
                Scalar::String(text) => Some(text),
                _ => None,
            },
        }
    }

    /// Whether the key is YAML 1.1's merge key.
    pub fn is_merge(&self) -> bool {
        matches!(&self.key.content, Content::Scalar { text, plain: true } if text == "<<")
    }
}

impl<'a> Node<'a> {
    /// The scalar's value under the core schema of YAML 1.2.
    pub fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.content {
            Content::Scalar { text, plain } => Some(Scalar::resolve(text, *plain)),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub fn entries(&self) -> Option<&[Entry<'a>]> {
        match &self.content {
            Content::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether it is null: `null`, `~` or nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(self.scalar(), Some(Scalar::Null))
    }

    /// The value of the only entry of this name; none when there is no such entry or more than one.
    pub fn only(&self, name: &str) -> Option<&Node<'a>> {
        let mut found = self.entries()?.iter().filter(|entry| entry.name() == Some(name));
        match (found.next(), found.next()) {
            (Some(entry), None) => Some(&entry.value),
            _ => None,
        }
    }
}
