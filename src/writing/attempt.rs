//! Decides on an edit of a tree, with its file as it is now, and checks the result.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;

use super::draft::{self, DraftEdit, EditBasis, etag};
use super::judge::{Edited, KnownProblems};
use super::refused::{WriteRefusal, unreadable_state};
use super::write_request::{WriteAction, WriteRequest, WriteResult};
use crate::catalog::{CachedRecord, LastGood, Recorded, RecordedResource, RecordedSpec, ResolvedTree};
use crate::names::{Digest, Kind, ResourceKey, SpecPath};
use crate::plan::{Change, Waiting};
use crate::problem::{Location, Origin, Problem};
use crate::source::FileEdit;
use crate::spec::Documents;
use crate::writing::CurrentPlan;

/// Reads a file's present bytes; `None` if there is no such file.
pub type Read<'a> = &'a dyn Fn(&SpecPath) -> Result<Option<Vec<u8>>, WriteRefusal>;

/// An edit that passed all checks.
pub struct CheckedEdit {
    pub written: WriteResult,
    /// `None` if nothing changes.
    pub edit: Option<FileEdit>,
    /// The file's bytes before the edit.
    pub before: Option<Vec<u8>>,
    /// The edited tree.
    pub tree: Arc<ResolvedTree>,
}

/// Decides on an edit of a tree, and checks the edited tree.
///
/// # Errors
/// When the edit is not allowed.
pub fn attempt(
    made: &CurrentPlan,
    request: &WriteRequest,
    mut tree: Arc<Documents>,
    read: Read<'_>,
    known: Option<&ResolvedTree>,
) -> Result<CheckedEdit, WriteRefusal> {
    let (installation, checked) = (&made.installation, &made.round.checked);
    let key = &request.key;
    let recorded = recorded(made)?;
    let path = draft::file(request, &tree, &recorded)?;
    let before = read(&path)?;
    let text = text(&path, before.as_deref())?;
    let is_as_read = tree.files.get(&path).and_then(|file| file.digest.clone());
    if is_as_read != before.as_deref().map(Digest::of) || (before.is_none() && tree.files.contains_key(&path))
    {
        tree = Arc::new(tree.with_files(&[(path.clone(), before.clone())], None));
    }
    let keyring = installation.secrets.keyring();
    let secrets = installation.secrets.open_changed(&tree, &made.documents, &checked.secrets);
    let may_be_plain = tree.commit.is_none() || installation.config.secrets.allow_plain_in_git;
    let basis = EditBasis {
        documents: &tree,
        recorded: &recorded,
        secrets: &secrets,
        keyring: &keyring,
        may_be_plain,
    };
    let DraftEdit { text: new, message } = basis.draft(request, &path, text)?;
    let content = new.clone().map(String::into_bytes);
    let documents = Arc::new(tree.with_files(&[(path.clone(), content.clone())], None));
    let now = Timestamp::now();
    let last = known.filter(|known| tree.has_files_of(&known.documents)).unwrap_or(checked);
    let unedited =
        installation.resolve(&tree, recorded.clone().into_owned(), secrets.clone(), now, Some(last));
    let known_problems = KnownProblems::of(&unedited.catalog);
    let was =
        tree.files.get(&path).and_then(|file| file.documents.iter().find(|document| document.key == *key));
    let opened = installation.secrets.open_changed(&documents, &tree, &secrets);
    let recorded = recorded.into_owned();
    let resolved = installation.resolve(&documents, recorded, opened, now, Some(&unedited));
    let ResolvedTree { catalog, recorded, secrets: opened, .. } = &resolved;
    let edited = Edited {
        before: &known_problems,
        was: was.map(|document| &document.spec),
        documents: &documents,
        catalog,
        path: &path,
        text: new.as_deref(),
    };
    let warnings = edited.judge(request)?;
    // An edit without an effect can't be refused.
    if !matches!(request.what, WriteAction::Delete) && content != before {
        edited.is_done((made, now), request, (&resolved, &unedited), false)?;
        if let Some(recorded) = recorded_soon(made, &unedited, key) {
            let soon = installation.resolve(&documents, recorded, opened.clone(), now, Some(&resolved));
            let edited = Edited { catalog: &soon.catalog, ..edited };
            edited.judge(request)?;
            // A cluster's edit may be carried out in steps, so its objects aren't known before.
            if key.kind == Kind::Topic {
                edited.is_done((made, now), request, (&soon, &unedited), true)?;
            }
        }
    }
    let document =
        documents.files.get(&path).and_then(|file| file.documents.iter().find(|it| it.key == *key));
    let is_gone = matches!(request.what, WriteAction::Delete);
    let origin = document.or(was).map(|document| document.origin.clone());
    let written = WriteResult {
        key: key.clone(),
        id: recorded.id_of(key),
        resource: catalog.resources.get(key).filter(|_| !is_gone).map(Arc::clone),
        etag: document.map(|document| etag(document, opened)),
        origin: origin.unwrap_or(Origin { path: path.clone(), line: 1 }),
        path: path.clone(),
        commit: None,
        warnings,
        is_new: content != before,
        is_created: matches!(request.what, WriteAction::Create(_)),
        // Truncated to microseconds, as answers print it.
        at: Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now),
        message,
    };
    let edit = written.is_new.then_some(FileEdit { path, content });
    Ok(CheckedEdit { written, edit, before, tree: Arc::new(resolved) })
}

/// The current record. The plan's copy is used if it is equal; any change applied since may have used up capacity.
fn recorded(made: &CurrentPlan) -> Result<Cow<'_, Recorded>, WriteRefusal> {
    let of_plan = &made.round.checked.recorded;
    let Some(state) = made.installation.state.as_deref() else { return Ok(Cow::Borrowed(of_plan)) };
    let recorded = state.recorded_resources().map_err(unreadable_state)?;
    if recorded.resources == of_plan.resources {
        return Ok(Cow::Borrowed(of_plan));
    }
    let (remembered_ids, removed) = (of_plan.remembered_ids.clone(), of_plan.removed.clone());
    Ok(Cow::Owned(Recorded { remembered_ids, removed, ..recorded }))
}

/// The record as it will be once the resource's last edit is carried out, which may be at this moment; `None` unless there
/// is one that waits for nothing.
fn recorded_soon(made: &CurrentPlan, unedited: &ResolvedTree, key: &ResourceKey) -> Option<Recorded> {
    let (resource, record) = (unedited.catalog.resources.get(key)?, unedited.recorded.resources.get(key)?);
    // A plan that is made while another is carried out says no more than that.
    let waits = |change: &Change| change.waiting.iter().any(|it| !matches!(it, Waiting::UnderWay { .. }));
    let waits = made.round.change(key).is_some_and(waits);
    let RecordedSpec { spec, .. } = RecordedSpec::of(key, &resource.spec, Some(record));
    let is_done = record.cached.last_good.as_ref().is_none_or(|applied| *applied.spec() == spec);
    if is_done || waits || resource.hold.is_some() {
        return None;
    }
    let last_good = Some(LastGood::new(spec, resource.origin.clone()));
    let cached = CachedRecord { last_good, ..record.cached.clone() };
    let mut recorded = unedited.recorded.clone();
    recorded.resources.insert(key.clone(), RecordedResource { cached, ..record.clone() });
    Some(recorded)
}

fn text<'b>(path: &SpecPath, bytes: Option<&'b [u8]>) -> Result<Option<&'b str>, WriteRefusal> {
    bytes.map(std::str::from_utf8).transpose().map_err(|_| {
        let problem = Problem::error("edit-unreadable", "the file was not changed: it is not UTF-8 text");
        let problem = problem.at(Location::file(path.clone()), "").hint("save the file as UTF-8");
        WriteRefusal::Edit(Box::new(problem))
    })
}
