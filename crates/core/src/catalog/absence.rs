//! Classifies recorded resources that no document names. Only `Absence::Removed` allows deletion without
//! approval: any hint of a mistake makes the absence suspicious.

mod suspicion;

use std::collections::BTreeMap;

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::{Absence, Hold, RecordedResource};
use crate::names::{Identifier, Kind, ResourceKey, SpecPath};
use crate::problem::Problem;

/// Classifies every absence, and keeps the resources that may be missing by mistake.
pub(super) fn classify(draft: &mut CatalogDraft) {
    let recorded = draft.recorded;
    let absent: Vec<_> = recorded.resources.iter().filter(|(key, _)| is_gone(draft, key)).collect();
    if absent.is_empty() {
        return;
    }
    let (renamed, gone) = (renames(draft), suspicion::MissingClusters::from(draft));
    for (key, record) in absent {
        let absence = match renamed.get(key) {
            Some(to) => Absence::Renamed { to: to.clone() },
            None => judge(draft, key, record, &gone),
        };
        match &absence {
            Absence::Removed => {}
            Absence::Unknown { unreadable } => {
                draft.keep(key, Hold::Unreadable { origin: unreadable.clone() });
            }
            Absence::Suspicious { .. } | Absence::Renamed { .. } => draft.keep(key, Hold::Absent),
        }
        draft.absent.insert(key.clone(), absence);
    }
    for (old, new) in &renamed {
        refuse_rename(draft, old, new);
    }
}

/// Returns whether no document names a resource. `root` needs none.
fn is_gone(draft: &CatalogDraft, key: &ResourceKey) -> bool {
    let is_root = key.kind == Kind::Organization && key.name == Identifier::ROOT;
    !is_root && !draft.claims.contains_key(key)
}

/// Checks the removed resources again, once all problems of the tree are known.
///
/// An error isn't always reported where its cause is: half of a rename, a typo in the name in a file that was
/// moved. So while a file that may contain an organization's documents has an error, none of its deletions is
/// clean.
pub(super) fn reconsider(draft: &mut CatalogDraft) {
    let removed = draft.absent.iter().filter(|(key, absence)| {
        let is_going = draft.record(key).is_some_and(|record| record.durable.deleting);
        let is_meant = is_going || draft.is_removed(key);
        **absence == Absence::Removed && suspicion::lives_on_a_fleet(key) && !is_meant
    });
    let doubtful: Vec<(ResourceKey, String)> =
        removed.filter_map(|(key, _)| Some((key.clone(), suspicion::error_around(draft, key)?))).collect();
    for (key, why) in doubtful {
        draft.keep(&key, Hold::Absent);
        draft.absent.insert(key, Absence::Suspicious { why });
    }
}

fn judge(
    draft: &CatalogDraft,
    key: &ResourceKey,
    record: &RecordedResource,
    gone: &suspicion::MissingClusters,
) -> Absence {
    if let Some(unreadable) = draft.unreadable_for(&key.organization) {
        return Absence::Unknown { unreadable: unreadable.clone() };
    }
    match suspicion::of(draft, key, record, gone) {
        Some(why) => Absence::Suspicious { why },
        None => Absence::Removed,
    }
}

/// Returns each resource whose file has a new resource that may be its renamed form, with that new one.
fn renames(draft: &CatalogDraft) -> BTreeMap<ResourceKey, ResourceKey> {
    if suspicion::changed_source(draft).is_some() {
        return BTreeMap::new();
    }
    let mut before: BTreeMap<&SpecPath, Vec<(u32, &ResourceKey)>> = BTreeMap::new();
    let may_be_renamed = |(key, record): &(&ResourceKey, &RecordedResource)| {
        !record.durable.deleting && !draft.is_removed(key)
    };
    for (key, record) in draft.recorded.resources.iter().filter(may_be_renamed) {
        // Without the cache, neither the line nor the order is known.
        let line = record.cached.last_good.as_ref().map_or(0, |last_good| last_good.origin.line);
        if let Some(path) = record.last_known_file() {
            before.entry(path).or_default().push((line, key));
        }
    }
    let mut after: BTreeMap<&SpecPath, Vec<(u32, &ResourceKey)>> = BTreeMap::new();
    for (key, claim) in &draft.claims {
        after.entry(&claim.origin.path).or_default().push((claim.origin.line, key));
    }
    before.values_mut().chain(after.values_mut()).for_each(|resources| resources.sort_unstable());
    let no_resources = Vec::new();
    let pairs = before
        .iter()
        .flat_map(|(path, before)| renames_in_file(draft, before, after.get(path).unwrap_or(&no_resources)));
    pairs.map(|(old, new)| (old.clone(), new.clone())).collect()
}

/// The successor of a resource is the new one at the same position, or else any new one of its kind. All are
/// considered, since otherwise removing one document and renaming another would hide the rename.
fn renames_in_file<'k>(
    draft: &CatalogDraft,
    before: &[(u32, &'k ResourceKey)],
    after: &[(u32, &'k ResourceKey)],
) -> Vec<(&'k ResourceKey, &'k ResourceKey)> {
    let may_be = |old: &ResourceKey, new: &ResourceKey| {
        let same_name = old.organization == new.organization && old.name == new.name;
        !draft.recorded.resources.contains_key(new) && (new.kind == old.kind || same_name)
    };
    let gone = before.iter().enumerate().filter(|(_, (_, key))| is_gone(draft, key));
    gone.filter_map(|(index, (_, old))| {
        let at_its_place = after.get(index).into_iter();
        let successor = at_its_place.chain(after).find(|(_, new)| may_be(old, new));
        successor.map(|(_, new)| (*old, *new))
    })
    .collect()
}

fn refuse_rename(draft: &mut CatalogDraft, old: &ResourceKey, new: &ResourceKey) {
    let Some(document) = draft.claims.get(new).and_then(|claim| claim.document) else { return };
    let (pointer, message) = match new.kind {
        kind if kind != old.kind => ("/kind", format!("{old} can't become {new}")),
        Kind::Organization => ("/identifier", cannot_be_renamed(old, new)),
        _ if old.organization != new.organization => ("/organization", cannot_be_renamed(old, new)),
        Kind::BaseDomain => ("/domain", cannot_be_renamed(old, new)),
        Kind::Topic => ("/name", cannot_be_renamed(old, new)),
        _ => ("/identifier", cannot_be_renamed(old, new)),
    };
    let noun = new.kind.noun();
    let replace = match old.kind {
        Kind::Cluster => "move its data there with MirrorMaker 2",
        Kind::Topic => "move its records and clients there",
        Kind::User => "move its clients there",
        _ => "change all references to it",
    };
    let problem = Problem::error("renamed", message).hint(format!(
        "restore `{}`, which stays as it was applied; to replace it, describe the new {noun} in a file of its own, \
         {replace}, then remove the old one",
        old.path()
    ));
    draft.refuse(document, [CatalogFinding::new(pointer, format!("`{}` was here", old.path()), problem)]);
}

fn cannot_be_renamed(old: &ResourceKey, new: &ResourceKey) -> String {
    format!("{old} can't be renamed to `{}`", new.path())
}
