//! A tree of specs that somebody proposes, as it is sent to be planned: who answers may not be able to read the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::names::{Digest, SpecPath};
use crate::spec::{Commit, Entry, Snapshot, SourceId};

/// The largest that may be sent, in bytes.
pub const LARGEST: usize = 64 << 20;

/// A tree of specs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proposal {
    /// Which tree it is proposed for.
    pub source: SourceId,
    /// What the content is.
    pub revision: String,
    /// The commit that it is, where it comes from a git repository.
    #[serde(default)]
    pub commit: Option<Commit>,
    /// The files, in base64, since what isn't text has to be told from what is.
    pub files: BTreeMap<SpecPath, String>,
    /// Files that are not read as specs and yet say what one says, in base64.
    #[serde(default)]
    pub skipped: BTreeMap<SpecPath, String>,
    /// What could not be read.
    #[serde(default)]
    pub unreadable: BTreeMap<SpecPath, Unreadable>,
}

/// A file or folder that could not be read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Unreadable {
    code: String,
    message: String,
    hint: String,
}

impl From<&Snapshot> for Proposal {
    fn from(snapshot: &Snapshot) -> Proposal {
        let Snapshot { source, revision, commit, skipped, entries } = snapshot;
        let (mut files, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (path, entry) in entries {
            match entry {
                Entry::File { bytes, .. } => drop(files.insert(path.clone(), STANDARD.encode(bytes))),
                Entry::Unreadable { code, message, hint } => {
                    let (code, message, hint) = (code.to_string(), message.clone(), hint.clone());
                    unreadable.insert(path.clone(), Unreadable { code, message, hint });
                }
            }
        }
        let skipped = skipped.iter().map(|(path, bytes)| (path.clone(), STANDARD.encode(bytes)));
        Proposal {
            source: source.clone(),
            revision: revision.clone(),
            commit: commit.clone(),
            files,
            skipped: skipped.collect(),
            unreadable,
        }
    }
}

impl Proposal {
    /// The tree; none where something of it is no base64.
    pub fn snapshot(self) -> Option<Snapshot> {
        let Proposal { source, revision, commit, files, skipped, unreadable } = self;
        let bytes =
            |(path, text): (SpecPath, String)| Some((path, Arc::<[u8]>::from(STANDARD.decode(text).ok()?)));
        let files: Vec<_> = files.into_iter().map(bytes).collect::<Option<_>>()?;
        let file = |(path, bytes): (SpecPath, Arc<[u8]>)| {
            let digest = Digest::of(&bytes);
            (path, Entry::File { bytes, digest })
        };
        let unreadable = unreadable.into_iter().map(|(path, Unreadable { code, message, hint })| {
            (path, Entry::Unreadable { code: code.into(), message, hint })
        });
        let entries = files.into_iter().map(file).chain(unreadable).collect();
        let skipped = skipped.into_iter().map(bytes).collect::<Option<_>>()?;
        Some(Snapshot { source, revision, commit, skipped, entries })
    }
}
