//! Specs with their references resolved, their defaults filled in and their rules checked.

mod absence;
mod buckets;
mod capacity;
mod certificates;
mod credentials;
mod domains;
mod draft;
mod hosts;
mod identity;
mod immutable;
mod neighbours;
mod operators;
mod recorded;
mod references;
mod renderable;
mod resolve;
mod secrets;
mod status;
#[cfg(test)]
mod tests;
pub mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::{Config, TieredStorageConfig};
use crate::names::{Domain, FleetKey, Identifier, ResourceKey, SecretRef, SpecPath};
use crate::problem::{Origin, Problem};
use crate::spec::{self, Commit, Safeguards, SourceId};

pub use identity::Owners;
pub use immutable::{CLUSTER_UID, immutable_fields, immutable_pointers};
pub use neighbours::Neighbours;
pub use recorded::{
    Approval, Deletion, LastGood, MadeFrom, Recorded, RecordedFleet, RecordedObject, RecordedResource,
    Records, SecretMark, TypedSpec, Written,
};
pub use resolve::resolve;
pub use secrets::{OpenedSecret, Secrets};
pub use status::{ResourceStatus, Status};

/// Everything that should exist, and why some of it is left as it is.
#[derive(Debug)]
pub struct Catalog {
    /// Which tree it was made from.
    pub source: SourceId,
    /// The tree's content.
    pub revision: String,
    /// The commit that the tree is, where it comes from a git repository.
    pub commit: Option<Commit>,
    /// The settings of the installation.
    pub config: Config,
    /// Every resource that should exist: from the specs, or from the record where the specs can't say. Nothing of one
    /// with a [`Hold`] is made, changed or deleted, whether or not it is rendered, but for being put back as it was applied.
    pub resources: BTreeMap<ResourceKey, Resource>,
    /// The fleets among them, held ones too.
    pub fleets: BTreeMap<FleetKey, ResolvedFleet>,
    /// The clusters among them that can be rendered, with what they refer to. A held one is here as it was last
    /// applied. It is not here when nothing of it was applied, or when that can't be told any more: then only its
    /// hold says that what there is of it stays. The fleet of each is in `fleets`.
    pub clusters: BTreeMap<ResourceKey, ResolvedCluster>,
    /// Recorded resources that the specs no longer name, or name and don't tell, each with what is known of that. Only
    /// [`Absence::Removed`] ones are deleted freely. The others are in `resources` too, held, where the record still
    /// has their spec; where it has not, this entry is all that keeps their objects.
    pub absent: BTreeMap<ResourceKey, Absence>,
    /// The organizations' limits and use.
    pub capacity: BTreeMap<Identifier, OrganizationCapacity>,
    /// Everything that is wrong, with what reading found.
    pub problems: Vec<Problem>,
}

/// One resource that should exist.
#[derive(Debug)]
pub struct Resource {
    /// What it is.
    pub key: ResourceKey,
    /// Its id.
    pub id: Uuid,
    /// Where it stands, or stood when it was last readable.
    pub origin: Origin,
    /// What it says, or said when it was last good.
    pub spec: spec::Spec,
    /// Where its fields stand, for messages; empty for what comes from the record.
    pub fields: spec::Fields,
    /// Why it is left as it is; none when it is to be made as the spec says.
    pub hold: Option<Hold>,
    /// What its document asks for against being deleted, which is heard at once, whatever else of it waits.
    pub safeguards: Safeguards,
    /// The file that its document stands in now; none where no document names it.
    pub stands_in: Option<SpecPath>,
    /// The trace of each of its secrets, by field, as they are now.
    pub secrets: BTreeMap<String, ResolvedSecret>,
}

impl Resource {
    /// The fleet that it is, or is on; none for what lives on no fleet.
    pub fn fleet(&self) -> Option<FleetKey> {
        let fleet = match &self.spec {
            spec::Spec::Fleet(fleet) => &fleet.identifier,
            spec::Spec::Cluster(cluster) => &cluster.infrastructure,
            _ => return None,
        };
        Some(FleetKey { organization: self.key.organization.clone(), fleet: fleet.clone() })
    }
}

/// Why a resource that should exist is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum Hold {
    /// Its document has problems; it stays as it was when it was last good.
    Invalid {
        /// How many problems.
        problems: u32,
    },
    /// No document names it, and that is likely a mistake: [`Catalog::absent`] says why.
    Absent,
    /// Its file can't be read, or a file that may hold it.
    Unreadable {
        /// The file that can't be read.
        origin: Origin,
    },
    /// It would exceed a limit. What is applied keeps its place; only what is new or grows waits.
    OverCapacity {
        /// Whose limit: a fleet or an organization.
        limited_by: ResourceKey,
        /// What is limited, as the field that says so: `max_tenants`, `max_kafka_units`, `quotas.kafka_units`.
        what: String,
        /// How much is in use by what keeps its place.
        used: u32,
        /// How much this would add.
        wanted: u32,
        /// The limit.
        limit: u32,
    },
    /// `suspend` is true, here or on its fleet.
    Suspended {
        /// Where it is true.
        by: ResourceKey,
    },
    /// What it refers to is not there yet or is not usable.
    Dependency {
        /// What it waits for.
        on: ResourceKey,
    },
}

/// A recorded resource that the specs no longer name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It is really gone: its file was removed or no longer has it, everything in its scope is readable, and nothing hints at
    /// a mistake, now or when it was first missing.
    Removed,
    /// It may be in a file that can't be read, or a document names it whose content can't be typed and the record has
    /// no spec of it.
    Unknown {
        /// The file that can't be read.
        unreadable: Origin,
    },
    /// Something hints at a mistake, or did when it was first missing: its file is there and empty, something new may be what
    /// it became, there is an error that may be about it. Its deletion needs approval.
    Suspicious {
        /// Why, for a person: `acme/clusters/orders.yaml was emptied`.
        why: String,
    },
    /// Another resource of its kind appeared at its place in the same revision: a rename, which is refused.
    Renamed {
        /// The new name.
        to: ResourceKey,
    },
}

/// A secret as rendering uses it: never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSecret {
    /// Which it is.
    pub reference: SecretRef,
    /// Its trace. For one that can't be opened here and whose sealed form is unchanged, the recorded one.
    pub mark: SecretMark,
    /// Why it can't be applied from here; none when it can.
    pub unavailable: Option<String>,
}

/// A fleet with what it refers to.
#[derive(Debug, Clone)]
pub struct ResolvedFleet {
    /// Which fleet.
    pub key: FleetKey,
    /// Its spec.
    pub spec: Arc<spec::Fleet>,
    /// Its base domain, if it has one.
    pub domain: Option<ResourceKey>,
    /// Its limits and use.
    pub clusters: Gauge,
    /// Its limits and use.
    pub kafka_units: Gauge,
    /// What a person should know about the fleet as a whole: over-committed, certificate expired or expiring.
    pub conditions: Vec<Condition>,
}

/// A limit with what is applied and what will be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// What is in use as recorded.
    pub before: u32,
    /// What will be in use when everything that doesn't wait is applied.
    pub after: u32,
    /// The limit; none where nothing limits.
    pub limit: Option<u32>,
}

/// The limits and use of an organization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationCapacity {
    /// Its fleets.
    pub fleets: Gauge,
    /// Its clusters.
    pub clusters: Gauge,
    /// The units of its clusters.
    pub kafka_units: Gauge,
    /// Its base domains.
    pub base_domains: Gauge,
    /// Its identity providers.
    pub identity_providers: Gauge,
    /// Its cloud accounts.
    pub cloud_accounts: Gauge,
}

/// Something about a resource that a person should know, in Kubernetes' shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// What it is about, as a word: `OverCommitted`, `CertificateExpired`.
    pub kind: String,
    /// Whether it makes the resource Degraded.
    pub degraded: bool,
    /// One sentence for a person.
    pub message: String,
}

/// A cluster with everything that rendering needs.
#[derive(Debug, Clone)]
pub struct ResolvedCluster {
    /// Which cluster.
    pub key: ResourceKey,
    /// Its id.
    pub id: Uuid,
    /// Where it stands.
    pub origin: Origin,
    /// Its spec.
    pub spec: Arc<spec::Cluster>,
    /// Its fleet.
    pub fleet: FleetKey,
    /// The fleet's spec, for what the cluster inherits.
    pub fleet_spec: Arc<spec::Fleet>,
    /// The namespace that holds its objects.
    pub namespace: String,
    /// Its base domain and certificate; none where it is reached from inside only.
    pub domain: Option<ClusterDomain>,
    /// Its identity provider.
    pub identity_provider: Option<spec::IdentityProvider>,
    /// Its tiered storage.
    pub tiered_storage: Option<TieredStorage>,
    /// The units that it counts: those of its spec, or one for `dev`.
    pub kafka_units: u32,
}

/// Where a cluster is found from outside, and what proves it.
#[derive(Debug, Clone)]
pub struct ClusterDomain {
    /// The base domain's key.
    pub key: ResourceKey,
    /// The domain itself.
    pub domain: Domain,
    /// Who keeps its DNS records.
    pub dns_provider: spec::DnsProvider,
    /// The address that clients start from: `<cluster>.<domain>`.
    pub bootstrap_host: String,
    /// The certificate chain in PEM.
    pub tls_cert: String,
    /// Its key.
    pub tls_key: ResolvedSecret,
}

impl ClusterDomain {
    /// The host name of a broker, with `{nodeId}` for its number as Strimzi's templates have it:
    /// `broker-{nodeId}--<cluster>.<domain>`, one label deep, so that one wildcard certificate serves.
    pub fn broker_host_template(&self, cluster: &Identifier) -> String {
        format!("broker-{{nodeId}}--{cluster}.{}", self.domain)
    }
}

/// Where the older part of a cluster's log goes.
#[derive(Debug, Clone)]
pub struct TieredStorage {
    /// The bucket.
    pub bucket: String,
    /// Its region.
    pub region: String,
    /// The account that may use it.
    pub account: spec::CloudAccount,
    /// The account's key.
    pub account_key: ResourceKey,
    /// Where brokers get the plugin from.
    pub plugin: TieredStorageConfig,
    /// The account's credentials.
    pub credentials: ResolvedSecret,
}
