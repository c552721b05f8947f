use serde_json::json;

use super::KafkaContext;
use super::kinds::USER;
use crate::catalog::ResolvedCluster;
use crate::component::{Manifest, labels, manifest};

/// The name of the administrator, and of the Secret that Strimzi creates for its password.
pub fn admin_name(cluster: &ResolvedCluster) -> String {
    format!("{}-admin", cluster.spec.identifier)
}

/// The KafkaUser of the administrator. It is a super user, so it has no ACLs.
pub fn admin(context: &KafkaContext) -> Manifest {
    let metadata = labels::strimzi_metadata(context.cluster, admin_name(context.cluster));
    let spec = json!({"authentication": {"type": "scram-sha-512"}});
    manifest::untyped(context.cluster, &USER, &metadata, spec)
}
