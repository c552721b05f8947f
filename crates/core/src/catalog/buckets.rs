//! Checks of tiered storage: the bucket, and the cloud account that may use it.

use crate::catalog::draft::CatalogFinding;
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
        (Some(_), Some(account)) if region.is_none() => findings.push(no_region(account)),
        (None, _) if config.tiered_storage_bucket_name.is_some() => findings.push(no_provider()),
        _ => {}
    }
    if config.tiered_storage_create_bucket {
        findings.push(not_made(config.tiered_storage_bucket_name.as_deref(), region, account));
    }
    findings
}

fn no_provider() -> CatalogFinding {
    let problem =
        Problem::error("no-tiered-storage-provider", "tiered storage needs a cloud account for its bucket")
            .hint("add `tiered_storage_provider` with `cloud_account`, or remove the bucket");
    CatalogFinding::new("/advanced_config/tiered_storage_bucket_name", "the bucket has no account", problem)
}

fn no_region(account: &CloudAccount) -> CatalogFinding {
    let account = &account.identifier;
    let problem = Problem::error("no-region", "the region of the bucket for tiered storage is unknown")
        .hint(format!("set `cloud_region` here, or `region` in cloud account `{account}`"));
    CatalogFinding::new("/advanced_config/tiered_storage_provider", "no region", problem)
}

fn not_made(bucket: Option<&str>, region: Option<&str>, account: Option<&CloudAccount>) -> CatalogFinding {
    let command = command(bucket.unwrap_or("NAME"), region, account);
    let problem = Problem::error(
        "not-supported",
        "streamfleet doesn't create buckets, so that it can't delete one by mistake",
    )
    .hint(format!("create it with `{command}` and remove `tiered_storage_create_bucket`"));
    CatalogFinding::new(CREATE, "not supported", problem)
}

/// Returns the AWS CLI command that creates a bucket. AWS refuses `us-east-1` as a `LocationConstraint`.
fn command(bucket: &str, region: Option<&str>, account: Option<&CloudAccount>) -> String {
    let region = region.filter(|region| is_word(region)).unwrap_or("REGION");
    let create = format!("aws s3api create-bucket --bucket {bucket} --region {region}");
    match account.map(|account| (account.provider, account.endpoint.as_deref())) {
        Some((CloudProvider::S3, endpoint)) => {
            let endpoint = endpoint.filter(|endpoint| is_word(endpoint)).unwrap_or("ENDPOINT");
            format!("{create} --endpoint-url {endpoint}")
        }
        _ if region == "us-east-1" => create,
        _ => format!("{create} --create-bucket-configuration LocationConstraint={region}"),
    }
}

/// Regions and endpoints are free text that users would paste into a shell with the rest of the command.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:/".contains(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_command_makes_the_bucket_where_it_belongs() {
        let account = |provider: &str, endpoint: Option<&str>| -> CloudAccount {
            serde_json::from_value(json!({"organization": "acme", "identifier": "a", "provider": provider,
                "endpoint": endpoint, "credentials": {"from_file": "a"}}))
            .unwrap()
        };
        let (aws, minio) = (account("aws", None), account("s3", Some("https://minio.example.com:9000")));
        let odd = account("s3", Some("https://minio.example.com/$(id)"));
        let create = "aws s3api create-bucket --bucket log --region";
        for (region, account, expected) in [
            (
                Some("eu-west-1"),
                Some(&aws),
                "eu-west-1 --create-bucket-configuration LocationConstraint=eu-west-1",
            ),
            (Some("us-east-1"), Some(&aws), "us-east-1"),
            (Some("eu-1"), Some(&minio), "eu-1 --endpoint-url https://minio.example.com:9000"),
            (Some("eu-1; rm"), Some(&odd), "REGION --endpoint-url ENDPOINT"),
            (None, None, "REGION --create-bucket-configuration LocationConstraint=REGION"),
        ] {
            assert_eq!(command("log", region, account), format!("{create} {expected}"));
        }
    }
}
