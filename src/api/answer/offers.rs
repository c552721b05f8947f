//! The offers of an installation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::FleetKey;
use crate::spec::{InfraType, TenancyMode};

/// The values that specs may choose here. Those that aren't offered are listed, too, with the reason.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Offers {
    /// The targets of fleets: a fleet's `infra_type`, and a cluster's `cloud_provider`.
    pub infra_types: Vec<Offer>,
    /// A cluster's `cluster_type`.
    pub cluster_types: Vec<Offer>,
    /// The `tenancy_mode` of a fleet and of its clusters.
    pub tenancy_modes: Vec<Offer>,
    /// A cluster's `advanced_config.cluster_access`.
    pub cluster_access: Vec<Offer>,
    /// A cluster's `advanced_config.profile`.
    pub profiles: Vec<Offer>,
    /// A cluster's `advanced_config.authentication`.
    pub authentication: Vec<Offer>,
    /// The fate of a deleted cluster's disks: `advanced_config.storage.on_delete`.
    pub storage_on_delete: Vec<Offer>,
    /// A fleet's `advanced_config.exposure`.
    pub exposures: Vec<Offer>,
    /// A base domain's `dns_provider`.
    pub dns_providers: Vec<Offer>,
    /// A cloud account's `provider`.
    pub cloud_providers: Vec<Offer>,
    /// A cluster's `advanced_config.version`, the newest first. Each fleet says which of them it runs.
    pub kafka_versions: Vec<Offer>,
    /// The fleets that the caller may see.
    pub fleets: Vec<FleetOffers>,
}

/// One value of a field.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// As people call it: the value itself, or the name of a product.
    pub name: String,
    /// As specs spell it; null if no spec can have it.
    pub value: Option<String>,
    /// Whether a spec may choose it here.
    pub is_offered: bool,
    /// Whether it applies where a spec leaves the field out. Versions: whether it is the one to suggest.
    pub is_default: bool,
    /// The meaning. May be empty.
    pub description: String,
    /// Why it isn't offered; null if it is.
    pub reason: Option<String>,
}

/// The offers of a fleet to its clusters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetOffers {
    /// The fleet, such as `acme/eu`.
    pub fleet: FleetKey,
    /// The kind of target.
    pub infra_type: InfraType,
    /// How its clusters are isolated.
    pub tenancy_mode: TenancyMode,
    /// The versions of Kafka, the newest first.
    pub kafka_versions: Vec<Offer>,
    /// The version to suggest: the newest that is offered. Null if none is.
    pub default_kafka_version: Option<String>,
    /// Whether the versions are known that the fleet's operator runs. If not, all are offered.
    pub is_operator_known: bool,
    /// A cluster's `advanced_config.auto_upgrade`.
    pub auto_upgrade: OfferedFeature,
    /// A cluster's `advanced_config.cluster_access`.
    pub cluster_access: Vec<Offer>,
    /// The disks of its clusters.
    pub storage: StorageOffers,
}

/// Whether something can be used.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferedFeature {
    /// Whether a spec may turn it on.
    pub is_offered: bool,
    /// Why it isn't offered; null if it is.
    pub reason: Option<String>,
}

/// The disks that a fleet offers.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StorageOffers {
    /// The storage class of clusters that name none; null if unknown.
    pub default_class: Option<String>,
    /// The storage classes of the Kubernetes cluster; null if unknown.
    pub classes: Option<Vec<String>>,
}
