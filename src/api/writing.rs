//! A call becomes an edit of the spec files, by the rules by which files are read: there is one way to change anything.
//!
//! What a call wants is decided on the tree as it is in the moment of writing ([`draft`]): in a folder on the file as it
//! stands there, in a git repository on the commit that was just fetched. The tree with the edit is resolved as every tree is,
//! and refused for anything new that is wrong with it ([`judge`]). Only then is anything written, and whoever called hears of
//! it when it outlasts a power cut, or when the remote has it.

mod body;
mod draft;
mod judge;
mod message;
mod refused;
#[cfg(test)]
mod tests;
mod wish;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::desk::Made;
use crate::catalog::{self, Recorded, Secrets};
use crate::names::{ResourceKey, SpecPath};
use crate::problem::{Location, Origin, Problem};
use crate::round::{Memory, Round};
use crate::source::directory::write::{self as folder, NotWritten};
use crate::source::git::write::WriteError;
use crate::source::git::{GitError, Mirror};
use crate::source::{Author, Change, Edit};
use crate::spec::{self, Documents, Entry, Snapshot};
use crate::state::{State, StateError};
use draft::{Basis, Draft};
use judge::{Ails, Edited};

pub use body::key_of;
pub use draft::{etag, find};
pub use refused::{Fault, Guard, Refused, Shortage};
pub use wish::{What, Wish, Written};

/// How often a file is read and edited anew that somebody else changes at the same time.
const TRIES: u32 = 5;

/// When to try again where the repository is away.
const AWAY: Duration = Duration::from_secs(10);

/// When to try again where others were faster.
const OVERTAKEN: Duration = Duration::from_secs(1);

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
    /// Whose turn it is to write, with what is known of the tree that was written last.
    turn: Mutex<Option<Known>>,
    book: Mutex<Book>,
}

/// A tree that was resolved, and what was found to be wrong with it.
struct Known {
    /// The plan whose record it was resolved against.
    round: Arc<Round>,
    documents: Arc<Documents>,
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

/// A file's bytes as they are now; none where there is none.
type Read<'a> = &'a dyn Fn(&SpecPath) -> Result<Option<Vec<u8>>, Refused>;

/// An edit that may be made.
struct Attempt {
    written: Written,
    /// None where nothing changes.
    edit: Option<Edit>,
    /// The file as it was.
    before: Option<Vec<u8>>,
    /// The tree with the edit.
    documents: Arc<Documents>,
    /// What is wrong with that.
    ails: Ails,
}

impl Writer {
    /// Of specs in a place. Whoever makes plans is woken when there are others, and has this memory.
    pub fn new(place: Place, memory: Arc<Memory>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let (turn, book) = (Mutex::default(), Mutex::default());
        Self { place, memory, wake: Box::new(wake), turn, book }
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
            Place::Git(mirror) => self.write_to_git(mirror, made, wish, author, turn.as_ref()),
        }?;
        let Attempt { written, documents, ails, .. } = attempt;
        let written = Arc::new(written);
        if !written.is_new {
            return Ok(written);
        }
        if written.resource.is_none() {
            self.memory.withdraw(&written.key);
        }
        *turn = Some(Known { round: Arc::clone(&made.round), documents, ails });
        self.note(made, &written);
        (self.wake)();
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
                let tree = self.tree_of_folder(root, made, None);
                attempt(made, wish, tree, &|path| Ok(folder::read(root, path)?), None)
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
        for _ in 0..TRIES {
            let tree = self.tree_of_folder(root, made, known);
            let attempt = attempt(made, wish, tree, &|path| Ok(folder::read(root, path)?), known)?;
            let Some(edit) = &attempt.edit else { return Ok(attempt) };
            // Before anybody can read it: whoever plans it first records when it was made.
            self.announce(&attempt.written);
            match folder::write(root, edit, attempt.before.as_deref()) {
                Ok(()) => return Ok(attempt),
                Err(error) => {
                    self.withdraw(&attempt.written);
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

/// Decides on an edit of a tree, and checks the tree with it.
fn attempt(
    made: &Made,
    wish: &Wish,
    mut tree: Arc<Documents>,
    read: Read<'_>,
    known: Option<&Known>,
) -> Result<Attempt, Refused> {
    let (installation, checked) = (&made.installation, &made.round.checked);
    let key = &wish.key;
    let recorded = recorded(made, key)?;
    let path = draft::file(wish, &tree, &recorded)?;
    let before = read(&path)?;
    let text = text(&path, before.as_deref())?;
    let is_as_read = tree.files.get(&path).and_then(|file| file.digest.clone());
    if is_as_read != before.as_deref().map(crate::names::Digest::of)
        || (before.is_none() && tree.files.contains_key(&path))
    {
        tree = Arc::new(tree.with_files(&[(path.clone(), before.clone())], None));
    }
    let keyring = installation.secrets.keyring();
    let secrets = installation.secrets.open_changed(&tree, &made.documents, &checked.secrets);
    let basis = Basis { documents: &tree, recorded: &recorded, secrets: &secrets, keyring: &keyring };
    let Draft { text: new, message } = basis.draft(wish, &path, text)?;
    let content = new.clone().map(String::into_bytes);
    let documents = Arc::new(tree.with_files(&[(path.clone(), content.clone())], None));
    let now = Timestamp::now();
    let resolve = |documents: &Documents, secrets: &Secrets| {
        catalog::resolve(documents, &recorded, secrets, &installation.config, now)
    };
    let is_planned = matches!(recorded, Cow::Borrowed(_)) && tree.has_files_of(&made.documents);
    let is_known =
        |known: &&Known| Arc::ptr_eq(&known.round, &made.round) && tree.has_files_of(&known.documents);
    let ails = match known.filter(is_known) {
        _ if is_planned => Ails::of(&checked.catalog),
        Some(known) => known.ails.clone(),
        None => Ails::of(&resolve(&tree, &secrets)),
    };
    let was =
        tree.files.get(&path).and_then(|file| file.documents.iter().find(|document| document.key == *key));
    let opened = installation.secrets.open_changed(&documents, &tree, &secrets);
    let mut catalog = resolve(&documents, &opened);
    let edited = Edited {
        before: &ails,
        was: was.map(|document| &document.spec),
        documents: &documents,
        catalog: &catalog,
        path: &path,
        text: new.as_deref(),
    };
    let warnings = edited.judge(wish)?;
    let ails = Ails::of(&catalog);
    let document =
        documents.files.get(&path).and_then(|file| file.documents.iter().find(|it| it.key == *key));
    let is_gone = matches!(wish.what, What::Delete);
    let origin = document.or(was).map(|document| document.origin.clone());
    let written = Written {
        key: key.clone(),
        id: recorded.id_of(key),
        resource: catalog.resources.remove(key).filter(|_| !is_gone).map(Arc::new),
        etag: document.map(|document| etag(document, &opened)),
        origin: origin.unwrap_or(Origin { path: path.clone(), line: 1 }),
        path: path.clone(),
        commit: None,
        warnings,
        is_new: content != before,
        is_created: matches!(wish.what, What::Create(_)),
        // As answers write it.
        at: Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now),
        message,
    };
    let edit = written.is_new.then_some(Edit { path, content });
    Ok(Attempt { written, edit, before, documents, ails })
}

/// What is recorded. A plan's is as good as that of now, unless what the call is about was applied since.
fn recorded<'m>(made: &'m Made, key: &ResourceKey) -> Result<Cow<'m, Recorded>, Refused> {
    let of_plan = &made.round.checked.recorded;
    let Some(state) = made.installation.state.as_deref() else { return Ok(Cow::Borrowed(of_plan)) };
    let failed = |error: StateError| Refused::Disk {
        why: "what is recorded of the resources can't be read".to_owned(),
        hint: error.hint(),
        is_full: false,
    };
    if state.recorded_resource(key).map_err(failed)?.as_ref() == of_plan.resources.get(key) {
        return Ok(Cow::Borrowed(of_plan));
    }
    let recorded = State::recorded_resources(state).map_err(failed)?;
    Ok(Cow::Owned(Recorded { remembered_ids: of_plan.remembered_ids.clone(), ..recorded }))
}

fn text<'b>(path: &SpecPath, bytes: Option<&'b [u8]>) -> Result<Option<&'b str>, Refused> {
    bytes.map(std::str::from_utf8).transpose().map_err(|_| {
        let problem = Problem::error("edit-unreadable", "the file is left as it is: it is not UTF-8 text");
        let problem = problem.at(Location::file(path.clone()), "").hint("save the file as UTF-8");
        Refused::Edit(Box::new(problem))
    })
}

/// A file of a commit.
fn bytes(snapshot: &Snapshot, path: &SpecPath) -> Result<Option<Vec<u8>>, Refused> {
    match snapshot.entries.get(path) {
        None => Ok(None),
        Some(Entry::File { bytes, .. }) => Ok(Some(bytes.to_vec())),
        Some(Entry::Unreadable { message, hint, .. }) => Err(left(path, "edit-unreadable", message, hint)),
    }
}

/// A file that is left as it is.
fn left(path: &SpecPath, code: &str, why: &str, hint: &str) -> Refused {
    let problem = Problem::error(code, format!("the file is left as it is: {why}"));
    Refused::Edit(Box::new(problem.at(Location::file(path.clone()), "").hint(hint)))
}

impl From<NotWritten> for Refused {
    fn from(error: NotWritten) -> Refused {
        let hint = error.hint();
        match &error {
            NotWritten::Unreadable { path, why, .. } => left(path, "edit-unreadable", why, &hint),
            NotWritten::Place { path, why } => left(path, "edit-place", why, &hint),
            NotWritten::Changed { path } => {
                left(path, "edit-changed", "somebody else keeps changing it", &hint)
            }
            NotWritten::System { .. } => {
                Refused::Disk { why: error.to_string(), hint, is_full: error.is_full() }
            }
        }
    }
}

/// The repository can't be reached. Which one it is, and how it is reached, is for those who run this to know.
fn away(error: &GitError) -> Refused {
    tracing::warn!(%error, hint = error.hint(), "a call could not be written to the git repository");
    Refused::Away {
        why: "the git repository of the specs can't be reached, and nothing was written".to_owned(),
        hint: "try again in a moment; the log of `streamfleet serve` says what keeps from it".to_owned(),
        retry_after: AWAY,
    }
}

fn not_pushed(error: WriteError<Refused>) -> Refused {
    let told = error.hint();
    match error {
        WriteError::Edits(refused) => refused,
        WriteError::Away(error) => away(&error),
        WriteError::Overtaken { .. } => Refused::Away {
            why: "others pushed to the branch of the specs at the same time, and nothing was written"
                .to_owned(),
            hint: "try again".to_owned(),
            retry_after: OVERTAKEN,
        },
        WriteError::Place { path, why } => {
            let why = format!("{path} {why}");
            let problem = Problem::error("edit-place", format!("the file is left as it is: {why}"));
            Refused::Edit(Box::new(problem.hint(told.unwrap_or_default())))
        }
        error @ WriteError::Protected { .. } => {
            tracing::warn!(%error, hint = told, "a call could not be written to the git repository");
            Refused::ReadOnly {
                why:
                    "the branch of the specs takes no commits from here, so that calls can't change anything"
                        .to_owned(),
                hint: "make the change in the repository, by a merge request".to_owned(),
            }
        }
        error @ WriteError::Unsure { .. } => {
            tracing::error!(%error, hint = told, "nobody knows whether a call was written to the git repository");
            Refused::Unsure {
                why: "the git repository of the specs went away, and nobody knows whether it took the change"
                    .to_owned(),
                hint: "read the resource again in a moment, and repeat the change if it isn't there"
                    .to_owned(),
            }
        }
        error @ WriteError::Commit(_) => {
            tracing::error!(%error, hint = told, "a call could not be written to the git repository");
            Refused::Disk {
                why: "no commit could be made of the change, and nothing was written".to_owned(),
                hint: "the log of `streamfleet serve` says what keeps from it".to_owned(),
                is_full: false,
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Only whole values are put in.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
