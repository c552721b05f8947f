//! Specs with their references resolved, their defaults filled in and their rules checked.

mod absence;
mod after;
mod buckets;
mod capacity;
mod certificates;
mod credentials;
mod domains;
mod draft;
mod fit;
mod hosts;
mod identity;
mod images;
mod immutable;
mod in_cluster;
mod managed;
mod operators;
mod own_prometheus;
mod recorded;
mod references;
mod renderable;
mod resolve;
mod secrets;
mod status;
#[cfg(test)]
mod tests;
mod topics;
pub mod versions;
mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::{Config, TieredStorageConfig};
use crate::names::{Domain, FleetKey, Identifier, ResourceKey, ResourceMap, SecretRef, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::{self, Commit, Safeguards, SourceId};

pub use after::ResolvedTree;
pub use buckets::{BucketPlace, BucketRecord};
pub use capacity::{CapacityNeed, GrantedCapacity};
pub use fit::ClusterFit;
pub use hosts::{HostNames, OF_FLEETS, of_prometheus};
pub use identity::FolderOwners;
pub use immutable::{CLUSTER_UID, INFRASTRUCTURE, immutable_fields, immutable_pointers};
pub use managed::{ManagedCertificate, RenewalWindow, certificate_key, with_certificate};
pub use recorded::{
    Approval, CachedRecord, Deletion, DurableRecord, LastGood, MadeFrom, Recorded, RecordedFleet,
    RecordedObject, RecordedResource, RecordedSpec, Records, SecretMark, SharedRecord,
};
pub use resolve::resolve;
pub use secrets::{IssueFailure, IssuedCertificate, OpenedSecret, Secrets};
pub use status::{ResourceStatus, Status};

/// Every resource that should exist, and why some of them are left unchanged.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub source: SourceId,
    /// The digest of the tree's content.
    pub revision: String,
    /// The commit, if the tree comes from a git repository.
    pub commit: Option<Commit>,
    pub config: Arc<Config>,
    /// Every resource that should exist: from the specs, or from the record where the specs can't say. A
    /// resource with a [`Hold`] is not created, changed or deleted, even if it is rendered; only drift from
    /// what was last applied is repaired.
    pub resources: ResourceMap<Arc<Resource>>,
    /// Includes held fleets.
    pub fleets: BTreeMap<FleetKey, Arc<ResolvedFleet>>,
    /// The clusters that can be rendered, with what they refer to. A held cluster is included as it was last
    /// applied. It is missing here if nothing of it was applied or the record of that is lost; then its hold
    /// alone keeps its objects. Each cluster's fleet is in `fleets`.
    pub clusters: ResourceMap<Arc<ResolvedCluster>>,
    /// Recorded resources that the specs no longer name, or whose content in the specs is unknown. Only
    /// [`Absence::Removed`] ones are deleted without approval. The others are also in `resources`, held, if
    /// the record still has their spec; if not, this entry is all that keeps their objects.
    pub absent: BTreeMap<ResourceKey, Absence>,
    pub capacity: BTreeMap<Identifier, OrganizationCapacity>,
    /// The base domains whose certificates Streamfleet gets.
    pub managed: BTreeMap<ResourceKey, ManagedCertificate>,
    /// When the certificate of each base domain ends.
    pub certificates_end: BTreeMap<ResourceKey, Timestamp>,
    /// The rules for further clusters, see [`Catalog::fit`].
    pub granted: GrantedCapacity,
    /// All problems, including those found while reading.
    pub problems: Vec<Problem>,
    /// From when on the same inputs give this catalog, and until when: certificates become valid and expire.
    pub steady_from: Timestamp,
    pub steady_until: Timestamp,
}

impl Catalog {
    /// Whether the same inputs give the same catalog at another time.
    pub fn is_steady(&self, now: Timestamp) -> bool {
        self.steady_from <= now && now < self.steady_until
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub key: ResourceKey,
    pub id: Uuid,
    /// The position of its document, or of the last readable one.
    pub origin: Origin,
    /// The document's spec, or the last good one.
    pub spec: spec::Spec,
    /// Positions of the fields, for messages; empty for a spec from the record.
    pub fields: spec::Fields,
    /// Why it is left unchanged; none if its spec is to be applied.
    pub hold: Option<Hold>,
    /// The deletion safeguards of its document. They take effect at once, even while the resource is held.
    pub safeguards: Safeguards,
    /// The file of its current document; none if no document names it.
    pub current_file: Option<SpecPath>,
    /// The current traces of its secrets, by field.
    pub secrets: BTreeMap<String, ResolvedSecret>,
    /// The fleet of a topic's or user's cluster; none for other kinds.
    pub cluster_fleet: Option<FleetKey>,
}

impl Resource {
    /// Returns the fleet itself or the fleet that it is on; none for kinds that live on no fleet.
    pub fn fleet(&self) -> Option<FleetKey> {
        let fleet = match &self.spec {
            spec::Spec::Fleet(fleet) => &fleet.identifier,
            spec::Spec::Cluster(cluster) => &cluster.infrastructure,
            _ => return self.cluster_fleet.clone(),
        };
        Some(FleetKey { organization: self.key.organization.clone(), fleet: fleet.clone() })
    }
}

/// Why a resource that should exist is left unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Hold {
    /// Its document has problems; it stays as it was last applied.
    Invalid {
        /// How many problems the document has.
        problems: u32,
    },
    /// No document names it, and that is likely a mistake: [`Catalog::absent`] says why.
    Absent,
    /// Its file, or a file that may contain it, can't be read.
    Unreadable {
        /// The file that can't be read.
        origin: Origin,
    },
    /// The resource would exceed a limit. Applied resources keep their capacity; only new or growing ones wait.
    OverCapacity {
        /// The fleet or organization that has the limit.
        limited_by: ResourceKey,
        /// The name of the limit's field: `max_tenants`, `max_kafka_units`, `quotas.kafka_units`.
        what: String,
        /// How much is in use by what is already applied or came first.
        used: u32,
        /// How much this resource would add.
        wanted: u32,
        /// The limit.
        limit: u32,
    },
    /// `suspend` is true on the resource or on its fleet.
    Suspended {
        /// The resource on which `suspend` is true.
        by: ResourceKey,
    },
    /// The base domain that its names are in has no certificate yet.
    Certificate {
        /// The base domain.
        of: ResourceKey,
        /// Why the last attempt to get one failed; null if there was none.
        #[serde(default)]
        why: Option<String>,
    },
    /// A resource that it refers to doesn't exist yet or can't be used.
    Dependency {
        /// The resource that it waits for.
        on: ResourceKey,
    },
}

/// A recorded resource that the specs no longer name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// The file was removed or no longer contains the resource, every file that could contain it is readable, and the
    /// absence doesn't look like a mistake, now or when it began.
    Removed,
    /// A file that can't be read may contain the resource; or its document can't be typed and the record has no spec.
    Unknown { unreadable: Origin },
    /// The absence may be a mistake, now or when it began: its file is empty, a new resource may be its new
    /// name, or an error may concern it. Deleting it needs approval.
    Suspicious {
        /// As shown to users: `acme/clusters/orders.yaml was emptied`.
        why: String,
    },
    /// Another resource appeared at its position in the same revision: a rename, which is refused.
    Renamed { to: ResourceKey },
}

/// A reference to a secret, as rendering uses it. It never contains the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSecret {
    pub reference: SecretRef,
    /// For a secret that can't be opened here and whose sealed form is unchanged, the recorded trace.
    pub mark: SecretMark,
    /// Why the secret can't be applied from here; none if it can.
    pub unavailable: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedFleet {
    pub key: FleetKey,
    pub spec: Arc<spec::Fleet>,
    pub domain: Option<ResourceKey>,
    pub clusters: Gauge,
    pub kafka_units: Gauge,
    /// Warnings about the fleet as a whole: over-committed, certificate expired or expiring.
    pub conditions: Vec<Condition>,
    /// `None` for a fleet without a Prometheus of its own, and while the first certificate of its base domain is awaited.
    pub own_prometheus: Option<ResolvedPrometheus>,
}

/// The inputs of a fleet's own Prometheus beside the fleet's spec.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedPrometheus {
    pub domain: ResolvedDomain,
    pub password: ResolvedSecret,
}

/// A limit, with the use that is recorded and the use after the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// The use, as recorded.
    pub before: u32,
    /// The use once everything that doesn't wait is applied.
    pub after: u32,
    /// The limit; none if there is none.
    pub limit: Option<u32>,
}

/// The limits and use of an organization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationCapacity {
    /// Its fleets.
    pub fleets: Gauge,
    /// Its clusters.
    pub clusters: Gauge,
    /// The Kafka units of its clusters.
    pub kafka_units: Gauge,
    /// Its base domains.
    pub base_domains: Gauge,
    /// Its identity providers.
    pub identity_providers: Gauge,
    /// Its cloud accounts.
    pub cloud_accounts: Gauge,
}

/// A lasting fact about a resource, in the shape of a Kubernetes condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// The type of the condition: `OverCommitted`, `CertificateExpired`.
    pub kind: String,
    /// Whether it makes the resource Degraded.
    pub degraded: bool,
    /// One sentence for users.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedCluster {
    pub key: ResourceKey,
    pub id: Uuid,
    pub origin: Origin,
    pub spec: Arc<spec::Cluster>,
    pub fleet: FleetKey,
    /// For the settings that the cluster inherits.
    pub fleet_spec: Arc<spec::Fleet>,
    pub namespace: String,
    /// None if the cluster is reachable only from inside.
    pub domain: Option<ResolvedDomain>,
    pub identity_provider: Option<spec::IdentityProvider>,
    pub tiered_storage: Option<TieredStorage>,
    pub topics: Vec<ResolvedTopic>,
    pub users: Vec<ResolvedUser>,
    /// Whether the topic operator has topics to look after, even ones that are being deleted.
    pub has_topics: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedTopic {
    pub key: ResourceKey,
    pub id: Uuid,
    pub spec: Arc<spec::Topic>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedUser {
    pub key: ResourceKey,
    pub id: Uuid,
    pub spec: Arc<spec::User>,
    pub password: Option<ResolvedSecret>,
}

/// A base domain whose names lead to a cluster or a fleet, with its certificate.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedDomain {
    pub key: ResourceKey,
    pub domain: Domain,
    pub dns_provider: spec::DnsProvider,
    /// The zone that has the records of the domain.
    pub zone: Domain,
    /// The certificate chain in PEM.
    pub tls_cert: String,
    pub tls_key: ResolvedSecret,
}

impl ResolvedDomain {
    /// The host name by which clients first connect to a cluster.
    pub fn bootstrap_host(&self, cluster: &Identifier) -> String {
        hosts::bootstrap(cluster, &self.domain)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TieredStorage {
    pub bucket: String,
    pub region: String,
    pub account: spec::CloudAccount,
    pub account_key: ResourceKey,
    pub plugin: TieredStorageConfig,
    pub credentials: ResolvedSecret,
}
