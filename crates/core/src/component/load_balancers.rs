//! How a cluster is reached from outside: load balancers and DNS records.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::catalog::{ResolvedCluster, ResolvedDomain};
use crate::component::labels::HOST;
use crate::spec::{DnsProvider, Exposure};

/// The annotation with the host name for external-dns. It was renamed in external-dns 0.22. The version on a
/// fleet is unknown, so both spellings are written.
const DNS_HOST: [&str; 2] =
    ["external-dns.alpha.kubernetes.io/hostname", "external-dns.kubernetes.io/hostname"];

/// The annotation that makes external-dns ignore an object, whatever its spec says.
const DNS_CONTROLLER: [&str; 2] =
    ["external-dns.alpha.kubernetes.io/controller", "external-dns.kubernetes.io/controller"];

/// The annotations that make a load balancer private, for each cloud. The cloud of a fleet is unknown, and a
/// controller ignores the annotations of the others, so all are written. AWS has two controllers: its own
/// reads the scheme, the one built into Kubernetes the older annotation.
const PRIVATE_LOAD_BALANCER: [(&str, &str); 4] = [
    ("networking.gke.io/load-balancer-type", "Internal"),
    ("service.beta.kubernetes.io/aws-load-balancer-internal", "true"),
    ("service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"),
    ("service.beta.kubernetes.io/azure-load-balancer-internal", "true"),
];

/// Without this annotation, AWS's own controller makes a load balancer private. Other controllers ignore it.
const PUBLIC_LOAD_BALANCER: [(&str, &str); 1] =
    [("service.beta.kubernetes.io/aws-load-balancer-scheme", "internet-facing")];

/// Whether clients outside of Kubernetes connect through load balancers of the cluster.
pub fn has_load_balancers(cluster: &ResolvedCluster) -> bool {
    external_domain(cluster).is_some()
        && cluster.fleet_spec.advanced_config.exposure == Exposure::LoadBalancer
}

/// The domain of a cluster that is exposed to the outside. An exposed cluster without a domain was refused
/// earlier.
pub fn external_domain(cluster: &ResolvedCluster) -> Option<&ResolvedDomain> {
    cluster.domain.as_ref().filter(|_| cluster.spec.advanced_config.cluster_access.is_external())
}

/// The annotations of a Service of type LoadBalancer: its host name for whoever keeps the DNS records, and whether it is
/// private.
pub fn annotations(domain: &ResolvedDomain, host: &str, private: bool) -> BTreeMap<String, String> {
    let mut annotations = load_balancer(private);
    let keys: &[&str] = match domain.dns_provider {
        DnsProvider::None => &[],
        DnsProvider::ExternalDns => &DNS_HOST,
        DnsProvider::Rfc2136 | DnsProvider::Route53 => &[HOST],
    };
    annotations.extend(keys.iter().map(|key| ((*key).to_owned(), host.to_owned())));
    annotations
}

/// The annotations of a TLSRoute. With `--source=gateway-tlsroute`, external-dns reads the host from the spec
/// without being asked, so an annotation makes it ignore the route if the DNS records are managed elsewhere.
pub fn route_annotations(domain: &ResolvedDomain) -> Option<BTreeMap<String, String>> {
    match domain.dns_provider {
        DnsProvider::ExternalDns => None,
        DnsProvider::None | DnsProvider::Rfc2136 | DnsProvider::Route53 => {
            Some(DNS_CONTROLLER.map(|key| (key.to_owned(), "none".to_owned())).into())
        }
    }
}

pub fn load_balancer(private: bool) -> BTreeMap<String, String> {
    let annotations: &[(&str, &str)] = if private { &PRIVATE_LOAD_BALANCER } else { &PUBLIC_LOAD_BALANCER };
    annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Whether these annotations make a load balancer private, on any cloud.
pub fn is_private(annotations: &Value) -> bool {
    PRIVATE_LOAD_BALANCER.iter().any(|(key, value)| annotations.get(key).is_some_and(|is| is == value))
}
