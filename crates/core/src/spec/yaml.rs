//! Parses YAML into a tree that records the position of every value, within fixed limits.
//!
//! The tree is our own because no serde reader offers two things: all problems of a document at once, and the
//! position of every key and value. Tags and complex keys are kept in the tree, so that the checker can
//! refuse them with a message.

mod build;
mod scalar;
mod syntax;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use build::parse;
pub use scalar::Scalar;
pub use syntax::SyntaxError;

/// The largest file that is read, in bytes. A kubeconfig or a certificate chain is a few KiB; etcd, where
/// they end up, accepts 1.5 MiB.
pub const MAX_BYTES: usize = 1024 * 1024;
/// The deepest nesting, in levels. A spec has fewer than ten.
pub const MAX_DEPTH: usize = 64;
/// The most nodes of a file, with each alias counted as the nodes of its target.
pub const MAX_NODES: usize = 100_000;

/// Returns the first control character that YAML does not allow, and its position. The parser would take NUL
/// for the end of the file and ignore the rest.
pub fn control_character(text: &str) -> Option<(usize, char)> {
    let control = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    text.char_indices().find(|(_, c)| control(*c))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    /// Exclusive.
    pub end: usize,
}

#[derive(Debug)]
pub struct YamlDocument<'a> {
    pub start: usize,
    /// Its content; `None` if the document is empty.
    pub root: Result<Option<Node<'a>>, SyntaxError>,
}

/// A value with its position.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    /// For an alias, the span of the alias itself.
    pub span: Span,
    /// For an alias, the span of its target.
    pub target: Option<Span>,
    pub style: Style,
    /// Whether it has an anchor, so that aliases may refer to it.
    pub anchored: bool,
    pub content: YamlContent<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Single,
    Double,
    /// Lines below a `|`.
    Literal,
    /// Lines below a `>`, whose single line breaks are spaces.
    Folded,
    Block,
    /// A list or mapping in brackets, or a pair in the brackets of a list.
    Flow,
}

#[derive(Debug, Clone)]
pub enum YamlContent<'a> {
    Scalar {
        /// The text, with quotes and escapes resolved.
        text: Cow<'a, str>,
        /// Whether it is written without quotes, so that it may be another type than a string.
        plain: bool,
    },
    Sequence(Vec<Node<'a>>),
    /// Keys and values in the order of the file, duplicates included.
    Mapping(Vec<MapEntry<'a>>),
    /// A value with an explicit tag, which could be intended as any type.
    Tagged,
}

#[derive(Debug, Clone)]
pub struct MapEntry<'a> {
    pub key: Node<'a>,
    pub value: Node<'a>,
}

impl<'a> MapEntry<'a> {
    /// Returns the key if it is a string: not a number, a list, an alias or a merge key.
    pub fn name(&self) -> Option<&str> {
        if self.key.target.is_some() {
            return None;
        }
        match &self.key.content {
            YamlContent::Scalar { text, plain: true } if text == "<<" => None,
            _ => match self.key.scalar()? {
                Scalar::String(text) => Some(text),
                _ => None,
            },
        }
    }

    /// Whether the key is YAML 1.1's merge key.
    pub fn is_merge(&self) -> bool {
        matches!(&self.key.content, YamlContent::Scalar { text, plain: true } if text == "<<")
    }
}

impl<'a> Node<'a> {
    /// Returns the scalar's value under the core schema of YAML 1.2.
    pub fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.content {
            YamlContent::Scalar { text, plain } => Some(Scalar::resolve(text, *plain)),
            _ => None,
        }
    }

    pub fn entries(&self) -> Option<&[MapEntry<'a>]> {
        match &self.content {
            YamlContent::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether it is null: `null`, `~` or nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(self.scalar(), Some(Scalar::Null))
    }

    /// Returns the value of this key; `None` if the key is missing or duplicate.
    pub fn only(&self, name: &str) -> Option<&Node<'a>> {
        let mut found = self.entries()?.iter().filter(|entry| entry.name() == Some(name));
        match (found.next(), found.next()) {
            (Some(entry), None) => Some(&entry.value),
            _ => None,
        }
    }
}
