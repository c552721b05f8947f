//! A spec tree as bytes, at one moment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Digest, SpecPath};

/// Which tree it is: the absolute path, or a URL with branch and subfolder. When it changes, deletions wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SourceId(pub String);

/// A commit of a git repository, and who is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Who wrote it, as it says itself: `Ada <ada@example.com>`.
    pub author: String,
    /// Whether it is of a checkout with specs that are not as the commit has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// The commit that was in force before, where this one doesn't follow it and that is not yet settled: the branch was
    /// rewritten, or the repository put back to what it once was. What is missing since may be missing by mistake.
    #[serde(skip)]
    pub rewrote: Option<String>,
}

/// All spec files of a tree at one moment, as bytes, with what could not be read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Which tree it is.
    pub source: SourceId,
    /// What the content is: the hash of all of it, or the commit.
    pub revision: String,
    /// The commit that it is, where it comes from a git repository. Plain secrets are refused there unless the config allows
    /// them.
    pub commit: Option<Commit>,
    /// Files that are not read as specs and yet say what one says: `orders.yaml.bak`. Where a spec is gone, one of them may
    /// be what it became.
    pub skipped: BTreeMap<SpecPath, Arc<[u8]>>,
    /// The files, and the folders that could not be listed.
    pub entries: BTreeMap<SpecPath, Entry>,
}

/// One file or folder of a snapshot.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A file's bytes and their digest.
    File {
        /// The bytes.
        bytes: Arc<[u8]>,
        /// Their digest, by which a parsed file is known again.
        digest: Digest,
    },
    /// A file or folder that could not be read: what was tried and why it failed. What it holds is unknown, which
    /// is not the same as nothing.
    Unreadable {
        /// A stable name for programs: `unreadable-file`, `link-out-of-tree`, `file-too-large`.
        code: Cow<'static, str>,
        /// What was tried and why it failed.
        message: String,
        /// What to do next.
        hint: String,
    },
}
