//! Organizations: the tenants of the installation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Domain, Identifier};

/// A tenant of the installation: its name, its quotas and its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// The name that every resource of the organization refers to. It can't change.
    pub identifier: Identifier,
    /// The name that is shown to people.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub display_name: Option<String>,
    /// The limits of all its fleets and clusters together.
    #[serde(default)]
    pub quotas: Quotas,
    /// The allowed base domains: these domains and all their subdomains. Through the API, only super users
    /// can change it. Without it, an organization may use any domain if it is the only one of the
    /// installation, and none if there are several.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub domains: Option<Vec<Domain>>,
    /// The members of the organization and their roles.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    pub members: Vec<Member>,
}

/// The limits of an organization; a missing one means no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quotas {
    /// How many fleets it may have.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub fleets: Option<u32>,
    /// How many clusters it may have.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000))]
    pub clusters: Option<u32>,
    /// How many Kafka units its clusters may have together.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100_000))]
    pub kafka_units: Option<u32>,
    /// How many base domains it may have.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub base_domains: Option<u32>,
    /// How many identity providers it may have.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub identity_providers: Option<u32>,
    /// How many cloud accounts it may have.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub cloud_accounts: Option<u32>,
}

/// A member of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The person's e-mail address.
    #[schemars(length(max = 254), regex(pattern = r"^[^@\s\x00-\x1f\x7f-\x9f]+@[^@\s\x00-\x1f\x7f-\x9f]+$"), extend("x-expected" = "an e-mail address"))]
    pub email: String,
    /// The person's permissions.
    pub role: Role,
}

/// The permissions of a member of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything in the organization, including approvals and members.
    Admin,
    /// Change fleets, clusters and what they refer to.
    Editor,
    /// Read.
    Viewer,
}
