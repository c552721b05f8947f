//! Cloud accounts: access to storage that clusters use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;
use crate::spec::SecretValue;

/// Access to a cloud's storage, for tiered storage.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloudAccount {
    /// The organization that owns the account. It can't change.
    pub organization: Identifier,
    /// The account's name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The cloud.
    pub provider: CloudProvider,
    /// The region of buckets that name none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub region: Option<String>,
    /// The URL of a service that is compatible with S3; it has to be https. Only with `s3`.
    #[serde(default)]
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://minio.example.com:9000")]
    pub endpoint: Option<String>,
    /// The access keys, in the format of an AWS credentials file: a `[default]` section with
    /// `aws_access_key_id` and `aws_secret_access_key`.
    pub credentials: SecretValue,
}

/// The supported clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-driver" = "cloud provider"))]
pub enum CloudProvider {
    /// A service that is compatible with S3, at its own endpoint.
    S3,
    /// Amazon Web Services.
    Aws,
}
