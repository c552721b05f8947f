//! Reasons to consider an absence a mistake, as the end of a sentence shown to the approver. They are in the
//! past tense since they are recorded and may be read long after the cause has disappeared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::RecordedResource;
use crate::catalog::absence::is_gone;
use crate::catalog::draft::{CatalogDraft, Claim};
use crate::names::{FleetKey, Identifier, Kind, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::ParsedFile;

/// The identifying fields, ignored when two specs are compared.
const IDENTITY: [&str; 3] = ["organization", "identifier", "infrastructure"];

/// Returns why the absence of a resource is likely a mistake; none if it is clean.
pub(super) fn of(
    draft: &CatalogDraft,
    key: &ResourceKey,
    record: &RecordedResource,
    gone: &MissingClusters,
) -> Option<String> {
    if let Some(last) = changed_source(draft) {
        return Some(format!(
            "the spec tree was {last} before, and {} when the spec disappeared",
            draft.documents.source.0
        ));
    }
    if draft.is_removed(key) {
        return None;
    }
    let may_lose = lives_on_a_fleet(key) || draft.recorded.resources.keys().any(lives_on_a_fleet);
    if may_lose && draft.documents.files.values().all(|file| is_empty(file)) {
        return Some("the spec tree had no documents at all".to_owned());
    }
    let Some(path) = record.last_known_file() else {
        return Some("the position of its spec was unknown".to_owned());
    };
    // A deletion that has begun is completed.
    if record.durable.deleting {
        return None;
    }
    rewritten(draft)
        .or_else(|| emptied(draft, path))
        .or_else(|| set_aside(draft, key, path))
        .or_else(|| refused_in_its_file(draft, path))
        .or_else(|| refused_elsewhere(draft, key))
        .or_else(|| gone_at_once(draft, key, path))
        .or_else(|| too_many(draft, key, gone))
        .or_else(|| replaced(draft, key, path, record))
        .or_else(|| record.durable.suspicion.clone().filter(|_| lives_on_a_fleet(key)))
}

/// Returns the tree that was last applied, if it isn't this one.
pub(super) fn changed_source<'a>(draft: &CatalogDraft<'a>) -> Option<&'a str> {
    let last = draft.recorded.source.as_ref()?;
    (*last != draft.documents.source).then_some(last.0.as_str())
}

/// The branch no longer contains the commit that was applied: after a force push, or after its repository was
/// restored from an older state.
fn rewritten(draft: &CatalogDraft) -> Option<String> {
    let rewrote = draft.documents.commit.as_ref()?.rewrote.as_ref()?;
    Some(format!("the branch was rewritten and no longer had commit {rewrote}, which was applied before"))
}

fn emptied(draft: &CatalogDraft, path: &SpecPath) -> Option<String> {
    draft.documents.files.get(path).filter(|file| is_empty(file)).map(|_| format!("{path} was emptied"))
}

/// Its document still exists where it has no effect: in a file that is not read, emptied, or commented out.
fn set_aside(draft: &CatalogDraft, key: &ResourceKey, path: &SpecPath) -> Option<String> {
    if !lives_on_a_fleet(key) {
        return None;
    }
    if draft.documents.files.get(path).is_some_and(|file| file.remnants.blank) {
        return Some(format!("{path}, which contained it, had an empty document"));
    }
    let in_comments = |(_, file): &(&SpecPath, &Arc<ParsedFile>)| file.remnants.commented.contains(key);
    if let Some((file, _)) = draft.documents.files.iter().find(in_comments) {
        return Some(format!("{file} contained it in a comment"));
    }
    // A skipped file can't always be parsed, as in the middle of a merge, so its name is compared too.
    let is_copy = |other: &SpecPath| other.as_str().starts_with(path.as_str());
    let is_meant = |(other, keys): &(&SpecPath, &BTreeSet<ResourceKey>)| keys.contains(key) || is_copy(other);
    let (other, _) = draft.documents.skipped.iter().find(is_meant)?;
    Some(format!("{other}, which is not read, may contain it"))
}

fn is_empty(file: &ParsedFile) -> bool {
    file.documents.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty()
}

fn refused_in_its_file(draft: &CatalogDraft, path: &SpecPath) -> Option<String> {
    let is_here = |problem: &&Problem| {
        let related = problem.related.iter().map(|(location, _)| location);
        problem.is_error() && problem.location.iter().chain(related).any(|location| location.path == *path)
    };
    let found = draft.problems.iter().any(|problem| is_here(&problem));
    found.then(|| format!("{path}, which contained it, had errors"))
}

/// A refused document may be the same one with a typo in its name, or moved to a folder that doesn't allow
/// it. Other organizations can write such a document too, and so make a removal need approval. Resources that
/// live on no fleet are exempt: there is nothing to lose and so nothing to approve, and the others could
/// block the removal for ever.
fn refused_elsewhere(draft: &CatalogDraft, key: &ResourceKey) -> Option<String> {
    if !lives_on_a_fleet(key) {
        return None;
    }
    let files = draft.documents.files.values();
    let invalid = files.flat_map(|file| &file.invalid).map(|invalid| (&invalid.key, &invalid.origin));
    let refused = draft.misplaced_documents.iter().map(|(key, origin)| (key, origin)).chain(invalid);
    let alike = |other: &ResourceKey| {
        other.name == key.name && (other.kind == key.kind || other.organization == key.organization)
    };
    let (_, at): (_, &Origin) = refused.into_iter().find(|(other, _)| alike(other))?;
    Some(format!("{at}, which was refused, may be the same resource"))
}

/// A new resource may be what it became: any new one in its file; any of its kind in its organization; in
/// another organization, one of its kind with its name or content. (A new one of its own kind in its file is
/// a rename and refused.) An existing resource may also have been moved over it.
fn replaced(
    draft: &CatalogDraft,
    key: &ResourceKey,
    path: &SpecPath,
    record: &RecordedResource,
) -> Option<String> {
    let may_be = |new: &ResourceKey, claim: &Claim| {
        let is_alike = || {
            lives_on_a_fleet(key)
                && new.kind == key.kind
                && (new.organization == key.organization
                    || new.name == key.name
                    || says_the_same(record, claim))
        };
        claim.origin.path == *path || is_alike()
    };
    if let Some((other, claim)) = moved_into(draft, path).filter(|_| lives_on_a_fleet(key)) {
        return Some(format!("{other} was moved to {}, where it was described", claim.origin));
    }
    let newcomers = draft.new_resources.iter().filter_map(|new| Some((new, draft.claims.get(new)?)));
    let (newcomer, claim) = newcomers.into_iter().find(|(new, claim)| may_be(new, claim))?;
    // The newcomer may have been waiting for a long time, so the message says nothing about when it appeared.
    Some(format!("{newcomer} at {}, which isn't applied yet, may be its new name", claim.origin))
}

fn moved_into<'d>(draft: &'d CatalogDraft, path: &SpecPath) -> Option<(&'d ResourceKey, &'d Claim<'d>)> {
    let came = |key: &ResourceKey| draft.record(key)?.last_known_file().map(|stood| stood != path);
    draft.claims.iter().find(|(key, claim)| claim.origin.path == *path && came(key) == Some(true))
}

/// Compares an applied spec with a document, except for their identity. An unknown spec counts as equal.
fn says_the_same(record: &RecordedResource, claim: &Claim) -> bool {
    let content = |mut content: Value| {
        let fields = content.as_object_mut();
        fields.into_iter().for_each(|fields| fields.retain(|name, _| !IDENTITY.contains(&name.as_str())));
        content
    };
    match (&record.cached.last_good, claim.document) {
        (Some(applied), Some(document)) => {
            content(applied.spec().value()) == content(document.spec.redacted())
        }
        _ => true,
    }
}

/// Returns an error that may concern a resource: any but those in other organizations' folders.
pub(super) fn error_around(draft: &CatalogDraft, key: &ResourceKey) -> Option<String> {
    let may_stand_in = |path: &SpecPath| {
        let owner = path.top_folder().filter(|folder| draft.organizations.contains(*folder));
        owner.is_none_or(|owner| owner == key.organization.as_str())
    };
    let errors = draft.problems.iter().filter(|problem| problem.is_error());
    let places = errors.filter_map(|problem| problem.location.as_ref()).filter(|at| may_stand_in(&at.path));
    let (path, line) = places.map(|at| (&at.path, at.line)).min()?;
    Some(format!("the error at {path}:{line} may concern it"))
}

/// The numbers of missing clusters, without those that an unreadable file may describe.
pub(super) struct MissingClusters<'d> {
    /// By organization.
    own: BTreeMap<&'d Identifier, usize>,
    /// Those without a recorded suspicion, by organization.
    new: BTreeMap<&'d Identifier, usize>,
}

impl<'d> MissingClusters<'d> {
    pub(super) fn from(draft: &CatalogDraft<'d>) -> Self {
        let mut gone = Self { own: BTreeMap::new(), new: BTreeMap::new() };
        for (key, record) in draft.recorded.resources.iter() {
            let is_meant = key.kind == Kind::Cluster
                && !record.durable.deleting
                && !draft.is_removed(key)
                && is_gone(draft, key);
            // Unreadable files of one organization don't affect the others.
            if !is_meant || draft.unreadable_for(&key.organization).is_some() {
                continue;
            }
            *gone.own.entry(&key.organization).or_default() += 1;
            *gone.new.entry(&key.organization).or_default() +=
                usize::from(record.durable.suspicion.is_none());
        }
        gone
    }

    /// Returns how many clusters of an organization are missing, and that number plus the newly missing ones
    /// of others. Those of others that already await approval don't count: they must not block this one.
    fn with(&self, organization: &Identifier) -> (usize, usize) {
        let own = self.own.get(organization).copied().unwrap_or(0);
        let others = self.new.iter().filter(|(other, _)| **other != organization);
        (own, own + others.map(|(_, new)| new).sum::<usize>())
    }
}

/// More clusters disappeared at once than the policy allows in an hour, so all of them count as a mistake.
fn too_many(draft: &CatalogDraft, key: &ResourceKey, gone: &MissingClusters) -> Option<String> {
    let allowed = draft.config.policy.cluster_deletions_per_hour;
    let are_too_many = |gone: usize| gone > 1 && u32::try_from(gone).is_ok_and(|gone| gone > allowed);
    let (own, all) = gone.with(&key.organization);
    match lives_on_a_fleet(key) && are_too_many(all) {
        true if are_too_many(own) => Some(format!("{own} clusters disappeared at once")),
        // Don't disclose the numbers of another organization.
        true => Some("clusters of several organizations disappeared at once".to_owned()),
        false => None,
    }
}

/// More than one file is gone: everything an organization runs, a fleet with its clusters, or a folder.
fn gone_at_once(draft: &CatalogDraft, key: &ResourceKey, path: &SpecPath) -> Option<String> {
    if all_gone(draft, |other, _| lives_on_a_fleet(other) && other.organization == key.organization) {
        return Some(format!("all resources of organization {} disappeared at once", key.organization));
    }
    if let Some(fleet) = fleet_of(draft, key).filter(|fleet| is_gone(draft, &fleet.resource())) {
        if all_gone(draft, |other, _| fleet_of(draft, other).as_ref() == Some(&fleet)) {
            return Some(format!("all resources of fleet {fleet} disappeared at once"));
        }
        if key.kind == Kind::Cluster && draft.recorded.resources.contains_key(&fleet.resource()) {
            return Some(format!("its fleet {fleet} disappeared too"));
        }
    }
    let folder = folder(path)?;
    let was_there =
        |path: &SpecPath| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let is_left = draft.documents.files.keys().any(was_there);
    (!is_left && all_gone(draft, |_, record| record.last_known_file().is_some_and(was_there)))
        .then(|| format!("the whole folder {folder} disappeared"))
}

/// Returns whether all of several recorded resources are gone. A single one is an ordinary removal.
fn all_gone(draft: &CatalogDraft, meant: impl Fn(&ResourceKey, &RecordedResource) -> bool) -> bool {
    let meant = || draft.recorded.resources.iter().filter(|(key, record)| meant(key, record));
    meant().nth(1).is_some() && meant().all(|(key, _)| is_gone(draft, key))
}

/// Only these kinds have objects on a target, and so something to lose.
pub(super) fn lives_on_a_fleet(key: &ResourceKey) -> bool {
    key.kind.is_on_fleet()
}

fn fleet_of(draft: &CatalogDraft, key: &ResourceKey) -> Option<FleetKey> {
    key.as_fleet().or_else(|| draft.record(key)?.fleet(key))
}

fn folder(path: &SpecPath) -> Option<&str> {
    path.as_str().rsplit_once('/').map(|(folder, _)| folder)
}
