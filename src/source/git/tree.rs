//! The specs of a commit, by the rules of a folder of them. Nothing is followed: a link or another repository in a place
//! where specs may be is unreadable.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use git2::{ErrorCode, ObjectType, Odb, Oid, Repository, Signature, StatusOptions, Tree, TreeEntry};

use super::GitError;
use crate::names::SpecPath;
use crate::source::rules::{
    Found, MAX_BYTES, MAX_FOLDERS, MAX_HIDDEN, MAX_OTHERS, file, folder_named_as_file, is_miscased,
    is_peoples, is_spec, miscased, name_not_utf8, speaks_of_specs, too_deep, too_large, unreadable,
};
use crate::spec::{Commit, Entry, Snapshot, SourceId};

/// The mode of a link, as git has it.
const LINK: i32 = 0o120_000;

/// The most folders in one top folder that are looked into though nothing is read there.
const MAX_HIDDEN_FOLDERS: u32 = 10_000;

/// The most bytes of specs in one top folder: a spec has about one KiB, and this is a hundred thousand of them twice over.
const MAX_TOP_BYTES: u64 = 256 << 20;

/// A commit that is to be read.
pub(super) struct Reader<'a> {
    pub(super) repository: &'a Repository,
    pub(super) url: &'a str,
    pub(super) commit: Oid,
    pub(super) folder: Option<&'a str>,
}

impl Reader<'_> {
    /// The snapshot of all specs.
    ///
    /// # Errors
    /// When anything of it is missing: half a commit is none.
    pub(super) fn read(&self, source: SourceId) -> Result<Snapshot, GitError> {
        let commit =
            self.repository.find_commit(self.commit).map_err(|error| self.damaged("a commit", error))?;
        let whole = commit.tree().map_err(|error| self.damaged("a folder", error))?;
        let root = self.root(whole)?;
        let odb = self.repository.odb().map_err(|error| self.damaged("the objects", error))?;
        let mut walk = Walk {
            reader: self,
            odb,
            found: Found::default(),
            skipped: BTreeMap::new(),
            others_left: MAX_OTHERS,
            hidden_left: MAX_HIDDEN_FOLDERS,
            bytes_left: MAX_TOP_BYTES,
        };
        walk.folder(&root, "", false, 0)?;
        let revision = self.commit.to_string();
        let author = author(&commit.author());
        let commit = Some(Commit { id: revision.clone(), author, is_edited: false, rewrote: None });
        Ok(Snapshot { source, revision, commit, skipped: walk.skipped, entries: walk.found.entries })
    }

    /// The folder of the specs.
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

/// The commit that a folder is a checkout of; none where it is part of no git repository, or of an empty one.
///
/// # Errors
/// When the repository can't be read, as one that belongs to another user.
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

/// Whether specs of a checkout are others than those of its commit, or are not in it.
fn has_edited_specs(repository: &Repository) -> Result<bool, git2::Error> {
    let mut options = StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
    let changed = repository.statuses(Some(&mut options))?;
    let is_yaml = |path: &[u8]| path.ends_with(b".yaml") || path.ends_with(b".yml");
    Ok(changed.iter().any(|entry| is_yaml(entry.path_bytes())))
}

/// Who a commit says wrote it.
fn author(signature: &Signature<'_>) -> String {
    let [name, email] = [signature.name_bytes(), signature.email_bytes()].map(String::from_utf8_lossy);
    format!("{name} <{email}>").chars().filter(|letter| !letter.is_control()).collect()
}

/// The specs of a top folder are too many bytes.
fn too_much() -> Entry {
    let message = format!(
        "the specs of the top folder are more than {} MiB together, and this one and those after it are not read",
        MAX_TOP_BYTES >> 20
    );
    unreadable("too-many-bytes", message, "keep what is no spec elsewhere, or divide the tree")
}

struct Walk<'a> {
    reader: &'a Reader<'a>,
    odb: Odb<'a>,
    found: Found,
    skipped: BTreeMap<SpecPath, Arc<[u8]>>,
    /// How many more files that are no specs may be looked into in the folder that the walk is in.
    others_left: u32,
    /// How many more folders may be looked into in this top folder though nothing is read there. Git stores a folder once
    /// however often it is named, so that a small repository can name more than anybody could visit.
    hidden_left: u32,
    /// How many more bytes of specs this top folder may have, for the same reason.
    bytes_left: u64,
}

impl Walk<'_> {
    /// Goes through a folder; through one whose name begins with a dot only for what may have been put aside there.
    fn folder(&mut self, tree: &Tree<'_>, path: &str, hidden: bool, depth: usize) -> Result<(), GitError> {
        for entry in tree {
            let name = String::from_utf8_lossy(entry.name_bytes());
            let inner = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            // Git takes no name that is empty, `.` or `..`, and one that has a slash would stand for another folder's file.
            let Some(inner) = SpecPath::try_from(inner).ok().filter(|_| !name.contains('/')) else {
                continue;
            };
            let begins_hidden = !hidden && name.starts_with('.');
            if hidden || begins_hidden {
                if entry.name().is_ok_and(is_peoples) {
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
                    let message = "this is a link, which is not followed in a git repository".to_owned();
                    self.found
                        .add(path, unreadable("link-in-git", message, "put a copy in place of the link"));
                }
            }
            Some(ObjectType::Blob) if is_spec(path.as_str()) => {
                let entry = match self.bytes(entry.id(), &path)? {
                    Some(bytes) if bytes.len() as u64 <= self.bytes_left => {
                        self.bytes_left -= bytes.len() as u64;
                        file(bytes)
                    }
                    Some(_) => too_much(),
                    None => too_large(),
                };
                self.found.add(path, entry);
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

    /// Goes into a folder. What stands in one top folder takes nothing away from others.
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

    /// What stands where nothing is read.
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

    /// A file that is not read as a spec, and may hold one all the same.
    fn other(&mut self, entry: &TreeEntry<'_>, path: SpecPath) -> Result<(), GitError> {
        if self.others_left == 0 {
            return Ok(());
        }
        self.others_left -= 1;
        match self.bytes(entry.id(), &path)? {
            Some(bytes) if !speaks_of_specs(&bytes) => {}
            // What is too large may say anything, so its name has to do.
            bytes => {
                self.skipped.insert(path, bytes.unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Whether a link leads to a file of the repository's specs, so that no folder of specs is behind it.
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

    /// The bytes of a file; none where they are too many.
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
