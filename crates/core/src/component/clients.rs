//! The connection data of clients.

/// The connection data of a cluster's clients. All names are of Secrets in the cluster's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAccess {
    /// The last one is the administrator's.
    pub endpoints: Vec<Endpoint>,
    /// The Secret of the administrator, who logs in with [`Login::Scram`].
    pub admin_secret: String,
    /// The Kubernetes kind of further users.
    pub user_kind: &'static str,
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
