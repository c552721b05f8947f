//! Rewords the YAML parser's errors, with hints for the common ones.

use granit_parser::{ErrorKind, ScanError};

use super::{MAX_DEPTH, MAX_NODES};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub at: usize,
    pub code: &'static str,
    pub message: String,
    pub hint: &'static str,
}

const SYNTAX: &str = "yaml-syntax";
const LIMIT: &str = "yaml-limit";

impl SyntaxError {
    /// Converts the parser's error, in our own words for common mistakes.
    pub(super) fn scan(error: &ScanError, text: &str) -> Self {
        // At the end of the file there is nothing to show, so the last visible character is shown.
        let last = text.trim_end().char_indices().last().map_or(0, |(last, _)| last);
        let at = error.marker().byte_offset().unwrap_or(text.len()).min(last);
        let (code, message, hint) = match error.kind() {
            ErrorKind::RecursionLimitExceeded => return Self::too_deep(at),
            ErrorKind::TabInIndentation
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabNotAllowed
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar => {
                (SYNTAX, "a tab can't be used here".to_owned(), "indent with spaces")
            }
            ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
                (SYNTAX, "this quotation mark is not closed".to_owned(), "close the quotation mark")
            }
            ErrorKind::InvalidQuotedScalarIndent => (
                SYNTAX,
                "this quotation mark is not closed, or the text after it is not indented".to_owned(),
                "close the quotation mark, which may have been opened further up, or indent the lines of the text",
            ),
            ErrorKind::UnclosedFlowCollection { open } => {
                (SYNTAX, format!("`{open}` is not closed"), "close the bracket")
            }
            ErrorKind::UnknownAnchor => (
                SYNTAX,
                "this alias refers to an anchor that doesn't exist above it in the document".to_owned(),
                "write the value itself",
            ),
            ErrorKind::InvalidColonPlacement | ErrorKind::MappingValueNotAllowed => (
                SYNTAX,
                "a colon after a key is not allowed here".to_owned(),
                "if the colon is part of the value, put it in quotes; otherwise check the indentation, and look for an \
                 open bracket above",
            ),
            ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
                SYNTAX,
                "unexpected text after the closing quotation mark".to_owned(),
                "put the whole value in quotes; within single quotes, write a single quotation mark twice",
            ),
            ErrorKind::UnknownQuotedScalarEscape => (
                SYNTAX,
                "this backslash does not begin a valid escape".to_owned(),
                "write the backslash twice, or use single quotation marks",
            ),
            _ => (
                SYNTAX,
                format!("not valid YAML: {}", error.info()),
                "check indentation, colons and quotation marks on this line and above it",
            ),
        };
        Self { at, code, message, hint }
    }

    pub(super) fn too_deep(at: usize) -> Self {
        Self {
            at,
            code: LIMIT,
            message: format!("the document is nested more than {MAX_DEPTH} levels deep"),
            hint: "a spec has fewer than ten levels; look for brackets that are not closed",
        }
    }

    pub(super) fn too_many(at: usize) -> Self {
        Self {
            at,
            code: LIMIT,
            message: format!(
                "the file has more than {MAX_NODES} values, if each alias counts as all that it refers to"
            ),
            hint: "split the file, and write values instead of aliases",
        }
    }

    pub(super) fn cyclic(at: usize) -> Self {
        Self {
            at,
            code: SYNTAX,
            message: "an alias refers to a value that contains it".to_owned(),
            hint: "write the value itself",
        }
    }

    /// For a parser that stopped without an error. It was never seen, but must not panic.
    pub(super) fn incomplete(at: usize) -> Self {
        Self {
            at,
            code: SYNTAX,
            message: "not valid YAML: the document ends too early".to_owned(),
            hint: "check the end of the document",
        }
    }
}
