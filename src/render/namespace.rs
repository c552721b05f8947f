//! The Namespace of a cluster.

use k8s_openapi::api::core::v1::Namespace;

use crate::catalog::ResolvedCluster;
use crate::render::{Manifest, Stage, labels, manifest};

/// The Namespace, with the pod security that holds in it.
///
/// `baseline` is enforced because it is what Strimzi's pods meet as its operator is installed by default. `restricted`
/// is only warned of: it needs `STRIMZI_POD_SECURITY_PROVIDER_CLASS=restricted` on an operator that may be somebody
/// else's, and enforcing it without would leave every pod refused.
pub fn namespace(cluster: &ResolvedCluster) -> Manifest {
    let mut metadata =
        labels::annotate(labels::metadata(cluster, cluster.namespace.clone()), labels::protection(cluster));
    metadata.namespace = None;
    metadata.labels.get_or_insert_default().extend(labels::map([
        ("pod-security.kubernetes.io/enforce", "baseline"),
        ("pod-security.kubernetes.io/warn", "restricted"),
    ]));
    manifest::typed(cluster, Stage::Namespace, &Namespace { metadata, ..Namespace::default() })
}
