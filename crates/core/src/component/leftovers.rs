//! Objects that the operator of a component creates for a cluster and leaves behind.

use super::health::source::FieldPath;
use super::kind::KubernetesKind;
use crate::names::ObjectKey;

pub struct Leftovers {
    /// The label with the cluster's name on everything that the operator creates for it.
    pub label: &'static str,
    /// The kind of the object that stands for the whole cluster.
    pub cluster: &'static KubernetesKind,
    /// The kind of the objects that stand for its nodes.
    pub nodes: &'static KubernetesKind,
    /// The field in which an object of its nodes has the id that is on the disks.
    pub disks_id: FieldPath,
    /// The key of the ClusterRoleBinding for a cluster of this namespace and name.
    pub binding: fn(&str, &str) -> ObjectKey,
    /// Whether this is such a ClusterRoleBinding, of any cluster.
    pub is_binding: fn(&ObjectKey) -> bool,
}

impl Leftovers {
    /// Whether an object of this key uses the disks of a cluster.
    pub fn uses_disks(&self, key: &ObjectKey) -> bool {
        [self.cluster.kind, self.nodes.kind].contains(&key.kind.as_str())
    }
}
