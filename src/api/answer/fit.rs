//! Which fleets a cluster fits on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Status;
use crate::names::FleetKey;
use crate::spec::{InfraType, TenancyMode};

/// The fleets of an organization, and whether a new cluster fits on each. By the last plan: only creating the
/// cluster reserves anything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterFitList {
    /// The fleets, in order.
    pub items: Vec<FleetFit>,
}

/// Whether a cluster fits on a fleet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetFit {
    /// The fleet, such as `acme/eu`.
    pub fleet: FleetKey,
    /// The kind of target.
    pub infra_type: InfraType,
    /// How its clusters are isolated.
    pub tenancy_mode: TenancyMode,
    /// Its status.
    pub status: Status,
    /// Whether the cluster could be created there now.
    pub fits: bool,
    /// Why it doesn't fit; empty if it does.
    pub reasons: Vec<FitReason>,
    /// The fleet's Kafka units.
    pub kafka_units: Room,
    /// The fleet's clusters.
    pub clusters: Room,
    /// The Kafka units of the organization, on all of its fleets.
    pub organization_kafka_units: Room,
    /// The clusters of the organization.
    pub organization_clusters: Room,
}

/// Why a cluster doesn't fit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FitReason {
    /// For programs: the code of a mistake in a spec, an error code of the API, `deleting`, `suspended`, `unreachable`
    /// or `unsupported-version`.
    pub code: String,
    /// A sentence without a full stop.
    pub detail: String,
    /// The next step; null if there is nothing to add.
    pub hint: Option<String>,
}

/// How much of a limit is left.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Room {
    /// The limit; null if there is none.
    pub limit: Option<u32>,
    /// The amount in use.
    pub used: u32,
    /// The amount that is left; null without a limit.
    pub free: Option<u32>,
    /// The amount that the cluster needs.
    pub needed: u32,
    /// The amount that is missing; 0 if there is enough.
    pub missing: u32,
}
