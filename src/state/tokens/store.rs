//! The file of the tokens, which only grows, and what follows from it in memory. There is none before the first token.

use std::collections::{BTreeMap, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Access, Reach, Token};
use crate::names::Digest;
use crate::state::lines::Lines;
use crate::state::records::with_version;
use crate::state::{StateError, entries, folder};

/// The file.
pub const FILE: &str = "tokens.jsonl";

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
enum Entry {
    Token {
        id: Uuid,
        name: String,
        owner: String,
        organization: Reach,
        access: Access,
        created_at: Timestamp,
        expires_at: Timestamp,
        sha256: Digest,
    },
    Revoked {
        id: Uuid,
        at: Timestamp,
    },
}

/// The file, and what follows from it.
pub(in crate::state) struct Tokens {
    path: Utf8PathBuf,
    /// None where there is no file yet.
    lines: Option<Lines>,
    facts: Facts,
}

#[derive(Default)]
struct Facts {
    /// Ids are in the order in which they were given.
    tokens: BTreeMap<Uuid, Token>,
    by_digest: HashMap<Digest, Uuid>,
}

impl Tokens {
    /// Reads the tokens of a state folder, and mends what a crash left. The second part says what was. A file that is damaged
    /// is refused: without it, whoever was locked out by it would not be noticed, and a token that was revoked might come back.
    pub(in crate::state) fn open(dir: &Utf8Path) -> Result<(Tokens, Vec<String>), StateError> {
        let path = dir.join(FILE);
        if folder::plain_file(&path)?.is_none() {
            return Ok((Tokens { path, lines: None, facts: Facts::default() }, Vec::new()));
        }
        let (mut lines, bytes, exposed) = Lines::open(path.clone())?;
        let facts = Facts::read(&path, &bytes)?;
        let mended = entries::repair::<Entry>(&mut lines, &bytes)?;
        let told = exposed.into_iter().chain(mended).collect();
        Ok((Tokens { path, lines: Some(lines), facts }, told))
    }

    /// That there is none, though some were made: whoever shows one is refused, and somebody will wonder why.
    pub(in crate::state) fn lost(&self) -> Option<String> {
        self.facts.tokens.is_empty().then(|| {
            format!(
                "`{}` is missing or empty though tokens were made, and none of them holds; restore it from a backup: \
                 streamfleet restore FILE TREE, or make new ones: streamfleet token create",
                self.path
            )
        })
    }

    /// The file.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Token> {
        self.facts.tokens.values()
    }

    /// The one with this id.
    pub(super) fn get(&self, id: Uuid) -> Option<&Token> {
        self.facts.tokens.get(&id)
    }

    /// The one whose secret has this digest.
    pub(super) fn find(&self, digest: &Digest) -> Option<&Token> {
        self.facts.tokens.get(self.facts.by_digest.get(digest)?)
    }

    /// Makes a token known, on disk first.
    pub(super) fn add(&mut self, token: &Token, sha256: Digest) -> Result<(), StateError> {
        let Token { id, name, owner, organization, access, created_at, expires_at, revoked_at: _ } =
            token.clone();
        self.append(Entry::Token { id, name, owner, organization, access, created_at, expires_at, sha256 })
    }

    /// Makes known that a token is good for nothing, on disk first.
    pub(super) fn revoke(&mut self, id: Uuid, at: Timestamp) -> Result<(), StateError> {
        self.append(Entry::Revoked { id, at })
    }

    fn append(&mut self, entry: Entry) -> Result<(), StateError> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(Lines::open(self.path.clone())?.0),
        };
        lines.append(&[with_version(&entry)])?;
        self.facts.apply(entry);
        Ok(())
    }
}

/// The whole records of a file's bytes.
pub(in crate::state) fn whole_records(path: &Utf8Path, bytes: Vec<u8>) -> Result<Vec<u8>, StateError> {
    Facts::read(path, &bytes)?;
    Ok(entries::whole::<Entry>(bytes))
}

impl Facts {
    fn read(path: &Utf8Path, bytes: &[u8]) -> Result<Facts, StateError> {
        let mut facts = Facts::default();
        entries::read(path, bytes, |entry| facts.apply(entry))?;
        Ok(facts)
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            // The same line again, as a copy of the file may have it, takes nothing back that came after the first.
            Entry::Token { id, .. } if self.tokens.contains_key(&id) => {}
            Entry::Token { id, name, owner, organization, access, created_at, expires_at, sha256 } => {
                let revoked_at = None;
                let token =
                    Token { id, name, owner, organization, access, created_at, expires_at, revoked_at };
                self.tokens.insert(id, token);
                self.by_digest.insert(sha256, id);
            }
            Entry::Revoked { id, at } => {
                if let Some(token) = self.tokens.get_mut(&id) {
                    token.revoked_at.get_or_insert(at);
                }
            }
        }
    }
}
