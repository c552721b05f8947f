//! How a cluster is found from outside: load balancers and the records that lead to them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::catalog::{ClusterDomain, ResolvedCluster};
use crate::spec::{DnsProvider, Exposure};

/// The annotation from which external-dns takes a name. It was renamed in external-dns 0.22, and which version runs
/// on a fleet isn't known, so both spellings are written.
const DNS_HOST: [&str; 2] =
    ["external-dns.alpha.kubernetes.io/hostname", "external-dns.kubernetes.io/hostname"];

/// The annotation that keeps external-dns away from an object, whatever the object's spec says.
const DNS_CONTROLLER: [&str; 2] =
    ["external-dns.alpha.kubernetes.io/controller", "external-dns.kubernetes.io/controller"];

/// The annotations by which each cloud's controller makes a load balancer private. A fleet doesn't say which cloud it
/// is on, and a controller ignores the annotations of the others, so all of them are written. AWS has two controllers:
/// its own reads the scheme, the one inside of Kubernetes the older annotation.
const PRIVATE_LOAD_BALANCER: [(&str, &str); 4] = [
    ("networking.gke.io/load-balancer-type", "Internal"),
    ("service.beta.kubernetes.io/aws-load-balancer-internal", "true"),
    ("service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"),
    ("service.beta.kubernetes.io/azure-load-balancer-internal", "true"),
];

/// The annotation without which AWS's own controller makes a load balancer private. Others ignore it.
const PUBLIC_LOAD_BALANCER: [(&str, &str); 1] =
    [("service.beta.kubernetes.io/aws-load-balancer-scheme", "internet-facing")];

/// Whether clients outside of Kubernetes come in through load balancers of the cluster's own.
pub fn has_load_balancers(cluster: &ResolvedCluster) -> bool {
    external_domain(cluster).is_some()
        && cluster.fleet_spec.advanced_config.exposure == Exposure::LoadBalancer
}

/// The domain of a cluster that is reached from outside. One that should be and has no domain is refused earlier.
pub fn external_domain(cluster: &ResolvedCluster) -> Option<&ClusterDomain> {
    cluster.domain.as_ref().filter(|_| cluster.spec.advanced_config.cluster_access.is_external())
}

/// The annotations of a Service with a load balancer: its name for external-dns, and whether it is private.
pub fn annotations(domain: &ClusterDomain, host: &str, private: bool) -> BTreeMap<String, String> {
    let mut annotations = load_balancer(private);
    if domain.dns_provider == DnsProvider::ExternalDns {
        annotations.extend(DNS_HOST.map(|key| (key.to_owned(), host.to_owned())));
    }
    annotations
}

/// The annotations of a TLSRoute. External-dns (with `--source=gateway-tlsroute`) takes its host from its spec, without being
/// asked, so that it is told where somebody else keeps the records.
pub fn route_annotations(domain: &ClusterDomain) -> Option<BTreeMap<String, String>> {
    match domain.dns_provider {
        DnsProvider::ExternalDns => None,
        DnsProvider::None => Some(DNS_CONTROLLER.map(|key| (key.to_owned(), "none".to_owned())).into()),
    }
}

/// The annotations by which a load balancer is private, or public.
pub fn load_balancer(private: bool) -> BTreeMap<String, String> {
    let annotations: &[(&str, &str)] = if private { &PRIVATE_LOAD_BALANCER } else { &PUBLIC_LOAD_BALANCER };
    annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Whether these annotations make a load balancer private, for one cloud at least.
pub fn is_private(annotations: &Value) -> bool {
    PRIVATE_LOAD_BALANCER.iter().any(|(key, value)| annotations.get(key).is_some_and(|is| is == value))
}
