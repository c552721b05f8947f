//! A mistake that a person made, where it stands, and what to do about it.
//!
//! A [`Problem`] is a value: reading, resolving and planning collect all of them and none stops at the first.
//! It carries the lines it quotes, so that it can be printed far from the file, and those lines are redacted
//! before they get here.

mod plain;
mod render;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::SpecPath;

pub use plain::{cut, plain};
pub use render::render;

/// How much a problem stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// What it concerns is left as it is until the problem is mended.
    Error,
    /// Worth knowing; nothing is stopped.
    Warning,
}

/// Where a document or a field stands.
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

/// A place in a file with the text that stands there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The file, inside the spec tree.
    pub path: SpecPath,
    /// The line, counted from 1; 0 when the problem concerns the file as a whole.
    pub line: u32,
    /// The column in characters, counted from 1; 0 when the problem concerns the file as a whole.
    pub column: u32,
    /// How many characters of the line are meant; at least 1 where there is a line.
    pub width: u32,
    /// The line itself, redacted and at most [`Location::MAX_QUOTED`] characters of it.
    pub text: String,
}

impl Location {
    /// The longest line that is quoted, in characters. A longer one is cut, so that a file with one huge line
    /// gives a readable message.
    pub const MAX_QUOTED: usize = 160;

    /// A location that means a whole file.
    pub fn file(path: SpecPath) -> Self {
        Self { path, line: 0, column: 0, width: 0, text: String::new() }
    }

    /// The place without its text.
    pub fn origin(&self) -> Origin {
        Origin { path: self.path.clone(), line: self.line.max(1) }
    }
}

/// One mistake, with all that a person needs to mend it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where it stands; none where no file is at fault.
    pub location: Option<Location>,
    /// Whether it stops anything.
    pub severity: Severity,
    /// A stable name for programs: `unknown-key`, `over-capacity`.
    pub code: String,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// A few words under the underlined text; may be empty.
    pub label: String,
    /// Other places that belong to it, each with a few words: `first defined here`.
    pub related: Vec<(Location, String)>,
    /// What to do next.
    pub hint: Option<String>,
}

impl Problem {
    /// An error that is not yet placed.
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

    /// A warning that is not yet placed.
    pub fn warning(code: &str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Places the problem, with a few words for the underline.
    pub fn at(mut self, location: Location, label: impl Into<String>) -> Self {
        self.location = Some(location);
        self.label = label.into();
        self
    }

    /// Adds a second place.
    pub fn related(mut self, location: Location, label: impl Into<String>) -> Self {
        self.related.push((location, label.into()));
        self
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether it stops anything.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
