//! Apache Kafka, run by the Strimzi operator 1.x: a Kafka, its node pools and its administrator.

mod cluster;
mod config;
mod consequence;
pub mod endpoints;
pub mod federation;
pub mod health;
mod jaas;
pub mod kinds;
mod leftovers;
mod listeners;
mod logs;
mod node_pool;
mod oauth;
mod objects;
mod placement;
pub mod probe;
mod quota;
mod renewal_windows;
pub mod reporter;
mod resources;
mod sizing;
mod tiered_storage;
pub mod tls_secret;
mod user;

use crate::catalog::ResolvedCluster;
use crate::component::{ClusterPart, Component, Manifest, OperatorTraffic, Traffic, strimzi};
use crate::config::Config;
use crate::spec::{
    BrokerConfig, Cluster, ClusterAccess, ClusterAdvancedConfig, ClusterType, MaintenanceWindow, Operations,
    Storage,
};
pub use logs::{BROKER_CONTAINER, broker_of, broker_selector};
pub use oauth::{CA_FILE as OAUTH_CA_FILE, USERNAME_CLAIM, ca_name as oauth_ca_name};
pub use placement::{HOST as HOST_TOPOLOGY, affinity, tolerations};
pub use resources::requests_of_units;
use sizing::Sizing;

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    services: Some("labelSelector=strimzi.io%2Fkind%3DKafka"),
    leftovers: Some(&leftovers::LEFTOVERS),
    in_cluster,
    hosts: &[endpoints::BROKERS],
    observe: health::observe,
    objects: objects::OBJECTS,
    consequences: consequence::CONSEQUENCES,
    pod_labels: &["strimzi.io/cluster", "strimzi.io/kind"],
    clients: |cluster| Some(endpoints::clients(cluster)),
    ..Component::NONE
};

/// Strimzi's fixed port for the metrics of brokers, controllers and Kafka Exporter.
const METRICS_PORT: u16 = 9404;

/// The ports that the operator connects to: control plane or Cruise Control (9090), replication (9091), the
/// agent beside each broker (8443).
const OPERATOR_PORTS: [u16; 3] = [9090, 9091, 8443];

struct KafkaContext<'a> {
    cluster: &'a ResolvedCluster,
    sizing: Sizing,
    zones: u32,
    access: ClusterAccess,
    private: bool,
    version: &'a str,
    storage: &'a Storage,
    operations: Operations,
    options: &'a BrokerConfig,
    maintenance: &'a [MaintenanceWindow],
}

impl<'a> KafkaContext<'a> {
    /// Destructures the whole spec, so that a new field is a compile error here.
    fn new(cluster: &'a ResolvedCluster, config: &'a Config) -> Self {
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
            // A component of its own.
            schema_registry: _,
            config: options,
        } = advanced_config;
        let own = cluster.fleet_spec.advanced_config.maintenance.as_ref();
        Self {
            cluster,
            sizing: Sizing::of(cluster, &config.units),
            zones: number_of_zones.get(),
            access: *cluster_access,
            private: *private_access,
            version,
            storage,
            operations: Operations {
                topic_operator: operations.topic_operator || cluster.has_topics,
                ..*operations
            },
            options,
            maintenance: own.unwrap_or(&config.policy.maintenance),
        }
    }

    /// The cluster's identifier, which is the name of its Kafka.
    fn name(&self) -> &'a str {
        self.cluster.spec.identifier.as_str()
    }
}

fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    match cluster.spec.cluster_type {
        ClusterType::Kafka => {}
    }
    let context = KafkaContext::new(cluster, config);
    Some(ClusterPart {
        objects: objects(&context),
        traffic: traffic(cluster),
        quota: quota::quota(&context),
        is_restricted: is_restricted(cluster),
    })
}

/// `restricted` needs an operator that creates such pods, like the one that Streamfleet installs on a fleet.
/// Any other operator creates pods for `baseline` unless it is configured otherwise, and all of them would be
/// refused under `restricted`. An image volume, as a plugin's image needs, takes `baseline` too, because not
/// every version of Kubernetes allows it under `restricted`.
fn is_restricted(cluster: &ResolvedCluster) -> bool {
    let storage = cluster.tiered_storage.as_ref();
    let mounts_image = storage.is_some_and(|storage| storage.plugin.plugin_image.is_some());
    cluster.fleet_spec.advanced_config.components.installs().is_some() && !mounts_image
}

/// How many copies have a record before it counts as written.
pub fn in_sync(cluster: &ResolvedCluster, config: &Config) -> u32 {
    Sizing::of(cluster, &config.units).min_insync_replicas
}

fn objects(context: &KafkaContext) -> Vec<Manifest> {
    let mut objects = node_pool::node_pools(context);
    objects.extend(tls_secret::tls_secret(context.cluster));
    objects.push(cluster::kafka(context));
    objects.push(user::admin(context));
    objects.extend(user::probe(context));
    objects.extend(oauth::trusted_certificates(context));
    objects.extend(tiered_storage::credentials(context));
    objects
}

fn traffic(cluster: &ResolvedCluster) -> Traffic {
    let name = &cluster.spec.identifier;
    let Operations { metrics, kafka_exporter, topic_operator: _, console: _ } =
        cluster.spec.advanced_config.operations;
    Traffic {
        servers: vec![("strimzi.io/cluster", name.to_string()), ("strimzi.io/name", format!("{name}-kafka"))],
        client_ports: listeners::client_ports(cluster),
        client_policy: "allow-clients",
        metrics_ports: (metrics || kafka_exporter).then_some(METRICS_PORT).into_iter().collect(),
        operator: Some(operator_traffic(cluster)),
        outbound_urls: oauth::calls(cluster).chain(tiered_storage::calls(cluster)).collect(),
    }
}

/// An operator that Streamfleet installed is in one known namespace. Any other is recognized by its label
/// only, as in Strimzi's own policies. A pod that forges the label still needs a certificate of the cluster
/// for these ports.
fn operator_traffic(cluster: &ResolvedCluster) -> OperatorTraffic {
    OperatorTraffic {
        namespace: cluster.fleet_spec.advanced_config.components.installs().map(|_| strimzi::NAMESPACE),
        labels: vec![("strimzi.io/kind", "cluster-operator".to_owned())],
        ports: OPERATOR_PORTS.to_vec(),
    }
}
