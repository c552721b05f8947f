//! The node pools: brokers and controllers, or nodes that are both.

use serde_json::{Value, json};

use super::kinds::NODE_POOL;
use super::{KafkaContext, placement};
use crate::component::{Manifest, Resources, labels, manifest};
use crate::spec::OnDelete;

/// The name is part of the names of pods and disks and can never change.
struct Pool {
    name: &'static str,
    roles: &'static [&'static str],
    /// The range of ids for its nodes. Ids are unique in the whole cluster, so without separate ranges a
    /// broker added later would get an id after those of the controllers.
    node_ids: &'static str,
    replicas: u32,
    resources: Resources,
    heap_mib: u32,
    storage_gib: u32,
}

pub fn node_pools(context: &KafkaContext) -> Vec<Manifest> {
    pools(context).iter().map(|pool| node_pool(context, pool)).collect()
}

fn pools(context: &KafkaContext) -> Vec<Pool> {
    let sizing = &context.sizing;
    let resources = |cpu_millis: u32, memory_mib: u32| Resources {
        cpu_millis: cpu_millis.into(),
        memory_mib: memory_mib.into(),
    };
    let brokers = Pool {
        name: "broker",
        roles: &["broker"],
        node_ids: "[0-999]",
        replicas: sizing.brokers,
        resources: resources(sizing.broker_cpu_millis, sizing.broker_memory_mib),
        heap_mib: sizing.broker_heap_mib,
        storage_gib: sizing.storage_gib,
    };
    if sizing.controllers == 0 {
        return vec![Pool { name: "dual", roles: &["controller", "broker"], ..brokers }];
    }
    let controllers = Pool {
        name: "controller",
        roles: &["controller"],
        node_ids: "[1000-1009]",
        replicas: sizing.controllers,
        resources: resources(sizing.controller_cpu_millis, sizing.controller_memory_mib),
        heap_mib: sizing.controller_heap_mib,
        storage_gib: sizing.controller_storage_gib,
    };
    vec![brokers, controllers]
}

fn node_pool(context: &KafkaContext, pool: &Pool) -> Manifest {
    let metadata = labels::annotate(
        labels::strimzi_metadata(context.cluster, pool.name),
        labels::map([("strimzi.io/next-node-ids", pool.node_ids)]),
    );
    let heap = format!("{}m", pool.heap_mib);
    let is_broker = pool.roles.contains(&"broker");
    let spec = json!({
        "replicas": pool.replicas,
        "roles": pool.roles,
        "resources": pool.resources.to_value(),
        // Equal, so that the heap never has to grow under load.
        "jvmOptions": {"-Xms": heap, "-Xmx": heap},
        "storage": storage(context, pool.storage_gib),
        "template": placement::node_template(context, (pool.name, pool.replicas), is_broker),
    });
    manifest::untyped(context.cluster, &NODE_POOL, &metadata, spec)
}

/// One disk per node, as JBOD: only then can disks be added later.
fn storage(context: &KafkaContext, size_gib: u32) -> Value {
    let fleet_class = context.cluster.fleet_spec.advanced_config.storage_class.as_ref();
    json!({
        "type": "jbod",
        "volumes": [{
            "id": 0,
            "type": "persistent-claim",
            "size": format!("{size_gib}Gi"),
            "class": context.storage.class.as_ref().or(fleet_class),
            "deleteClaim": context.storage.on_delete == OnDelete::Delete,
            "kraftMetadata": "shared",
        }],
    })
}
