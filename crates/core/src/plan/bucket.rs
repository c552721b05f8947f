//! The bucket for tiered storage that a change of a cluster makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{BucketPlace, BucketRecord, Resource};
use crate::component::{SecretEncoding, SecretSlot};
use crate::plan::world::PlanContext;

/// A bucket to make before the steps of a change, outside of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketOrder {
    /// The bucket.
    pub place: BucketPlace,
    /// The access keys of the cloud account.
    pub credentials: SecretSlot,
    /// Whether an earlier run began to make it, so that the bucket of that name may be a part of its work.
    pub begun: bool,
}

impl BucketOrder {
    /// The consequence of the change, as a sentence.
    pub(super) fn effect(&self) -> String {
        let BucketPlace { name, region, .. } = &self.place;
        format!(
            "makes bucket {name} in region {region}: private, encrypted, never deleted by streamfleet; one that the \
             account has already is used as it is"
        )
    }
}

/// Returns the bucket that a cluster's spec asks for, unless it was made before.
pub(super) fn of(world: &PlanContext, resource: &Resource) -> Option<BucketOrder> {
    let cluster = world.catalog.clusters.get(&resource.key)?;
    let storage = cluster
        .tiered_storage
        .as_ref()
        .filter(|_| cluster.spec.advanced_config.tiered_storage_create_bucket)?;
    let place = storage.place();
    let record = world.recorded(&resource.key).and_then(|record| BucketRecord::of(&record.durable));
    // A bucket that was made isn't made again elsewhere: an empty one would hide that the log is missing.
    let begun = match record.filter(|record| record.place.name == place.name) {
        Some(record) if record.made => return None,
        record => record.is_some_and(|record| record.place == place),
    };
    Some(BucketOrder { place, credentials: SecretSlot::of(&storage.credentials, SecretEncoding::Raw), begun })
}
