//! The schema registry of a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A schema registry for the records of a cluster: Apicurio Registry, with the API of Confluent's, at
/// `registry--CLUSTER` below the base domain. It keeps schemas in topics of the cluster, so it has no data of its own.
/// Clients log in with tokens of the cluster's identity provider, and what they may do depends on their groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchemaRegistry {
    /// Run one. It needs `oauth`, `cluster_access: External` or `Internal & External`, and an image in the settings.
    pub enabled: bool,
    /// Which changes of a schema are allowed, unless a subject has a rule of its own.
    pub compatibility: Compatibility,
    /// The group whose members may do everything, including the rules for all subjects.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[^\s,]+$"), extend("x-expected" = "the name of a group, without spaces and commas"))]
    pub admin_group: String,
    /// The group whose members may register schemas and read all of them.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[^\s,]+$"), extend("x-expected" = "the name of a group, without spaces and commas"))]
    pub developer_group: String,
    /// The group whose members may read schemas.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[^\s,]+$"), extend("x-expected" = "the name of a group, without spaces and commas"))]
    pub reader_group: String,
}

/// The groups have the names that Apicurio Registry itself has by default.
impl Default for SchemaRegistry {
    fn default() -> Self {
        Self {
            enabled: false,
            compatibility: Compatibility::default(),
            admin_group: "sr-admin".to_owned(),
            developer_group: "sr-developer".to_owned(),
            reader_group: "sr-readonly".to_owned(),
        }
    }
}

/// Which changes of a schema are allowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Compatibility {
    /// Consumers with the new schema read records of the last one.
    #[default]
    Backward,
    /// Consumers with the new schema read records of all earlier ones.
    BackwardTransitive,
    /// Consumers with the last schema read records of the new one.
    Forward,
    /// Consumers with any earlier schema read records of the new one.
    ForwardTransitive,
    /// Both ways, with the last schema.
    Full,
    /// Both ways, with all earlier schemas.
    FullTransitive,
    /// All changes.
    None,
}

impl Compatibility {
    pub fn as_str(self) -> &'static str {
        match self {
            Compatibility::Backward => "BACKWARD",
            Compatibility::BackwardTransitive => "BACKWARD_TRANSITIVE",
            Compatibility::Forward => "FORWARD",
            Compatibility::ForwardTransitive => "FORWARD_TRANSITIVE",
            Compatibility::Full => "FULL",
            Compatibility::FullTransitive => "FULL_TRANSITIVE",
            Compatibility::None => "NONE",
        }
    }
}
