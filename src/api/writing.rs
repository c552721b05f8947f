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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::sleep;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::desk::Made;
use crate::catalog::Neighbours;
use crate::names::{ResourceKey, SpecPath};
use crate::parallel::locked;
use crate::round::{Memory, Round};
use crate::source::directory::write::{self as folder, NotWritten};
use crate::source::directory::{Unfinished, scan};
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
pub use wish::{What, Wish, Written};

/// How often a file is read and edited anew that somebody else changes at the same time.
const TRIES: u32 = 5;

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
    /// The files of a folder that somebody writes and has not closed yet.
    unfinished: OnceLock<Unfinished>,
    /// Whose turn it is to write, with what is known of the tree that was written last.
    turn: Mutex<Option<Known>>,
    book: Mutex<Book>,
}

/// A tree that was resolved, and what was found to be wrong with it.
struct Known {
    /// The plan whose record it was resolved against.
    round: Arc<Round>,
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
    /// What no plan is known to have read, each with its number.
    written: Vec<(u64, Arc<Written>)>,
}

impl Writer {
    /// Of specs in a place. Whoever makes plans is woken when there are others, and has this memory.
    pub fn new(place: Place, memory: Arc<Memory>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let (turn, book) = (Mutex::default(), Mutex::default());
        Self { place, memory, wake: Box::new(wake), unfinished: OnceLock::new(), turn, book }
    }

    /// From now on, no file is written that somebody else is writing.
    pub fn heed(&self, unfinished: Unfinished) {
        // It is told once, by who watches the folder.
        let _ = self.unfinished.set(unfinished);
    }

    /// How often anything was written: whoever reads the specs from now on reads all of that.
    pub fn mark(&self) -> u64 {
        locked(&self.book).number
    }

    /// What was written since the specs of a plan were read, by what it is about: the last word of each.
    pub fn pending(&self, made: &Made) -> BTreeMap<ResourceKey, Arc<Written>> {
        let written = self.since(made);
        written.into_iter().map(|written| (written.key.clone(), written)).collect()
    }

    fn since(&self, made: &Made) -> Vec<Arc<Written>> {
        let book = locked(&self.book);
        let later = book.written.iter().filter(|(number, _)| *number > made.writes);
        later.map(|(_, written)| Arc::clone(written)).collect()
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
        let Attempt { written, documents, around, ails, .. } = attempt?;
        let written = Arc::new(written);
        if !written.is_new && !is_newer(made, written.commit.as_ref()) {
            return Ok(written);
        }
        if written.resource.is_none() {
            self.memory.withdraw(&written.key);
        }
        *turn = Some(Known { round: Arc::clone(&made.round), documents, around, ails });
        self.note(made, &written);
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
            Place::Folder(root) => {
                let attempt = |tree| attempt(made, wish, tree, &|path| Ok(folder::read(root, path)?), None);
                match attempt(self.tree_of_folder(root, made, None)) {
                    Err(absent) if is_about_absence(&absent) => attempt(scanned(root, made)?),
                    attempt => attempt,
                }
            }
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
        let mut is_scanned = false;
        for _ in 0..TRIES {
            let tree = match is_scanned {
                false => self.tree_of_folder(root, made, known),
                true => scanned(root, made)?,
            };
            let attempt = match attempt(made, wish, tree, &|path| Ok(folder::read(root, path)?), known) {
                // It may have been moved to another file since.
                Err(absent) if !is_scanned && is_about_absence(&absent) => {
                    (is_scanned, refused) = (true, Some(absent));
                    continue;
                }
                attempt => attempt?,
            };
            let Some(edit) = &attempt.edit else { return Ok(attempt) };
            if self.unfinished.get().is_some_and(|unfinished| unfinished.has(root, &edit.path)) {
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

    /// The tree that was planned last, with what was written since.
    fn tree_of_folder(&self, root: &Utf8Path, made: &Made, known: Option<&Known>) -> Arc<Documents> {
        let paths: BTreeSet<SpecPath> = self.since(made).iter().map(|written| written.path.clone()).collect();
        // What can't be read by now stays as the plan has it.
        let files =
            paths.into_iter().filter_map(|path| Some((path.clone(), folder::read(root, &path).ok()?)));
        let files: Vec<_> = files.collect();
        match files.is_empty() {
            true => Arc::clone(&made.documents),
            false => Arc::new(made.documents.with_files(&files, known.map(|known| &*known.documents))),
        }
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
        if written.is_created {
            self.memory.announce(&written.key, written.at);
        }
    }

    fn withdraw(&self, written: &Written) {
        if written.is_created {
            self.memory.withdraw(&written.key);
        }
    }

    fn note(&self, made: &Made, written: &Arc<Written>) {
        let mut book = locked(&self.book);
        book.number += 1;
        let number = book.number;
        book.written.retain(|(number, _)| *number > made.writes);
        book.written.push((number, Arc::clone(written)));
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
        Refused::Edit(problem) => problem.code == "edit-not-there",
        _ => false,
    }
}

/// The tree as it is now, all of it.
fn scanned(root: &Utf8Path, made: &Made) -> Result<Arc<Documents>, Refused> {
    let snapshot = scan(root).map_err(|error| unread(&error))?;
    Ok(Arc::new(spec::read(&snapshot, Some(&made.documents))))
}

/// A file of a commit.
fn bytes(snapshot: &Snapshot, path: &SpecPath) -> Result<Option<Vec<u8>>, Refused> {
    match snapshot.entries.get(path) {
        None => Ok(None),
        Some(Entry::File { bytes, .. }) => Ok(Some(bytes.to_vec())),
        Some(Entry::Unreadable { message, hint, .. }) => Err(left(path, "edit-unreadable", message, hint)),
    }
}
