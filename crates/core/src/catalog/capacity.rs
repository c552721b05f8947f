//! Capacity limits of fleets and organizations. Applied resources keep their capacity. New and growing ones
//! get capacity in order of age while the limits allow, and wait otherwise. A resource that is being deleted
//! counts until it is gone.

use std::collections::BTreeMap;

use crate::catalog::after;
use crate::catalog::draft::{CatalogDraft, SpecOrigin};
use crate::catalog::{Absence, Condition, Gauge, Hold, OrganizationCapacity, RecordedResource};
use crate::names::{FleetKey, Identifier, Kind, ResourceKey};
use crate::spec::{Fleet, Quotas, Spec};

/// A limit, as `Hold` and messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CapacityLimit {
    Tenants,
    FleetUnits,
    Fleets,
    Clusters,
    OrganizationUnits,
    BaseDomains,
    IdentityProviders,
    CloudAccounts,
}

impl CapacityLimit {
    fn as_str(self) -> &'static str {
        match self {
            CapacityLimit::Tenants => "max_tenants",
            CapacityLimit::FleetUnits => "max_kafka_units",
            CapacityLimit::Fleets => "quotas.fleets",
            CapacityLimit::Clusters => "quotas.clusters",
            CapacityLimit::OrganizationUnits => "quotas.kafka_units",
            CapacityLimit::BaseDomains => "quotas.base_domains",
            CapacityLimit::IdentityProviders => "quotas.identity_providers",
            CapacityLimit::CloudAccounts => "quotas.cloud_accounts",
        }
    }

    /// Returns the limit on the number of resources of a kind; none for organizations; for clusters, which
    /// have several limits; and for what is on clusters.
    fn of(kind: Kind) -> Option<CapacityLimit> {
        match kind {
            Kind::Fleet => Some(CapacityLimit::Fleets),
            Kind::BaseDomain => Some(CapacityLimit::BaseDomains),
            Kind::IdentityProvider => Some(CapacityLimit::IdentityProviders),
            Kind::CloudAccount => Some(CapacityLimit::CloudAccounts),
            Kind::Organization | Kind::Cluster | Kind::Topic | Kind::User => None,
        }
    }

    /// Returns the quota; none if it is unset or this is a limit of fleets.
    fn limit(self, quotas: &Quotas) -> Option<u32> {
        match self {
            CapacityLimit::Tenants | CapacityLimit::FleetUnits => None,
            CapacityLimit::Fleets => quotas.fleets,
            CapacityLimit::Clusters => quotas.clusters,
            CapacityLimit::OrganizationUnits => quotas.kafka_units,
            CapacityLimit::BaseDomains => quotas.base_domains,
            CapacityLimit::IdentityProviders => quotas.identity_providers,
            CapacityLimit::CloudAccounts => quotas.cloud_accounts,
        }
    }
}

#[derive(Debug, Clone)]
struct AppliedShare {
    fleet: Option<FleetKey>,
    /// None if the record of its units is lost.
    units: Option<u32>,
}

#[derive(Debug, Default, Clone)]
struct Ledger(BTreeMap<ResourceKey, BTreeMap<CapacityLimit, u32>>);

impl Ledger {
    fn add(&mut self, limiter: &ResourceKey, what: CapacityLimit, amount: u32) {
        // Avoids copying the key in the common case that it is already there.
        let used = match self.0.get_mut(limiter) {
            Some(used) => used,
            None => self.0.entry(limiter.clone()).or_default(),
        };
        let used = used.entry(what).or_default();
        *used = used.saturating_add(amount);
    }

    fn need(&self, Demand { limiter, what, wanted, limit }: &Demand) -> CapacityNeed {
        CapacityNeed {
            limited_by: limiter.clone(),
            what: what.as_str(),
            used: self.used(limiter, *what),
            wanted: *wanted,
            limit: *limit,
        }
    }

    fn used(&self, limiter: &ResourceKey, what: CapacityLimit) -> u32 {
        self.0.get(limiter).and_then(|used| used.get(&what)).copied().unwrap_or(0)
    }

    fn add_cluster(&mut self, organization: &Identifier, fleet: Option<&FleetKey>, units: u32) {
        let owner = ResourceKey::organization(organization);
        self.add(&owner, CapacityLimit::Clusters, 1);
        self.add(&owner, CapacityLimit::OrganizationUnits, units);
        if let Some(fleet) = fleet.map(FleetKey::resource) {
            self.add(&fleet, CapacityLimit::Tenants, 1);
            self.add(&fleet, CapacityLimit::FleetUnits, units);
        }
    }
}

/// Holds new resources of a kind that exceed their organization's quota. Clusters have rules of their own.
pub(super) fn place_new(draft: &mut CatalogDraft, kind: Kind) {
    let Some(what) = CapacityLimit::of(kind) else { return };
    let mut ledger = Ledger::default();
    for key in draft.recorded.resources.keys().filter(|key| key.kind == kind) {
        ledger.add(&ResourceKey::organization(&key.organization), what, 1);
    }
    let is_new = |key: &&ResourceKey| draft.record(key).is_none();
    let to_apply = draft.settled_of(kind).filter(|(_, settled)| settled.basis == SpecOrigin::Document);
    let new: Vec<_> = to_apply.map(|(key, _)| key).filter(is_new).cloned().collect();
    for key in new {
        let limiter = ResourceKey::organization(&key.organization);
        let limit = what.limit(&quotas(draft, &key.organization));
        grant(draft, &mut ledger, &key, [Demand { limiter, what, wanted: 1, limit }]);
    }
}

/// The capacity that applied clusters have, and that new and growing ones got.
#[derive(Debug, Default, Clone)]
pub struct GrantedCapacity {
    ledger: Ledger,
    /// The clusters whose units are unknown.
    unknown: Vec<(ResourceKey, AppliedShare)>,
}

impl GrantedCapacity {
    /// Replaces what concerns some resources by what others say of them.
    pub(super) fn replace(&mut self, others: GrantedCapacity, is_meant: impl Fn(&ResourceKey) -> bool) {
        after::replace(&mut self.ledger.0, others.ledger.0, &is_meant);
        self.unknown.retain(|(cluster, _)| !is_meant(cluster));
        self.unknown.extend(others.unknown.into_iter().filter(|(cluster, _)| is_meant(cluster)));
        self.unknown.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
}

/// A cluster that needs capacity.
pub(super) struct CapacityRequest<'r> {
    pub fleet: &'r FleetKey,
    /// None if the fleet can't be used; then it has no limits either.
    pub spec: Option<&'r Fleet>,
    pub quotas: &'r Quotas,
    /// Whether it is a new cluster.
    pub is_new: bool,
    /// The units that it needs beside those that it has.
    pub units: u32,
}

/// A limit, with what a resource would add to its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityNeed {
    /// The fleet or organization that has the limit.
    pub limited_by: ResourceKey,
    /// The name of the limit's field.
    pub what: &'static str,
    pub used: u32,
    pub wanted: u32,
    /// None if there is none.
    pub limit: Option<u32>,
}

impl CapacityNeed {
    /// Returns how much is missing.
    pub fn missing(&self) -> u32 {
        let wanted = self.used.saturating_add(self.wanted);
        self.limit.filter(|_| self.wanted > 0).map_or(0, |limit| wanted.saturating_sub(limit))
    }

    pub(super) fn hold(self) -> Hold {
        let CapacityNeed { limited_by, what, used, wanted, limit } = self;
        Hold::OverCapacity {
            limited_by,
            what: what.to_owned(),
            used,
            wanted,
            limit: limit.unwrap_or(u32::MAX),
        }
    }
}

impl GrantedCapacity {
    /// Returns the limits that concern a cluster, the fleet's first.
    pub(super) fn needs(&self, request: &CapacityRequest) -> [CapacityNeed; 4] {
        request.demands().map(|demand| self.ledger.need(&demand))
    }

    /// Returns a cluster of unknown units under the same limits. Until they are known, nothing may grow there.
    pub(super) fn unknown_neighbour(&self, request: &CapacityRequest) -> Option<&ResourceKey> {
        let CapacityRequest { fleet, quotas, .. } = request;
        let shares = |(other, place): &&(ResourceKey, AppliedShare)| {
            let on_fleet = place.fleet.as_ref().is_none_or(|other| other == *fleet);
            other.organization == fleet.organization && (on_fleet || quotas.kafka_units.is_some())
        };
        self.unknown.iter().find(shares).map(|(other, _)| other)
    }
}

/// Holds new and growing clusters that exceed a limit.
pub(super) fn place_clusters(draft: &mut CatalogDraft) -> GrantedCapacity {
    let applied = applied_clusters(draft);
    let mut granted = GrantedCapacity::default();
    for (key, place) in &applied {
        granted.ledger.add_cluster(&key.organization, place.fleet.as_ref(), place.units.unwrap_or(0));
    }
    let growing = growing(draft, &applied);
    granted.unknown = applied.into_iter().filter(|(_, place)| place.units.is_none()).collect();
    for (key, fleet, before, after) in growing {
        let quotas = quotas(draft, &key.organization);
        let request = CapacityRequest {
            fleet: &fleet,
            spec: draft.fleet(&fleet.resource()),
            quotas: &quotas,
            is_new: before.is_none(),
            units: after.saturating_sub(before.unwrap_or(0)),
        };
        if let Some(unknown) = granted.unknown_neighbour(&request) {
            draft.wait(&key, Hold::Dependency { on: unknown.clone() });
            continue;
        }
        let demands = request.demands();
        grant(draft, &mut granted.ledger, &key, demands);
    }
    granted
}

struct Demand {
    limiter: ResourceKey,
    what: CapacityLimit,
    wanted: u32,
    limit: Option<u32>,
}

impl CapacityRequest<'_> {
    fn demands(&self) -> [Demand; 4] {
        let CapacityRequest { fleet, spec, quotas, is_new, units } = *self;
        let (owner, fleet_key) = (ResourceKey::organization(&fleet.organization), fleet.resource());
        let clusters = u32::from(is_new);
        let demand = |limiter: &ResourceKey, what, wanted, limit| Demand {
            limiter: limiter.clone(),
            what,
            wanted,
            limit,
        };
        [
            demand(&fleet_key, CapacityLimit::Tenants, clusters, spec.map(|spec| spec.max_tenants)),
            demand(&fleet_key, CapacityLimit::FleetUnits, units, spec.map(|spec| spec.max_kafka_units)),
            demand(&owner, CapacityLimit::Clusters, clusters, CapacityLimit::Clusters.limit(quotas)),
            demand(
                &owner,
                CapacityLimit::OrganizationUnits,
                units,
                CapacityLimit::OrganizationUnits.limit(quotas),
            ),
        ]
    }
}

/// Reserves what is demanded, or holds the resource for the first limit that it would exceed.
fn grant<const N: usize>(
    draft: &mut CatalogDraft,
    ledger: &mut Ledger,
    key: &ResourceKey,
    demands: [Demand; N],
) {
    let mut needs = demands.iter().map(|demand| ledger.need(demand));
    if let Some(over) = needs.find(|need| need.missing() > 0) {
        draft.wait(key, over.hold());
        return;
    }
    for demand in &demands {
        ledger.add(&demand.limiter, demand.what, demand.wanted);
    }
}

fn quotas(draft: &CatalogDraft, organization: &Identifier) -> Quotas {
    draft.organization(organization).map(|found| found.quotas.clone()).unwrap_or_default()
}

fn applied_clusters(draft: &CatalogDraft) -> BTreeMap<ResourceKey, AppliedShare> {
    let recorded = draft.recorded.resources.iter().filter(|(key, _)| key.kind == Kind::Cluster);
    recorded.map(|(key, record)| (key.clone(), applied(draft, key, record))).collect()
}

fn applied(draft: &CatalogDraft, key: &ResourceKey, record: &RecordedResource) -> AppliedShare {
    let place = |fleet: Identifier| FleetKey { organization: key.organization.clone(), fleet };
    if let Some(Spec::Cluster(cluster)) = draft.last_good(key) {
        return AppliedShare {
            fleet: Some(place(cluster.infrastructure.clone())),
            units: Some(cluster.units()),
        };
    }
    // The immutable fields outlive the cache.
    let text = |pointer: &str| record.durable.immutable.get(pointer).and_then(serde_json::Value::as_str);
    let fleet = text("/infrastructure").and_then(|name| name.parse().ok()).map(place);
    AppliedShare { fleet, units: (text("/advanced_config/profile") == Some("dev")).then_some(1) }
}

/// Returns the clusters that demand more than they have, oldest first: their fleet, their current units (none
/// for a new cluster) and the units of their spec.
fn growing(
    draft: &CatalogDraft,
    applied: &BTreeMap<ResourceKey, AppliedShare>,
) -> Vec<(ResourceKey, FleetKey, Option<u32>, u32)> {
    let to_apply =
        draft.settled_of(Kind::Cluster).filter(|(_, settled)| settled.basis == SpecOrigin::Document);
    let mut growing: Vec<_> = to_apply
        .filter_map(|(key, settled)| {
            let Spec::Cluster(cluster) = &settled.spec else { return None };
            let fleet =
                FleetKey { organization: key.organization.clone(), fleet: cluster.infrastructure.clone() };
            let before = match applied.get(key) {
                // A cluster with unknown units keeps its capacity; the next apply records them again.
                Some(place) => Some(place.units?),
                None => None,
            };
            let after = cluster.units();
            before.is_none_or(|before| after > before).then(|| (key.clone(), fleet, before, after))
        })
        .collect();
    growing.sort_by_cached_key(|(key, ..)| (draft.seniority(key), key.clone()));
    growing
}

pub(super) struct CapacityUsage {
    before: Ledger,
    after: Ledger,
}

impl CapacityUsage {
    /// Counts what is applied now, and what will be once everything that doesn't wait is done.
    pub fn count(draft: &CatalogDraft) -> Self {
        let (mut before, mut after) = (Ledger::default(), Ledger::default());
        let applied = applied_clusters(draft);
        for (key, place) in &applied {
            before.add_cluster(&key.organization, place.fleet.as_ref(), place.units.unwrap_or(0));
            let counts_on = !draft.settled.contains_key(key) && stays(draft, key);
            if counts_on {
                after.add_cluster(&key.organization, place.fleet.as_ref(), place.units.unwrap_or(0));
            }
        }
        for (key, settled) in draft.settled_of(Kind::Cluster) {
            let Spec::Cluster(cluster) = &settled.spec else { continue };
            if settled.is_usable() || applied.contains_key(key) {
                let fleet = FleetKey {
                    organization: key.organization.clone(),
                    fleet: cluster.infrastructure.clone(),
                };
                after.add_cluster(&key.organization, Some(&fleet), cluster.units());
            }
        }
        let counted = |key: &ResourceKey| {
            Some((ResourceKey::organization(&key.organization), CapacityLimit::of(key.kind)?))
        };
        for key in draft.recorded.resources.keys() {
            let Some((owner, what)) = counted(key) else { continue };
            before.add(&owner, what, 1);
            if draft.settled.contains_key(key) || stays(draft, key) {
                after.add(&owner, what, 1);
            }
        }
        for key in draft.settled.keys().filter(|key| draft.record(key).is_none()) {
            if let Some((owner, what)) = counted(key).filter(|_| draft.usable(key).is_some()) {
                after.add(&owner, what, 1);
            }
        }
        Self { before, after }
    }

    fn gauge(&self, limiter: &ResourceKey, what: CapacityLimit, limit: Option<u32>) -> Gauge {
        Gauge { before: self.before.used(limiter, what), after: self.after.used(limiter, what), limit }
    }

    pub fn of_fleet(&self, fleet: &FleetKey, max_tenants: u32, max_kafka_units: u32) -> (Gauge, Gauge) {
        let key = fleet.resource();
        (
            self.gauge(&key, CapacityLimit::Tenants, Some(max_tenants)),
            self.gauge(&key, CapacityLimit::FleetUnits, Some(max_kafka_units)),
        )
    }

    pub fn of_organizations(&self, draft: &CatalogDraft) -> BTreeMap<Identifier, OrganizationCapacity> {
        let keys = draft.settled.keys().chain(draft.recorded.resources.keys());
        let mut organizations: Vec<_> = keys.map(|key| &key.organization).collect();
        organizations.sort_unstable();
        organizations.dedup();
        let capacity = |organization: &Identifier| {
            let (key, quotas) = (ResourceKey::organization(organization), quotas(draft, organization));
            let gauge = |what: CapacityLimit| self.gauge(&key, what, what.limit(&quotas));
            OrganizationCapacity {
                fleets: gauge(CapacityLimit::Fleets),
                clusters: gauge(CapacityLimit::Clusters),
                kafka_units: gauge(CapacityLimit::OrganizationUnits),
                base_domains: gauge(CapacityLimit::BaseDomains),
                identity_providers: gauge(CapacityLimit::IdentityProviders),
                cloud_accounts: gauge(CapacityLimit::CloudAccounts),
            }
        };
        organizations.into_iter().map(|organization| (organization.clone(), capacity(organization))).collect()
    }
}

/// Returns whether a resource without a document stays: missing by mistake, protected or suspended.
fn stays(draft: &CatalogDraft, key: &ResourceKey) -> bool {
    match draft.absent.get(key) {
        Some(Absence::Removed) => {
            let kept = |record: &RecordedResource| record.durable.protected || record.durable.suspended;
            draft.record(key).is_some_and(|record| kept(record) && !record.durable.deleting)
        }
        _ => true,
    }
}

/// Warns if a limit was lowered below what is in use.
pub(super) fn over_committed(clusters: Gauge, kafka_units: Gauge) -> Vec<Condition> {
    let condition = |gauge: Gauge, what: &str, field: &str| {
        let (used, limit) = (gauge.before.max(gauge.after), gauge.limit?);
        (used > limit).then(|| Condition {
            kind: "OverCommitted".to_owned(),
            degraded: true,
            message: format!(
                "{used} {what} are in use and `{field}` is {limit}; existing resources are kept, and no new ones are \
                 created"
            ),
        })
    };
    let both = [
        condition(clusters, "clusters", "max_tenants"),
        condition(kafka_units, "Kafka units", "max_kafka_units"),
    ];
    both.into_iter().flatten().collect()
}
