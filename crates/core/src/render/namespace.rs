use k8s_openapi::api::core::v1::Namespace;

use crate::catalog::ResolvedCluster;
use crate::render::{Manifest, Stage, labels, manifest};

/// The Namespace, with the pod security that is enforced in it.
///
/// `restricted` needs an operator that creates such pods, like the one that Streamfleet installs on a fleet.
/// Any other operator creates pods for `baseline` unless it is configured otherwise, and all of them would be
/// refused under `restricted`, which only warns in that case. An image volume, as a plugin's image needs,
/// takes `baseline` too, because not every version of Kubernetes allows it under `restricted`.
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
