//! Writes specs as a commit on top of the remote's branch. It is never pushed by force, and it isn't kept in
//! the clone unless the remote accepted it.

mod push;

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use git2::build::TreeUpdateBuilder;
use git2::{Commit, ErrorCode, FileMode, ObjectType, Oid, Repository, Signature, Tree};

use super::{GitError, Mirror, clone, follows, login, signed};
use crate::names::SpecPath;
use crate::source::{Author, FileEdit, SourceChange};
use crate::spec::Snapshot;

/// The number of attempts when others push at the same time.
const TRIES: u32 = 5;
/// The random pause between attempts, in milliseconds, so that two writers don't collide again.
const PAUSE: std::ops::Range<u64> = 20..200;

/// How often to check whether a commit arrived after the connection failed: a slow server may still take it.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// The committer of our commits. The author is the caller's.
const COMMITTER: (&str, &str) = ("streamfleet", "streamfleet@localhost");

const SIGNING_KEY: &str = "source.signing_key";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitResult {
    /// The commit that the remote has and that is active.
    pub commit: String,
    /// False if there was nothing to change.
    pub is_new: bool,
}

/// Why specs were not written. `E` is the caller's error.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// The caller refused to edit the current tree.
    #[error("{0}")]
    Edits(E),
    #[error("nothing was written: {0}")]
    Away(GitError),
    #[error("{url} accepts no commit for branch `{branch}`: {why}")]
    Protected { url: String, branch: String, why: String },
    #[error(
        "nothing was written: others pushed to branch `{branch}` of {url} at the same time, {TRIES} times"
    )]
    Overtaken { url: String, branch: String },
    /// The commit was sent without an answer. The remote doesn't have it yet, or can't be reached.
    #[error("whether {url} received commit {commit} is unknown: {why}")]
    Unsure { url: String, commit: String, why: Box<GitError> },
    #[error("nothing was written: `{path}` {why}")]
    Place { path: String, why: &'static str },
    #[error("nothing was written: commits must be signed, and `source.signing_key` has no key for it")]
    Unsigned,
    #[error("nothing was written: {0}")]
    Commit(String),
}

impl<E> WriteError<E> {
    /// Returns whether a retry soon may succeed.
    pub fn may_be_tried_again(&self) -> bool {
        matches!(self, WriteError::Away(_) | WriteError::Overtaken { .. })
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            WriteError::Edits(_) => None,
            WriteError::Away(error) => Some(error.hint()),
            WriteError::Protected { .. } => Some(
                "push with a merge request instead, or have the branch's owner let Streamfleet's key or token push to it",
            ),
            WriteError::Overtaken { .. } => Some("try again"),
            WriteError::Unsure { .. } => Some(
                "check in a minute whether the branch has the commit; a repeated request is not written twice",
            ),
            WriteError::Place { .. } => {
                Some("choose another file, or remove the existing one from the repository")
            }
            WriteError::Unsigned => Some("set `source.signing_key` to a key that `source.signed_by` lists"),
            WriteError::Commit(_) => {
                Some("check the author's name, `source.signing_key` and `source.signed_by`")
            }
        }
    }
}

enum PushOutcome {
    Done,
    /// The remote refused it, perhaps since another push came first.
    Rejected(String),
    NotSent(GitError),
    /// The push failed after the commit was sent.
    Cut(GitError),
}

impl Mirror {
    /// Writes specs: fetches the branch, passes its current tree to `change`, and pushes a commit with the
    /// resulting edits. If another push came first, it starts again. It returns once the remote certainly has
    /// the commit or certainly doesn't, wherever that can be known. It blocks like [`Mirror::fetch`].
    ///
    /// # Errors
    /// If the commit was not written, or that is unknown.
    pub fn write<E>(
        &self,
        author: &Author,
        mut change: impl FnMut(&Snapshot) -> Result<SourceChange, E>,
    ) -> Result<CommitResult, WriteError<E>> {
        let until = Instant::now() + self.timeout();
        let _alone = self.lock_for_writing().map_err(WriteError::Away)?;
        let mut rejected: Option<(Oid, String)> = None;
        for _ in 0..TRIES {
            self.fetch_alone(until).map_err(WriteError::Away)?;
            let (repository, tip) = self.tip().map_err(WriteError::Away)?;
            // The branch didn't move, so the refusal wasn't caused by another push.
            if let Some((_, why)) = rejected.take().filter(|(at, why)| *at == tip && !push::is_race(why)) {
                return Err(WriteError::Protected {
                    url: self.url.clone(),
                    branch: self.branch.clone(),
                    why,
                });
            }
            let snapshot = self.latest().map_err(WriteError::Away)?;
            let change = change(&snapshot).map_err(WriteError::Edits)?;
            let Some(commit) = self.commit_on(&repository, tip, author, change)? else {
                return Ok(CommitResult { commit: tip.to_string(), is_new: false });
            };
            let written = CommitResult { commit: commit.to_string(), is_new: true };
            match self.push(&repository, tip, commit, until) {
                PushOutcome::Done => {
                    // The commit is on the remote. If the clone can't be updated now, a later fetch does it.
                    if let Err(error) = self.activate_pushed(&repository, commit) {
                        tracing::warn!(
                            %commit, %error, hint = error.hint(),
                            "cannot update the clone after a push; the change takes effect with the next fetch"
                        );
                    }
                    return Ok(written);
                }
                PushOutcome::Rejected(why) => {
                    rejected = Some((tip, why));
                    sleep(Duration::from_millis(fastrand::u64(PAUSE)));
                }
                PushOutcome::NotSent(error) => return Err(WriteError::Away(error)),
                PushOutcome::Cut(error) => return self.look_for(written, tip, error),
            }
        }
        Err(WriteError::Overtaken { url: self.url.clone(), branch: self.branch.clone() })
    }

    fn tip(&self) -> Result<(Repository, Oid), GitError> {
        let repository = self.open(&self.place)?;
        let tip = self.names().in_force(&repository);
        tip.map(|tip| (repository, tip)).ok_or_else(|| GitError::Nothing { url: self.url.clone() })
    }

    fn activate_pushed(&self, repository: &Repository, commit: Oid) -> Result<(), GitError> {
        let known = self.whole().clone().map(|known| known.blobs).unwrap_or_default();
        let whole = self.read(repository, commit, &known)?;
        self.keep(repository, commit)?;
        self.names().put_in_force(repository, commit).map_err(|error| clone(&self.place, &error))?;
        *self.whole() = Some(whole);
        Ok(())
    }

    /// Fetches to see whether a commit arrived after the connection failed. While the branch is unchanged, a
    /// slow server may still accept it. Once the branch has moved elsewhere it can't: the push was
    /// conditional on the old tip.
    fn look_for<E>(
        &self,
        written: CommitResult,
        parent: Oid,
        cut: GitError,
    ) -> Result<CommitResult, WriteError<E>> {
        let until = Instant::now() + self.timeout();
        for look in 0..LOOKS {
            if look > 0 {
                sleep(BETWEEN_LOOKS);
            }
            match self.fetch_alone(until).and_then(|_| self.tip()) {
                Ok((repository, tip)) if follows(&repository, tip, &written.commit) => return Ok(written),
                Ok((_, tip)) if tip != parent => return Err(WriteError::Away(cut)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Err(WriteError::Unsure { url: self.url.clone(), commit: written.commit, why: Box::new(cut) })
    }

    /// Creates a commit with edits on top of another; none if they change nothing. No reference points to it.
    fn commit_on<E>(
        &self,
        repository: &Repository,
        tip: Oid,
        author: &Author,
        SourceChange { message, edits }: SourceChange,
    ) -> Result<Option<Oid>, WriteError<E>> {
        let failed = |error: git2::Error| WriteError::Commit(error.message().to_owned());
        let parent = repository.find_commit(tip).map_err(failed)?;
        let before = parent.tree().map_err(failed)?;
        let mut update = TreeUpdateBuilder::new();
        for (path, content) in self.in_repository(edits) {
            let stands = standing(&before, &path)?;
            match content {
                None if stands.is_some() => update.remove(&path),
                None => return Err(WriteError::Place { path, why: "doesn't exist" }),
                Some(content) => {
                    let blob = repository.blob(&content).map_err(failed)?;
                    update.upsert(&path, blob, stands.unwrap_or(FileMode::Blob))
                }
            };
        }
        let tree = update.create_updated(repository, &before).map_err(failed)?;
        if tree == before.id() {
            return Ok(None);
        }
        let tree = repository.find_tree(tree).map_err(failed)?;
        self.make(repository, &parent, &tree, author, &message).map(Some)
    }

    /// Returns the edits by path in the repository. If two are of the same file, the later one wins.
    fn in_repository(&self, edits: Vec<FileEdit>) -> BTreeMap<String, Option<Vec<u8>>> {
        let full = |path: SpecPath| match &self.folder {
            Some(folder) => format!("{folder}/{path}"),
            None => path.to_string(),
        };
        edits.into_iter().map(|FileEdit { path, content }| (full(path), content)).collect()
    }

    fn make<E>(
        &self,
        repository: &Repository,
        parent: &Commit<'_>,
        tree: &Tree<'_>,
        author: &Author,
        message: &str,
    ) -> Result<Oid, WriteError<E>> {
        let failed = |error: git2::Error| WriteError::Commit(error.message().to_owned());
        let author = Signature::now(&author.name, &author.email).map_err(failed)?;
        let committer = Signature::now(COMMITTER.0, COMMITTER.1).map_err(failed)?;
        let Some(path) = &self.signing_key else {
            if self.signed_by.is_some() {
                return Err(WriteError::Unsigned);
            }
            return repository.commit(None, &author, &committer, message, tree, &[parent]).map_err(failed);
        };
        let unusable = |error: GitError| WriteError::Commit(error.to_string());
        let buffer =
            repository.commit_create_buffer(&author, &committer, message, tree, &[parent]).map_err(failed)?;
        let text = buffer.as_str().map_err(|error| WriteError::Commit(error.to_string()))?;
        let key = secrecy::SecretString::from(login::read(path, SIGNING_KEY).map_err(unusable)?);
        let signature = signed::sign(&key, text)
            .map_err(|why| unusable(GitError::File { path: path.clone(), setting: SIGNING_KEY, why }))?;
        let commit = repository.commit_signed(text, &signature, None).map_err(failed)?;
        // Otherwise every reader, this process included, would refuse the commit.
        self.check_commit_signature(repository, commit).map_err(unusable)?;
        Ok(commit)
    }
}

fn standing<E>(tree: &Tree<'_>, path: &str) -> Result<Option<FileMode>, WriteError<E>> {
    let in_the_way = |path: &str, why| Err(WriteError::Place { path: path.to_owned(), why });
    let found = |path: &str| match tree.get_path(path.as_ref()) {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(WriteError::Commit(error.message().to_owned())),
    };
    for (end, _) in path.match_indices('/') {
        let folder = path.get(..end).unwrap_or_default();
        match found(folder)?.map(|entry| entry.kind()) {
            Some(Some(ObjectType::Tree)) => {}
            Some(_) => return in_the_way(folder, "is not a folder"),
            None => return Ok(None),
        }
    }
    match found(path)?.map(|entry| entry.filemode()) {
        None => Ok(None),
        Some(mode) if mode == i32::from(FileMode::Blob) => Ok(Some(FileMode::Blob)),
        Some(mode) if mode == i32::from(FileMode::BlobExecutable) => Ok(Some(FileMode::BlobExecutable)),
        Some(mode) if mode == i32::from(FileMode::BlobGroupWritable) => Ok(Some(FileMode::Blob)),
        Some(_) => in_the_way(path, "is not a plain file"),
    }
}
