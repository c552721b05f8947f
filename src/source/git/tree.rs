//! Reads the specs of a commit, by the same rules as those of a folder. Links and submodules are not
//! followed: they are unreadable where specs may be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use camino::Utf8Path;
use git2::{ErrorCode, ObjectType, Odb, Oid, Repository, Signature, StatusOptions, Tree, TreeEntry};

use super::GitError;
use crate::names::SpecPath;
use crate::source::rules::{
    MAX_BYTES, MAX_FOLDERS, MAX_HIDDEN, MAX_OTHERS, ScanTotals, file, folder_named_as_file, is_miscased,
    is_spec, may_contain_user_files, mentions_api_version, miscased, name_not_utf8, too_deep, too_large,
    unreadable,
};
use crate::spec::{Commit, Snapshot, SnapshotEntry, SourceId};

/// The file mode of a link in git.
const LINK: i32 = 0o120_000;

/// The limit of hidden folders that are searched in one top folder.
const MAX_HIDDEN_FOLDERS: u32 = 10_000;

/// The limit of specs in one top folder, in bytes: twice a hundred thousand specs of about 1 KiB.
const MAX_TOP_BYTES: u64 = 256 << 20;

/// The contents of blobs that were read, by their ids, which are digests of their contents.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    /// Spec files, with their sizes in bytes.
    specs: HashMap<Oid, (u64, SnapshotEntry)>,
    /// Other files; none if they contain no text of a spec.
    others: HashMap<Oid, Option<Arc<[u8]>>>,
}

pub(super) struct CommitReader<'a> {
    pub(super) repository: &'a Repository,
    pub(super) url: &'a str,
    pub(super) commit: Oid,
    pub(super) folder: Option<&'a str>,
}

impl CommitReader<'_> {
    /// Returns the snapshot of all specs, and all blobs in it. Known blobs are not read.
    ///
    /// # Errors
    /// If any other object is missing: an incomplete commit is not used.
    pub(super) fn read(&self, source: SourceId, known: &Blobs) -> Result<(Snapshot, Blobs), GitError> {
        let commit =
            self.repository.find_commit(self.commit).map_err(|error| self.damaged("a commit", error))?;
        let whole = commit.tree().map_err(|error| self.damaged("a folder", error))?;
        let root = self.root(whole)?;
        let odb = self.repository.odb().map_err(|error| self.damaged("the objects", error))?;
        let mut walk = Walk {
            reader: self,
            odb,
            known,
            blobs: Blobs::default(),
            found: ScanTotals::default(),
            skipped: BTreeMap::new(),
            others_left: MAX_OTHERS,
            hidden_left: MAX_HIDDEN_FOLDERS,
            bytes_left: MAX_TOP_BYTES,
        };
        walk.folder(&root, "", false, 0)?;
        let revision = self.commit.to_string();
        let author = author(&commit.author());
        let commit = Some(Commit { id: revision.clone(), author, is_edited: false, rewrote: None });
        let Walk { blobs, skipped, found: ScanTotals { entries, .. }, .. } = walk;
        Ok((Snapshot { source, revision, commit, skipped, entries }, blobs))
    }

    fn root<'t>(&'t self, whole: Tree<'t>) -> Result<Tree<'t>, GitError> {
        let Some(folder) = self.folder else { return Ok(whole) };
        let none = || GitError::NoFolder {
            url: self.url.to_owned(),
            commit: self.commit.to_string(),
            folder: folder.to_owned(),
        };
        let entry = match whole.get_path(folder.as_ref()) {
            Err(error) if error.code() == ErrorCode::NotFound => return Err(none()),
            found => found.map_err(|error| self.damaged("a folder", error))?,
        };
        match entry.kind() {
            Some(ObjectType::Tree) => self.tree(entry.id(), folder),
            _ => Err(none()),
        }
    }

    fn tree(&self, id: Oid, path: &str) -> Result<Tree<'_>, GitError> {
        self.repository.find_tree(id).map_err(|error| self.damaged(path, error))
    }

    fn damaged(&self, what: &str, error: git2::Error) -> GitError {
        let what = format!("{what} in commit {}", self.commit);
        GitError::Damaged { url: self.url.to_owned(), what, error }
    }
}

/// Returns the commit that a folder is a checkout of; none outside of a repository, or without commits.
///
/// # Errors
/// If the repository can't be read, for example since it belongs to another user.
pub fn checked_out(folder: &Utf8Path) -> Result<Option<Commit>, GitError> {
    let found = Repository::discover(folder).and_then(|repository| {
        let commit = repository.head()?.peel_to_commit()?;
        let is_edited = has_edited_specs(&repository)?;
        let (id, author) = (commit.id().to_string(), author(&commit.author()));
        Ok(Commit { id, author, is_edited, rewrote: None })
    });
    match found {
        Ok(commit) => Ok(Some(commit)),
        Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::UnbornBranch) => Ok(None),
        Err(error) => Err(GitError::Checkout(error)),
    }
}

fn has_edited_specs(repository: &Repository) -> Result<bool, git2::Error> {
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    let changed = repository.statuses(Some(&mut options))?;
    let is_yaml = |path: &[u8]| path.ends_with(b".yaml") || path.ends_with(b".yml");
    Ok(changed.iter().any(|entry| is_yaml(entry.path_bytes())))
}

fn author(signature: &Signature<'_>) -> String {
    let [name, email] = [signature.name_bytes(), signature.email_bytes()].map(String::from_utf8_lossy);
    format!("{name} <{email}>").chars().filter(|letter| !letter.is_control()).collect()
}

fn too_much() -> SnapshotEntry {
    let message = format!(
        "the specs of the top folder are larger than {} MiB in total; this file and later ones are not read",
        MAX_TOP_BYTES >> 20
    );
    unreadable("too-many-bytes", message, "keep only specs there, or divide the tree")
}

struct Walk<'a> {
    reader: &'a CommitReader<'a>,
    odb: Odb<'a>,
    known: &'a Blobs,
    blobs: Blobs,
    found: ScanTotals,
    skipped: BTreeMap<SpecPath, Arc<[u8]>>,
    /// How many more files other than specs may be read in the current top or hidden folder.
    others_left: u32,
    /// How many more hidden folders may be searched in this top folder. Git stores equal folders once, so a
    /// small repository can contain more of them than could ever be visited.
    hidden_left: u32,
    /// How many more bytes of specs this top folder may have, for the same reason.
    bytes_left: u64,
}

impl Walk<'_> {
    /// Walks a folder. In hidden folders it only searches for specs that were put aside.
    fn folder(&mut self, tree: &Tree<'_>, path: &str, hidden: bool, depth: usize) -> Result<(), GitError> {
        for entry in tree {
            let name = String::from_utf8_lossy(entry.name_bytes());
            let inner = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            // Git allows no name that is empty, `.` or `..`. A name with a slash would pass for another
            // folder's.
            let Some(inner) = SpecPath::try_from(inner).ok().filter(|_| !name.contains('/')) else {
                continue;
            };
            let begins_hidden = !hidden && name.starts_with('.');
            if hidden || begins_hidden {
                if entry.name().is_ok_and(may_contain_user_files) {
                    self.aside(&entry, inner, begins_hidden, depth)?;
                }
            } else if entry.name().is_err() {
                self.found.add(inner, name_not_utf8());
            } else {
                self.visit(&entry, inner, depth)?;
            }
        }
        Ok(())
    }

    fn visit(&mut self, entry: &TreeEntry<'_>, path: SpecPath, depth: usize) -> Result<(), GitError> {
        match entry.kind() {
            Some(ObjectType::Tree) if is_spec(path.as_str()) => self.found.add(path, folder_named_as_file()),
            Some(ObjectType::Tree) if depth >= MAX_FOLDERS => self.found.add(path, too_deep()),
            Some(ObjectType::Tree) => return self.enter(entry, &path, depth),
            Some(ObjectType::Blob) if entry.filemode() == LINK => {
                if is_spec(path.as_str()) || !self.leads_to_a_file(entry, &path)? {
                    let message = "this is a link, and links in a git repository are not followed".to_owned();
                    self.found
                        .add(path, unreadable("link-in-git", message, "put a copy in place of the link"));
                }
            }
            Some(ObjectType::Blob) if is_spec(path.as_str()) => {
                let (size, entry) = self.spec(entry.id(), &path)?;
                let left = self.bytes_left.checked_sub(size);
                self.bytes_left = left.unwrap_or(self.bytes_left);
                self.found.add(path, if left.is_some() { entry } else { too_much() });
            }
            Some(ObjectType::Blob) => {
                if is_miscased(&path) {
                    self.found.add(path.clone(), miscased());
                }
                self.other(entry, path)?;
            }
            _ => {
                let message = "this is a submodule, which is not fetched".to_owned();
                self.found.add(path, unreadable("submodule", message, "put the specs themselves there"));
            }
        }
        Ok(())
    }

    /// Enters a folder. Each top folder has its own limits.
    fn enter(&mut self, entry: &TreeEntry<'_>, path: &SpecPath, depth: usize) -> Result<(), GitError> {
        if !self.found.counts(path) {
            return Ok(());
        }
        let tree = self.reader.tree(entry.id(), path.as_str())?;
        let beside = (self.found.count, self.others_left, self.hidden_left, self.bytes_left);
        if depth == 0 {
            (self.found.count, self.hidden_left, self.bytes_left) = (0, MAX_HIDDEN_FOLDERS, MAX_TOP_BYTES);
        }
        self.folder(&tree, path.as_str(), false, depth + 1)?;
        if depth == 0 {
            (self.found.count, self.others_left, self.hidden_left, self.bytes_left) = beside;
        }
        Ok(())
    }

    /// Searches a hidden entry for specs that were put aside.
    fn aside(
        &mut self,
        entry: &TreeEntry<'_>,
        path: SpecPath,
        begins: bool,
        depth: usize,
    ) -> Result<(), GitError> {
        match entry.kind() {
            Some(ObjectType::Tree) if self.hidden_left == 0 => Ok(()),
            Some(ObjectType::Tree) if depth < MAX_FOLDERS => {
                self.hidden_left -= 1;
                let left = self.others_left;
                if begins {
                    self.others_left = MAX_HIDDEN;
                }
                let tree = self.reader.tree(entry.id(), path.as_str())?;
                self.folder(&tree, path.as_str(), true, depth + 1)?;
                if begins {
                    self.others_left = left;
                }
                Ok(())
            }
            Some(ObjectType::Blob) if entry.filemode() != LINK => self.other(entry, path),
            _ => Ok(()),
        }
    }

    /// Reads a file that is not a spec file but may contain one.
    fn other(&mut self, entry: &TreeEntry<'_>, path: SpecPath) -> Result<(), GitError> {
        if self.others_left == 0 {
            return Ok(());
        }
        self.others_left -= 1;
        let kept = match self.known.others.get(&entry.id()) {
            Some(known) => known.clone(),
            None => match self.bytes(entry.id(), &path)? {
                Some(bytes) => mentions_api_version(&bytes).then_some(bytes),
                // A file that is too large may contain anything, so its name is kept.
                None => Some(Arc::default()),
            },
        };
        self.blobs.others.insert(entry.id(), kept.clone());
        self.skipped.extend(kept.map(|bytes| (path, bytes)));
        Ok(())
    }

    /// Reads a spec file. One that is too large doesn't count for the limit of bytes.
    fn spec(&mut self, id: Oid, path: &SpecPath) -> Result<(u64, SnapshotEntry), GitError> {
        let read = match self.known.specs.get(&id) {
            Some(known) => known.clone(),
            None => match self.bytes(id, path)? {
                Some(bytes) => (bytes.len() as u64, file(bytes)),
                None => (0, too_large()),
            },
        };
        self.blobs.specs.insert(id, read.clone());
        Ok(read)
    }

    /// Returns whether a link leads to a file in the repository, so that it hides no folder of specs.
    fn leads_to_a_file(&self, entry: &TreeEntry<'_>, path: &SpecPath) -> Result<bool, GitError> {
        let Some(bytes) = self.bytes(entry.id(), path)? else { return Ok(false) };
        let Ok(target) = std::str::from_utf8(&bytes) else { return Ok(false) };
        let mut parts: Vec<&str> = path.as_str().split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Ok(false),
                ".." => {}
                name => parts.push(name),
            }
        }
        let root = self.reader.folder.into_iter();
        let full: Vec<&str> = root.chain(parts).collect();
        let commit = self.reader.repository.find_commit(self.reader.commit);
        let tree = commit
            .and_then(|commit| commit.tree())
            .map_err(|error| self.reader.damaged("a folder", error))?;
        let found = tree.get_path(full.join("/").as_ref());
        Ok(!target.starts_with('/')
            && found.is_ok_and(|entry| entry.kind() == Some(ObjectType::Blob) && entry.filemode() != LINK))
    }

    /// Reads a file; none if it is too large.
    fn bytes(&self, id: Oid, path: &SpecPath) -> Result<Option<Arc<[u8]>>, GitError> {
        let damaged = |error| self.reader.damaged(path.as_str(), error);
        let (size, _) = self.odb.read_header(id).map_err(damaged)?;
        if size as u64 > MAX_BYTES {
            return Ok(None);
        }
        let object = self.odb.read(id).map_err(damaged)?;
        Ok(Some(Arc::from(object.data())))
    }
}
