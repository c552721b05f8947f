//! A user's mistake, with its position and a remedy.
//!
//! A [`Problem`] is a value: reading, resolving and planning collect all of them and don't stop at the first.
//! It carries the lines that it quotes, so it can be printed without the file. These lines are already
//! redacted.

mod plain;
mod render;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::SpecPath;

pub use plain::{quote_untrusted, truncate_bytes};
pub use render::render;

/// How severe a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The resource stays as it is until the problem is fixed.
    Error,
    /// Informative; nothing is stopped.
    Warning,
}

/// The position of a document or a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The file, inside the spec tree.
    pub path: SpecPath,
    /// The line, counted from 1.
    pub line: u32,
}

/// `acme/clusters/orders.yaml:8`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// A position in a file with the text of its line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The file, inside the spec tree.
    pub path: SpecPath,
    /// The line, counted from 1; 0 when the problem concerns the file as a whole.
    pub line: u32,
    /// The column in characters, counted from 1; 0 when the problem concerns the file as a whole.
    pub column: u32,
    /// The number of highlighted characters; at least 1 if there is a line.
    pub width: u32,
    /// The line itself, redacted and cut to [`Location::MAX_QUOTED`] characters.
    pub text: String,
}

impl Location {
    /// The longest line that is quoted, in characters. Keeps messages readable for files with one huge line.
    pub const MAX_QUOTED: usize = 160;

    pub fn file(path: SpecPath) -> Self {
        Self { path, line: 0, column: 0, width: 0, text: String::new() }
    }

    pub fn origin(&self) -> Origin {
        Origin { path: self.path.clone(), line: self.line.max(1) }
    }
}

/// A mistake, with everything that is needed to fix it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Its position; none if no file is at fault.
    pub location: Option<Location>,
    /// Whether it stops anything.
    pub severity: Severity,
    /// A stable name for programs: `unknown-key`, `over-capacity`.
    pub code: String,
    /// The problem, in one sentence without a full stop.
    pub message: String,
    /// A few words under the underlined text; may be empty.
    pub label: String,
    /// Other relevant positions, each with a few words: `first defined here`.
    pub related: Vec<(Location, String)>,
    /// The remedy.
    pub hint: Option<String>,
}

impl Problem {
    pub fn error(code: &str, message: impl Into<String>) -> Self {
        Self {
            location: None,
            severity: Severity::Error,
            code: code.to_owned(),
            message: message.into(),
            label: String::new(),
            related: Vec::new(),
            hint: None,
        }
    }

    pub fn warning(code: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Sets the location, with a few words for the underline.
    pub fn at(mut self, location: Location, label: impl Into<String>) -> Self {
        self.location = Some(location);
        self.label = label.into();
        self
    }

    pub fn related(mut self, location: Location, label: impl Into<String>) -> Self {
        self.related.push((location, label.into()));
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
