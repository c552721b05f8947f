//! The network traffic of a component's pods in a cluster's namespace.

#[derive(Default)]
pub struct Traffic {
    /// The labels of the pods that clients connect to.
    pub servers: Vec<(&'static str, String)>,
    pub client_ports: Vec<u16>,
    /// The name of the NetworkPolicy that lets clients connect.
    pub client_policy: &'static str,
    pub metrics_ports: Vec<u16>,
    pub operator: Option<OperatorTraffic>,
    /// URLs outside of the Kubernetes cluster that the pods call.
    pub outbound_urls: Vec<String>,
}

/// The traffic from an operator, which runs in another namespace.
pub struct OperatorTraffic {
    /// Its namespace; `None` if it may be any that isn't a cluster's.
    pub namespace: Option<&'static str>,
    pub labels: Vec<(&'static str, String)>,
    pub ports: Vec<u16>,
}
