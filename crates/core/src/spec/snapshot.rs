use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Digest, SpecPath};

/// The identity of a spec tree: the absolute path, or a URL with branch and subfolder. When it changes,
/// deletions wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SourceId(pub String);

/// A commit of a git repository, and its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Its id, in hexadecimal.
    pub id: String,
    /// Its author, from the commit itself: `Ada <ada@example.com>`.
    pub author: String,
    /// Whether it is from a checkout in which specs differ from the commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// The previous commit, if this one doesn't descend from it and that is not resolved yet: the branch was
    /// rewritten, or the repository was reset to an earlier state. Files that are missing since may be
    /// missing by mistake.
    #[serde(skip)]
    pub rewrote: Option<String>,
}

/// All spec files of a tree at one moment, as bytes, with the errors of unreadable ones.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub source: SourceId,
    /// The identity of the content: the hash of all of it, or the commit.
    pub revision: String,
    /// The commit, if the tree comes from a git repository. Plain secrets are then refused unless the
    /// settings allow them.
    pub commit: Option<Commit>,
    /// Files that are not read as specs but describe resources: `orders.yaml.bak`. A missing spec may have
    /// been renamed to one of them.
    pub skipped: BTreeMap<SpecPath, Arc<[u8]>>,
    /// The files, and the folders that could not be listed.
    pub entries: BTreeMap<SpecPath, SnapshotEntry>,
}

#[derive(Debug, Clone)]
pub enum SnapshotEntry {
    File {
        bytes: Arc<[u8]>,
        /// The key to the cache of parsed files.
        digest: Digest,
    },
    /// A file or folder that could not be read. Its content is unknown, which is not the same as empty.
    Unreadable {
        /// A stable identifier for programs: `unreadable-file`, `link-out-of-tree`, `file-too-large`.
        code: Cow<'static, str>,
        message: String,
        hint: String,
    },
}
