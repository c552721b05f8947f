//! The objects that an administrator applies to give a fleet's user exactly the rights that Streamfleet needs
//! there.
//!
//! RBAC alone can't express this. Clusters come and go with their namespaces, so the user has to be able to
//! create namespaces and to grant itself the rights to Secrets in each. With that alone it could read the
//! Secrets of any namespace. Admission control alone can't express it either, since it doesn't see reads. So
//! RBAC grants rights to Secrets only through a RoleBinding in their namespace, and a
//! ValidatingAdmissionPolicy refuses that RoleBinding, and all other writes, outside of our namespaces.

use std::fmt::Display;

use serde_json::{Value, json};

use super::needs::{self, NAMESPACE_ROLE};
use crate::component::Extras;
use crate::component::kind::BIND;
use crate::component::{
    GATEWAY_NAMESPACE, MONITORING_NAMESPACE, OPERATOR_NAMESPACE, PROMETHEUS_ACCOUNT, PROMETHEUS_NAMESPACE,
};

/// The namespace of the inventory.
pub const SYSTEM_NAMESPACE: &str = "streamfleet-system";

/// The prefix of the namespaces of clusters.
pub const CLUSTER_NAMESPACES: &str = "kafka-";

const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// The ClusterRole of a fleet's own Prometheus.
const PROMETHEUS_ROLE: &str = "streamfleet-prometheus";

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// The ClusterRoles that Strimzi publishes for its operator and for what the operator runs.
const OPERATOR_ROLES: [&str; 7] = [
    "strimzi-cluster-operator-global",
    "strimzi-cluster-operator-leader-election",
    "strimzi-cluster-operator-namespaced",
    "strimzi-cluster-operator-watched",
    "strimzi-entity-operator",
    "strimzi-kafka-broker",
    "strimzi-kafka-client",
];

#[derive(Debug, Clone)]
pub struct RoleManifests {
    /// The name of the ClusterRole, its binding and the policy.
    pub name: String,
    pub namespace: String,
    pub account: String,
    pub extras: Extras,
    /// The namespace for the alerts and dashboards of a fleet with `prometheus: existing`, if it isn't streamfleet's
    /// own.
    pub monitoring: Option<String>,
    /// Whether the logs of pods may be read in the namespaces of clusters.
    pub logs: bool,
    /// Whether pods may be reached through the API server in the namespaces of clusters, for their metrics.
    pub metrics: bool,
}

impl RoleManifests {
    pub fn objects(&self) -> Vec<Value> {
        let (mut everywhere, mut within) = needs::cluster_and_namespace(self.extras);
        if self.logs {
            within.push(json!({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}));
        }
        if self.metrics {
            within.push(json!({"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}));
        }
        if self.extras.operator {
            // The operator gets rights that we don't have, so we need these verbs for its roles and bindings.
            everywhere.push(json!({
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["clusterroles"],
                "resourceNames": OPERATOR_ROLES,
                "verbs": [BIND, "escalate"],
            }));
        }
        let role = |name: &str, rules: Vec<Value>| json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
        let binding = json!({
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "namespace": self.namespace, "name": self.account}],
        });
        let policy_binding = json!({
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.name},
            "spec": {"policyName": self.name, "validationActions": ["Deny"]},
        });
        // The policy comes first, so that the rights are never active without it.
        let mut objects = vec![self.policy(), policy_binding];
        objects.extend([role(NAMESPACE_ROLE, within), role(&self.name, everywhere), binding]);
        if self.extras.prometheus {
            // It finds pods and their nodes, and asks the kubelet of each node for its disks.
            let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
            let reads =
                vec![rule(&["nodes", "pods"], &["get", "list", "watch"]), rule(&["nodes/metrics"], &["get"])];
            objects.extend([
                role(PROMETHEUS_ROLE, reads),
                json!({
                    "apiVersion": RBAC,
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": PROMETHEUS_ROLE},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PROMETHEUS_ROLE},
                    "subjects": [{
                        "kind": "ServiceAccount",
                        "namespace": PROMETHEUS_NAMESPACE,
                        "name": PROMETHEUS_ACCOUNT,
                    }],
                }),
            ]);
        }
        objects
    }

    fn policy(&self) -> Value {
        let user = format!("system:serviceaccount:{}:{}", self.namespace, self.account);
        let rule = |expression: String, message: &str| {
            json!({
                "expression": expression,
                "message": format!("{message} (streamfleet role)"),
                "reason": "Forbidden",
            })
        };
        let variables = [
            ("kind", "request.resource.group + '/' + request.resource.resource".to_owned()),
            ("ns", "has(request.namespace) ? request.namespace : ''".to_owned()),
            // The existing object, or the one to create.
            ("it", "request.operation == 'CREATE' ? object : oldObject".to_owned()),
            ("name", "has(variables.it.metadata.name) ? variables.it.metadata.name : ''".to_owned()),
            ("writes", "request.operation == 'CREATE' || request.operation == 'UPDATE'".to_owned()),
        ];
        let variables: Vec<Value> =
            variables.map(|(name, expression)| json!({"name": name, "expression": expression})).into();
        let validations = [
            rule(self.namespaces(), "streamfleet may only write namespaces of its own"),
            rule(
                pod_security(),
                "a namespace of streamfleet enforces the pod security `baseline` or `restricted`",
            ),
            rule(
                self.namespaced(),
                "streamfleet may only write in namespaces of its own, and only kinds of objects that it creates",
            ),
            rule(
                self.bindings(),
                "streamfleet may only bind itself to the ClusterRole streamfleet-namespace",
            ),
            rule(self.cluster_scoped(), "streamfleet may not write this cluster-scoped object"),
        ];
        json!({
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["*"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["*/*"],
                }]},
                "matchConditions": [
                    {"name": "user", "expression": format!("request.userInfo.username == '{user}'")},
                    // Queries about one's own rights and identity change nothing.
                    {
                        "name": "no-question",
                        "expression": "!(request.resource.group in ['authentication.k8s.io', 'authorization.k8s.io'])",
                    },
                ],
                "variables": variables,
                "validations": validations,
            },
        })
    }

    /// Permits namespaces by name. Those of clusters must have our label, too, since others may be called
    /// `kafka-…`. The label is read from the old object, so that labelling a namespace doesn't make it ours.
    fn namespaces(&self) -> String {
        let cluster =
            format!("variables.name.startsWith('{CLUSTER_NAMESPACES}') && {}", labelled("variables.it"));
        let mut ours = vec![
            format!("({cluster})"),
            format!("(variables.name == '{SYSTEM_NAMESPACE}' && request.operation == 'CREATE')"),
        ];
        // One that begins like those of clusters may be somebody else's, too.
        let is_made =
            |name: &&str| self.monitoring.as_deref() != Some(name) && !name.starts_with(CLUSTER_NAMESPACES);
        let made = self.shared().map(|(name, _)| name).filter(is_made);
        ours.extend(made.map(|name| format!("variables.name == '{name}'")));
        format!("variables.kind != '/namespaces' || {}", ours.join(" || "))
    }

    fn namespaced(&self) -> String {
        // Only the operator's pods run there, and workloads beside them.
        let mut others = vec!["/serviceaccounts", "apps/statefulsets"];
        if !self.extras.workloads {
            others.insert(0, "apps/deployments");
        }
        let mut ours = vec![
            format!(
                "(variables.ns.startsWith('{CLUSTER_NAMESPACES}') && namespaceObject != null && {} && \
                 !(variables.kind in {}))",
                labelled("namespaceObject"),
                quoted(&others)
            ),
            within(SYSTEM_NAMESPACE, &["/configmaps"]),
        ];
        let is_claimed =
            |name: &str| name.starts_with(CLUSTER_NAMESPACES) && self.monitoring.as_deref() != Some(name);
        ours.extend(self.shared().map(|(name, kinds)| match is_claimed(name) {
            true => format!(
                "(namespaceObject != null && {} && {})",
                labelled("namespaceObject"),
                within(name, kinds)
            ),
            false => within(name, kinds),
        }));
        format!("variables.ns == '' || variables.kind == '/namespaces' || {}", ours.join(" || "))
    }

    /// Permits RoleBindings: ours in the namespaces of clusters, the operator's in its own.
    fn bindings(&self) -> String {
        let mut allowed = vec![format!(
            "(request.operation == 'CREATE' && variables.ns.startsWith('{CLUSTER_NAMESPACES}') && object.roleRef.kind \
                == 'ClusterRole' && object.roleRef.name == '{NAMESPACE_ROLE}' && has(object.subjects) && \
                object.subjects.all(it, it.kind == 'User' && it.name == request.userInfo.username))"
        )];
        if self.extras.operator {
            allowed.push(format!(
                "(variables.ns == '{OPERATOR_NAMESPACE}' && (!variables.writes || ({})))",
                operators_binding()
            ));
        }
        format!("variables.kind != 'rbac.authorization.k8s.io/rolebindings' || {}", allowed.join(" || "))
    }

    /// Permits what the operator leaves behind after a cluster, and the objects of an operator of ours.
    fn cluster_scoped(&self) -> String {
        let mut allowed = vec![format!(
            "(variables.kind == 'rbac.authorization.k8s.io/clusterrolebindings' && request.operation == 'DELETE' && \
             variables.name.startsWith('strimzi-{CLUSTER_NAMESPACES}') && variables.name.endsWith('-kafka-init'))"
        )];
        if self.extras.operator {
            let names = quoted(&OPERATOR_ROLES);
            allowed.push(
                "(variables.kind == 'apiextensions.k8s.io/customresourcedefinitions' && variables.writes && \
                 variables.name.endsWith('.strimzi.io'))"
                    .to_owned(),
            );
            // The operator's rights aren't limited further: a user that can deploy it has them anyway.
            allowed.push(format!(
                "(variables.kind == 'rbac.authorization.k8s.io/clusterroles' && variables.name in {names} && \
                 (!variables.writes || (!has(object.aggregationRule) && (!has(object.rules) || \
                 object.rules.all(rule, !has(rule.nonResourceURLs) && \
                 rule.verbs.all(verb, !(verb in ['*', 'bind', 'escalate', 'impersonate'])) && \
                 rule.apiGroups.all(group, group != '*') && rule.resources.all(resource, !resource.contains('*')))))))"
            ));
            allowed.push(format!(
                "(variables.kind == 'rbac.authorization.k8s.io/clusterrolebindings' && \
                 (variables.name in {names} || variables.name.startsWith('strimzi-cluster-operator')) && \
                 (!variables.writes || ({})))",
                operators_binding()
            ));
        }
        format!("variables.ns != '' || variables.kind == '/namespaces' || {}", allowed.join(" || "))
    }

    /// Returns the namespaces of a fleet's shared components, with the kinds that are created there.
    fn shared(&self) -> impl Iterator<Item = (&str, &'static [&'static str])> {
        const OPERATOR: &[&str] = &[
            "/configmaps",
            "/serviceaccounts",
            "apps/deployments",
            "rbac.authorization.k8s.io/rolebindings",
        ];
        const GATEWAY: &[&str] = &["gateway.networking.k8s.io/gateways"];
        // Whatever else is there is allowed in the namespaces of clusters, too.
        const PROMETHEUS: &[&str] = &["/serviceaccounts", "apps/statefulsets"];
        const MONITORING: &[&str] = &["/configmaps", "monitoring.coreos.com/prometheusrules"];
        let operator = self.extras.operator.then_some((OPERATOR_NAMESPACE, OPERATOR));
        let gateway = self.extras.gateway.then_some((GATEWAY_NAMESPACE, GATEWAY));
        let monitoring = self.monitoring.as_deref().unwrap_or(MONITORING_NAMESPACE);
        let monitoring = self.extras.monitoring.then_some((monitoring, MONITORING));
        let prometheus = self.extras.prometheus.then_some((PROMETHEUS_NAMESPACE, PROMETHEUS));
        operator.into_iter().chain(gateway).chain(monitoring).chain(prometheus)
    }
}

/// Unrestricted pods could take over the nodes, and with them everything. Levels set before stay allowed.
fn pod_security() -> String {
    const LABEL: &str = "pod-security.kubernetes.io/enforce";
    let level = |of: &str| format!("{of}.metadata.?labels[?'{LABEL}'].orValue('')");
    format!(
        "variables.kind != '/namespaces' || !variables.writes || variables.name == '{SYSTEM_NAMESPACE}' || \
         {new} in ['baseline', 'restricted'] || (request.operation == 'UPDATE' && {new} == {old})",
        new = level("object"),
        old = level("oldObject"),
    )
}

/// Returns the condition that a binding gives one of the operator's roles to the operator.
fn operators_binding() -> String {
    format!(
        "object.roleRef.kind == 'ClusterRole' && object.roleRef.name in {} && has(object.subjects) && \
         object.subjects.all(it, it.kind == 'ServiceAccount' && it.namespace == '{OPERATOR_NAMESPACE}')",
        quoted(&OPERATOR_ROLES)
    )
}

fn within(namespace: &str, kinds: &[&str]) -> String {
    format!("(variables.ns == '{namespace}' && variables.kind in {})", quoted(kinds))
}

fn labelled(object: &str) -> String {
    format!("{object}.metadata.?labels[?'app.kubernetes.io/managed-by'].orValue('') == 'streamfleet'")
}

fn quoted(names: &[impl Display]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    format!("[{}]", names.join(", "))
}
