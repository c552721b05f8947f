//! A cloud account: access to storage that clusters use.

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
    /// Its name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// Which cloud it is.
    pub provider: CloudProvider,
    /// The region of buckets that name none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub region: Option<String>,
    /// The address of a service that speaks S3, an https URL. Only with `s3`.
    #[serde(default)]
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://minio.example.com:9000")]
    pub endpoint: Option<String>,
    /// The access keys, as an AWS credentials file has them: a `[default]` section with `aws_access_key_id` and
    /// `aws_secret_access_key`.
    pub credentials: SecretValue,
}

/// The clouds that there is a driver for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-driver" = "cloud provider"))]
pub enum CloudProvider {
    /// What speaks S3, at an endpoint of its own.
    S3,
    /// Amazon Web Services.
    Aws,
}
