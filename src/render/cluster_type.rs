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
    /// Where clients find it.
    pub clients: fn(&ResolvedCluster) -> Clients,
    /// Its own objects.
    pub objects: fn(&ResolvedCluster, &Sizing) -> Vec<Manifest>,
}

/// Who talks to a cluster's pods.
pub struct Traffic {
    /// The labels of the pods that clients talk to.
    pub servers: Vec<(&'static str, String)>,
    /// The ports that clients use.
    pub client_ports: Vec<u16>,
    /// The port that metrics are read from; none where nothing gives any.
    pub metrics_port: Option<u16>,
    /// The labels of the operator's pods.
    pub operator: Vec<(&'static str, String)>,
    /// The ports that the operator uses.
    pub operator_ports: Vec<u16>,
    /// The URLs that its pods call outside of Kubernetes' own.
    pub calls: Vec<String>,
}

/// What clients of a cluster have to know. All names are of Secrets in the cluster's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clients {
    /// The ways in. The last one is the administrator's.
    pub endpoints: Vec<Endpoint>,
    /// The Secret of the administrator, who logs in with [`Login::Scram`].
    pub admin_secret: String,
    /// The Secret with the certificate that signs those of [`ServerTrust::ClusterCa`].
    pub ca_secret: String,
}

/// One way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of the listener.
    pub listener: &'static str,
    /// `host:port` to start from. It stays the same whatever brokers come and go.
    pub address: String,
    /// What clients log in with.
    pub login: Login,
    /// What the brokers' certificates are signed by.
    pub trust: ServerTrust,
}

/// What clients log in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// A name and a password, by SCRAM-SHA-512.
    Scram,
    /// A certificate of their own.
    Mtls,
    /// A token of the cluster's identity provider.
    OAuth,
}

/// What brokers' certificates are signed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTrust {
    /// An authority that the operator made for this cluster.
    ClusterCa,
    /// Whoever signed the certificate of the base domain.
    BaseDomain,
}

/// The driver of a kind of cluster.
pub fn driver(cluster_type: ClusterType) -> Driver {
    match cluster_type {
        ClusterType::Kafka => kafka::DRIVER,
    }
}
