//! The commits that changed a file, the newest first. As in `git log`, a merge that took the file from one of its
//! parents is left out, and only that parent is followed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Instant;

use git2::{Commit, ObjectType, Oid, Repository, Tree};
use jiff::Timestamp;

use super::{GitError, Mirror};
use crate::names::SpecPath;

/// The longest subject or name that is returned, in characters.
const LONGEST: usize = 200;

/// A commit that changed a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommit {
    pub id: String,
    /// When it was committed.
    pub at: Timestamp,
    pub name: String,
    pub email: String,
    /// The first line of its message.
    pub subject: String,
    /// Whether all that it changed is in the top folder of the file.
    pub is_within: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileHistory {
    pub commits: Vec<FileCommit>,
    /// The commits from which to continue; empty at the end.
    pub next: Vec<String>,
    /// Whether there are older commits that can't be read, or that can't be compared.
    pub is_cut: bool,
}

/// The limits of one request for the history.
#[derive(Debug, Clone, Copy)]
pub struct HistoryQuery<'q> {
    pub path: &'q SpecPath,
    /// The commits to begin with; empty for the active one.
    pub from: &'q [String],
    pub most: usize,
    /// When to stop. At least one commit is looked at.
    pub until: Instant,
}

impl Mirror {
    /// Returns the commits that changed a file. `None` if there is no commit to begin with.
    ///
    /// # Errors
    /// If there is no active commit yet, or one can't be read.
    pub fn history(&self, query: &HistoryQuery<'_>) -> Result<Option<FileHistory>, GitError> {
        let _there = self.reading()?;
        let nothing = || GitError::Nothing { url: self.url.clone() };
        let repository = Repository::open_bare(&self.place).map_err(|_| nothing())?;
        let mut from = Vec::new();
        for id in query.from {
            let Ok(commit) = Oid::from_str(id).and_then(|id| repository.find_commit(id)) else {
                return Ok(None);
            };
            from.push(commit.id());
        }
        if from.is_empty() {
            from.push(self.names().in_force(&repository).ok_or_else(nothing)?);
        }
        let folder = self.folder.as_deref().unwrap_or_default();
        let around = folder.split('/').filter(|part| !part.is_empty());
        let walk = FileWalk {
            repository: &repository,
            top: query.path.top_folder().map(|_| around.clone().count()),
            parts: around.chain(query.path.as_str().split('/')).collect(),
        };
        walk.run(from, query).map(Some).map_err(|error| {
            let what = format!("the history of {}", query.path);
            GitError::Damaged { url: self.url.clone(), what, error }
        })
    }
}

struct FileWalk<'r> {
    repository: &'r Repository,
    /// The path of the file in the repository.
    parts: Vec<&'r str>,
    /// Which part is the top folder of the specs; `None` if the file is in none.
    top: Option<usize>,
}

impl<'r> FileWalk<'r> {
    fn run(&self, from: Vec<Oid>, query: &HistoryQuery<'_>) -> Result<FileHistory, git2::Error> {
        let mut history = FileHistory::default();
        let mut seen: BTreeSet<Oid> = from.iter().copied().collect();
        let mut waiting = BinaryHeap::new();
        for id in from {
            waiting.push((self.repository.find_commit(id)?.time().seconds(), Reverse(id)));
        }
        let mut is_first = true;
        while let Some(&(_, Reverse(id))) = waiting.peek() {
            let is_over = history.commits.len() >= query.most || Instant::now() >= query.until;
            if is_over && !is_first {
                history.next = waiting.iter().map(|(_, Reverse(id))| id.to_string()).collect();
                history.next.sort_unstable();
                break;
            }
            is_first = false;
            let commit = self.repository.find_commit(id)?;
            waiting.pop();
            let tree = commit.tree()?;
            let mut parents = Vec::new();
            let (mut same, mut is_unsure) = (None, false);
            for id in commit.parent_ids() {
                let compared = self.repository.find_commit(id).and_then(|parent| {
                    let is_same = self.is_same(&tree, &parent.tree()?)?;
                    Ok((parent, is_same))
                });
                match compared {
                    Ok((parent, true)) => {
                        same = Some(parent);
                        break;
                    }
                    Ok((parent, false)) => parents.push(parent),
                    Err(_) => is_unsure = true,
                }
            }
            // It may have taken the file from a parent that can't be read.
            is_unsure = is_unsure && same.is_none();
            history.is_cut = history.is_cut || is_unsure;
            let changes = same.is_none() && !is_unsure && (!parents.is_empty() || self.has(&tree)?);
            if changes {
                history.commits.push(self.shown(&commit, &tree, &parents)?);
            }
            for parent in same.map_or(parents, |same| vec![same]) {
                if seen.insert(parent.id()) {
                    waiting.push((parent.time().seconds(), Reverse(parent.id())));
                }
            }
        }
        Ok(history)
    }

    /// Whether two trees have the same file. It reads no more folders than those that differ.
    fn is_same(&self, one: &Tree<'r>, other: &Tree<'r>) -> Result<bool, git2::Error> {
        let (mut one, mut other) = (Some(one.clone()), Some(other.clone()));
        for part in &self.parts {
            let id = |tree: &Option<Tree<'_>>| tree.as_ref()?.get_name(part).map(|entry| entry.id());
            if id(&one) == id(&other) {
                return Ok(true);
            }
            (one, other) = (self.inner(one.as_ref(), part)?, self.inner(other.as_ref(), part)?);
        }
        Ok(false)
    }

    /// A folder in a tree; `None` if there is none, or something else has its name.
    fn inner(&self, tree: Option<&Tree<'_>>, name: &str) -> Result<Option<Tree<'r>>, git2::Error> {
        let Some(tree) = tree else { return Ok(None) };
        let entry = tree.get_name(name).filter(|entry| entry.kind() == Some(ObjectType::Tree));
        entry.map(|entry| self.repository.find_tree(entry.id())).transpose()
    }

    fn has(&self, tree: &Tree<'_>) -> Result<bool, git2::Error> {
        match tree.get_path(self.parts.join("/").as_ref()) {
            Ok(_) => Ok(true),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn shown(
        &self,
        commit: &Commit<'_>,
        tree: &Tree<'r>,
        parents: &[Commit<'r>],
    ) -> Result<FileCommit, git2::Error> {
        let mut is_within = true;
        for parent in parents {
            is_within = is_within && self.is_within(Some(tree.clone()), Some(parent.tree()?));
        }
        if parents.is_empty() {
            is_within = self.is_within(Some(tree.clone()), None);
        }
        let author = commit.author();
        Ok(FileCommit {
            id: commit.id().to_string(),
            at: Timestamp::from_second(commit.time().seconds()).unwrap_or_default(),
            name: shown(author.name_bytes()),
            email: shown(author.email_bytes()),
            subject: shown(commit.summary_bytes().unwrap_or_default()),
            is_within,
        })
    }

    /// Whether two trees have the same entries outside of the top folder.
    fn is_within(&self, mut one: Option<Tree<'r>>, mut other: Option<Tree<'r>>) -> bool {
        let Some(top) = self.top else { return false };
        for part in &self.parts[..=top] {
            let others = |tree: &Option<Tree<'_>>| -> BTreeSet<(Vec<u8>, Oid)> {
                let entries = tree.iter().flat_map(|tree| tree.iter());
                let entries = entries.map(|entry| (entry.name_bytes().to_owned(), entry.id()));
                entries.filter(|(name, _)| name != part.as_bytes()).collect()
            };
            if others(&one) != others(&other) {
                return false;
            }
            // A folder that can't be read may have changed.
            let inner = |tree: &Option<Tree<'r>>| self.inner(tree.as_ref(), part);
            let (Ok(here), Ok(there)) = (inner(&one), inner(&other)) else { return false };
            (one, other) = (here, there);
        }
        true
    }
}

/// A text of a commit, which anybody may have written, in one line.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|letter| !letter.is_control()).take(LONGEST).collect()
}
