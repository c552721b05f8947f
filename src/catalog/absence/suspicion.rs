//! What makes an absence look like a mistake, as the end of a sentence for whoever has to approve the deletion.

use crate::catalog::RecordedResource;
use crate::catalog::absence::is_gone;
use crate::catalog::draft::Draft;
use crate::names::{FleetKey, Kind, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::ParsedFile;

/// Why the absence of a resource is likely a mistake; none where it is clean.
pub(super) fn of(draft: &Draft, key: &ResourceKey, record: &RecordedResource) -> Option<String> {
    if let Some(last) = changed_source(draft) {
        return Some(format!("the spec tree is {} now and was {last} before", draft.documents.source.0));
    }
    if draft.documents.files.values().all(|file| is_empty(file)) {
        return Some("the spec tree has no documents at all".to_owned());
    }
    let Some(path) = record.stood_in() else {
        return Some("where it stood is no longer known".to_owned());
    };
    emptied(draft, path)
        .or_else(|| refused_in_its_file(draft, path))
        .or_else(|| refused_elsewhere(draft, key))
        .or_else(|| replaced(draft, path, record))
        .or_else(|| gone_at_once(draft, key, path))
}

/// The tree that was applied last, where it is another one than this.
pub(super) fn changed_source<'a>(draft: &Draft<'a>) -> Option<&'a str> {
    let last = draft.recorded.source.as_ref()?;
    (*last != draft.documents.source).then_some(last.0.as_str())
}

fn emptied(draft: &Draft, path: &SpecPath) -> Option<String> {
    draft.documents.files.get(path).filter(|file| is_empty(file)).map(|_| format!("{path} is empty now"))
}

fn is_empty(file: &ParsedFile) -> bool {
    file.documents.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty()
}

/// An error in its file may be about what its document has become.
fn refused_in_its_file(draft: &Draft, path: &SpecPath) -> Option<String> {
    let is_here = |problem: &&Problem| {
        let related = problem.related.iter().map(|(location, _)| location);
        problem.is_error() && problem.location.iter().chain(related).any(|location| location.path == *path)
    };
    let found = draft.problems.iter().any(|problem| is_here(&problem));
    found.then(|| format!("{path}, where it stood, has errors"))
}

/// A refused document may be its own with one word of its name changed, or moved to where it may not be. Others can
/// write such a document too and so make a removal need approval; where there is nothing to lose and so nothing to
/// approve, they could keep it for ever, and it doesn't count.
fn refused_elsewhere(draft: &Draft, key: &ResourceKey) -> Option<String> {
    if !lives_on_a_fleet(key) {
        return None;
    }
    let files = draft.documents.files.values();
    let invalid = files.flat_map(|file| &file.invalid).map(|invalid| (&invalid.key, &invalid.origin));
    let refused = draft.displaced.iter().map(|(key, origin)| (key, origin)).chain(invalid);
    let alike = |other: &ResourceKey| {
        other.name == key.name && (other.kind == key.kind || other.organization == key.organization)
    };
    let (_, at): (_, &Origin) = refused.into_iter().find(|(other, _)| alike(other))?;
    Some(format!("{at}, which is refused, may be its document"))
}

/// Something new of another kind stands in its file. What is new of its own kind is a rename.
fn replaced(draft: &Draft, path: &SpecPath, record: &RecordedResource) -> Option<String> {
    let is_new = |key: &ResourceKey| !draft.recorded.resources.contains_key(key);
    let newcomer = draft
        .claims
        .iter()
        .find(|(new, claim)| claim.origin.path == *path && is_new(new))
        .map(|(new, _)| new)?;
    (!record.deleting).then(|| format!("{newcomer} appeared in {path}, where it stood, at the same time"))
}

/// More than a file is gone: all that ran for an organization, a fleet with its clusters, or a folder.
fn gone_at_once(draft: &Draft, key: &ResourceKey, path: &SpecPath) -> Option<String> {
    if all_gone(draft, |other, _| lives_on_a_fleet(other) && other.organization == key.organization) {
        return Some(format!("everything of organization {} is gone at once", key.organization));
    }
    if let Some(fleet) = fleet_of(draft, key).filter(|fleet| is_gone(draft, &fleet.resource()))
        && all_gone(draft, |other, _| fleet_of(draft, other).as_ref() == Some(&fleet))
    {
        return Some(format!("everything of fleet {fleet} is gone at once"));
    }
    let folder = folder(path)?;
    let was_there =
        |path: &SpecPath| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let is_left = draft.documents.files.keys().any(was_there);
    (!is_left && all_gone(draft, |_, record| record.stood_in().is_some_and(was_there)))
        .then(|| format!("the folder {folder} is gone as a whole"))
}

/// Whether several recorded resources are meant, and none of them is left. One alone is a removal like any other.
fn all_gone(draft: &Draft, meant: impl Fn(&ResourceKey, &RecordedResource) -> bool) -> bool {
    let meant = || draft.recorded.resources.iter().filter(|(key, record)| meant(key, record));
    meant().nth(1).is_some() && meant().all(|(key, _)| is_gone(draft, key))
}

fn lives_on_a_fleet(key: &ResourceKey) -> bool {
    matches!(key.kind, Kind::Fleet | Kind::Cluster)
}

/// The fleet that a recorded resource is, or is on.
fn fleet_of(draft: &Draft, key: &ResourceKey) -> Option<FleetKey> {
    let name = match key.kind {
        Kind::Fleet => Some(key.name.as_str()),
        Kind::Cluster => draft.record(key)?.immutable.get("/infrastructure")?.as_str(),
        _ => None,
    };
    Some(FleetKey { organization: key.organization.clone(), fleet: name?.parse().ok()? })
}

fn folder(path: &SpecPath) -> Option<&str> {
    path.as_str().rsplit_once('/').map(|(folder, _)| folder)
}
