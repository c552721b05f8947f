//! Decides which document describes which resource.
//!
//! Organizations don't trust each other, and the owners of a top folder don't own the rest of the tree. So a
//! document in a folder that may not contain it is refused before any other check: it can't duplicate or
//! delete the resource that it names. Its only effect is that removing that resource needs approval, since
//! the document may be the misplaced original.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Recorded;
use crate::catalog::draft::{CatalogDraft, Claim, place};
use crate::names::{Identifier, Kind, ResourceKey, SpecPath};
use crate::problem::{Location, Problem};
use crate::spec::{Document, Documents, ParsedFile, Safeguards};

/// Finds the document of each resource, and refuses those in a folder that may not contain them.
pub(super) fn claim(draft: &mut CatalogDraft) {
    draft.organizations = known_organizations(draft.documents, draft.recorded);
    for (key, mut claims) in permitted_claims(draft) {
        claims.sort_by_key(|claim| claim.origin);
        let doubles = report_duplicates(draft, &key, &claims);
        if let Some(first) = claims.into_iter().next() {
            draft.claims.insert(key, Claim { faults: first.faults + doubles, ..first });
        }
    }
    let is_new = |key: &&ResourceKey| !draft.recorded.resources.contains_key(key);
    draft.new_resources = draft.claims.keys().filter(is_new).cloned().collect();
}

pub struct FolderOwners(BTreeSet<Identifier>);

impl FolderOwners {
    pub fn of(documents: &Documents, recorded: &Recorded) -> Self {
        Self(known_organizations(documents, recorded))
    }

    pub fn may_hold(&self, path: &SpecPath, key: &ResourceKey) -> bool {
        let owner = path.top_folder().and_then(|folder| self.0.get(folder));
        owner.is_none_or(|owner| may_hold(owner, key))
    }
}

/// Returns the organizations that own the top folders of their names.
///
/// An Organization document counts only in an administrator's file; otherwise the owners of one folder could
/// claim another. Names that occur only in documents in doubtful folders are included too, so that doubt
/// closes a folder and never opens it. So are the names of deleted organizations: their folders still have
/// their old owners.
fn known_organizations(documents: &Documents, recorded: &Recorded) -> BTreeSet<Identifier> {
    let claims = || {
        documents.files.iter().flat_map(|(path, file)| {
            let keys = file.documents.iter().map(|found| &found.key);
            let keys = keys.chain(file.invalid.iter().map(|found| &found.key));
            keys.filter(|key| key.kind == Kind::Organization)
                .map(|key| (path.top_folder(), key.organization.clone()))
        })
    };
    let mut known: BTreeSet<Identifier> = recorded.organizations().cloned().collect();
    known.extend(recorded.generations.keys().map(|key| key.organization.clone()));
    known.extend(Identifier::ROOT.parse::<Identifier>());
    known.extend(claims().filter(|(folder, _)| folder.is_none()).map(|(_, organization)| organization));
    let doubtful: Vec<_> = claims()
        .filter(|(folder, _)| folder.is_some_and(|folder| !known.contains(folder)))
        .map(|(_, organization)| organization)
        .collect();
    known.extend(doubtful);
    known
}

/// Returns the documents in permitted folders, by key, and reports the others.
fn permitted_claims<'a>(draft: &mut CatalogDraft<'a>) -> BTreeMap<ResourceKey, Vec<Claim<'a>>> {
    let mut by_key: BTreeMap<ResourceKey, Vec<Claim>> = BTreeMap::new();
    for (path, file) in &draft.documents.files {
        let owner = path.top_folder().and_then(|folder| draft.organizations.get(folder)).cloned();
        for document in &file.documents {
            match owner.as_ref().and_then(|owner| trespass(owner, document)) {
                Some(problem) => {
                    draft.problems.push(problem);
                    draft.misplaced_documents.insert((document.key.clone(), document.origin.clone()));
                }
                None => by_key.entry(document.key.clone()).or_default().push(Claim {
                    origin: &document.origin,
                    document: Some(document),
                    safeguards: Safeguards::of(&document.spec),
                    faults: 0,
                    waits: None,
                }),
            }
        }
        for invalid in &file.invalid {
            if owner.as_ref().is_some_and(|owner| !may_hold(owner, &invalid.key)) {
                draft.misplaced_documents.insert((invalid.key.clone(), invalid.origin.clone()));
                continue;
            }
            by_key.entry(invalid.key.clone()).or_default().push(Claim {
                origin: &invalid.origin,
                document: None,
                safeguards: invalid.safeguards,
                faults: problems_within(path, file, invalid.origin.line),
                waits: None,
            });
        }
    }
    by_key
}

fn may_hold(owner: &Identifier, key: &ResourceKey) -> bool {
    key.kind != Kind::Organization && key.organization == *owner
}

fn trespass(owner: &Identifier, document: &Document) -> Option<Problem> {
    let key = &document.key;
    if may_hold(owner, key) {
        return None;
    }
    Some(match key.kind {
        Kind::Organization => Problem::error(
            "organization-in-own-folder",
            format!("organization `{}` can't be described in the folder of an organization", key.name),
        )
        .at(document.locate("/kind"), format!("in the folder of `{owner}`"))
        .hint(format!(
            "move it to an administrator's file, outside of `{owner}/`: `organizations/{}.yaml`",
            key.name
        )),
        _ => Problem::error(
            "foreign-folder",
            format!("`{owner}/` may contain only resources of organization `{owner}`"),
        )
        .at(document.locate("/organization"), format!("not `{owner}`"))
        .hint(format!("set `organization: {owner}`, or move the document out of `{owner}/`")),
    })
}

/// Counts the errors that reading found in the document that begins at a line; at least one.
fn problems_within(path: &SpecPath, file: &ParsedFile, line: u32) -> u32 {
    let beginnings = file.documents.iter().map(|found| found.origin.line);
    let beginnings = beginnings.chain(file.invalid.iter().map(|found| found.origin.line));
    let beginnings = beginnings.chain(file.unreadable.iter().map(|found| found.origin.line));
    let end = beginnings.filter(|beginning| *beginning > line).min().unwrap_or(u32::MAX);
    let here = |location: &Location| location.path == *path && (line..end).contains(&location.line);
    let count = file
        .problems
        .iter()
        .filter(|problem| problem.is_error() && problem.location.as_ref().is_some_and(here))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// Reports every document but the first, and returns how many there are.
fn report_duplicates(draft: &mut CatalogDraft, key: &ResourceKey, claims: &[Claim]) -> u32 {
    let Some((first, others)) = claims.split_first() else { return 0 };
    let name = format!("/{}", key.kind.name_field());
    let locate =
        |claim: &Claim| claim.document.map_or_else(|| place(claim.origin), |found| found.locate(&name));
    for other in others {
        draft.problems.push(
            Problem::error("duplicate-resource", format!("{key} is described twice"))
                .at(locate(other), "second document")
                .related(locate(first), "first document")
                .hint("remove one of the two; until then it stays as it was last applied"),
        );
    }
    u32::try_from(others.len()).unwrap_or(u32::MAX)
}
