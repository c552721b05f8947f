//! Whatever is specific to a cluster type: one driver per type.

mod kafka;

use crate::catalog::ResolvedCluster;
use crate::render::Manifest;
use crate::render::sizing::Sizing;
use crate::spec::ClusterType;

/// What a cluster type adds to what every cluster has.
pub struct Driver {
    pub traffic: fn(&ResolvedCluster) -> Traffic,
    pub clients: fn(&ResolvedCluster) -> ClientAccess,
    pub objects: fn(&ResolvedCluster, &Sizing) -> Vec<Manifest>,
}

/// The network traffic of a cluster's pods.
pub struct Traffic {
    /// The labels of the pods that clients connect to.
    pub servers: Vec<(&'static str, String)>,
    pub client_ports: Vec<u16>,
    /// The port of the metrics endpoint, if there is one.
    pub metrics_port: Option<u16>,
    pub operator: Vec<(&'static str, String)>,
    pub operator_ports: Vec<u16>,
    /// URLs outside of the Kubernetes cluster that the pods call.
    pub outbound_urls: Vec<String>,
}

/// What clients need to connect to a cluster. All names are of Secrets in the cluster's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAccess {
    /// The last one is the administrator's.
    pub endpoints: Vec<Endpoint>,
    /// The Secret of the administrator, who logs in with [`Login::Scram`].
    pub admin_secret: String,
    /// The Secret with the CA certificate of [`ServerTrust::ClusterCa`].
    pub ca_secret: String,
}

/// A listener, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub listener: &'static str,
    /// `host:port` of the bootstrap server. It doesn't change when brokers are added or removed.
    pub address: String,
    pub login: Login,
    pub trust: ServerTrust,
}

/// How clients authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// A name and a password, by SCRAM-SHA-512.
    Scram,
    Mtls,
    OAuth,
}

/// The issuer of the brokers' certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTrust {
    /// A CA that the operator created for this cluster.
    ClusterCa,
    /// The issuer of the base domain's certificate.
    BaseDomain,
}

pub fn driver(cluster_type: ClusterType) -> Driver {
    match cluster_type {
        ClusterType::Kafka => kafka::DRIVER,
    }
}
