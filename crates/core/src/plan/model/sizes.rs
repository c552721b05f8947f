use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::Size;
use crate::names::ResourceKey;
use crate::plan::cost::CostChange;
use crate::plan::preflight::NodeCapacity;

/// A change of size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeChange {
    /// The current size.
    pub before: Size,
    /// The new size.
    pub after: Size,
    /// The cost of a month; absent if the settings have no prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostChange>,
}

/// A change of the number of IP addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressChange {
    /// The addresses that are taken now.
    pub before: u64,
    /// The addresses that are taken once everything that doesn't wait is done.
    pub after: u64,
}

/// The sizes on a fleet on which some change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// All clusters together, once everything that doesn't wait is done.
    pub fleet: SizeChange,
    /// The changed clusters with the sizes that their specs ask for, whether they wait or not.
    pub clusters: BTreeMap<ResourceKey, SizeChange>,
    /// The IP addresses that all clusters together take, one for each pod and load balancer; absent if the plan was
    /// made without the facts of a Kubernetes cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressChange>,
    /// The capacity of the fleet's nodes for its clusters, less the requests of other pods; null if unknown.
    pub room: Option<NodeCapacity>,
}
