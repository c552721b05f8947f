//! A call becomes an edit of the spec files, by the rules by which files are read: there is one way to change anything.
//!
//! What a call wants is decided ([`draft`]) in a git repository on the commit that was just fetched, and in a folder on the
//! file as it stands there, in the tree of the last plan with what was written through here since. The tree with the edit is resolved as every tree is,
//! and refused for anything new that is wrong with it ([`judge`]). Only then is anything written, and whoever called hears of
//! it when it outlasts a power cut, or when the remote has it.

mod advice;
mod attempt;
mod body;
mod draft;
mod failed;
mod foreseen;
mod judge;
mod message;
mod refused;
mod scope;
#[cfg(test)]
mod tests;
mod wish;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::desk::Made;
use crate::catalog::{Neighbours, Records};
use crate::names::{ResourceKey, SpecPath};
use crate::parallel::locked;
use crate::round::{Memory, Round};
use crate::source::directory::write::{self as folder, NotWritten};
use crate::source::directory::{Heard, Scanner, Unfinished, Watch, scan};
use crate::source::git::Mirror;
use crate::source::git::write::WriteError;
use crate::source::{Author, Change};
use crate::spec::{self, Documents, Entry, Snapshot};
use attempt::{Attempt, attempt};
use failed::{away, left, not_pushed, unread};
use judge::Ails;

pub use body::key_of;
pub use draft::{etag, find};
pub use refused::{Fault, Guard, Refused, Shortage};
pub use wish::{What, Wish, Written, wipe};

/// How often a file is read and edited anew that somebody else changes at the same time.
const TRIES: u32 = 5;

/// What an edit is refused with whose place in the file is gone.
const NOT_THERE: &str = "edit-not-there";

/// What an edit is refused with whose file somebody is saving.
const BEING_SAVED: &str = "edit-being-saved";

/// How long is waited for somebody who writes a file.
const PAUSE: Duration = Duration::from_millis(20);

/// Where specs are written.
pub enum Place {
    /// In a folder.
    Folder(Utf8PathBuf),
    /// In a git repository.
    Git(Arc<Mirror>),
}

/// What writes specs for those who call.
pub struct Writer {
    place: Place,
    memory: Arc<Memory>,
    /// Says that there are other specs.
    wake: Box<dyn Fn() + Send + Sync>,
    /// What is told of a folder.
    watched: OnceLock<Watched>,
    /// Whose turn it is to write, with what is known of the tree that was written last.
    turn: Mutex<Option<Known>>,
    book: Mutex<Book>,
}

/// A folder that is watched.
struct Watched {
    /// What was told of it.
    heard: Heard,
    /// The files that somebody writes and has not closed yet.
    unfinished: Unfinished,
    /// What knows the files that are as they were.
    scanner: Arc<Mutex<Scanner>>,
}

/// A moment: how often anything was written by then, and told of a folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    /// How often anything was written.
    pub writes: u64,
    heard: Option<u64>,
}

/// A tree that was resolved, and what was found to be wrong with it.
struct Known {
    /// The plan whose record it was resolved against.
    round: Arc<Round>,
    /// That record, with what was applied since.
    records: Records,
    documents: Arc<Documents>,
    /// The part of it that was resolved; none for the whole.
    around: Option<Neighbours>,
    ails: Ails,
}

/// What was written lately.
#[derive(Default)]
struct Book {
    /// How often anything was written.
    number: u64,
    /// What no plan is known to have read, by what it is about: the last word of each, with its number.
    written: BTreeMap<ResourceKey, (u64, Arc<Written>)>,
}

impl Writer {
    /// Of specs in a place. Whoever makes plans is woken when there are others, and has this memory.
    pub fn new(place: Place, memory: Arc<Memory>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let (turn, book) = (Mutex::default(), Mutex::default());
        Self { place, memory, wake: Box::new(wake), watched: OnceLock::new(), turn, book }
    }

    /// The folder is watched from now on, and scanned by this: no file is written that somebody else is writing, and the tree is
    /// not read again as long as nothing was told of it.
    pub fn heed(&self, watch: &Watch, scanner: Arc<Mutex<Scanner>>) {
        let watched = Watched { heard: watch.heard(), unfinished: watch.unfinished(), scanner };
        // It is told once, by who watches the folder.
        let _ = self.watched.set(watched);
    }

    /// This moment: whoever reads the specs from now on reads all that was written by then.
    pub fn mark(&self) -> Mark {
        let heard = self.watched.get().and_then(|watched| watched.heard.mark());
        Mark { writes: locked(&self.book).number, heard }
    }

    /// What was written since the specs of a plan were read, by what it is about: the last word of each.
    pub fn pending(&self, made: &Made) -> BTreeMap<ResourceKey, Arc<Written>> {
        locked(&self.book).since(made)
    }

    /// The newest plan, with what was written since its specs were read. What that plan has is forgotten, and nobody else
    /// looks meanwhile: an older plan would lack it.
    pub fn newest(&self, newest: impl FnOnce() -> Made) -> (Made, BTreeMap<ResourceKey, Arc<Written>>) {
        let mut book = locked(&self.book);
        let made = newest();
        book.written.retain(|_, (number, _)| *number > made.mark.writes);
        let pending = book.since(&made);
        (made, pending)
    }

    /// Writes what somebody wants, and comes back when that is there for good. It blocks: where the specs are in a git
    /// repository, for as long as fetching and pushing takes.
    ///
    /// # Errors
    /// When it may not be written, or can't. Nothing is left of it then.
    pub fn write(&self, made: &Made, wish: &Wish, author: &Author) -> Result<Arc<Written>, Refused> {
        let mut turn = locked(&self.turn);
        let attempt = match &self.place {
            Place::Folder(root) => self.write_to_folder(root, made, wish, turn.as_ref()),
            Place::Git(mirror) => {
                let attempt = self.write_to_git(mirror, made, wish, author, turn.as_ref());
                // What was fetched with it is in force, whatever came of it.
                if attempt.is_err() && is_newer(made, mirror.commit().as_ref()) {
                    (self.wake)();
                }
                attempt
            }
        };
        let Attempt { written, records, documents, around, ails, .. } = attempt?;
        let written = Arc::new(written);
        if !written.is_new && !is_newer(made, written.commit.as_ref()) {
            return Ok(written);
        }
        if written.resource.is_none() {
            self.memory.withdraw(&written.key);
        }
        *turn = Some(Known { round: Arc::clone(&made.round), records, documents, around, ails });
        locked(&self.book).note(&written);
        (self.wake)();
        if !written.is_new {
            return Ok(written);
        }
        let by = &author.email;
        tracing::info!(by, commit = written.commit, path = %written.path, "{}", written.message);
        Ok(written)
    }

    /// What would be written, and the tree as it would be then. Nothing is.
    ///
    /// # Errors
    /// As [`Writer::write`], as far as that is known before.
    pub fn propose(&self, made: &Made, wish: &Wish) -> Result<(Arc<Documents>, Written), Refused> {
        let attempt = match &self.place {
            Place::Folder(root) => self.attempt_in_folder(root, made, wish, None),
            Place::Git(mirror) => {
                let snapshot = mirror.snapshot().map_err(|error| away(&error))?;
                let tree = Arc::new(spec::read(&snapshot, Some(&made.documents)));
                attempt(made, wish, tree, &|path| bytes(&snapshot, path), None)
            }
        }?;
        Ok((attempt.documents, attempt.written))
    }

    fn write_to_folder(
        &self,
        root: &Utf8Path,
        made: &Made,
        wish: &Wish,
        known: Option<&Known>,
    ) -> Result<Attempt, Refused> {
        let mut refused = None;
        for _ in 0..TRIES {
            let attempt = match self.attempt_in_folder(root, made, wish, known) {
                // The file was changed since the tree was read.
                Err(Refused::Edit(problem)) if problem.code == NOT_THERE => {
                    refused = Some(Refused::Edit(problem));
                    continue;
                }
                Err(Refused::Edit(problem)) if problem.code == BEING_SAVED => {
                    refused = Some(Refused::Edit(problem));
                    sleep(PAUSE);
                    continue;
                }
                attempt => attempt?,
            };
            let Some(edit) = &attempt.edit else { return Ok(attempt) };
            if self.watched.get().is_some_and(|watched| watched.unfinished.has(root, &edit.path)) {
                refused = Some(NotWritten::Changed { path: edit.path.clone() }.into());
                sleep(PAUSE);
                continue;
            }
            // Before anybody can read it: whoever plans it first records when it was made.
            self.announce(&attempt.written);
            match folder::write(root, edit, attempt.before.as_deref()) {
                Ok(()) => return Ok(attempt),
                Err(error) => {
                    if !matches!(error, NotWritten::Unsure { .. }) {
                        self.withdraw(&attempt.written);
                    }
                    let is_changed = matches!(error, NotWritten::Changed { .. });
                    refused = Some(Refused::from(error));
                    if !is_changed {
                        break;
                    }
                }
            }
        }
        Err(refused.unwrap_or_else(|| Refused::NotThere(wish.key.clone())))
    }

    fn attempt_in_folder(
        &self,
        root: &Utf8Path,
        made: &Made,
        wish: &Wish,
        known: Option<&Known>,
    ) -> Result<Attempt, Refused> {
        let attempt = |tree| attempt(made, wish, tree, &|path| Ok(folder::read(root, path)?), known);
        let tree = self.tree_of_folder(root, made, known)?;
        let is_planned = Arc::ptr_eq(&tree, &made.documents);
        let absent = match attempt(tree) {
            Err(absent) if is_about_absence(&absent) => absent,
            attempt => return attempt,
        };
        if is_planned {
            // It may have been moved to another file since.
            return attempt(self.scanned(root, &made.documents)?);
        }
        // Where it was by the plan may be unreadable by now, which says more.
        match attempt(Arc::clone(&made.documents)) {
            Err(Refused::Edit(problem)) if problem.code != NOT_THERE => Err(Refused::Edit(problem)),
            _ => Err(self.being_saved(root, made, wish).unwrap_or(absent)),
        }
    }

    /// Why nothing is written where a resource's file is empty that was not, or is being written: an editor empties a file before
    /// it writes it.
    fn being_saved(&self, root: &Utf8Path, made: &Made, wish: &Wish) -> Option<Refused> {
        let path = draft::file(wish, &made.documents, &made.round.checked.recorded).ok()?;
        made.documents.files.get(&path)?;
        let is_empty = || {
            folder::read(root, &path).is_ok_and(|bytes| bytes.is_some_and(|it| it.trim_ascii().is_empty()))
        };
        let is_written = || self.watched.get().is_some_and(|watched| watched.unfinished.has(root, &path));
        (is_written() || is_empty()).then(|| {
            let (why, hint) = ("it was emptied, as when somebody saves it", "try again when it is saved");
            left(&path, BEING_SAVED, why, hint)
        })
    }

    /// The tree as it is now: the one that was planned last, where nothing is told of it since, by whomever.
    fn tree_of_folder(
        &self,
        root: &Utf8Path,
        made: &Made,
        known: Option<&Known>,
    ) -> Result<Arc<Documents>, Refused> {
        match self.watched.get().is_some_and(|watched| watched.heard.is_quiet_since(made.mark.heard)) {
            true => Ok(Arc::clone(&made.documents)),
            false => self.scanned(root, known.map_or(&made.documents, |known| &known.documents)),
        }
    }

    /// The tree as it is now, all of it. No file is parsed again that is as it was in an earlier one.
    fn scanned(&self, root: &Utf8Path, previous: &Documents) -> Result<Arc<Documents>, Refused> {
        let snapshot = match self.watched.get() {
            Some(watched) => locked(&watched.scanner).scan_all(root),
            None => scan(root),
        };
        let snapshot = snapshot.map_err(|error| unread(&error))?;
        Ok(Arc::new(spec::read(&snapshot, Some(previous))))
    }

    fn write_to_git(
        &self,
        mirror: &Mirror,
        made: &Made,
        wish: &Wish,
        author: &Author,
        known: Option<&Known>,
    ) -> Result<Attempt, Refused> {
        let mut last: Option<Attempt> = None;
        let written = mirror.write(author, |snapshot| {
            // Nothing came of an earlier one.
            last.take().iter().for_each(|attempt| self.withdraw(&attempt.written));
            let previous = known.map_or(&made.documents, |known| &known.documents);
            let tree = Arc::new(spec::read(snapshot, Some(previous)));
            let attempt = attempt(made, wish, tree, &|path| bytes(snapshot, path), known)?;
            self.announce(&attempt.written);
            let (message, edits) = (attempt.written.message.clone(), attempt.edit.iter().cloned().collect());
            last = Some(attempt);
            Ok(Change { message, edits })
        });
        match (written, last) {
            (Ok(written), Some(mut attempt)) => {
                attempt.written.is_new = written.is_new;
                attempt.written.commit = Some(written.commit);
                Ok(attempt)
            }
            (Ok(_), None) => Err(Refused::NotThere(wish.key.clone())),
            (Err(error), last) => {
                if !matches!(error, WriteError::Unsure { .. }) {
                    last.iter().for_each(|attempt| self.withdraw(&attempt.written));
                }
                Err(not_pushed(error))
            }
        }
    }

    fn announce(&self, written: &Written) {
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

    fn withdraw(&self, written: &Written) {
        match written.is_created {
            true => self.memory.withdraw(&written.key),
            false => self.memory.withdraw_change(&written.key),
        }
        if written.resource.is_none() {
            self.memory.keep(&written.key);
        }
    }
}

impl Book {
    fn note(&mut self, written: &Arc<Written>) {
        self.number += 1;
        self.written.insert(written.key.clone(), (self.number, Arc::clone(written)));
    }

    fn since(&self, made: &Made) -> BTreeMap<ResourceKey, Arc<Written>> {
        let later = self.written.iter().filter(|(_, (number, _))| *number > made.mark.writes);
        later.map(|(key, (_, written))| (key.clone(), Arc::clone(written))).collect()
    }
}

/// Whether a commit is in force that is another one than was planned.
fn is_newer(made: &Made, commit: Option<&String>) -> bool {
    commit.is_some() && commit != made.documents.commit.as_ref().map(|planned| &planned.id)
}

/// Whether something may be refused only because the tree is another one by now than was planned.
fn is_about_absence(refused: &Refused) -> bool {
    match refused {
        Refused::NotThere(_) => true,
        Refused::Edit(problem) => problem.code == NOT_THERE,
        _ => false,
    }
}

/// A file of a commit.
fn bytes(snapshot: &Snapshot, path: &SpecPath) -> Result<Option<Vec<u8>>, Refused> {
    match snapshot.entries.get(path) {
        None => Ok(None),
        Some(Entry::File { bytes, .. }) => Ok(Some(bytes.to_vec())),
        Some(Entry::Unreadable { message, hint, .. }) => Err(left(path, "edit-unreadable", message, hint)),
    }
}
