use k8s_openapi::api::core::v1::Namespace;

use crate::catalog::ResolvedCluster;
use crate::component::{ClusterPart, Manifest, Stage, labels, manifest};

/// The Namespace, with the pod security that is enforced in it.
///
/// `restricted` is enforced if the pods of all components fit it, and only warns otherwise.
pub fn namespace(cluster: &ResolvedCluster, parts: &[ClusterPart]) -> Manifest {
    let mut metadata =
        labels::annotate(labels::metadata(cluster, cluster.namespace.clone()), labels::protection(cluster));
    metadata.namespace = None;
    let is_restricted = parts.iter().all(|part| part.is_restricted);
    let enforced = if is_restricted { "restricted" } else { "baseline" };
    metadata.labels.get_or_insert_default().extend(labels::map([
        ("pod-security.kubernetes.io/enforce", enforced),
        ("pod-security.kubernetes.io/warn", "restricted"),
    ]));
    manifest::typed(cluster, Stage::Namespace, &Namespace { metadata, ..Namespace::default() })
}
