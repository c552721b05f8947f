//! The Kubernetes kinds that Streamfleet uses, and what for.

use super::health::source::{HealthSource, ReadWhen};

/// A kind of Kubernetes object, with all that the engines have to know of it.
#[derive(Debug, Clone, Copy)]
pub struct KubernetesKind {
    /// `kafka.strimzi.io/v1`, or `v1` for the core group.
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The plural name, as in URLs and roles.
    pub plural: &'static str,
    /// The verbs that every fleet needs, as in roles.
    pub verbs: &'static [&'static str],
    /// The verbs that a fleet needs beside them if Streamfleet installs the component.
    pub install_verbs: &'static [&'static str],
    /// Whether a Kubernetes cluster has it only once its definition is installed.
    pub custom: bool,
    /// Whether everything else goes on where its definition isn't installed.
    pub optional: bool,
    /// How health reads its objects, if it does.
    pub health: Option<HealthSource>,
}

pub const OWNS: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
pub const READS: &[&str] = &["get", "list", "watch"];
/// For objects that the operator creates and leaves behind. They are watched since they are in the inventory.
pub const ENDS: &[&str] = &["get", "list", "watch", "delete"];
pub const LISTS: &[&str] = &["list"];
/// Allows binding a role without having its rights.
pub const BIND: &str = "bind";

pub const RBAC: &str = "rbac.authorization.k8s.io/v1";

impl KubernetesKind {
    pub const fn new(
        api_version: &'static str,
        kind: &'static str,
        plural: &'static str,
        verbs: &'static [&'static str],
    ) -> Self {
        Self {
            api_version,
            kind,
            plural,
            verbs,
            install_verbs: &[],
            custom: false,
            optional: false,
            health: None,
        }
    }

    /// A kind of the core group.
    pub const fn core(kind: &'static str, plural: &'static str, verbs: &'static [&'static str]) -> Self {
        Self::new("v1", kind, plural, verbs)
    }

    pub const fn custom(self) -> Self {
        Self { custom: true, ..self }
    }

    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    pub const fn installed_with(self, install_verbs: &'static [&'static str]) -> Self {
        Self { install_verbs, ..self }
    }

    pub const fn judged_by(self, source: HealthSource) -> Self {
        Self { health: Some(source), ..self }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &'static str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// The plural name with the group, as `kubectl` takes it.
    pub fn resource(&self) -> String {
        match self.group() {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Whether its objects are written on every fleet.
    pub fn is_written(&self) -> bool {
        self.verbs.contains(&"create")
    }
}

/// The kinds of Kubernetes itself that belong to no component.
pub static OF_KUBERNETES: [&KubernetesKind; 11] = [
    &KubernetesKind::core("Namespace", "namespaces", OWNS),
    // ConfigMaps hold the inventory, too, which is replaced only if it is unchanged since it was read.
    &KubernetesKind::core(
        "ConfigMap",
        "configmaps",
        &["get", "list", "watch", "create", "update", "patch", "delete"],
    ),
    // Only in namespaces of ours; see `preflight::role`.
    &KubernetesKind::core("Secret", "secrets", OWNS),
    &KubernetesKind::new(RBAC, "RoleBinding", "rolebindings", &["create"]),
    &KubernetesKind::new(RBAC, "ClusterRole", "clusterroles", &[BIND]),
    &KubernetesKind::core("ResourceQuota", "resourcequotas", OWNS),
    &KubernetesKind::core("LimitRange", "limitranges", OWNS),
    &KubernetesKind::new("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", OWNS),
    &KubernetesKind::core("Node", "nodes", LISTS),
    &EVENT,
    &STORAGE_CLASS,
];

pub static EVENT: KubernetesKind = KubernetesKind::core("Event", "events", READS).judged_by(
    HealthSource::new(
        ReadWhen::Trouble,
        &[&[
            &["involvedObject", "kind"],
            &["involvedObject", "name"],
            &["type"],
            &["reason"],
            &["message"],
            &["lastTimestamp"],
            &["eventTime"],
            &["firstTimestamp"],
        ]],
    )
    .selecting("fieldSelector=type%3DWarning"),
);

pub static STORAGE_CLASS: KubernetesKind =
    KubernetesKind::new("storage.k8s.io/v1", "StorageClass", "storageclasses", &["list", "watch"])
        .judged_by(HealthSource::new(ReadWhen::Trouble, &[]).anywhere());
