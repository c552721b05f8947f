//! Network isolation of clusters that don't share their fleet.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::catalog::ResolvedCluster;
use crate::component::{ClusterPart, Manifest, OperatorTraffic, Stage, Traffic, labels, manifest};
use crate::spec::TenancyMode;

/// The DNS port, and the port behind its Service on OpenShift.
const DNS_PORTS: [u16; 2] = [53, 5353];

/// The DNS pods, by the namespace and label that distributions give them. They may listen on any port behind
/// their Service, and a policy sees the port of the pod.
const DNS_PODS: [(&str, (&str, &str)); 2] = [
    ("kube-system", ("k8s-app", "kube-dns")),
    ("openshift-dns", ("dns.operator.openshift.io/daemonset-dns", "default")),
];

/// The ports of API servers in the distributions of Kubernetes. Brokers read their certificates from the API
/// server, and operators work on it.
const API_SERVER_PORTS: [u16; 4] = [443, 6443, 8443, 16443];

/// The NetworkPolicies of a cluster: none in the `Shared` mode, otherwise one that denies all traffic and
/// others that allow some. Policies are additive, so their order doesn't matter.
///
/// Addresses outside of the Kubernetes cluster are unknown here, so egress is limited by port. It reaches any
/// API server and any identity provider on such a port, but no broker, database or metadata service.
pub fn network_policies(cluster: &ResolvedCluster, parts: &[ClusterPart]) -> Vec<Manifest> {
    if cluster.spec.tenancy_mode == TenancyMode::Shared {
        return Vec::new();
    }
    let traffic = || parts.iter().map(|part| &part.traffic);
    let mut policies = vec![
        policy(cluster, "default-deny", everything(), NetworkPolicySpec { policy_types: both(), ..none() }),
        policy(cluster, "allow-operators", everything(), incoming(operators(traffic()))),
        policy(cluster, "allow-egress", everything(), outgoing(egress(traffic()))),
    ];
    let metrics: Vec<_> = traffic().flat_map(|it| it.metrics_ports.iter().copied()).map(metrics).collect();
    if !metrics.is_empty() {
        policies.push(policy(cluster, "allow-metrics", everything(), incoming(metrics)));
    }
    policies.extend(traffic().filter_map(|it| {
        Some(policy(cluster, it.client_policy, selector(&it.servers), incoming(vec![clients(it)?])))
    }));
    policies
}

/// Traffic among the cluster's pods, and from the operators.
fn operators<'a>(traffic: impl Iterator<Item = &'a Traffic>) -> Vec<NetworkPolicyIngressRule> {
    let neighbours = NetworkPolicyIngressRule { from: Some(vec![neighbours()]), ports: None };
    std::iter::once(neighbours).chain(traffic.filter_map(|it| it.operator.as_ref()).map(operator)).collect()
}

fn operator(traffic: &OperatorTraffic) -> NetworkPolicyIngressRule {
    let namespaces = match traffic.namespace {
        Some(namespace) => named(namespace),
        None => LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: labels::CLUSTER.to_owned(),
                operator: "DoesNotExist".to_owned(),
                values: None,
            }]),
            ..LabelSelector::default()
        },
    };
    let operator = NetworkPolicyPeer {
        namespace_selector: Some(namespaces),
        pod_selector: Some(selector(&traffic.labels)),
        ..NetworkPolicyPeer::default()
    };
    NetworkPolicyIngressRule { from: Some(vec![operator]), ports: Some(ports(&traffic.ports)) }
}

/// Clients from anywhere: they connect through load balancers and from any namespace, and have to log in.
/// `None` without client ports, since a rule without ports would open all of them.
fn clients(traffic: &Traffic) -> Option<NetworkPolicyIngressRule> {
    let ports = ports(&traffic.client_ports);
    (!ports.is_empty()).then_some(NetworkPolicyIngressRule { from: None, ports: Some(ports) })
}

/// Metrics collectors, from namespaces that an administrator has labelled.
fn metrics(port: u16) -> NetworkPolicyIngressRule {
    let (label, value) = labels::METRICS;
    let pods = NetworkPolicyPeer {
        namespace_selector: Some(selector(&[(label, value.to_owned())])),
        ..NetworkPolicyPeer::default()
    };
    NetworkPolicyIngressRule { from: Some(vec![pods]), ports: Some(ports(&[port])) }
}

/// Egress to the other pods of the cluster, DNS, the API server, and the URLs in the spec that brokers call.
fn egress<'a>(traffic: impl Iterator<Item = &'a Traffic>) -> Vec<NetworkPolicyEgressRule> {
    let names = DNS_PORTS.iter().flat_map(|&number| ["UDP", "TCP"].map(|protocol| port(number, protocol)));
    let mut rules = vec![
        NetworkPolicyEgressRule { to: Some(vec![neighbours()]), ports: None },
        NetworkPolicyEgressRule { to: None, ports: Some(names.collect()) },
        NetworkPolicyEgressRule { to: Some(DNS_PODS.map(dns).into()), ports: None },
        NetworkPolicyEgressRule { to: None, ports: Some(ports(&API_SERVER_PORTS)) },
    ];
    let mut seen = BTreeSet::new();
    for call in traffic.flat_map(|it| &it.outbound_urls) {
        let (number, namespace) = destination(call);
        if !seen.insert((number, namespace.clone())) {
            continue;
        }
        if !API_SERVER_PORTS.contains(&number) {
            rules.push(NetworkPolicyEgressRule { to: None, ports: Some(ports(&[number])) });
        }
        // Pods behind a Service listen on ports of their own.
        rules.extend(namespace.map(|namespace| NetworkPolicyEgressRule {
            to: Some(vec![NetworkPolicyPeer {
                namespace_selector: Some(named(&namespace)),
                ..NetworkPolicyPeer::default()
            }]),
            ports: None,
        }));
    }
    rules
}

fn dns((namespace, (label, value)): (&str, (&str, &str))) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: Some(named(namespace)),
        pod_selector: Some(selector(&[(label, value.to_owned())])),
        ..NetworkPolicyPeer::default()
    }
}

/// The port of a URL, and the namespace if the host may be a Service: `https://name.namespace.svc:9000` or
/// `https://name.namespace`.
fn destination(url: &str) -> (u16, Option<String>) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(443)),
        _ => (address, 443),
    };
    let labels: Vec<&str> = host.trim_end_matches('.').split('.').collect();
    let namespace = match labels.as_slice() {
        [_, namespace] | [_, namespace, "svc", ..] => Some(namespace.to_ascii_lowercase()),
        _ => None,
    };
    let is_label = |name: &String| {
        (1..=63).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    (port, namespace.filter(is_label))
}

fn policy(cluster: &ResolvedCluster, name: &str, pods: LabelSelector, spec: NetworkPolicySpec) -> Manifest {
    let spec = NetworkPolicySpec { pod_selector: Some(pods), ..spec };
    let policy = NetworkPolicy { metadata: labels::metadata(cluster, name), spec: Some(spec) };
    manifest::typed(cluster, Stage::Configuration, &policy)
}

fn none() -> NetworkPolicySpec {
    NetworkPolicySpec::default()
}

fn both() -> Option<Vec<String>> {
    Some(vec!["Ingress".to_owned(), "Egress".to_owned()])
}

fn incoming(rules: Vec<NetworkPolicyIngressRule>) -> NetworkPolicySpec {
    NetworkPolicySpec { policy_types: Some(vec!["Ingress".to_owned()]), ingress: Some(rules), ..none() }
}

fn outgoing(rules: Vec<NetworkPolicyEgressRule>) -> NetworkPolicySpec {
    NetworkPolicySpec { policy_types: Some(vec!["Egress".to_owned()]), egress: Some(rules), ..none() }
}

fn neighbours() -> NetworkPolicyPeer {
    NetworkPolicyPeer { pod_selector: Some(everything()), ..NetworkPolicyPeer::default() }
}

/// Kubernetes labels every namespace with its name.
fn named(namespace: &str) -> LabelSelector {
    selector(&[("kubernetes.io/metadata.name", namespace.to_owned())])
}

fn everything() -> LabelSelector {
    LabelSelector::default()
}

fn selector(labels: &[(&str, String)]) -> LabelSelector {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }
}

fn ports(numbers: &[u16]) -> Vec<NetworkPolicyPort> {
    numbers.iter().map(|&number| port(number, "TCP")).collect()
}

fn port(number: u16, protocol: &str) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(number.into())),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_brokers_call_is_a_port_and_perhaps_a_namespace() {
        for (url, port, namespace) in [
            ("https://login.example.com/realms/acme", 443, None),
            ("https://login.example.com:8444", 8444, None),
            ("https://minio.storage.svc:9000/x:1", 9000, Some("storage")),
            ("https://minio.storage.svc.cluster.local.:9000", 9000, Some("storage")),
            ("https://minio.storage", 443, Some("storage")),
            ("https://user:word@minio.storage.svc", 443, Some("storage")),
            ("https://[2001:db8::1]:9000/", 9000, None),
            ("https://[2001:db8::1]", 443, None),
            ("https://192.0.2.1:9000", 9000, None),
            ("https://minio", 443, None),
            ("https://a._!:99999", 443, None),
        ] {
            assert_eq!(destination(url), (port, namespace.map(str::to_owned)), "{url}");
        }
    }
}
