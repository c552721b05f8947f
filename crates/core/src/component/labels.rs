//! Labels and annotations that identify objects and the resource that they belong to.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::catalog::ResolvedCluster;

pub const ORGANIZATION: &str = "streamfleet.io/organization";
pub const CLUSTER: &str = "streamfleet.io/cluster";
pub const FLEET: &str = "streamfleet.io/fleet";
/// On pods with data: the namespace of the cluster. It fits into 63 characters and is unique on a Kubernetes
/// cluster, while the identifiers of organization and cluster together would be too long for a label.
pub const TENANT: &str = "streamfleet.io/tenant";
/// On nodes that are reserved for one cluster, as label and as taint, with the same value as [`TENANT`].
pub const DEDICATED: &str = "streamfleet.io/dedicated";
pub const ID: &str = "streamfleet.io/id";
/// The annotation with the cluster's deletion protection, on its Namespace and Kafka only.
pub const DELETION_PROTECTION: &str = "streamfleet.io/deletion-protection";
/// The annotation on the Kafka that changes with the certificate. The operator doesn't watch the Secret, but
/// reads it whenever the Kafka changes.
pub const CERTIFICATE: &str = "streamfleet.io/certificate";
/// The annotation that changes with mounted files which are read only at start, on the pods that read them.
pub const MOUNTED: &str = "streamfleet.io/mounted";

/// The label of namespaces whose pods may read metrics.
pub const METRICS: (&str, &str) = ("streamfleet.io/metrics", "true");

/// The annotation on a load balancer's Service with the host name whose DNS record Streamfleet keeps.
pub const HOST: &str = "streamfleet.io/host";

/// On nodes, by Kubernetes: their zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

pub fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

pub fn metadata(cluster: &ResolvedCluster, name: impl Into<String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some(cluster.namespace.clone()),
        labels: Some(labels(cluster)),
        annotations: Some(map([(ID, &cluster.id.to_string())])),
        ..ObjectMeta::default()
    }
}

/// The metadata of an object that Strimzi should consider part of the cluster.
pub fn strimzi_metadata(cluster: &ResolvedCluster, name: impl Into<String>) -> ObjectMeta {
    let mut metadata = metadata(cluster, name);
    let identifier = cluster.spec.identifier.as_str().to_owned();
    metadata.labels.get_or_insert_default().insert("strimzi.io/cluster".to_owned(), identifier);
    metadata
}

pub fn annotate(mut metadata: ObjectMeta, annotations: BTreeMap<String, String>) -> ObjectMeta {
    metadata.annotations.get_or_insert_default().extend(annotations);
    metadata
}

/// The annotation for objects whose deletion would destroy the cluster.
pub fn protection(cluster: &ResolvedCluster) -> BTreeMap<String, String> {
    map([(DELETION_PROTECTION, if cluster.spec.deletion_protection { "true" } else { "false" })])
}

/// The labels of every object of a cluster. All values are immutable identifiers of at most 32 characters:
/// Strimzi copies the labels of its resources to pods, and a new value would restart them.
fn labels(cluster: &ResolvedCluster) -> BTreeMap<String, String> {
    let identifier = cluster.spec.identifier.as_str();
    map([
        ("app.kubernetes.io/instance", identifier),
        ("app.kubernetes.io/managed-by", "streamfleet"),
        ("app.kubernetes.io/part-of", "streamfleet"),
        (ORGANIZATION, cluster.spec.organization.as_str()),
        (CLUSTER, identifier),
        (FLEET, cluster.fleet.fleet.as_str()),
    ])
}
