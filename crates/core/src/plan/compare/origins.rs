//! The inputs of a resource's objects beside its own spec.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use crate::catalog::Resource;
use crate::config::{Config, ImagesConfig, TieredStorageConfig};
use crate::names::{Digest, ResourceKey};

/// The digests of resources that objects may be made from.
pub(in crate::plan) fn of<'a>(
    resources: impl Iterator<Item = (&'a ResourceKey, &'a Arc<Resource>)>,
) -> BTreeMap<ResourceKey, Digest> {
    let resources = resources.filter(|(key, _)| !key.kind.is_of_cluster());
    resources.map(|(key, resource)| (key.clone(), digest(resource))).collect()
}

/// Returns the digest of a spec with its secrets. Resealing a known secret doesn't change it.
fn digest(resource: &Resource) -> Digest {
    let secret = |mark: &crate::catalog::SecretMark| match &mark.fingerprint {
        Some(fingerprint) => json!(fingerprint),
        None => json!(mark.sealed),
    };
    let secrets: BTreeMap<&String, _> =
        resource.secrets.iter().map(|(field, it)| (field, secret(&it.mark))).collect();
    Digest::of_json(&json!([resource.spec.redacted(), secrets]))
}

/// Returns the digest of the settings that rendering reads.
pub(in crate::plan) fn settings(config: &Config) -> Digest {
    let tiered_storage = config.tiered_storage != TieredStorageConfig::default();
    let policy = !config.policy.maintenance.is_empty();
    let mut looked_at =
        vec![json!(config.units), json!(config.secrets.write_to_output), json!(config.operators)];
    // Digests recorded before this setting existed stay valid.
    looked_at.extend(tiered_storage.then(|| json!(config.tiered_storage)));
    looked_at.extend(policy.then(|| json!(config.policy.maintenance)));
    looked_at.extend((config.images != ImagesConfig::default()).then(|| json!(config.images)));
    Digest::of_json(&json!(looked_at))
}
