//! API writes: each call becomes an edit of the spec files, under the same rules by which files are read, so
//! that there is only one way to change anything.
//!
//! The edit is decided ([`draft`]) on the newest content: in a git repository on the commit that was just
//! fetched; in a folder on the file's present bytes, within the tree of the last plan plus the writes since.
//! The edited tree, or the part of it that the edit can affect, is resolved like any other and refused if it
//! has a new problem ([`judge`]). Only then is it written. The call returns once the write would survive a
//! power cut, or the remote has accepted it.

mod advice;
mod attempt;
mod body;
mod current_plan;
mod described;
mod draft;
mod failed;
mod judge;
mod message;
mod refused;
#[cfg(test)]
mod tests;
mod write_request;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use crate::catalog::ResolvedTree;
use crate::names::{ResourceKey, SpecPath};
use crate::parallel::locked;
use crate::round::RoundMemory;
use crate::source::directory::write::{self as folder, FileWriteError};
use crate::source::directory::{ChangeCounter, Scanner, UnfinishedFiles, Watch, scan};
use crate::source::git::Mirror;
use crate::source::git::write::WriteError;
use crate::source::{Author, SourceChange};
use crate::spec::{self, Documents, Snapshot, SnapshotEntry};
use attempt::{CheckedEdit, attempt};
use failed::{away, left, not_pushed, unread};

pub use advice::{detail, hint};
pub use body::key_of;
pub use current_plan::{CurrentPlan, WriteMark};
pub use described::{described_cluster, refusal_of};
pub use draft::{etag, find};
pub use refused::WriteRefusal;
pub use write_request::{WriteAction, WriteRequest, WriteResult, wipe};

/// How often a write is retried when the file changes at the same time.
const TRIES: u32 = 5;

/// The problem code when the edit's location in the file is gone.
const NOT_THERE: &str = "edit-not-there";

/// The problem code when another program is saving the file.
const BEING_SAVED: &str = "edit-being-saved";

/// How long to wait for another program that is writing a file.
const PAUSE: Duration = Duration::from_millis(20);

pub enum SpecStore {
    Folder(Utf8PathBuf),
    Git(Arc<Mirror>),
}

pub struct Writer {
    place: SpecStore,
    memory: Arc<RoundMemory>,
    wake: Box<dyn Fn() + Send + Sync>,
    /// Set once the folder is watched.
    watched: OnceLock<Watched>,
    /// Admits one write at a time, and keeps the last written tree.
    turn: Mutex<Option<Arc<ResolvedTree>>>,
    book: Mutex<RecentWrites>,
}

struct Watched {
    /// The change notifications.
    heard: ChangeCounter,
    /// Files that another program has open for writing.
    unfinished: UnfinishedFiles,
    /// Caches unchanged files.
    scanner: Arc<Mutex<Scanner>>,
}

/// Writes that a plan may not include yet.
#[derive(Default)]
struct RecentWrites {
    number: u64,
    /// The last write of each resource that no plan is known to have read, with its number.
    written: BTreeMap<ResourceKey, (u64, Arc<WriteResult>)>,
}

impl Writer {
    /// `memory` is shared with the planner; `wake` is called when the specs have changed.
    pub fn new(place: SpecStore, memory: Arc<RoundMemory>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let (turn, book) = (Mutex::default(), Mutex::default());
        Self { place, memory, wake: Box::new(wake), watched: OnceLock::new(), turn, book }
    }

    /// Uses a folder's watch from now on, and its scanner. No file is written while another program writes
    /// it, and the tree isn't read again unless there was a notification.
    pub fn use_watch(&self, watch: &Watch, scanner: Arc<Mutex<Scanner>>) {
        let watched = Watched { heard: watch.heard(), unfinished: watch.unfinished(), scanner };
        // Set only once, by the code that watches the folder.
        let _ = self.watched.set(watched);
    }

    /// The git repository with the specs; `None` for a folder.
    pub fn mirror(&self) -> Option<&Mirror> {
        match &self.place {
            SpecStore::Folder(_) => None,
            SpecStore::Git(mirror) => Some(mirror),
        }
    }

    /// The present point in time. A scan that starts later sees all earlier writes.
    pub fn mark(&self) -> WriteMark {
        let heard = self.watched.get().and_then(|watched| watched.heard.mark());
        WriteMark { writes: locked(&self.book).number, heard }
    }

    /// The last write of each resource that the plan doesn't include.
    pub fn pending(&self, made: &CurrentPlan) -> BTreeMap<ResourceKey, Arc<WriteResult>> {
        locked(&self.book).since(made)
    }

    /// Returns the newest plan with the writes that it doesn't include, and forgets older writes. The lock is
    /// held throughout: a concurrent caller with an older plan would miss the forgotten writes.
    pub fn newest(
        &self,
        newest: impl FnOnce() -> CurrentPlan,
    ) -> (CurrentPlan, BTreeMap<ResourceKey, Arc<WriteResult>>) {
        let mut book = locked(&self.book);
        let made = newest();
        book.written.retain(|_, (number, _)| *number > made.mark.writes);
        let pending = book.since(&made);
        (made, pending)
    }

    /// Carries out a write, and returns when it is durable. It blocks; with a git repository, for as long as
    /// a fetch and a push take.
    ///
    /// # Errors
    /// When the write is not allowed or fails. It then leaves no trace, unless the error is `Unsure`.
    pub fn write(
        &self,
        made: &CurrentPlan,
        request: &WriteRequest,
        author: &Author,
    ) -> Result<Arc<WriteResult>, WriteRefusal> {
        let mut turn = locked(&self.turn);
        let attempt = match &self.place {
            SpecStore::Folder(root) => self.write_to_folder(root, made, request, turn.as_deref()),
            SpecStore::Git(mirror) => {
                let attempt = self.write_to_git(mirror, made, request, author, turn.as_deref());
                // A failed write may still have fetched a newer commit, which has to be planned.
                if attempt.is_err() && is_newer(made, mirror.commit().as_ref()) {
                    (self.wake)();
                }
                attempt
            }
        };
        let CheckedEdit { written, tree, .. } = attempt?;
        let written = Arc::new(written);
        if !written.is_new && !is_newer(made, written.commit.as_ref()) {
            return Ok(written);
        }
        if written.resource.is_none() {
            self.memory.withdraw(&written.key);
        }
        *turn = Some(tree);
        locked(&self.book).note(&written);
        (self.wake)();
        if !written.is_new {
            return Ok(written);
        }
        let by = &author.email;
        tracing::info!(by, commit = written.commit, path = %written.path, "{}", written.message);
        Ok(written)
    }

    /// Returns what would be written, and the resulting tree, without writing.
    ///
    /// # Errors
    /// Like [`Writer::write`], as far as errors are known beforehand.
    pub fn propose(
        &self,
        made: &CurrentPlan,
        request: &WriteRequest,
    ) -> Result<(Arc<Documents>, WriteResult), WriteRefusal> {
        let attempt = match &self.place {
            SpecStore::Folder(root) => self.attempt_in_folder(root, made, request, None),
            SpecStore::Git(mirror) => {
                let snapshot = mirror.latest().map_err(|error| away(&error))?;
                let tree = Arc::new(spec::read(&snapshot, Some(&made.documents)));
                attempt(made, request, tree, &|path| bytes(&snapshot, path), None)
            }
        }?;
        Ok((Arc::clone(&attempt.tree.documents), attempt.written))
    }

    fn write_to_folder(
        &self,
        root: &Utf8Path,
        made: &CurrentPlan,
        request: &WriteRequest,
        known: Option<&ResolvedTree>,
    ) -> Result<CheckedEdit, WriteRefusal> {
        let mut refused = None;
        for _ in 0..TRIES {
            let attempt = match self.attempt_in_folder(root, made, request, known) {
                // The file was changed after the tree was read.
                Err(WriteRefusal::Edit(problem)) if problem.code == NOT_THERE => {
                    refused = Some(WriteRefusal::Edit(problem));
                    continue;
                }
                Err(WriteRefusal::Edit(problem)) if problem.code == BEING_SAVED => {
                    refused = Some(WriteRefusal::Edit(problem));
                    sleep(PAUSE);
                    continue;
                }
                attempt => attempt?,
            };
            let Some(edit) = &attempt.edit else { return Ok(attempt) };
            if self.watched.get().is_some_and(|watched| watched.unfinished.has(root, &edit.path)) {
                refused = Some(FileWriteError::Changed { path: edit.path.clone() }.into());
                sleep(PAUSE);
                continue;
            }
            // Announced before the file is readable: the first plan that reads it records the time of the
            // change.
            self.announce(&attempt.written);
            match folder::write(root, edit, attempt.before.as_deref()) {
                Ok(()) => return Ok(attempt),
                Err(error) => {
                    if !matches!(error, FileWriteError::Unsure { .. }) {
                        self.withdraw(&attempt.written);
                    }
                    let is_changed = matches!(error, FileWriteError::Changed { .. });
                    refused = Some(WriteRefusal::from(error));
                    if !is_changed {
                        break;
                    }
                }
            }
        }
        Err(refused.unwrap_or_else(|| WriteRefusal::NotThere(request.key.clone())))
    }

    fn attempt_in_folder(
        &self,
        root: &Utf8Path,
        made: &CurrentPlan,
        request: &WriteRequest,
        known: Option<&ResolvedTree>,
    ) -> Result<CheckedEdit, WriteRefusal> {
        let attempt = |tree| attempt(made, request, tree, &|path| Ok(folder::read(root, path)?), known);
        let tree = self.tree_of_folder(root, made, known)?;
        let is_planned = Arc::ptr_eq(&tree, &made.documents);
        let absent = match attempt(tree) {
            Err(absent) if is_about_absence(&absent) => absent,
            attempt => return attempt,
        };
        if is_planned {
            // The document may have been moved to another file since.
            return attempt(self.scanned(root, &made.documents)?);
        }
        // The file that it was in may be unreadable by now, which is the better error.
        match attempt(Arc::clone(&made.documents)) {
            Err(WriteRefusal::Edit(problem)) if problem.code != NOT_THERE => Err(WriteRefusal::Edit(problem)),
            _ => Err(self.being_saved(root, made, request).unwrap_or(absent)),
        }
    }

    /// The refusal when a resource's file is being written, or has become empty: editors truncate a file
    /// before they write it.
    fn being_saved(
        &self,
        root: &Utf8Path,
        made: &CurrentPlan,
        request: &WriteRequest,
    ) -> Option<WriteRefusal> {
        let path = draft::file(request, &made.documents, &made.round.checked.recorded).ok()?;
        made.documents.files.get(&path)?;
        let is_empty = || {
            folder::read(root, &path).is_ok_and(|bytes| bytes.is_some_and(|it| it.trim_ascii().is_empty()))
        };
        let is_written = || self.watched.get().is_some_and(|watched| watched.unfinished.has(root, &path));
        (is_written() || is_empty()).then(|| {
            let (why, hint) = ("the file is empty; somebody may be saving it", "try again when it is saved");
            left(&path, BEING_SAVED, why, hint)
        })
    }

    /// The present tree: the last planned one if there was no notification since, from any writer.
    fn tree_of_folder(
        &self,
        root: &Utf8Path,
        made: &CurrentPlan,
        known: Option<&ResolvedTree>,
    ) -> Result<Arc<Documents>, WriteRefusal> {
        match self.watched.get().is_some_and(|watched| watched.heard.is_unchanged_since(made.mark.heard)) {
            true => Ok(Arc::clone(&made.documents)),
            false => self.scanned(root, known.map_or(&made.documents, |known| &known.documents)),
        }
    }

    /// Scans the whole present tree. Unchanged files aren't parsed again.
    fn scanned(&self, root: &Utf8Path, previous: &Documents) -> Result<Arc<Documents>, WriteRefusal> {
        let snapshot = match self.watched.get() {
            Some(watched) => locked(&watched.scanner).scan_all(root),
            None => scan(root).map(Arc::new),
        };
        let snapshot = snapshot.map_err(|error| unread(&error))?;
        Ok(Arc::new(spec::read(&snapshot, Some(previous))))
    }

    fn write_to_git(
        &self,
        mirror: &Mirror,
        made: &CurrentPlan,
        request: &WriteRequest,
        author: &Author,
        known: Option<&ResolvedTree>,
    ) -> Result<CheckedEdit, WriteRefusal> {
        let mut last: Option<CheckedEdit> = None;
        let written = mirror.write(author, |snapshot| {
            // A retry: the previous attempt came to nothing.
            last.take().iter().for_each(|attempt| self.withdraw(&attempt.written));
            let previous = known.map_or(&made.documents, |known| &known.documents);
            let tree = Arc::new(spec::read(snapshot, Some(previous)));
            let attempt = attempt(made, request, tree, &|path| bytes(snapshot, path), known)?;
            self.announce(&attempt.written);
            let (message, edits) = (attempt.written.message.clone(), attempt.edit.iter().cloned().collect());
            last = Some(attempt);
            Ok(SourceChange { message, edits })
        });
        match (written, last) {
            (Ok(written), Some(mut attempt)) => {
                attempt.written.is_new = written.is_new;
                attempt.written.commit = Some(written.commit);
                Ok(attempt)
            }
            (Ok(_), None) => Err(WriteRefusal::NotThere(request.key.clone())),
            (Err(error), last) => {
                if !matches!(error, WriteError::Unsure { .. }) {
                    last.iter().for_each(|attempt| self.withdraw(&attempt.written));
                }
                Err(not_pushed(error))
            }
        }
    }

    fn announce(&self, written: &WriteResult) {
        match &written.resource {
            _ if written.is_created => self.memory.announce(&written.key, written.at),
            Some(resource) if written.is_new => {
                self.memory.announce_change(&written.key, written.at, resource.spec.redacted());
            }
            _ => {}
        }
        match written.resource {
            Some(_) => self.memory.keep(&written.key),
            None => self.memory.remove(&written.key, written.at),
        }
    }

    fn withdraw(&self, written: &WriteResult) {
        match written.is_created {
            true => self.memory.withdraw(&written.key),
            false => self.memory.withdraw_change(&written.key),
        }
        if written.resource.is_none() {
            self.memory.keep(&written.key);
        }
    }
}

impl RecentWrites {
    fn note(&mut self, written: &Arc<WriteResult>) {
        self.number += 1;
        self.written.insert(written.key.clone(), (self.number, Arc::clone(written)));
    }

    fn since(&self, made: &CurrentPlan) -> BTreeMap<ResourceKey, Arc<WriteResult>> {
        let later = self.written.iter().filter(|(_, (number, _))| *number > made.mark.writes);
        later.map(|(key, (_, written))| (key.clone(), Arc::clone(written))).collect()
    }
}

/// Whether the fetched commit differs from the planned one.
fn is_newer(made: &CurrentPlan, commit: Option<&String>) -> bool {
    commit.is_some() && commit != made.documents.commit.as_ref().map(|planned| &planned.id)
}

/// Whether a refusal may be due to a tree that changed since the plan.
fn is_about_absence(refused: &WriteRefusal) -> bool {
    match refused {
        WriteRefusal::NotThere(_) => true,
        WriteRefusal::Edit(problem) => problem.code == NOT_THERE,
        _ => false,
    }
}

fn bytes(snapshot: &Snapshot, path: &SpecPath) -> Result<Option<Vec<u8>>, WriteRefusal> {
    match snapshot.entries.get(path) {
        None => Ok(None),
        Some(SnapshotEntry::File { bytes, .. }) => Ok(Some(bytes.to_vec())),
        Some(SnapshotEntry::Unreadable { message, hint, .. }) => {
            Err(left(path, "edit-unreadable", message, hint))
        }
    }
}
