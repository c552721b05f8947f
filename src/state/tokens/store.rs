//! The file of tokens and its content in memory. There is no file before the first token.
//!
//! Lines are appended, and the file is compacted when many tokens expired long ago. Checking a token never
//! waits for the disk: the content in memory is replaced as a whole once a change is on disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Token;
use crate::names::Digest;
use crate::parallel::locked;
use crate::state::error::from_backup;
use crate::state::lines::{AppendFile, read_whole};
use crate::state::{StateError, entries, folder};

pub const FILE: &str = "tokens.jsonl";

/// The file is compacted when this many tokens, and at least a quarter of all, are old enough to be dropped.
/// So the cost of rewriting is spread over many new tokens.
const WORTH: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
enum TokenLine {
    Token(StoredToken),
    Revoked { id: Uuid, at: Timestamp },
}

impl entries::Record for TokenLine {}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredToken {
    #[serde(flatten)]
    token: Token,
    sha256: Digest,
}

pub(in crate::state) struct TokenStore {
    path: Utf8PathBuf,
    /// None if there is no file yet, or it was replaced. Writers wait here for each other and the disk.
    lines: Mutex<Option<AppendFile>>,
    /// The content that is on disk. The lock is only held to copy or replace the `Arc`.
    facts: Mutex<Arc<TokenContents>>,
}

#[derive(Clone, Default)]
pub(super) struct TokenContents {
    /// Ids are in order of creation.
    tokens: BTreeMap<Uuid, Arc<StoredToken>>,
    by_digest: HashMap<Digest, Uuid>,
}

/// Exclusive access for a writer.
pub(super) struct TokenWriter<'t> {
    tokens: &'t TokenStore,
    lines: MutexGuard<'t, Option<AppendFile>>,
}

impl TokenStore {
    /// Reads the tokens of a state folder and repairs the damage of a crash. Also returns warnings. A damaged file
    /// is refused: without it, lockouts would go unnoticed, and a revoked token might become valid again.
    pub(in crate::state) fn open(dir: &Utf8Path) -> Result<(TokenStore, Vec<String>), StateError> {
        let path = dir.join(FILE);
        let (lines, facts, told) = match folder::plain_file(&path)? {
            None => (None, TokenContents::default(), Vec::new()),
            Some(_) => {
                let (mut lines, bytes, exposed) = AppendFile::open(path.clone())?;
                let facts = TokenContents::read(&path, &bytes)?;
                let mended = entries::repair::<TokenLine>(&mut lines, &bytes)?;
                (Some(lines), facts, exposed.into_iter().chain(mended).collect())
            }
        };
        Ok((TokenStore { path, lines: Mutex::new(lines), facts: Mutex::new(Arc::new(facts)) }, told))
    }

    /// Reads the tokens without opening their file for writing: nothing is repaired.
    pub(in crate::state) fn read(dir: &Utf8Path) -> Result<TokenStore, StateError> {
        let path = dir.join(FILE);
        let facts = read_whole(&path)?
            .map(|bytes| TokenContents::read(&path, &bytes))
            .transpose()?
            .unwrap_or_default();
        Ok(TokenStore { path, lines: Mutex::new(None), facts: Mutex::new(Arc::new(facts)) })
    }

    /// A warning if there are no tokens though some were created: callers are refused and need to know why.
    pub(in crate::state) fn lost(&self) -> Option<String> {
        self.facts().tokens.is_empty().then(|| {
            format!(
                "`{}` is missing or empty, so all existing tokens are invalid; {}, or create new ones: streamfleet \
                 token create",
                self.path,
                from_backup(&self.path)
            )
        })
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    pub(super) fn facts(&self) -> Arc<TokenContents> {
        Arc::clone(&locked(&self.facts))
    }

    /// Waits for other writers.
    pub(super) fn writing(&self) -> TokenWriter<'_> {
        TokenWriter { tokens: self, lines: locked(&self.lines) }
    }
}

impl TokenWriter<'_> {
    /// The content on disk, which can't change while this exists.
    pub(super) fn facts(&self) -> Arc<TokenContents> {
        self.tokens.facts()
    }

    /// Adds a token, on disk first.
    pub(super) fn add(&mut self, token: &Token, sha256: Digest) -> Result<(), StateError> {
        self.append(TokenLine::Token(StoredToken { token: token.clone(), sha256 }))
    }

    /// Revokes a token, on disk first.
    pub(super) fn revoke(&mut self, id: Uuid, at: Timestamp) -> Result<(), StateError> {
        self.append(TokenLine::Revoked { id, at })
    }

    fn append(&mut self, entry: TokenLine) -> Result<(), StateError> {
        let path = &self.tokens.path;
        let lines = match &mut *self.lines {
            Some(lines) => lines,
            none => none.insert(AppendFile::open(path.clone())?.0),
        };
        lines.append(&[entries::line(&entry)])?;
        let mut facts = TokenContents::clone(&self.facts());
        facts.apply(entry);
        self.replace(facts);
        Ok(())
    }

    /// Drops tokens that became invalid long ago, if they are many. Replaces the file atomically.
    pub(super) fn shorten(&mut self, at: Timestamp) -> Result<(), StateError> {
        let facts = self.facts();
        let over = facts.tokens.values().filter(|kept| !kept.token.is_kept_at(at)).count();
        if over < WORTH.max(facts.tokens.len() / 4) {
            return Ok(());
        }
        let shorter = facts.kept_at(at);
        // The next line must not be appended to the replaced file.
        *self.lines = None;
        entries::replace(&self.tokens.path, shorter.entries())?;
        self.replace(shorter);
        Ok(())
    }

    fn replace(&self, facts: TokenContents) {
        *locked(&self.tokens.facts) = Arc::new(facts);
    }
}

/// The bytes up to the end of the last complete line.
pub(in crate::state) fn whole_records(path: &Utf8Path, bytes: Vec<u8>) -> Result<Vec<u8>, StateError> {
    TokenContents::read(path, &bytes)?;
    Ok(entries::whole::<TokenLine>(bytes))
}

impl TokenContents {
    fn read(path: &Utf8Path, bytes: &[u8]) -> Result<TokenContents, StateError> {
        let mut facts = TokenContents::default();
        entries::read(path, bytes, |entry| facts.apply(entry))?;
        Ok(facts)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values().map(|kept| &kept.token)
    }

    pub(super) fn get(&self, id: Uuid) -> Option<&Token> {
        self.tokens.get(&id).map(|kept| &kept.token)
    }

    pub(super) fn find(&self, digest: &Digest) -> Option<&Token> {
        self.get(*self.by_digest.get(digest)?)
    }

    /// Returns a copy without the tokens that may be dropped.
    fn kept_at(&self, at: Timestamp) -> TokenContents {
        let mut facts = self.clone();
        facts.tokens.retain(|_, kept| kept.token.is_kept_at(at));
        facts.by_digest.retain(|_, id| facts.tokens.contains_key(id));
        facts
    }

    /// The shortest list of lines with this content.
    fn entries(&self) -> impl Iterator<Item = TokenLine> {
        self.tokens.values().map(|kept| TokenLine::Token(StoredToken::clone(kept)))
    }

    fn apply(&mut self, entry: TokenLine) {
        match entry {
            // A copied file may have the same line twice; the second must not undo a revocation in between.
            TokenLine::Token(added) if self.tokens.contains_key(&added.token.id) => {}
            TokenLine::Token(added) => {
                self.by_digest.insert(added.sha256.clone(), added.token.id);
                self.tokens.insert(added.token.id, Arc::new(added));
            }
            TokenLine::Revoked { id, at } => {
                if let Some(kept) = self.tokens.get_mut(&id).filter(|kept| kept.token.revoked_at.is_none()) {
                    Arc::make_mut(kept).token.revoked_at = Some(at);
                }
            }
        }
    }
}
