//! The part of a tree that can matter to what one organization has: so that whoever looks at that alone need not resolve what
//! all the others have.
//!
//! Organizations don't trust each other, so nearly nothing of one reaches into another. What does is what gives addresses: base
//! domains overlap, and two organizations may both have been given one. So everything is kept but the clusters of those that
//! share no domain with this one, where each of them stands in its organization's own folder and nothing is wrong with its file.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Recorded, RecordedResource};
use crate::names::{Identifier, Kind, ResourceKey, SpecPath};
use crate::spec::{Documents, ParsedFile};

/// An organization and those that share a base domain with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours(BTreeSet<Identifier>);

impl Neighbours {
    /// Of an organization, in a tree and in what was applied before it; none where something is missing that was applied: why
    /// that is depends on the whole tree.
    pub fn of(organization: &Identifier, documents: &Documents, recorded: &Recorded) -> Option<Self> {
        if recorded.resources.iter().any(|(key, record)| !is_where_it_stood(documents, key, record)) {
            return None;
        }
        let described = documents.files.values().flat_map(|file| keys(file));
        let domains: Vec<&ResourceKey> =
            described.chain(recorded.resources.keys()).filter(|key| key.kind == Kind::BaseDomain).collect();
        let own = domains.iter().filter(|key| key.organization == *organization);
        let own: BTreeSet<&str> = own.map(|key| key.name.as_str()).collect();
        let sharing = domains.iter().filter(|key| own.contains(key.name.as_str()));
        let sharing = sharing.map(|key| key.organization.clone());
        Some(Self(sharing.chain([organization.clone()]).collect()))
    }

    /// A tree without the clusters of all others. For clusters, identity providers and cloud accounts of the organization, it
    /// resolves to the same as all of it does, with [`Neighbours::recorded`].
    pub fn documents(&self, documents: &Documents) -> Documents {
        let (others, kept): (Vec<_>, Vec<_>) =
            documents.files.iter().partition(|(path, file)| self.is_anothers(path, file));
        let known: BTreeSet<&ResourceKey> = kept.iter().flat_map(|(_, file)| keys(file)).collect();
        // Two descriptions of one cluster are kept or left out together.
        let doubles = others.into_iter().filter(|(_, file)| keys(file).any(|key| known.contains(key)));
        let files = kept.iter().copied().chain(doubles);
        Documents {
            source: documents.source.clone(),
            revision: documents.revision.clone(),
            commit: documents.commit.clone(),
            skipped: documents.skipped.clone(),
            files: files.map(|(path, file)| (path.clone(), file.clone())).collect(),
        }
    }

    /// What was applied, without the clusters that a tree's part leaves out.
    pub fn recorded(documents: &Documents, part: &Documents, recorded: &Recorded) -> Recorded {
        let is_left_out =
            |path: &SpecPath| documents.files.contains_key(path) && !part.files.contains_key(path);
        let others = recorded.resources.keys().filter(|key| key.kind != Kind::Cluster);
        let known: BTreeSet<&Identifier> = others.map(|key| &key.organization).collect();
        let is_kept = |key: &ResourceKey, record: &RecordedResource| {
            // It may be all that says that there is an organization, whose folder nobody else writes in.
            !known.contains(&key.organization) || !record.stood_in().is_some_and(is_left_out)
        };
        let resources = recorded.resources.iter().filter(|(key, record)| is_kept(key, record));
        let resources: BTreeMap<_, _> =
            resources.map(|(key, record)| (key.clone(), record.clone())).collect();
        Recorded { resources: resources.into(), ..recorded.clone() }
    }

    /// Whether a file holds sound clusters of another organization in that one's folder, and nothing else.
    fn is_anothers(&self, path: &SpecPath, file: &ParsedFile) -> bool {
        let Some(folder) = path.top_folder().filter(|folder| !self.0.contains(*folder)) else {
            return false;
        };
        let is_whole = file.problems.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty();
        let mut keys = file.documents.iter().map(|document| &document.key);
        is_whole
            && !file.documents.is_empty()
            && keys.all(|key| key.kind == Kind::Cluster && key.organization.as_str() == folder)
    }
}

/// Whether the file that a resource stood in still describes it. `root` needs no description.
fn is_where_it_stood(documents: &Documents, key: &ResourceKey, record: &RecordedResource) -> bool {
    let file = record.stood_in().and_then(|path| documents.files.get(path));
    file.is_some_and(|file| keys(file).any(|described| described == key))
        || key.kind == Kind::Organization && key.name == Identifier::ROOT
}

/// What a file describes.
fn keys(file: &ParsedFile) -> impl Iterator<Item = &ResourceKey> {
    let documents = file.documents.iter().map(|document| &document.key);
    documents.chain(file.invalid.iter().map(|document| &document.key))
}
