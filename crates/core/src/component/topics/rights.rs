//! The rights of a user, as Kafka's access control lists have them.

use crate::spec::{AccessEffect, AccessOperation, AccessResource, AccessRule, Consumption, User};

/// One entry of a KafkaUser's `acls`.
pub struct Right {
    pub resource: AccessResource,
    /// A name, or the beginning of names with a `*` at its end. `*` alone is all. `None` for the cluster.
    pub name: Option<String>,
    pub operations: Vec<AccessOperation>,
    pub host: String,
    pub effect: AccessEffect,
}

/// Returns the rights in the order of the spec, each once.
///
/// Writing to a topic includes idempotent writes (KIP-679) and describing it, reading includes describing it. They
/// are listed anyway, as in Strimzi's examples, so that the object says what clients do.
pub fn of(user: &User) -> Vec<Right> {
    use AccessOperation::{Describe, Read, Write};
    let mut rights: Vec<Right> = Vec::new();
    let mut add = |resource, name: &str, operations: &[AccessOperation]| {
        let is_there = |right: &Right| {
            right.resource == resource
                && right.name.as_deref() == Some(name)
                && right.operations == operations
        };
        if !rights.iter().any(is_there) {
            rights.push(Right {
                resource,
                name: Some(name.to_owned()),
                operations: operations.to_vec(),
                host: "*".to_owned(),
                effect: AccessEffect::Allow,
            });
        }
    };
    for topic in &user.produce {
        add(AccessResource::Topic, topic.as_str(), &[Describe, Write]);
    }
    for Consumption { topic, group } in &user.consume {
        add(AccessResource::Topic, topic.as_str(), &[Describe, Read]);
        if let Some(group) = group {
            add(AccessResource::Group, group, &[Describe, Read]);
        }
    }
    for id in &user.transactional_ids {
        add(AccessResource::TransactionalId, id, &[Describe, Write]);
    }
    rights.extend(user.rules.iter().map(own));
    rights
}

fn own(AccessRule { resource, name, operations, host, effect }: &AccessRule) -> Right {
    let mut operations = operations.clone();
    operations.sort_unstable();
    operations.dedup();
    Right {
        resource: *resource,
        name: name.clone(),
        operations,
        host: host.clone().unwrap_or_else(|| "*".to_owned()),
        effect: *effect,
    }
}
