//! Who may talk to a cluster's pods, where clusters are kept apart.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::catalog::ResolvedCluster;
use crate::render::cluster_type::Traffic;
use crate::render::{Manifest, Stage, labels, manifest};
use crate::spec::TenancyMode;

/// The NetworkPolicies of a cluster: none where it shares its fleet, otherwise a denial of everything that comes in and
/// what is allowed after all. Policies only add up, so their order doesn't matter.
///
/// What goes out is not denied. Brokers need DNS, the API server, the bucket and the identity provider, whose
/// addresses nobody here knows; a policy that lets all of those through would forbid nothing.
pub fn network_policies(cluster: &ResolvedCluster, traffic: &Traffic) -> Vec<Manifest> {
    if cluster.spec.tenancy_mode == TenancyMode::Shared {
        return Vec::new();
    }
    let mut policies = vec![
        policy(cluster, "default-deny", everything(), None),
        policy(cluster, "allow-operators", everything(), Some(operators(traffic))),
    ];
    let metrics = traffic.metrics_port.map(metrics);
    policies.extend(metrics.map(|rule| policy(cluster, "allow-metrics", everything(), Some(rule))));
    policies.extend(
        clients(traffic).map(|rule| policy(cluster, "allow-clients", selector(&traffic.servers), Some(rule))),
    );
    policies
}

/// Pods of the cluster among themselves, and the operator from wherever it runs. It is known by its label only, as in
/// Strimzi's own policies; who takes that label still meets ports that ask for a certificate of the cluster.
fn operators(traffic: &Traffic) -> NetworkPolicyIngressRule {
    let namespace = NetworkPolicyPeer { pod_selector: Some(everything()), ..NetworkPolicyPeer::default() };
    let operator = NetworkPolicyPeer {
        namespace_selector: Some(everything()),
        pod_selector: Some(selector(&traffic.operator)),
        ..NetworkPolicyPeer::default()
    };
    NetworkPolicyIngressRule { from: Some(vec![namespace, operator]), ports: None }
}

/// Clients from anywhere: they come through load balancers and from any namespace, and have to log in. None where
/// there is no port for them, since a rule without ports would open all.
fn clients(traffic: &Traffic) -> Option<NetworkPolicyIngressRule> {
    let ports = ports(&traffic.client_ports);
    (!ports.is_empty()).then_some(NetworkPolicyIngressRule { from: None, ports: Some(ports) })
}

/// Whatever collects metrics, from any namespace of the Kubernetes cluster but not from outside of it.
fn metrics(port: u16) -> NetworkPolicyIngressRule {
    let pods = NetworkPolicyPeer { namespace_selector: Some(everything()), ..NetworkPolicyPeer::default() };
    NetworkPolicyIngressRule { from: Some(vec![pods]), ports: Some(ports(&[port])) }
}

fn policy(
    cluster: &ResolvedCluster,
    name: &str,
    pods: LabelSelector,
    rule: Option<NetworkPolicyIngressRule>,
) -> Manifest {
    let spec = NetworkPolicySpec {
        pod_selector: Some(pods),
        policy_types: Some(vec!["Ingress".to_owned()]),
        ingress: rule.map(|rule| vec![rule]),
        ..NetworkPolicySpec::default()
    };
    let policy = NetworkPolicy { metadata: labels::metadata(cluster, name), spec: Some(spec) };
    manifest::typed(cluster, Stage::Configuration, &policy)
}

/// The empty selector, which selects all there is.
fn everything() -> LabelSelector {
    LabelSelector::default()
}

fn selector(labels: &[(&str, String)]) -> LabelSelector {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }
}

fn ports(numbers: &[u16]) -> Vec<NetworkPolicyPort> {
    let port = |&number: &u16| NetworkPolicyPort {
        port: Some(IntOrString::Int(number.into())),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    };
    numbers.iter().map(port).collect()
}
