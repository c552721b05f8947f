//! Checks of tiered storage: the bucket, and the cloud account that may use it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::draft::CatalogFinding;
use crate::catalog::{DurableRecord, TieredStorage};
use crate::names::ResourceKey;
use crate::problem::Problem;
use crate::spec::{CloudAccount, CloudProvider, Cluster};

const CREATE: &str = "/advanced_config/tiered_storage_create_bucket";

/// `account` is none if it can't be used yet.
pub(super) fn check(cluster: &Cluster, account: Option<&CloudAccount>) -> Vec<CatalogFinding> {
    let config = &cluster.advanced_config;
    let provider = config.tiered_storage_provider.as_ref();
    let region = provider.and_then(|provider| provider.cloud_region.as_deref());
    let region = region.or(account.and_then(|account| account.region.as_deref()));
    let mut findings = Vec::new();
    match (provider, account) {
        (Some(_), Some(account)) if account.provider == CloudProvider::Rfc2136 => {
            findings.push(no_cloud(account))
        }
        (Some(_), Some(account)) if region.is_none() => findings.push(no_region(account)),
        (None, _) if config.tiered_storage_bucket_name.is_some() => findings.push(no_provider()),
        _ => {}
    }
    if config.tiered_storage_create_bucket && config.tiered_storage_bucket_name.is_none() {
        findings.push(no_bucket());
    }
    findings
}

fn no_provider() -> CatalogFinding {
    let problem =
        Problem::error("no-tiered-storage-provider", "tiered storage needs a cloud account for its bucket")
            .hint("add `tiered_storage_provider` with `cloud_account`, or remove the bucket");
    CatalogFinding::new("/advanced_config/tiered_storage_bucket_name", "the bucket has no account", problem)
}

fn no_cloud(account: &CloudAccount) -> CatalogFinding {
    let account = &account.identifier;
    let problem = Problem::error(
        "other-account",
        format!("cloud account `{account}` is of a DNS server, which has no buckets"),
    )
    .hint("name a cloud account with `provider: aws` or `provider: s3`");
    CatalogFinding::new(
        "/advanced_config/tiered_storage_provider/cloud_account",
        "is of another provider",
        problem,
    )
}

fn no_region(account: &CloudAccount) -> CatalogFinding {
    let account = &account.identifier;
    let problem = Problem::error("no-region", "the region of the bucket for tiered storage is unknown")
        .hint(format!("set `cloud_region` here, or `region` in cloud account `{account}`"));
    CatalogFinding::new("/advanced_config/tiered_storage_provider", "no region", problem)
}

fn no_bucket() -> CatalogFinding {
    let problem =
        Problem::error("no-bucket", "`tiered_storage_create_bucket` makes no bucket without a name")
            .hint("add `tiered_storage_bucket_name`, or remove `tiered_storage_create_bucket`");
    CatalogFinding::new(CREATE, "no bucket", problem)
}

/// A bucket at a service with the S3 API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketPlace {
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
    /// The URL of the service.
    pub endpoint: String,
    /// The cloud account.
    pub account: ResourceKey,
    /// Whether the service is that of AWS itself, with all of its API.
    pub aws: bool,
}

impl TieredStorage {
    pub fn place(&self) -> BucketPlace {
        let aws = self.account.provider == CloudProvider::Aws;
        let own = self.account.endpoint.as_deref().filter(|_| !aws);
        let domain = if self.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        BucketPlace {
            name: self.bucket.clone(),
            region: self.region.clone(),
            endpoint: own.map_or_else(|| format!("https://s3.{}.{domain}", self.region), str::to_owned),
            account: self.account_key.clone(),
            aws,
        }
    }
}

/// The key under which a bucket that Streamfleet makes for a cluster is recorded with the cluster's immutable fields,
/// though no spec contains it.
const RECORD: &str = "/bucket";

/// The bucket that Streamfleet makes for a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketRecord {
    pub place: BucketPlace,
    /// Whether it exists and is protected. Before, it may exist.
    pub made: bool,
}

impl BucketRecord {
    pub fn of(record: &DurableRecord) -> Option<BucketRecord> {
        serde_json::from_value(record.immutable.get(RECORD)?.clone()).ok()
    }

    /// Records a bucket, or that there is none.
    pub fn put(bucket: Option<&BucketRecord>, record: &mut DurableRecord) {
        record.immutable.remove(RECORD);
        let value = bucket.and_then(|bucket| serde_json::to_value(bucket).ok());
        record.immutable.extend(value.map(|value| (RECORD.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::fixtures::{cluster, with_tiered_storage};

    #[test]
    fn a_bucket_is_made_at_the_endpoint_of_its_account() {
        let mut storage = with_tiered_storage(cluster(json!({}))).tiered_storage.unwrap();
        let endpoint = |storage: &TieredStorage| storage.place().endpoint;
        storage.region = "eu-central-1".to_owned();
        (storage.account.provider, storage.account.endpoint) = (CloudProvider::Aws, None);
        assert_eq!(endpoint(&storage), "https://s3.eu-central-1.amazonaws.com");
        storage.region = "cn-north-1".to_owned();
        assert_eq!(endpoint(&storage), "https://s3.cn-north-1.amazonaws.com.cn");
        storage.account.provider = CloudProvider::S3;
        storage.account.endpoint = Some("https://minio.example.com:9000".to_owned());
        assert_eq!(endpoint(&storage), "https://minio.example.com:9000");
        assert_eq!(json!(storage.place().aws), false);
    }
}
