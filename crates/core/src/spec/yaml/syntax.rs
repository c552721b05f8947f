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
                (SYNTAX, "a quotation mark is never closed".to_owned(), "close the quotation mark")
            }
            ErrorKind::InvalidQuotedScalarIndent => (
                SYNTAX,
                "a quotation mark is never closed, or the text after it is not indented".to_owned(),
                "close the quotation mark, which may be opened further up, or indent the lines of the text",
            ),
            ErrorKind::UnclosedFlowCollection { open } => {
                (SYNTAX, format!("`{open}` is never closed"), "close the bracket")
            }
            ErrorKind::UnknownAnchor => (
                SYNTAX,
                "nothing above in this document has the anchor that this alias names".to_owned(),
                "write the value itself",
            ),
            ErrorKind::InvalidColonPlacement | ErrorKind::MappingValueNotAllowed => (
                SYNTAX,
                "a colon that ends a key can't stand here".to_owned(),
                "put the value in quotes if the colon is part of it; else check the indentation, and for a bracket left \
                 open above",
            ),
            ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => (
                SYNTAX,
                "something stands behind the closing quotation mark".to_owned(),
                "put the whole value in quotes, and double a single quotation mark within single ones",
            ),
            ErrorKind::UnknownQuotedScalarEscape => (
                SYNTAX,
                "the backslash and what follows it are no escape".to_owned(),
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
            hint: "a spec has fewer than ten levels; look for brackets that are never closed",
        }
    }

    pub(super) fn too_many(at: usize) -> Self {
        Self {
            at,
            code: LIMIT,
            message: format!(
                "the file has more than {MAX_NODES} values, with each alias counted as all that it stands for"
            ),
            hint: "split the file, and write values instead of aliases",
        }
    }

    pub(super) fn cyclic(at: usize) -> Self {
        Self {
            at,
            code: SYNTAX,
            message: "an alias stands for a value that contains it".to_owned(),
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
