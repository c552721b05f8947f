//! The catalog under construction: the document of each resource, its problems, and the spec that is used.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::catalog::{
    Absence, Hold, HostNames, Recorded, RecordedResource, ResolvedSecret, Secrets, managed,
};
use crate::config::Config;
use crate::names::{Domain, Identifier, Kind, ResourceKey};
use crate::parallel;
use crate::problem::{Location, Origin, Problem};
use crate::spec::{Document, Documents, Fleet, Organization, Safeguards, Spec};

pub(super) struct CatalogDraft<'a> {
    pub documents: &'a Documents,
    pub recorded: &'a Recorded,
    pub secrets: &'a Secrets,
    pub config: &'a Arc<Config>,
    pub hosts: &'a [HostNames],
    now: Timestamp,
    /// From when on, and until when, the answers of [`Self::is_past`] hold.
    pub steady: Cell<(Timestamp, Timestamp)>,
    /// Every name whose top folder belongs to an organization.
    pub organizations: BTreeSet<Identifier>,
    pub claims: BTreeMap<ResourceKey, Claim<'a>>,
    /// The claimed resources that were never applied, sorted by key.
    pub new_resources: Vec<ResourceKey>,
    /// The resources named by documents that were refused for being in a folder that may not contain them.
    pub misplaced_documents: BTreeSet<(ResourceKey, Origin)>,
    pub absent: BTreeMap<ResourceKey, Absence>,
    pub settled: BTreeMap<ResourceKey, EffectiveSpec>,
    /// Secrets of the documents, by resource and field.
    pub marks: BTreeMap<ResourceKey, BTreeMap<String, ResolvedSecret>>,
    pub problems: Vec<Problem>,
}

/// The documents' claim to a resource. If several documents claim it, the first one's.
pub(super) struct Claim<'a> {
    pub origin: &'a Origin,
    /// None if the document has problems of its own and was not typed.
    pub document: Option<&'a Document>,
    pub safeguards: Safeguards,
    /// The number of problems that keep the document from being used.
    pub faults: u32,
    /// Why a document without problems waits.
    pub waits: Option<Hold>,
}

/// The spec that is used for a resource: its document's, or the recorded one.
pub(super) struct EffectiveSpec {
    pub spec: Spec,
    pub origin: Origin,
    pub basis: SpecOrigin,
    pub hold: Option<Hold>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpecOrigin {
    Document,
    /// The record: the resource stays as it was applied.
    Record,
    /// A document that waits, with nothing applied before. Other resources must not build on it.
    Unapplied,
}

pub(super) struct CatalogFinding {
    /// A JSON pointer.
    pub pointer: &'static str,
    /// A few words for the underline in the printed source line.
    pub label: String,
    pub problem: Problem,
}

impl CatalogFinding {
    pub fn new(pointer: &'static str, label: impl Into<String>, problem: Problem) -> Self {
        Self { pointer, label: label.into(), problem }
    }
}

/// The result of resolving a reference.
pub(super) enum ReferenceTarget<'d> {
    Found(&'d EffectiveSpec),
    /// The resource is named somewhere and can't be used yet.
    NotUsable(Hold),
    Missing,
}

impl EffectiveSpec {
    pub fn is_usable(&self) -> bool {
        self.basis != SpecOrigin::Unapplied
    }
}

impl<'a> CatalogDraft<'a> {
    pub fn new(
        documents: &'a Documents,
        recorded: &'a Recorded,
        secrets: &'a Secrets,
        config: &'a Arc<Config>,
        hosts: &'a [HostNames],
        now: Timestamp,
    ) -> Self {
        // Parses them on all processors, before the first use would do it on one.
        let resources: Vec<_> = recorded.resources.iter().collect();
        parallel::map(&resources, |(key, record)| record.applied_spec(key.kind).is_some());
        Self {
            documents,
            recorded,
            secrets,
            config,
            hosts,
            now,
            steady: Cell::new((Timestamp::MIN, Timestamp::MAX)),
            organizations: BTreeSet::new(),
            claims: BTreeMap::new(),
            new_resources: Vec::new(),
            misplaced_documents: BTreeSet::new(),
            absent: BTreeMap::new(),
            settled: BTreeMap::new(),
            marks: BTreeMap::new(),
            problems: documents.problems().cloned().collect(),
        }
    }

    pub fn documents_of(&self, kind: Kind) -> Vec<&'a Document> {
        self.claims
            .iter()
            .filter(|(key, _)| key.kind == kind)
            .filter_map(|(_, claim)| claim.document)
            .collect()
    }

    pub fn claimed_documents(&self) -> Vec<&'a Document> {
        self.claims.values().filter_map(|claim| claim.document).collect()
    }

    /// Returns the settled resources of a kind, sorted by key. They may be unusable.
    pub fn settled_of(&self, kind: Kind) -> impl Iterator<Item = (&ResourceKey, &EffectiveSpec)> {
        self.settled.iter().filter(move |(key, _)| key.kind == kind)
    }

    pub fn refuse(&mut self, document: &Document, findings: impl IntoIterator<Item = CatalogFinding>) {
        for CatalogFinding { pointer, label, problem } in findings {
            self.problems.push(problem.at(document.locate(pointer), label));
            self.fault(&document.key);
        }
    }

    /// Counts a problem against the document of a resource.
    pub fn fault(&mut self, key: &ResourceKey) {
        if let Some(claim) = self.claims.get_mut(key) {
            claim.faults += 1;
        }
        self.settle_again(key);
    }

    /// Makes a valid document wait. The first reason is kept.
    pub fn wait(&mut self, key: &ResourceKey, hold: Hold) {
        if let Some(claim) = self.claims.get_mut(key) {
            claim.waits.get_or_insert(hold);
        }
        self.settle_again(key);
    }

    pub fn settle(&mut self, kind: Kind) {
        let keys: Vec<_> = self.claims.keys().filter(|key| key.kind == kind).cloned().collect();
        for key in &keys {
            self.settle_claim(key);
        }
    }

    fn settle_again(&mut self, key: &ResourceKey) {
        if self.settled.contains_key(key) {
            self.settle_claim(key);
        }
    }

    fn settle_claim(&mut self, key: &ResourceKey) {
        let Some(claim) = self.claims.get(key) else { return };
        let invalid = (claim.faults > 0).then_some(Hold::Invalid { problems: claim.faults });
        let (document, origin) = (claim.document, claim.origin);
        let settled = match (invalid.or_else(|| claim.waits.clone()), document) {
            (None, Some(document)) => {
                let settled = EffectiveSpec::of(document, SpecOrigin::Document, None);
                let spec = managed::with_certificate(document, self.secrets, self.recorded);
                Some(EffectiveSpec { spec, ..settled })
            }
            (hold, document) => {
                let hold = hold.unwrap_or(Hold::Invalid { problems: 1 });
                self.as_recorded(key, hold.clone()).or_else(|| {
                    document.map(|document| EffectiveSpec::of(document, SpecOrigin::Unapplied, Some(hold)))
                })
            }
        };
        match settled {
            Some(settled) => drop(self.settled.insert(key.clone(), settled)),
            // Neither a document nor the record has its spec. It isn't removed, since a document names it.
            None if self.recorded.resources.contains_key(key) => {
                self.absent.insert(key.clone(), Absence::Unknown { unreadable: origin.clone() });
            }
            None => {}
        }
    }

    /// Keeps a resource that no document names as it was applied, if the record has its spec.
    pub fn keep(&mut self, key: &ResourceKey, hold: Hold) {
        if let Some(settled) = self.as_recorded(key, hold) {
            self.settled.insert(key.clone(), settled);
        }
    }

    fn as_recorded(&self, key: &ResourceKey, hold: Hold) -> Option<EffectiveSpec> {
        let last_good = self.recorded.resources.get(key)?.cached.last_good.as_ref()?;
        let spec = self.last_good(key)?.clone();
        Some(EffectiveSpec {
            spec,
            origin: last_good.origin.clone(),
            basis: SpecOrigin::Record,
            hold: Some(hold),
        })
    }

    /// Returns whether an API call removed a resource from the specs, so that its absence is intended.
    pub fn is_removed(&self, key: &ResourceKey) -> bool {
        self.recorded.removed.contains(key) && !self.claims.contains_key(key)
    }

    pub fn record(&self, key: &ResourceKey) -> Option<&'a RecordedResource> {
        self.recorded.resources.get(key)
    }

    /// Returns the spec that was last applied; none if there is none or its record is lost or too old to
    /// read.
    pub fn last_good(&self, key: &ResourceKey) -> Option<&'a Spec> {
        self.record(key)?.applied_spec(key.kind)
    }

    /// Whether a moment has come. Every rule about time asks this, so that it is known how long a catalog holds.
    pub fn is_past(&self, moment: Timestamp) -> bool {
        let (from, until) = self.steady.get();
        let is_past = moment <= self.now;
        self.steady.set(if is_past { (from.max(moment), until) } else { (from, until.min(moment)) });
        is_past
    }

    /// The order in which resources get capacity and names: applied ones by age, then new ones.
    pub fn seniority(&self, key: &ResourceKey) -> (bool, Timestamp) {
        self.record(key).map_or((true, self.now), |record| (false, record.durable.created_at))
    }

    /// Resolves a reference. The kind of the key must be settled before.
    pub fn target(&self, key: &ResourceKey) -> ReferenceTarget<'_> {
        match self.settled.get(key) {
            Some(settled) if settled.is_usable() => ReferenceTarget::Found(settled),
            Some(EffectiveSpec { hold: Some(Hold::Suspended { by }), .. }) => {
                ReferenceTarget::NotUsable(Hold::Suspended { by: by.clone() })
            }
            Some(_) => ReferenceTarget::NotUsable(Hold::Dependency { on: key.clone() }),
            None if self.claims.contains_key(key)
                || self.absent.get(key).is_some_and(|absence| *absence != Absence::Removed) =>
            {
                ReferenceTarget::NotUsable(Hold::Dependency { on: key.clone() })
            }
            None => ReferenceTarget::Missing,
        }
    }

    /// Why what is on a settled resource waits because that is suspended. A suspension is over when a document that ends it
    /// is used: a mistake in the document, or its loss, doesn't end it.
    pub fn suspension(&self, key: &ResourceKey) -> Option<Hold> {
        let hold = self.settled.get(key)?.hold.as_ref()?;
        let told = self.claims.get(key).map(|claim| claim.safeguards.suspended);
        let was = self.record(key).is_some_and(|record| record.durable.suspended);
        match (hold, told) {
            (Hold::Suspended { .. }, _) => Some(hold.clone()),
            (_, Some(true)) => Some(Hold::Suspended { by: key.clone() }),
            (_, None) if was => Some(Hold::Suspended { by: key.clone() }),
            // It says that the suspension is over, and can't be used.
            (_, Some(false)) if was => Some(Hold::Dependency { on: key.clone() }),
            _ => None,
        }
    }

    /// Returns the settled resource if others may build on it.
    pub fn usable(&self, key: &ResourceKey) -> Option<&EffectiveSpec> {
        self.settled.get(key).filter(|settled| settled.is_usable())
    }

    /// Returns the spec of an organization. `root` may have none.
    pub fn organization(&self, organization: &Identifier) -> Option<&Organization> {
        match &self.usable(&ResourceKey::organization(organization))?.spec {
            Spec::Organization(spec) => Some(spec),
            _ => None,
        }
    }

    pub fn fleet(&self, key: &ResourceKey) -> Option<&Fleet> {
        match &self.usable(key)?.spec {
            Spec::Fleet(fleet) => Some(fleet),
            _ => None,
        }
    }

    /// Returns the base domain that a fleet's `domain` means: the derived domain, or else the submitted one.
    pub fn find_domain(&self, organization: &Identifier, domain: &Domain) -> Option<ResourceKey> {
        let derived = ResourceKey::new(Kind::BaseDomain, organization, domain.as_str());
        if self.is_named(&derived) {
            return Some(derived);
        }
        let is_meant =
            |spec: &Option<&Spec>| matches!(spec, Some(Spec::BaseDomain(found)) if found.domain == *domain);
        // Of an invalid document, only the derived name is known.
        let invalid = || {
            let key = ResourceKey::new(Kind::BaseDomain, organization, format!("{organization}.{domain}"));
            self.claims.get(&key).is_some_and(|claim| claim.document.is_none()).then_some(key)
        };
        self.named(organization, Kind::BaseDomain)
            .find(|(_, spec)| is_meant(spec))
            .map(|(key, _)| key.clone())
            .or_else(invalid)
    }

    /// Returns the resources of a kind in an organization that documents or the record name, with their
    /// specs. Some occur twice.
    pub fn named(
        &self,
        organization: &Identifier,
        kind: Kind,
    ) -> impl Iterator<Item = (&ResourceKey, Option<&Spec>)> {
        let first = ResourceKey::new(kind, organization, "");
        let of_kind = move |key: &ResourceKey, organization: &Identifier| {
            key.kind == kind && key.organization == *organization
        };
        let claimed =
            self.claims.range(first.clone()..).map(|(key, claim)| (key, claim.document.map(|d| &d.spec)));
        let settled = self.settled.range(first.clone()..).map(|(key, settled)| (key, Some(&settled.spec)));
        let owner = first.organization.clone();
        claimed
            .take_while(move |(key, _)| of_kind(key, &first.organization))
            .chain(settled.take_while(move |(key, _)| of_kind(key, &owner)))
    }

    fn is_named(&self, key: &ResourceKey) -> bool {
        self.claims.contains_key(key)
            || self.settled.contains_key(key)
            || self.absent.get(key).is_some_and(|absence| *absence != Absence::Removed)
    }

    /// Returns the first unreadable file that may contain documents of an organization.
    pub fn unreadable_for(&self, organization: &Identifier) -> Option<&'a Origin> {
        let mut unreadable = self.documents.files.values().flat_map(|file| &file.unreadable);
        unreadable
            .find(|place| {
                let top = place.top_folder.as_deref();
                match top.filter(|top| self.organizations.contains(*top)) {
                    Some(owner) => owner == organization.as_str(),
                    None => true,
                }
            })
            .map(|place| &place.origin)
    }
}

impl EffectiveSpec {
    fn of(document: &Document, basis: SpecOrigin, hold: Option<Hold>) -> Self {
        Self { spec: document.spec.clone(), origin: document.origin.clone(), basis, hold }
    }
}

/// Returns the beginning of a document whose other positions are unknown.
pub(super) fn place(origin: &Origin) -> Location {
    Location { path: origin.path.clone(), line: origin.line, column: 1, width: 1, text: String::new() }
}
