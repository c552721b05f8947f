//! Resolves a tree after an earlier one: what an edit can't affect is taken over.
//!
//! Organizations don't trust each other, so hardly anything crosses between them. The exception is addresses:
//! base domains overlap, and two organizations may have been granted the same one. So if all that changed are files
//! that are one organization's own and have no base domain, then only these organizations and those with overlapping
//! domains are resolved again, beside the Organization documents and all files that aren't one organization's own. Any
//! other change has the whole tree resolved.
//!
//! Values that come out equal are shared with the earlier catalog, so that whoever made something of them can
//! tell by their address that they are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use crate::catalog::{Catalog, HostNames, OpenedSecret, Recorded, Records, Secrets, resolve};
use crate::config::Config;
use crate::names::{Identifier, Kind, ResourceKey, SecretRef, SpecPath, side_by_side};
use crate::problem::{Origin, Problem};
use crate::spec::{Commit, Documents, ParsedFile};

/// A tree with everything that it was resolved from.
#[derive(Clone)]
pub struct ResolvedTree {
    pub documents: Arc<Documents>,
    pub recorded: Recorded,
    pub secrets: Secrets,
    pub catalog: Arc<Catalog>,
    /// Made when it is first needed, and shared by the trees that were resolved after this one.
    skeleton: Arc<OnceLock<Skeleton>>,
}

/// The part of a tree that stays the same while no organization and no base domain changes.
struct Skeleton {
    /// The organizations that can affect each other, for each of them.
    related: BTreeMap<Identifier, Arc<BTreeSet<Identifier>>>,
    /// The files that aren't [`own_to`] an organization.
    files: BTreeMap<SpecPath, Arc<ParsedFile>>,
    /// The resources in these files.
    keys: BTreeSet<ResourceKey>,
    records: Records,
    /// Whether every recorded resource is where it was. The reason why one isn't depends on the whole tree.
    is_complete: bool,
}

impl ResolvedTree {
    /// Resolves a tree. The result is the same with and without an earlier tree.
    pub fn resolve(
        documents: Arc<Documents>,
        recorded: Recorded,
        secrets: Secrets,
        (config, hosts): (&Arc<Config>, &[HostNames]),
        now: Timestamp,
        before: Option<&ResolvedTree>,
    ) -> Self {
        let inputs =
            Inputs { documents: &documents, recorded: &recorded, secrets: &secrets, config, hosts, now };
        let after = before.and_then(|before| Some((inputs.after(before)?, Arc::clone(&before.skeleton))));
        let (catalog, skeleton) = after.unwrap_or_else(|| {
            let mut catalog = resolve(&documents, &recorded, &secrets, config, hosts, now);
            if let Some(before) = before {
                share(&mut catalog, &before.catalog);
            }
            (Arc::new(catalog), Arc::default())
        });
        Self { documents, recorded, secrets, catalog, skeleton }
    }
}

#[cfg(test)]
impl ResolvedTree {
    /// Whether it took over parts of another tree.
    pub(super) fn is_part_of(&self, before: &ResolvedTree) -> bool {
        Arc::ptr_eq(&self.skeleton, &before.skeleton)
    }
}

struct Inputs<'a> {
    documents: &'a Arc<Documents>,
    recorded: &'a Recorded,
    secrets: &'a Secrets,
    config: &'a Arc<Config>,
    hosts: &'a [HostNames],
    now: Timestamp,
}

impl Inputs<'_> {
    /// `None` if the whole tree has to be resolved.
    fn after(&self, before: &ResolvedTree) -> Option<Arc<Catalog>> {
        if !self.is_alike(before) {
            return None;
        }
        let files: Vec<_> = match Arc::ptr_eq(self.documents, &before.documents) {
            true => Vec::new(),
            false => self.documents.differing(&before.documents).collect(),
        };
        let records = self.recorded.resources.changed_since(&before.recorded.resources);
        let secrets = changed_secrets(&before.secrets, self.secrets);
        if files.is_empty() && records.is_empty() && secrets.is_empty() {
            let is_same = self.documents.revision == before.documents.revision
                && self.documents.commit == before.documents.commit;
            return Some(if is_same {
                Arc::clone(&before.catalog)
            } else {
                self.retold(&before.catalog).into()
            });
        }
        let skeleton = before.skeleton.get_or_init(|| Skeleton::of(before));
        let around = skeleton.around(self.organizations(before, skeleton, (&files, &records, &secrets))?);
        let documents = skeleton.documents(self.documents, &around);
        let recorded = skeleton.recorded(self.recorded, &around);
        let part = resolve(&documents, &recorded, self.secrets, self.config, self.hosts, self.now);
        let is_replaced = |problem: &Problem| {
            let origin = problem.location.as_ref()?.origin();
            Some(skeleton.owner(&origin).is_some_and(|owner| around.contains(owner)))
        };
        merged(self.retold(&before.catalog), part, |owner| around.contains(owner), is_replaced).map(Arc::new)
    }

    /// Whether nothing but files, records and secrets can have changed.
    fn is_alike(&self, before: &ResolvedTree) -> bool {
        let rewrote = |commit: &Option<Commit>| commit.as_ref().map(|commit| commit.rewrote.clone());
        let (documents, was) = (self.documents, &before.documents);
        let (recorded, applied) = (self.recorded, &before.recorded);
        before.catalog.is_steady(self.now)
            && (Arc::ptr_eq(self.config, &before.catalog.config) || *self.config == before.catalog.config)
            && documents.source == was.source
            && rewrote(&documents.commit) == rewrote(&was.commit)
            && documents.skipped == was.skipped
            && recorded.installation == applied.installation
            && recorded.source == applied.source
            && recorded.generations == applied.generations
            && recorded.remembered_ids == applied.remembered_ids
            && recorded.removed == applied.removed
            && self.secrets.certificates == before.secrets.certificates
            && self.secrets.warnings == before.secrets.warnings
    }

    /// A catalog as one of the present revision.
    fn retold(&self, catalog: &Catalog) -> Catalog {
        let (revision, commit) = (self.documents.revision.clone(), self.documents.commit.clone());
        Catalog { revision, commit, ..catalog.clone() }
    }

    /// The organizations of which something changed that concerns no other; `None` if anything else did.
    fn organizations(
        &self,
        before: &ResolvedTree,
        skeleton: &Skeleton,
        (files, records, secrets): (&[&SpecPath], &[&ResourceKey], &[&SecretRef]),
    ) -> Option<BTreeSet<Identifier>> {
        let mut found = BTreeSet::new();
        for path in files {
            for tree in [&before.documents, self.documents] {
                let Some(file) = tree.files.get(*path) else { continue };
                let owner = own_to(path, file)?;
                let concerns_others = |key: &ResourceKey| key.kind.concerns_others();
                let is_kept = |key: &ResourceKey| concerns_others(key) || skeleton.keys.contains(key);
                if skeleton.files.contains_key(*path) || keys(file).any(is_kept) {
                    return None;
                }
                found.insert(owner.clone());
            }
            let mut was = before.documents.files.get(*path).into_iter().flat_map(|file| keys(file));
            if !was.all(|key| is_where_it_stood(self.documents, &self.recorded.resources, key)) {
                return None;
            }
        }
        for key in records {
            let is_kept = skeleton.records.contains_key(key) || !skeleton.knows(&key.organization);
            if is_kept
                || key.kind.concerns_others()
                || !is_where_it_stood(self.documents, &self.recorded.resources, key)
            {
                return None;
            }
            found.insert(key.organization.clone());
        }
        for reference in secrets {
            if reference.resource.kind.concerns_others() {
                return None;
            }
            found.insert(reference.resource.organization.clone());
        }
        skeleton.is_complete.then_some(found)
    }
}

impl Skeleton {
    fn of(tree: &ResolvedTree) -> Self {
        let ResolvedTree { documents, recorded, .. } = tree;
        let is_own = |path: &SpecPath, file: &ParsedFile| own_to(path, file).is_some();
        let others = || documents.files.iter().filter(|(path, file)| !is_own(path, file));
        let mut described: BTreeSet<ResourceKey> =
            others().flat_map(|(_, file)| keys(file)).cloned().collect();
        // Documents of the same resource in several files stay together.
        let doubles = documents
            .files
            .iter()
            .filter(|(path, file)| is_own(path, file) && keys(file).any(|key| described.contains(key)));
        let files: BTreeMap<_, _> =
            others().chain(doubles).map(|(path, file)| (path.clone(), Arc::clone(file))).collect();
        described.extend(files.values().flat_map(|file| keys(file)).cloned());
        let records = &recorded.resources;
        let is_organization = |key: &ResourceKey| key.kind == Kind::Organization;
        let known: BTreeSet<&Identifier> =
            records.keys().filter(|key| is_organization(key)).map(|key| &key.organization).collect();
        // A record may be the only evidence of its organization, which reserves a folder. `root` needs none.
        let is_kept = |key: &ResourceKey| {
            let is_known = known.contains(&key.organization) || key.organization.as_str() == Identifier::ROOT;
            is_organization(key) || !is_known
        };
        let kept = records.only(is_kept);
        let is_complete = tree.catalog.absent.is_empty()
            && records.keys().all(|key| is_where_it_stood(documents, records, key));
        let described_everywhere = documents.files.values().flat_map(|file| keys(file));
        let domains = described_everywhere.chain(records.keys()).filter(|key| key.kind == Kind::BaseDomain);
        let related = related(domains);
        Self { related, files, keys: described, records: kept, is_complete }
    }

    /// Whether an organization is known by more than the records of its resources.
    fn knows(&self, organization: &Identifier) -> bool {
        organization.as_str() == Identifier::ROOT
            || self.keys.contains(&ResourceKey::organization(organization))
            || self.records.of(organization).is_some()
    }

    /// These organizations and all that they can affect.
    fn around(&self, mut organizations: BTreeSet<Identifier>) -> BTreeSet<Identifier> {
        let others: Vec<_> =
            organizations.iter().filter_map(|it| self.related.get(it)).map(Arc::clone).collect();
        organizations.extend(others.iter().flat_map(|it| it.iter().cloned()));
        organizations
    }

    /// The organization of the document at a place.
    fn owner<'a>(&'a self, at: &'a Origin) -> Option<&'a str> {
        let Some(file) = self.files.get(&at.path) else { return at.path.top_folder() };
        let documents = file.documents.iter().map(|document| (document.origin.line, &document.key));
        let documents = documents.chain(file.invalid.iter().map(|it| (it.origin.line, &it.key)));
        let before = documents.filter(|(line, _)| *line <= at.line);
        before.max_by_key(|(line, _)| *line).map(|(_, key)| key.organization.as_str())
    }

    fn documents(&self, documents: &Documents, around: &BTreeSet<Identifier>) -> Documents {
        let mut files = self.files.clone();
        for owner in around {
            files
                .extend(documents.below(owner.as_str()).map(|(path, file)| (path.clone(), Arc::clone(file))));
        }
        Documents {
            source: documents.source.clone(),
            revision: documents.revision.clone(),
            commit: documents.commit.clone(),
            skipped: documents.skipped.clone(),
            files,
        }
    }

    fn recorded(&self, recorded: &Recorded, around: &BTreeSet<Identifier>) -> Recorded {
        let mut resources = self.records.clone();
        resources.replace(recorded.resources.clone(), |owner| around.contains(owner));
        Recorded { resources, ..recorded.clone() }
    }
}

/// The organizations whose domains overlap, directly or by way of others.
fn related<'k>(
    domains: impl Iterator<Item = &'k ResourceKey>,
) -> BTreeMap<Identifier, Arc<BTreeSet<Identifier>>> {
    let mut owners: BTreeMap<&str, BTreeSet<&Identifier>> = BTreeMap::new();
    for key in domains {
        owners.entry(key.name.as_str()).or_default().insert(&key.organization);
    }
    let mut groups: Vec<BTreeSet<Identifier>> = Vec::new();
    for (name, own) in &owners {
        let above = name.match_indices('.').filter_map(|(dot, _)| owners.get(&name[dot + 1..]));
        let mut group: BTreeSet<Identifier> =
            own.iter().chain(above.flatten()).map(|it| (*it).clone()).collect();
        if group.len() < 2 {
            continue;
        }
        groups.retain(|other| {
            let is_apart = other.is_disjoint(&group);
            if !is_apart {
                group.extend(other.iter().cloned());
            }
            is_apart
        });
        groups.push(group);
    }
    let of_group = |group: BTreeSet<Identifier>| {
        let group = Arc::new(group);
        group.iter().map(|it| (it.clone(), Arc::clone(&group))).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The organization in whose folder a file is, if it has nothing but valid resources of it.
fn own_to<'f>(path: &SpecPath, file: &'f ParsedFile) -> Option<&'f Identifier> {
    let is_whole = file.problems.is_empty() && file.invalid.is_empty() && file.unreadable.is_empty();
    let owner = &file.documents.first().filter(|_| is_whole)?.key.organization;
    let is_own = |key: &ResourceKey| key.kind != Kind::Organization && key.organization == *owner;
    (path.top_folder() == Some(owner.as_str()) && keys(file).all(is_own)).then_some(owner)
}

/// Whether a resource, if it is recorded, is described in its recorded file. `root` needs no description.
fn is_where_it_stood(documents: &Documents, records: &Records, key: &ResourceKey) -> bool {
    let Some(record) = records.get(key) else { return true };
    let file = record.last_known_file().and_then(|path| documents.files.get(path));
    file.is_some_and(|file| keys(file).any(|described| described == key))
        || key.kind == Kind::Organization && key.name == Identifier::ROOT
}

fn keys(file: &ParsedFile) -> impl Iterator<Item = &ResourceKey> {
    let documents = file.documents.iter().map(|document| &document.key);
    documents.chain(file.invalid.iter().map(|document| &document.key))
}

fn changed_secrets<'a>(before: &'a Secrets, now: &'a Secrets) -> Vec<&'a SecretRef> {
    let is_same = |one: &OpenedSecret, other: &OpenedSecret| match (one, other) {
        (OpenedSecret::Value { mark: one, .. }, OpenedSecret::Value { mark: other, .. }) => {
            one == other && one.fingerprint.is_some()
        }
        (
            OpenedSecret::Unavailable { mark: one, reason: why },
            OpenedSecret::Unavailable { mark: other, reason },
        ) => one == other && why == reason,
        (OpenedSecret::Refused(one), OpenedSecret::Refused(other)) => one == other,
        _ => false,
    };
    let both = side_by_side(&before.opened, &now.opened);
    both.filter(|(_, was, opened)| !was.zip(*opened).is_some_and(|(was, opened)| is_same(was, opened)))
        .map(|(reference, ..)| reference)
        .collect()
}

/// Replaces what some organizations have in a catalog; `None` if a problem is in no file.
fn merged(
    mut catalog: Catalog,
    mut part: Catalog,
    is_theirs: impl Fn(&Identifier) -> bool,
    is_replaced: impl Fn(&Problem) -> Option<bool>,
) -> Option<Catalog> {
    share(&mut part, &catalog);
    let Catalog { resources, fleets, clusters, absent, capacity, managed, granted, problems, .. } =
        &mut catalog;
    resources.replace(part.resources, &is_theirs);
    replace(fleets, part.fleets, |key| is_theirs(&key.organization));
    clusters.replace(part.clusters, &is_theirs);
    replace(absent, part.absent, |key| is_theirs(&key.organization));
    replace(managed, part.managed, |key| is_theirs(&key.organization));
    replace(capacity, part.capacity, &is_theirs);
    granted.replace(part.granted, |key| is_theirs(&key.organization));
    let mut told = Vec::new();
    for (problem, is_new) in
        problems.drain(..).map(|it| (it, false)).chain(part.problems.into_iter().map(|it| (it, true)))
    {
        if is_replaced(&problem)? == is_new {
            told.push(problem);
        }
    }
    told.sort();
    told.dedup();
    *problems = told;
    replace(&mut catalog.certificates_end, part.certificates_end, |key| is_theirs(&key.organization));
    catalog.steady_from = catalog.steady_from.max(part.steady_from);
    catalog.steady_until = catalog.steady_until.min(part.steady_until);
    Some(catalog)
}

/// Replaces the entries of some keys by those of another map.
pub(super) fn replace<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    other: BTreeMap<K, V>,
    is_meant: impl Fn(&K) -> bool,
) {
    map.retain(|key, _| !is_meant(key));
    map.extend(other.into_iter().filter(|(key, _)| is_meant(key)));
}

/// Replaces values by those of an earlier catalog that equal them.
fn share(catalog: &mut Catalog, before: &Catalog) {
    fn share<V: PartialEq>(value: &mut Arc<V>, before: &Arc<V>) -> bool {
        let is_same = Arc::ptr_eq(value, before) || **value == **before;
        if is_same {
            *value = Arc::clone(before);
        }
        is_same
    }
    catalog.resources.share(&before.resources, share);
    catalog.clusters.share(&before.clusters, share);
    for (key, fleet) in &mut catalog.fleets {
        if let Some(before) = before.fleets.get(key) {
            share(fleet, before);
        }
    }
    if catalog.config == before.config {
        catalog.config = Arc::clone(&before.config);
    }
}
