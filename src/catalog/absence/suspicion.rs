//! What makes an absence look like a mistake, as the end of a sentence for whoever has to approve the deletion: in the past
//! tense, since it is remembered, and may be read long after it could be seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::RecordedResource;
use crate::catalog::absence::is_gone;
use crate::catalog::draft::{Claim, Draft};
use crate::names::{FleetKey, Identifier, Kind, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::ParsedFile;

/// The fields of a spec that say which it is, and where.
const IDENTITY: [&str; 3] = ["organization", "identifier", "infrastructure"];

/// Why the absence of a resource is likely a mistake; none where it is clean.
pub(super) fn of(draft: &Draft, key: &ResourceKey, record: &RecordedResource, gone: &Gone) -> Option<String> {
    if let Some(last) = changed_source(draft) {
        return Some(format!(
            "the spec tree was {last} before, and {} when it went missing",
            draft.documents.source.0
        ));
    }
    // Somebody said so.
    if draft.is_removed(key) {
        return None;
    }
    let may_lose = lives_on_a_fleet(key) || draft.recorded.resources.keys().any(lives_on_a_fleet);
    if may_lose && draft.documents.files.values().all(|file| is_empty(file)) {
        return Some("the spec tree had no documents at all".to_owned());
    }
    let Some(path) = record.stood_in() else {
        return Some("where it stood was no longer known".to_owned());
    };
    // What was decided on is finished.
    if record.deleting {
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
        .or_else(|| record.suspicion.clone().filter(|_| lives_on_a_fleet(key)))
}

/// The tree that was applied last, where it is another one than this.
pub(super) fn changed_source<'a>(draft: &Draft<'a>) -> Option<&'a str> {
    let last = draft.recorded.source.as_ref()?;
    (*last != draft.documents.source).then_some(last.0.as_str())
}

/// The branch lost the commit that was in force: by force, or since its repository was put back to an older state.
fn rewritten(draft: &Draft) -> Option<String> {
    let rewrote = draft.documents.commit.as_ref()?.rewrote.as_ref()?;
    Some(format!("the branch was rewritten and no longer had commit {rewrote}, which was in force before"))
}

fn emptied(draft: &Draft, path: &SpecPath) -> Option<String> {
    draft.documents.files.get(path).filter(|file| is_empty(file)).map(|_| format!("{path} was emptied"))
}

/// Its document is still there, where it says nothing: in a file that is not read, empty, or commented out.
fn set_aside(draft: &Draft, key: &ResourceKey, path: &SpecPath) -> Option<String> {
    if !lives_on_a_fleet(key) {
        return None;
    }
    if draft.documents.files.get(path).is_some_and(|file| file.remnants.blank) {
        return Some(format!("{path}, where it stood, had an empty document"));
    }
    let in_comments = |(_, file): &(&SpecPath, &Arc<ParsedFile>)| file.remnants.commented.contains(key);
    if let Some((file, _)) = draft.documents.files.iter().find(in_comments) {
        return Some(format!("{file} described it in a comment"));
    }
    // What is in a file can't always be told, as in the middle of a merge.
    let is_copy = |other: &SpecPath| other.as_str().starts_with(path.as_str());
    let is_meant = |(other, keys): &(&SpecPath, &BTreeSet<ResourceKey>)| keys.contains(key) || is_copy(other);
    let (other, _) = draft.documents.skipped.iter().find(is_meant)?;
    Some(format!("{other}, which is not read, may hold its document"))
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
    found.then(|| format!("{path}, where it stood, had errors"))
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
    Some(format!("{at}, which was refused, may be its document"))
}

/// Something new may be what it became: anything in its file; of its own kind, anything of its organization, and in another
/// organization what has its name or says the same. What is new of its own kind in its file is a rename and refused. And
/// something that was there before may have been written over it.
fn replaced(draft: &Draft, key: &ResourceKey, path: &SpecPath, record: &RecordedResource) -> Option<String> {
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
        return Some(format!("{other} was moved to {}, where it stood", claim.origin));
    }
    let newcomers = draft.newcomers.iter().filter_map(|new| Some((new, draft.claims.get(new)?)));
    let (newcomer, claim) = newcomers.into_iter().find(|(new, claim)| may_be(new, claim))?;
    // It may have been there for long, waiting for something, so nothing is said of when it came.
    Some(format!("{newcomer} at {}, which was not applied yet, may be what it became", claim.origin))
}

/// A resource that stood elsewhere and stands in this file now.
fn moved_into<'d>(draft: &'d Draft, path: &SpecPath) -> Option<(&'d ResourceKey, &'d Claim<'d>)> {
    let came = |key: &ResourceKey| draft.record(key)?.stood_in().map(|stood| stood != path);
    draft.claims.iter().find(|(key, claim)| claim.origin.path == *path && came(key) == Some(true))
}

/// Whether a document says what was applied, under another name. What isn't known may be the same.
fn says_the_same(record: &RecordedResource, claim: &Claim) -> bool {
    let content = |mut content: Value| {
        let fields = content.as_object_mut();
        fields.into_iter().for_each(|fields| fields.retain(|name, _| !IDENTITY.contains(&name.as_str())));
        content
    };
    match (&record.last_good, claim.document) {
        (Some(applied), Some(document)) => content(applied.spec.value()) == content(document.spec.redacted()),
        _ => true,
    }
}

/// An error where a resource's document may stand: not in the folder of another organization.
pub(super) fn error_around(draft: &Draft, key: &ResourceKey) -> Option<String> {
    let may_stand_in = |path: &SpecPath| {
        let owner = path.top_folder().filter(|folder| draft.organizations.contains(*folder));
        owner.is_none_or(|owner| owner == key.organization.as_str())
    };
    let errors = draft.problems.iter().filter(|problem| problem.is_error());
    let places = errors.filter_map(|problem| problem.location.as_ref()).filter(|at| may_stand_in(&at.path));
    let (path, line) = places.map(|at| (&at.path, at.line)).min()?;
    Some(format!("the error at {path}:{line} may be about it"))
}

/// The clusters that are gone and that nothing unreadable may describe.
pub(super) struct Gone<'d> {
    /// How many of each organization.
    own: BTreeMap<&'d Identifier, usize>,
    /// How many of them all nobody knew of before.
    new: BTreeMap<&'d Identifier, usize>,
}

impl<'d> Gone<'d> {
    /// Which are gone of a tree.
    pub(super) fn from(draft: &Draft<'d>) -> Self {
        let mut gone = Self { own: BTreeMap::new(), new: BTreeMap::new() };
        for (key, record) in &draft.recorded.resources {
            let is_meant = key.kind == Kind::Cluster
                && !record.deleting
                && !draft.is_removed(key)
                && is_gone(draft, key);
            // What one organization's files hide concerns nobody else.
            if !is_meant || draft.unreadable_for(&key.organization).is_some() {
                continue;
            }
            *gone.own.entry(&key.organization).or_default() += 1;
            *gone.new.entry(&key.organization).or_default() += usize::from(record.suspicion.is_none());
        }
        gone
    }

    /// How many of an organization are, and how many that were gone at once with them: what another organization is still to
    /// approve holds nobody up.
    fn with(&self, organization: &Identifier) -> (usize, usize) {
        let own = self.own.get(organization).copied().unwrap_or(0);
        let others = self.new.iter().filter(|(other, _)| **other != organization);
        (own, own + others.map(|(_, new)| new).sum::<usize>())
    }
}

/// More than the policy allows in an hour, all at once: that is taken for a mistake as a whole.
fn too_many(draft: &Draft, key: &ResourceKey, gone: &Gone) -> Option<String> {
    let allowed = draft.config.policy.cluster_deletions_per_hour;
    let are_too_many = |gone: usize| gone > 1 && u32::try_from(gone).is_ok_and(|gone| gone > allowed);
    let (own, all) = gone.with(&key.organization);
    match lives_on_a_fleet(key) && are_too_many(all) {
        true if are_too_many(own) => Some(format!("{own} clusters were gone at once")),
        // How many another organization has is not for everybody.
        true => Some("clusters of several organizations were gone at once".to_owned()),
        false => None,
    }
}

/// More than a file is gone: all that ran for an organization, a fleet with its clusters, or a folder.
fn gone_at_once(draft: &Draft, key: &ResourceKey, path: &SpecPath) -> Option<String> {
    if all_gone(draft, |other, _| lives_on_a_fleet(other) && other.organization == key.organization) {
        return Some(format!("everything of organization {} was gone at once", key.organization));
    }
    if let Some(fleet) = fleet_of(draft, key).filter(|fleet| is_gone(draft, &fleet.resource())) {
        if all_gone(draft, |other, _| fleet_of(draft, other).as_ref() == Some(&fleet)) {
            return Some(format!("everything of fleet {fleet} was gone at once"));
        }
        if key.kind == Kind::Cluster && draft.recorded.resources.contains_key(&fleet.resource()) {
            return Some(format!("its fleet {fleet} was gone too"));
        }
    }
    let folder = folder(path)?;
    let was_there =
        |path: &SpecPath| path.as_str().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let is_left = draft.documents.files.keys().any(was_there);
    (!is_left && all_gone(draft, |_, record| record.stood_in().is_some_and(was_there)))
        .then(|| format!("the folder {folder} was gone as a whole"))
}

/// Whether several recorded resources are meant, and none of them is left. One alone is a removal like any other.
fn all_gone(draft: &Draft, meant: impl Fn(&ResourceKey, &RecordedResource) -> bool) -> bool {
    let meant = || draft.recorded.resources.iter().filter(|(key, record)| meant(key, record));
    meant().nth(1).is_some() && meant().all(|(key, _)| is_gone(draft, key))
}

/// Whether anything of it lies on a target, so that there is something to lose.
pub(super) fn lives_on_a_fleet(key: &ResourceKey) -> bool {
    matches!(key.kind, Kind::Fleet | Kind::Cluster)
}

/// The fleet that a recorded resource is, or is on.
fn fleet_of(draft: &Draft, key: &ResourceKey) -> Option<FleetKey> {
    key.as_fleet().or_else(|| draft.record(key)?.fleet(key))
}

fn folder(path: &SpecPath) -> Option<&str> {
    path.as_str().rsplit_once('/').map(|(folder, _)| folder)
}
