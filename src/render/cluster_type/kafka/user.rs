//! The administrator of a cluster.

use serde_json::json;

use super::Context;
use crate::render::{Manifest, labels, manifest};

/// The name of the administrator, and of the Secret with its password, which Strimzi makes.
pub fn admin_name(context: &Context) -> String {
    format!("{}-admin", context.name())
}

/// The KafkaUser of the administrator. It is a super user, so it has no access rules of its own.
pub fn admin(context: &Context) -> Manifest {
    let metadata = labels::strimzi_metadata(context.cluster, admin_name(context));
    let spec = json!({"authentication": {"type": "scram-sha-512"}});
    manifest::strimzi(context.cluster, "KafkaUser", &metadata, spec)
}
