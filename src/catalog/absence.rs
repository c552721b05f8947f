//! What to think of a recorded resource that no document names. Only one answer lets it be deleted.

use std::collections::BTreeMap;

use crate::catalog::draft::{Draft, Finding};
use crate::catalog::{Absence, Hold, RecordedResource};
use crate::names::{Identifier, Kind, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::ParsedFile;

/// Says of every recorded resource that no document names why that is, and keeps those that may only be missing.
pub(super) fn classify(draft: &mut Draft) {
    let renamed = renames(draft);
    let recorded = draft.recorded;
    for (key, record) in &recorded.resources {
        // `root` exists without a document.
        if draft.claims.contains_key(key) || is_root(key) {
            continue;
        }
        let absence = match renamed.get(key) {
            Some(to) => Absence::Renamed { to: to.clone() },
            None => judge(draft, key, record),
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

fn is_root(key: &ResourceKey) -> bool {
    key.kind == Kind::Organization && key.name == Identifier::ROOT
}

fn judge(draft: &Draft, key: &ResourceKey, record: &RecordedResource) -> Absence {
    if let Some(unreadable) = draft.unreadable_for(&key.organization) {
        return Absence::Unknown { unreadable: unreadable.clone() };
    }
    let origin = record.last_good.as_ref().map(|last_good| &last_good.origin);
    match suspicion(draft, key, origin) {
        Some(why) => Absence::Suspicious { why },
        None => Absence::Removed,
    }
}

/// Why the absence is likely a mistake.
fn suspicion(draft: &Draft, key: &ResourceKey, origin: Option<&Origin>) -> Option<String> {
    if let Some(last) = changed_source(draft) {
        return Some(format!("the spec tree is {} now and was {last} before", draft.documents.source.0));
    }
    if draft.documents.files.values().all(|file| is_empty(file)) {
        return Some("the spec tree has no documents at all".to_owned());
    }
    if let Some(path) = emptied_file(draft, key, origin) {
        return Some(format!("{path} is empty now"));
    }
    // A folder that became an organization's makes the documents of others in it void, which must not delete them.
    let displaced = draft
        .displaced
        .iter()
        .find(|(displaced, at)| displaced == key && origin.is_some_and(|origin| origin.path == at.path));
    displaced.map(|(_, at)| format!("{} still names it, in what is another organization's folder now", at))
}

fn changed_source<'a>(draft: &Draft<'a>) -> Option<&'a str> {
    let last = draft.recorded.source.as_ref()?;
    (*last != draft.documents.source).then_some(last.0.as_str())
}

/// The file that held the resource and holds nothing now. Where the record doesn't say which file that was, any empty
/// one in which it may have been.
fn emptied_file<'a>(draft: &Draft<'a>, key: &ResourceKey, origin: Option<&Origin>) -> Option<&'a SpecPath> {
    let files = &draft.documents.files;
    let may_have_held = |path: &SpecPath| match origin {
        Some(origin) => origin.path == *path,
        None => path
            .top_folder()
            .and_then(|folder| draft.organizations.get(folder))
            .is_none_or(|owner| *owner == key.organization),
    };
    files.iter().find(|(path, file)| is_empty(file) && may_have_held(path)).map(|(path, _)| path)
}

fn is_empty(file: &ParsedFile) -> bool {
    file.documents.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty()
}

/// The resources whose place another new one of their kind has taken, each with that new one.
fn renames(draft: &Draft) -> BTreeMap<ResourceKey, ResourceKey> {
    if changed_source(draft).is_some() {
        return BTreeMap::new();
    }
    let mut before: BTreeMap<&SpecPath, Vec<(u32, &ResourceKey)>> = BTreeMap::new();
    for (key, record) in &draft.recorded.resources {
        if let Some(last_good) = record.last_good.as_ref().filter(|_| !record.deleting) {
            before.entry(&last_good.origin.path).or_default().push((last_good.origin.line, key));
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

fn renames_in_file<'k>(
    draft: &Draft,
    before: &[(u32, &'k ResourceKey)],
    after: &[(u32, &'k ResourceKey)],
) -> Vec<(&'k ResourceKey, &'k ResourceKey)> {
    let is_gone = |key: &ResourceKey| !draft.claims.contains_key(key) && !is_root(key);
    let is_new = |key: &ResourceKey| !draft.recorded.resources.contains_key(key);
    let only = |resources: &[(u32, &'k ResourceKey)], kind: Kind, fits: &dyn Fn(&ResourceKey) -> bool| {
        let mut fitting = resources.iter().filter(|(_, key)| key.kind == kind && fits(key));
        fitting.next().filter(|_| fitting.next().is_none()).map(|(_, key)| *key)
    };
    let gone = before.iter().enumerate().filter(|(_, (_, key))| is_gone(key));
    gone.filter_map(|(index, (_, old))| {
        let at_its_place = after.get(index).map(|(_, key)| *key);
        let successor = at_its_place.filter(|new| new.kind == old.kind && is_new(new)).or_else(|| {
            only(before, old.kind, &is_gone)?;
            only(after, old.kind, &is_new)
        })?;
        Some((*old, successor))
    })
    .collect()
}

fn refuse_rename(draft: &mut Draft, old: &ResourceKey, new: &ResourceKey) {
    let Some(document) = draft.claims.get(new).and_then(|claim| claim.document) else { return };
    let pointer = match (new.kind, old.organization == new.organization) {
        (_, false) => "/organization",
        (Kind::BaseDomain, true) => "/domain",
        (_, true) => "/identifier",
    };
    let noun = old.kind.noun();
    let replace = match old.kind {
        Kind::Cluster => "move its data there with MirrorMaker 2",
        _ => "let everything refer to that one",
    };
    let problem = Problem::error("renamed", format!("{old} can't be renamed to `{}`", new.path())).hint(format!(
        "put `{}` back, which stays as it was applied; to replace it, describe the new {noun} in a file of its own, \
         {replace}, then remove the old one",
        old.path()
    ));
    draft.refuse(document, [Finding::new(pointer, format!("`{}` stood here", old.path()), problem)]);
}
