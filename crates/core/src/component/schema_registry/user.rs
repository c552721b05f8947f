//! The KafkaUser as which the registry works on its topics.

use serde_json::json;

use super::RegistryContext;
use crate::catalog::ResolvedCluster;
use crate::component::kafka::kinds::USER;
use crate::component::{Manifest, labels, manifest};

/// The name of the user, of the Secret that Strimzi creates for it, and of all other objects of the registry.
pub fn name(cluster: &ResolvedCluster) -> String {
    of(cluster.spec.identifier.as_str())
}

pub fn of(cluster: &str) -> String {
    format!("{cluster}-registry")
}

/// The beginning of the names of consumer groups: each start of a replica reads the journal as a new one.
pub const GROUPS: &str = "__schema-registry-";

// No topic of a spec may begin with two underscores.
/// The topic with everything that was registered, from which a replica learns all of it when it starts.
pub const JOURNAL: &str = "__schema-registry-journal";
/// A topic that stays empty: the registry may not write to it, since snapshots would be files of one pod.
pub const SNAPSHOTS: &str = "__schema-registry-snapshots";
/// The topic with a message for every change.
pub const EVENTS: &str = "__schema-registry-events";

/// The registry makes its topics itself, so that no KafkaTopic takes them along when it is deleted.
const RIGHTS: [(&str, &str, &str, &[&str]); 4] = [
    ("topic", JOURNAL, "literal", &["Create", "DescribeConfigs", "Read", "Write"]),
    ("topic", SNAPSHOTS, "literal", &["Create", "DescribeConfigs", "Read"]),
    ("topic", EVENTS, "literal", &["Create", "DescribeConfigs", "Write"]),
    ("group", GROUPS, "prefix", &["Read"]),
];

pub fn user(context: &RegistryContext) -> Manifest {
    let acls = RIGHTS.map(|(kind, name, pattern, operations)| {
        let resource = json!({"type": kind, "name": name, "patternType": pattern});
        json!({"resource": resource, "operations": operations, "host": "*", "type": "allow"})
    });
    let spec = json!({
        "authentication": {"type": "scram-sha-512"},
        "authorization": {"type": "simple", "acls": acls},
    });
    let metadata = labels::strimzi_metadata(context.cluster, name(context.cluster));
    manifest::untyped(context.cluster, &USER, &metadata, spec)
}
