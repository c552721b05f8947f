//! Apache Kafka, run by the Strimzi operator 1.x: a Kafka, its node pools and its administrator.

mod cluster;
mod config;
mod endpoints;
mod jaas;
mod listeners;
mod node_pool;
mod oauth;
mod placement;
mod tiered_storage;
mod user;

use crate::catalog::ResolvedCluster;
use crate::render::Manifest;
use crate::render::cluster_type::{Driver, Traffic};
use crate::render::sizing::Sizing;
use crate::spec::{
    BrokerConfig, Cluster, ClusterAccess, ClusterAdvancedConfig, Operations, Storage, TenancyMode,
};

pub const DRIVER: Driver = Driver { traffic, clients: endpoints::clients, objects };

/// Strimzi's fixed port for the metrics of brokers, controllers and Kafka Exporter.
const METRICS_PORT: u16 = 9404;

/// The ports that the operator connects to: control plane or Cruise Control (9090), replication (9091), the
/// agent beside each broker (8443).
const OPERATOR_PORTS: [u16; 3] = [9090, 9091, 8443];

struct KafkaContext<'a> {
    cluster: &'a ResolvedCluster,
    sizing: &'a Sizing,
    zones: u32,
    access: ClusterAccess,
    private: bool,
    version: &'a str,
    storage: &'a Storage,
    operations: Operations,
    options: &'a BrokerConfig,
}

impl<'a> KafkaContext<'a> {
    /// Destructures the whole spec, so that a new field is a compile error here.
    fn new(cluster: &'a ResolvedCluster, sizing: &'a Sizing) -> Self {
        let Cluster {
            // Identity, location and type: in the key, the namespace and the choice of the driver.
            organization: _,
            infrastructure: _,
            identifier: _,
            cluster_type: _,
            tenancy_mode: _,
            // Included in the sizing.
            kafka_units: _,
            // Recorded only.
            cloud_provider: _,
            region: _,
            tags: _,
            provisioner_name: _,
            advanced_config,
            // About the cluster as a whole; the plan acts on them.
            suspend: _,
            deletion_protection: _,
        } = &*cluster.spec;
        let ClusterAdvancedConfig {
            number_of_zones,
            cluster_access,
            private_access,
            version,
            // References to other resources, resolved in the cluster.
            oauth: _,
            // Included in the clients' login.
            authentication: _,
            tiered_storage_bucket_name: _,
            tiered_storage_provider: _,
            // Buckets are never created here.
            tiered_storage_create_bucket: _,
            // Automatic upgrades change `version`.
            auto_upgrade: _,
            storage,
            // Included in the sizing.
            profile: _,
            // A permission that the plan checks.
            scale_down_to: _,
            operations,
            config,
        } = advanced_config;
        Self {
            cluster,
            sizing,
            zones: number_of_zones.get(),
            access: *cluster_access,
            private: *private_access,
            version,
            storage,
            operations: *operations,
            options: config,
        }
    }

    /// The cluster's identifier, which is the name of its Kafka.
    fn name(&self) -> &'a str {
        self.cluster.spec.identifier.as_str()
    }

    fn tenancy(&self) -> TenancyMode {
        self.cluster.spec.tenancy_mode
    }
}

fn objects(cluster: &ResolvedCluster, sizing: &Sizing) -> Vec<Manifest> {
    let context = KafkaContext::new(cluster, sizing);
    let mut objects = node_pool::node_pools(&context);
    objects.push(cluster::kafka(&context));
    objects.push(user::admin(&context));
    objects.extend(oauth::trusted_certificates(&context));
    objects.extend(tiered_storage::credentials(&context));
    objects
}

fn traffic(cluster: &ResolvedCluster) -> Traffic {
    let name = &cluster.spec.identifier;
    let Operations { metrics, kafka_exporter, topic_operator: _ } = cluster.spec.advanced_config.operations;
    Traffic {
        servers: vec![("strimzi.io/cluster", name.to_string()), ("strimzi.io/name", format!("{name}-kafka"))],
        client_ports: listeners::client_ports(cluster),
        metrics_port: (metrics || kafka_exporter).then_some(METRICS_PORT),
        operator: vec![("strimzi.io/kind", "cluster-operator".to_owned())],
        operator_ports: OPERATOR_PORTS.to_vec(),
        outbound_urls: oauth::calls(cluster).chain(tiered_storage::calls(cluster)).collect(),
    }
}
