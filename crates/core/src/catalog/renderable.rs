//! Builds the resolved fleets and clusters for rendering.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::capacity::{self, CapacityUsage};
use crate::catalog::draft::{CatalogDraft, EffectiveSpec};
use crate::catalog::{
    ResolvedCluster, ResolvedDomain, ResolvedFleet, ResolvedPrometheus, ResolvedSecret, TieredStorage,
    certificates, credentials, hosts,
};
use crate::names::{Domain, FleetKey, Kind, ResourceKey, namespace};
use crate::spec::certificate::Certificate;
use crate::spec::{self, Spec};

pub(super) type Certificates = BTreeMap<ResourceKey, Certificate>;

/// Includes held fleets.
pub(super) fn fleets(
    draft: &CatalogDraft,
    usage: &CapacityUsage,
    certificates: &Certificates,
) -> BTreeMap<FleetKey, Arc<ResolvedFleet>> {
    let fleets = draft.settled_of(Kind::Fleet).filter_map(|(_, settled)| match &settled.spec {
        Spec::Fleet(spec) => Some(fleet(draft, usage, certificates, spec)),
        _ => None,
    });
    fleets.map(|fleet| (fleet.key.clone(), Arc::new(fleet))).collect()
}

fn fleet(
    draft: &CatalogDraft,
    usage: &CapacityUsage,
    certificates: &Certificates,
    spec: &spec::Fleet,
) -> ResolvedFleet {
    let key = FleetKey { organization: spec.organization.clone(), fleet: spec.identifier.clone() };
    let domain = spec.domain.as_ref().and_then(|domain| draft.find_domain(&spec.organization, domain));
    let domain = domain.filter(|domain| draft.usable(domain).is_some());
    let (clusters, kafka_units) = usage.of_fleet(&key, spec.max_tenants, spec.max_kafka_units);
    let certificate = domain.as_ref().and_then(|domain| Some((domain, certificates.get(domain)?)));
    let mut conditions = capacity::over_committed(clusters, kafka_units);
    conditions.extend(
        certificate.and_then(|(domain, certificate)| certificates::condition(draft, certificate, domain)),
    );
    let own_prometheus =
        spec.advanced_config.own_prometheus().and_then(|_| own_prometheus(draft, &key, domain.clone()?));
    ResolvedFleet {
        key,
        spec: Arc::new(spec.clone()),
        domain,
        clusters,
        kafka_units,
        conditions,
        own_prometheus,
    }
}

fn own_prometheus(draft: &CatalogDraft, fleet: &FleetKey, domain: ResourceKey) -> Option<ResolvedPrometheus> {
    let key = fleet.resource();
    let name = domain.name.parse().ok()?;
    Some(ResolvedPrometheus {
        password: secret(draft, &key, draft.settled.get(&key)?, "monitoring.own.password")?,
        domain: resolved_domain(draft, domain, name)?,
    })
}

/// Returns the clusters that can be rendered. One is left out if something that it refers to is gone; its
/// hold keeps its objects.
pub(super) fn clusters(
    draft: &CatalogDraft,
    fleets: &BTreeMap<FleetKey, Arc<ResolvedFleet>>,
) -> BTreeMap<ResourceKey, ResolvedCluster> {
    let usable = draft.settled_of(Kind::Cluster).filter(|(_, settled)| settled.is_usable());
    usable.filter_map(|(key, settled)| Some((key.clone(), cluster(draft, fleets, key, settled)?))).collect()
}

fn cluster(
    draft: &CatalogDraft,
    fleets: &BTreeMap<FleetKey, Arc<ResolvedFleet>>,
    key: &ResourceKey,
    settled: &EffectiveSpec,
) -> Option<ResolvedCluster> {
    let Spec::Cluster(spec) = &settled.spec else { return None };
    let fleet = FleetKey { organization: key.organization.clone(), fleet: spec.infrastructure.clone() };
    draft.fleet(&fleet.resource())?;
    Some(ResolvedCluster {
        key: key.clone(),
        id: draft.recorded.id_of(key),
        origin: settled.origin.clone(),
        fleet_spec: Arc::clone(&fleets.get(&fleet)?.spec),
        fleet,
        namespace: namespace(&key.organization, &spec.identifier),
        domain: if spec.advanced_config.cluster_access.is_external() {
            Some(cluster_domain(draft, spec)?)
        } else {
            None
        },
        identity_provider: match &spec.advanced_config.oauth {
            Some(name) => Some(identity_provider(draft, spec, name.as_str())?),
            None => None,
        },
        tiered_storage: match &spec.advanced_config.tiered_storage_bucket_name {
            Some(bucket) => Some(tiered_storage(draft, spec, bucket)?),
            None => None,
        },
        spec: Arc::clone(spec),
        topics: Vec::new(),
        users: Vec::new(),
        has_topics: false,
    })
}

fn cluster_domain(draft: &CatalogDraft, cluster: &spec::Cluster) -> Option<ResolvedDomain> {
    let (key, domain) = hosts::domain_of(draft, cluster)?;
    resolved_domain(draft, key, domain)
}

fn resolved_domain(draft: &CatalogDraft, key: ResourceKey, domain: Domain) -> Option<ResolvedDomain> {
    let settled = draft.usable(&key)?;
    let Spec::BaseDomain(spec) = &settled.spec else { return None };
    Some(ResolvedDomain {
        dns_provider: spec.dns_provider,
        zone: spec.zone(),
        tls_cert: spec.tls_cert.clone()?,
        tls_key: secret(draft, &key, settled, "tls_key")?,
        key,
        domain,
    })
}

fn identity_provider(
    draft: &CatalogDraft,
    cluster: &spec::Cluster,
    name: &str,
) -> Option<spec::IdentityProvider> {
    let key = ResourceKey::new(Kind::IdentityProvider, &cluster.organization, name);
    match &draft.usable(&key)?.spec {
        Spec::IdentityProvider(provider) => Some(provider.clone()),
        _ => None,
    }
}

fn tiered_storage(draft: &CatalogDraft, cluster: &spec::Cluster, bucket: &str) -> Option<TieredStorage> {
    let provider = cluster.advanced_config.tiered_storage_provider.as_ref()?;
    let account_key =
        ResourceKey::new(Kind::CloudAccount, &cluster.organization, provider.cloud_account.as_str());
    let settled = draft.usable(&account_key)?;
    let Spec::CloudAccount(account) = &settled.spec else { return None };
    Some(TieredStorage {
        bucket: bucket.to_owned(),
        region: provider.cloud_region.clone().or_else(|| account.region.clone()).unwrap_or_default(),
        credentials: secret(draft, &account_key, settled, "credentials")?,
        account: account.clone(),
        account_key,
        plugin: draft.config.tiered_storage.clone(),
    })
}

pub(super) fn secret(
    draft: &CatalogDraft,
    key: &ResourceKey,
    settled: &EffectiveSpec,
    field: &str,
) -> Option<ResolvedSecret> {
    credentials::for_settled(draft, key, settled).remove(field)
}
