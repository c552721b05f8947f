//! The part of a tree that can affect one organization, so that a request about that organization needn't
//! resolve everything.
//!
//! Organizations don't trust each other, so hardly anything crosses between them. The exception is addresses:
//! base domains overlap, and two organizations may have been granted the same one. So everything is kept
//! except the clusters of organizations that share no domain with this one, and those only if each is in its
//! organization's own folder and its file has no problems.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Recorded, RecordedResource};
use crate::names::{Identifier, Kind, ResourceKey, SpecPath};
use crate::spec::{Documents, ParsedFile};

/// An organization and those that share a base domain with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedOrganizations(BTreeSet<Identifier>);

impl RelatedOrganizations {
    /// Collects them from a tree and from what was applied before. Returns none if an applied resource is
    /// missing: the reason for that depends on the whole tree.
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

    /// Returns the tree without the clusters of unrelated organizations. Together with `recorded` it resolves
    /// the organization's clusters, identity providers and cloud accounts as the whole tree does.
    pub fn documents(&self, documents: &Documents) -> Documents {
        let (others, kept): (Vec<_>, Vec<_>) =
            documents.files.iter().partition(|(path, file)| self.is_anothers(path, file));
        let known: BTreeSet<&ResourceKey> = kept.iter().flat_map(|(_, file)| keys(file)).collect();
        // Duplicate descriptions of a cluster are kept or left out together.
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

    /// Returns the record without the clusters that the partial tree leaves out.
    pub fn recorded(documents: &Documents, part: &Documents, recorded: &Recorded) -> Recorded {
        let is_left_out =
            |path: &SpecPath| documents.files.contains_key(path) && !part.files.contains_key(path);
        let others = recorded.resources.keys().filter(|key| !is_of_cluster(key.kind));
        let known: BTreeSet<&Identifier> = others.map(|key| &key.organization).collect();
        let is_kept = |key: &ResourceKey, record: &RecordedResource| {
            // A cluster's record may be the only evidence of its organization, which reserves a folder.
            !known.contains(&key.organization) || !record.last_known_file().is_some_and(is_left_out)
        };
        let resources = recorded.resources.iter().filter(|(key, record)| is_kept(key, record));
        let resources: BTreeMap<_, _> =
            resources.map(|(key, record)| (key.clone(), record.clone())).collect();
        Recorded { resources: resources.into(), ..recorded.clone() }
    }

    /// Returns whether a file is in an unrelated organization's folder and has only valid clusters of that one.
    fn is_anothers(&self, path: &SpecPath, file: &ParsedFile) -> bool {
        let Some(folder) = path.top_folder().filter(|folder| !self.0.contains(*folder)) else {
            return false;
        };
        let is_whole = file.problems.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty();
        let mut keys = file.documents.iter().map(|document| &document.key);
        is_whole
            && !file.documents.is_empty()
            && keys.all(|key| is_of_cluster(key.kind) && key.organization.as_str() == folder)
    }
}

/// Whether a kind is a cluster or on one: no other organization depends on it.
fn is_of_cluster(kind: Kind) -> bool {
    kind == Kind::Cluster || kind.is_on_cluster()
}

/// Returns whether a resource's recorded file still describes it. `root` needs no description.
fn is_where_it_stood(documents: &Documents, key: &ResourceKey, record: &RecordedResource) -> bool {
    let file = record.last_known_file().and_then(|path| documents.files.get(path));
    file.is_some_and(|file| keys(file).any(|described| described == key))
        || key.kind == Kind::Organization && key.name == Identifier::ROOT
}

fn keys(file: &ParsedFile) -> impl Iterator<Item = &ResourceKey> {
    let documents = file.documents.iter().map(|document| &document.key);
    documents.chain(file.invalid.iter().map(|document| &document.key))
}
