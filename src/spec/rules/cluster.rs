//! Rules of clusters.

use super::Rules;
use crate::spec::{Cluster, ClusterAccess, ClusterAdvancedConfig, Profile};

impl Rules<'_> {
    pub(super) fn cluster(&mut self, cluster: &Cluster) {
        let config = &cluster.advanced_config;
        if config.private_access && config.cluster_access == ClusterAccess::Internal {
            self.refuse(
                "/advanced_config/private_access",
                "no-effect",
                "`private_access: true` has no effect with `cluster_access: Internal`",
                "remove `private_access`, or use `cluster_access: Internal & External`",
            );
        }
        if config.auto_upgrade {
            self.refuse(
                "/advanced_config/auto_upgrade",
                "not-supported",
                "`auto_upgrade: true` is not supported yet",
                "remove `auto_upgrade`, and raise `version` when you want to upgrade",
            );
        }
        self.tiered_storage(config);
        if config.profile == Profile::Dev {
            self.dev(cluster);
        }
    }

    fn tiered_storage(&mut self, config: &ClusterAdvancedConfig) {
        let (bucket, provider) = (&config.tiered_storage_bucket_name, &config.tiered_storage_provider);
        match (bucket, provider) {
            (Some(_), None) => self.refuse(
                "/advanced_config/tiered_storage_bucket_name",
                "missing-key",
                "`tiered_storage_bucket_name` needs `tiered_storage_provider`",
                "add `tiered_storage_provider` with the `cloud_account` that may use the bucket",
            ),
            (None, Some(_)) => self.refuse(
                "/advanced_config/tiered_storage_provider",
                "missing-key",
                "`tiered_storage_provider` needs `tiered_storage_bucket_name`",
                "add `tiered_storage_bucket_name`, or remove `tiered_storage_provider`",
            ),
            _ => {}
        }
        if config.tiered_storage_create_bucket {
            let bucket = bucket.as_deref().unwrap_or("NAME");
            let region = provider.as_ref().and_then(|provider| provider.cloud_region.as_deref());
            // A region is free text that a person would paste into a shell with the rest of the command.
            let word = |text: &&str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            let region = region.filter(word).unwrap_or("REGION");
            self.refuse(
                "/advanced_config/tiered_storage_create_bucket",
                "not-supported",
                "buckets are not made here, so that no mistake here can remove one",
                format!(
                    "make it with `aws s3 mb s3://{bucket} --region {region}` and remove \
                     `tiered_storage_create_bucket`"
                ),
            );
        }
    }

    /// One small node: there is nothing to spread and nothing to scale.
    fn dev(&mut self, cluster: &Cluster) {
        if cluster.kafka_units != 1 {
            self.refuse(
                "/kafka_units",
                "dev-profile",
                format!("a cluster of profile `dev` has 1 Kafka unit, not {}", cluster.kafka_units),
                "use `kafka_units: 1`, or `profile: standard`",
            );
        }
        if cluster.advanced_config.number_of_zones.get() != 1 {
            self.refuse(
                "/advanced_config/number_of_zones",
                "dev-profile",
                format!(
                    "a cluster of profile `dev` is in 1 zone, not {}",
                    cluster.advanced_config.number_of_zones.get()
                ),
                "use `number_of_zones: 1`, or `profile: standard`",
            );
        }
    }
}
