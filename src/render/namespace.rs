//! The Namespace of a cluster.

use k8s_openapi::api::core::v1::Namespace;

use crate::catalog::ResolvedCluster;
use crate::render::{Manifest, Stage, labels, manifest};

/// The Namespace, with the pod security that holds in it.
///
/// `restricted` takes an operator that makes such pods, as the one that a fleet installs. One that is somebody else's makes
/// pods for `baseline` unless it was told otherwise, and enforcing more would leave every pod refused: `restricted` is only
/// warned of then. Not every version of Kubernetes counts images among the volumes that `restricted` allows, so that a plugin's
/// image takes `baseline`, too.
pub fn namespace(cluster: &ResolvedCluster) -> Manifest {
    let mut metadata =
        labels::annotate(labels::metadata(cluster, cluster.namespace.clone()), labels::protection(cluster));
    metadata.namespace = None;
    let is_restricted = cluster.fleet_spec.advanced_config.components.installs().is_some();
    let storage = cluster.tiered_storage.as_ref();
    let mounts_image = storage.is_some_and(|storage| storage.plugin.plugin_image.is_some());
    let enforced = if is_restricted && !mounts_image { "restricted" } else { "baseline" };
    metadata.labels.get_or_insert_default().extend(labels::map([
        ("pod-security.kubernetes.io/enforce", enforced),
        ("pod-security.kubernetes.io/warn", "restricted"),
    ]));
    manifest::typed(cluster, Stage::Namespace, &Namespace { metadata, ..Namespace::default() })
}
