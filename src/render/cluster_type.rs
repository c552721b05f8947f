//! What is particular to each kind of cluster: one driver a kind, chosen in one place.

mod kafka;

use crate::catalog::ResolvedCluster;
use crate::render::Manifest;
use crate::render::sizing::Sizing;
use crate::spec::ClusterType;

/// What a kind of cluster adds to what every cluster has.
pub struct Driver {
    /// Who talks to its pods.
    pub traffic: fn(&ResolvedCluster) -> Traffic,
    /// Its own objects.
    pub objects: fn(&ResolvedCluster, &Sizing) -> Vec<Manifest>,
}

/// Who talks to a cluster's pods.
pub struct Traffic {
    /// The labels of the pods that clients talk to.
    pub servers: Vec<(&'static str, String)>,
    /// The ports that clients use.
    pub client_ports: Vec<u16>,
    /// The port that metrics are read from.
    pub metrics_port: u16,
    /// The labels of the operator's pods, which may be in any namespace.
    pub operator: Vec<(&'static str, String)>,
}

/// The driver of a kind of cluster.
pub fn driver(cluster_type: ClusterType) -> Driver {
    match cluster_type {
        ClusterType::Kafka => kafka::DRIVER,
    }
}
