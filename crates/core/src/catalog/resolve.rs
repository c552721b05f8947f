use std::sync::Arc;

use jiff::Timestamp;

use crate::catalog::draft::{CatalogDraft, EffectiveSpec, SpecOrigin};
use crate::catalog::{
    Catalog, GrantedCapacity, HostNames, Recorded, Resource, Secrets, absence, capacity, certificates,
    credentials, domains, hosts, identity, immutable, in_cluster, managed, operators, own_prometheus,
    references, renderable, topics, workloads,
};
use crate::config::Config;
use crate::names::{Kind, ResourceKey, ResourceMap};
use crate::spec::Documents;

/// Each kind refers only to kinds before it. Topics and users follow when all is known of their clusters.
const ORDER: [Kind; 6] = [
    Kind::Organization,
    Kind::CloudAccount,
    Kind::IdentityProvider,
    Kind::BaseDomain,
    Kind::Fleet,
    Kind::Cluster,
];

/// Resolves documents against the record: what should exist, what is left unchanged and why, and all
/// problems. `hosts` are the names that components give to every cluster. The same inputs give the same catalog.
pub fn resolve(
    documents: &Documents,
    recorded: &Recorded,
    secrets: &Secrets,
    config: &Arc<Config>,
    hosts: &[HostNames],
    now: Timestamp,
) -> Catalog {
    let mut draft = CatalogDraft::new(documents, recorded, secrets, config, hosts, now);
    identity::claim(&mut draft);
    absence::classify(&mut draft);
    credentials::check(&mut draft);
    immutable::check(&mut draft);
    in_cluster::check(&mut draft);
    operators::check(&mut draft);
    for kind in ORDER {
        references::check(&mut draft, kind);
        if kind == Kind::BaseDomain {
            managed::check(&mut draft);
            certificates::check_domains(&mut draft);
            domains::check(&mut draft);
        }
        if kind == Kind::Fleet {
            own_prometheus::check(&mut draft);
        }
        draft.settle(kind);
        capacity::place_new(&mut draft, kind);
    }
    let certificates = certificates::of_usable_domains(&draft);
    certificates::check_clusters(&mut draft, &certificates);
    workloads::check(&mut draft);
    hosts::check(&mut draft);
    topics::check_names(&mut draft);
    for kind in [Kind::Topic, Kind::User] {
        references::check(&mut draft, kind);
        draft.settle(kind);
    }
    absence::reconsider(&mut draft);
    let granted = capacity::place_clusters(&mut draft);
    topics::place(&mut draft);
    certificates::warn(&mut draft, &certificates);
    finish(draft, &certificates, granted)
}

fn finish(
    mut draft: CatalogDraft,
    certificates: &renderable::Certificates,
    granted: GrantedCapacity,
) -> Catalog {
    let usage = capacity::CapacityUsage::count(&draft);
    let mut problems = std::mem::take(&mut draft.problems);
    problems.sort();
    problems.dedup();
    let fleets = renderable::fleets(&draft, &usage, certificates);
    let mut clusters = renderable::clusters(&draft, &fleets);
    topics::hold_without_cluster(&mut draft, &clusters);
    topics::join(&draft, &mut clusters);
    let resources = resources(&draft);
    let managed = managed::certificates(&draft);
    let capacity = usage.of_organizations(&draft);
    // The last of all: whatever is asked about the time is known now.
    let (steady_from, steady_until) = draft.steady.get();
    Catalog {
        source: draft.documents.source.clone(),
        revision: draft.documents.revision.clone(),
        commit: draft.documents.commit.clone(),
        config: Arc::clone(draft.config),
        clusters: clusters.into_iter().map(|(key, cluster)| (key, Arc::new(cluster))).collect(),
        fleets,
        capacity,
        managed,
        certificates_end: certificates.iter().map(|(key, it)| (key.clone(), it.not_after)).collect(),
        granted,
        resources,
        absent: draft.absent,
        problems,
        steady_from,
        steady_until,
    }
}

fn resources(draft: &CatalogDraft) -> ResourceMap<Arc<Resource>> {
    let resource = |(key, settled): (&ResourceKey, &EffectiveSpec)| {
        let claim = draft.claims.get(key);
        let document = claim.and_then(|claim| claim.document);
        let fields = document.filter(|_| settled.basis != SpecOrigin::Record);
        let resource = Resource {
            key: key.clone(),
            id: draft.recorded.id_of(key),
            origin: settled.origin.clone(),
            spec: settled.spec.clone(),
            fields: fields.map(|document| document.fields.clone()).unwrap_or_default(),
            hold: settled.hold.clone(),
            safeguards: claim.map(|claim| claim.safeguards).unwrap_or_default(),
            current_file: claim.map(|claim| claim.origin.path.clone()),
            secrets: credentials::for_settled(draft, key, settled),
            cluster_fleet: topics::fleet(draft, key),
        };
        (key.clone(), Arc::new(resource))
    };
    draft.settled.iter().map(resource).collect()
}
