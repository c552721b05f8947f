//! The permissions that Streamfleet needs on a fleet's Kubernetes cluster. The printed role and the queries
//! to the server both use this table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::role::NAMESPACE_ROLE;
use crate::names::ObjectKey;
use crate::plan::{Step, Verb};
use crate::spec::{Exposure, Fleet};

pub struct Need {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural name of the kind, as in URLs and roles.
    pub resource: &'static str,
    pub kind: &'static str,
    /// The verbs, as in roles.
    pub verbs: &'static [&'static str],
    /// The component that needs it, if not every fleet does.
    pub extra: Option<Extra>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    Operator,
    Gateway,
}

/// The components of a fleet beside Kafka clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    pub operator: bool,
    pub gateway: bool,
}

impl Extras {
    pub fn of(fleet: &Fleet) -> Extras {
        let config = &fleet.advanced_config;
        Extras {
            operator: config.components.installs().is_some(),
            gateway: config.exposure == Exposure::TlsRoute,
        }
    }

    fn include(self, need: &Need) -> bool {
        need.extra.is_none_or(|extra| match extra {
            Extra::Operator => self.operator,
            Extra::Gateway => self.gateway,
        })
    }
}

const OWNS: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
const READS: &[&str] = &["get", "list", "watch"];
/// For objects that the operator creates and leaves behind. They are watched since they are in the inventory.
const ENDS: &[&str] = &["get", "list", "watch", "delete"];
const LISTS: &[&str] = &["list"];

const STRIMZI: &str = "kafka.strimzi.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const GATEWAYS: &str = "gateway.networking.k8s.io";

#[rustfmt::skip]
pub const NEEDS: &[Need] = &[
    need("", "namespaces", "Namespace", OWNS),
    // ConfigMaps hold the inventory, too, which is replaced only if it is unchanged since it was read.
    need("", "configmaps", "ConfigMap", &["get", "list", "watch", "create", "update", "patch", "delete"]),
    // Only in namespaces of ours; see `role`.
    need("", "secrets", "Secret", OWNS),
    need(RBAC, "rolebindings", "RoleBinding", &["create"]),
    need(RBAC, "clusterroles", "ClusterRole", &[BIND]),
    need("", "resourcequotas", "ResourceQuota", OWNS),
    need("", "limitranges", "LimitRange", OWNS),
    need("networking.k8s.io", "networkpolicies", "NetworkPolicy", OWNS),
    need(STRIMZI, "kafkas", "Kafka", OWNS),
    need(STRIMZI, "kafkanodepools", "KafkaNodePool", OWNS),
    need(STRIMZI, "kafkausers", "KafkaUser", OWNS),
    need("core.strimzi.io", "strimzipodsets", "StrimziPodSet", READS),
    need("", "pods", "Pod", READS),
    // Disks of brokers removed earlier, and the binding through which brokers learn their zone, are deleted
    // with their cluster. A role can't match names that derive from clusters, so it allows deleting any
    // binding, and creating none.
    need("", "persistentvolumeclaims", "PersistentVolumeClaim", ENDS),
    need(RBAC, "clusterrolebindings", "ClusterRoleBinding", ENDS),
    need("", "events", "Event", READS),
    need("", "services", "Service", READS),
    need("", "nodes", "Node", LISTS),
    need("apps", "deployments", "Deployment", READS),
    need("apps", "replicasets", "ReplicaSet", LISTS),
    need(STRIMZI, "kafkatopics", "KafkaTopic", LISTS),
    need(GATEWAYS, "gateways", "Gateway", LISTS),
    need(GATEWAYS, "gatewayclasses", "GatewayClass", LISTS),
    gateway(GATEWAYS, "gateways", "Gateway", &["get", "watch", "create", "patch", "delete"]),
    need("storage.k8s.io", "storageclasses", "StorageClass", &["list", "watch"]),
    // Definitions are never deleted: that would delete every Kafka on the Kubernetes cluster.
    operator("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", &["get", "list", "watch", "create", "patch"]),
    operator(RBAC, "clusterroles", "ClusterRole", OWNS),
    operator(RBAC, "clusterrolebindings", "ClusterRoleBinding", &["create", "patch"]),
    operator(RBAC, "rolebindings", "RoleBinding", &["get", "list", "watch", "patch", "delete"]),
    operator("", "serviceaccounts", "ServiceAccount", OWNS),
    operator("apps", "deployments", "Deployment", &["create", "patch", "delete"]),
];

/// The verb that allows binding a role without having its rights.
pub(super) const BIND: &str = "bind";

const fn need(
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Need {
    Need { group, resource, kind, verbs, extra: None }
}

const fn operator(
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Need {
    Need { extra: Some(Extra::Operator), ..need(group, resource, kind, verbs) }
}

const fn gateway(
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Need {
    Need { extra: Some(Extra::Gateway), ..need(group, resource, kind, verbs) }
}

/// One verb on one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub group: &'static str,
    pub resource: &'static str,
    pub verb: &'static str,
}

/// `create networkpolicies`.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)
    }
}

impl Permission {
    /// Returns the only object that it is needed for; `None` if it is needed for all of the kind.
    pub fn name(&self) -> Option<&'static str> {
        (self.verb == BIND).then_some(NAMESPACE_ROLE)
    }

    /// Whether it lets us grant ourselves the rights to Secrets in a namespace of ours.
    fn grants_secrets(&self) -> bool {
        self.verb == BIND || (self.resource, self.verb) == ("rolebindings", "create")
    }

    fn is_of_secrets(&self) -> bool {
        self.group.is_empty() && self.resource == "secrets"
    }
}

/// Reduces denied permissions to those that are missing. Secrets need either the rights to all of them, or
/// those to grant ourselves access in our own namespaces. If both are denied, the lesser ones are reported.
pub fn missing(mut denied: BTreeSet<Permission>) -> BTreeSet<Permission> {
    match denied.iter().any(Permission::is_of_secrets) {
        true => denied.retain(|permission| !permission.is_of_secrets()),
        false => denied.retain(|permission| !permission.grants_secrets()),
    }
    denied
}

pub fn permissions(extras: Extras) -> Vec<Permission> {
    let needs = NEEDS.iter().filter(|need| extras.include(need));
    let each = needs.flat_map(|&Need { group, resource, verbs, .. }| {
        verbs.iter().map(move |&verb| Permission { group, resource, verb })
    });
    each.collect()
}

pub(super) fn of_step(step: &Step) -> BTreeSet<Permission> {
    let ObjectKey { kind, .. } = &step.object;
    // Objects are created by the same apply call that changes them, which needs both verbs.
    let verbs: &[&str] = match step.verb {
        Verb::Create => &["get", "create", "patch"],
        Verb::Update => &["get", "patch"],
        Verb::Recreate => &["get", "delete", "create", "patch"],
        Verb::Delete => &["get", "delete"],
        Verb::Keep => &[],
    };
    let needs = NEEDS.iter().filter(|need| need.kind == kind && need.group == step.object.group());
    let each = needs.flat_map(|&Need { group, resource, verbs, .. }| {
        verbs.iter().map(move |&verb| Permission { group, resource, verb })
    });
    let mut needed: BTreeSet<Permission> =
        each.filter(|permission| verbs.contains(&permission.verb)).collect();
    if needed.iter().any(Permission::is_of_secrets) {
        let all = permissions(Extras::default());
        needed.extend(all.into_iter().filter(Permission::grants_secrets));
    }
    needed
}

pub(super) fn rules<'a>(permissions: impl IntoIterator<Item = &'a Permission>) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), BTreeSet<&str>> = BTreeMap::new();
    for permission in permissions {
        let Permission { group, resource, verb } = permission;
        verbs.entry((group, resource, permission.name())).or_default().insert(verb);
    }
    let rule = |((group, resource, name), verbs): ((&str, &str, Option<&str>), BTreeSet<&str>)| {
        let mut rule = json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        if let Some(name) = name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    };
    verbs.into_iter().map(rule).collect()
}

pub(super) fn cluster_and_namespace(extras: Extras) -> (Vec<Value>, Vec<Value>) {
    let (within, everywhere): (Vec<_>, Vec<_>) =
        permissions(extras).into_iter().partition(Permission::is_of_secrets);
    (rules(&everywhere), rules(&within))
}
