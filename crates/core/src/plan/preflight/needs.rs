//! The permissions that Streamfleet needs on a fleet's Kubernetes cluster. The printed role and the queries
//! to the server both use the table of kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use crate::component::kind::{BIND, OF_KUBERNETES};
use crate::component::{self, COMPONENTS, Extras, KubernetesKind};
use crate::names::ObjectKey;
use crate::plan::{Step, Verb};

/// The ClusterRole with the rights in a namespace of ours. Streamfleet binds it by this name.
pub const NAMESPACE_ROLE: &str = "streamfleet-namespace";

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

pub fn permissions(extras: Extras) -> BTreeSet<Permission> {
    let of_kubernetes = OF_KUBERNETES.iter().flat_map(|kind| of_verbs(kind, kind.verbs));
    let of_components = COMPONENTS.iter().flat_map(|component| {
        let installs = (component.is_installed)(extras);
        component.kinds.iter().flat_map(move |kind| {
            let install_verbs = if installs { kind.install_verbs } else { &[] };
            of_verbs(kind, kind.verbs).chain(of_verbs(kind, install_verbs))
        })
    });
    of_kubernetes.chain(of_components).collect()
}

fn of_verbs(
    kind: &KubernetesKind,
    verbs: &'static [&'static str],
) -> impl Iterator<Item = Permission> + use<> {
    let (group, resource) = (kind.group(), kind.plural);
    verbs.iter().map(move |&verb| Permission { group, resource, verb })
}

pub(super) fn of_step(step: &Step) -> BTreeSet<Permission> {
    let ObjectKey { kind, .. } = &step.object;
    // Objects are created by the same apply call that changes them, which needs both verbs.
    let verbs: &[&str] = match step.verb {
        Verb::Create => &["get", "create", "patch"],
        Verb::Update | Verb::Adopt => &["get", "patch"],
        Verb::Recreate => &["get", "delete", "create", "patch"],
        Verb::Delete => &["get", "delete"],
        Verb::Keep => &[],
    };
    let is_it = |it: &&KubernetesKind| it.kind == kind && it.group() == step.object.group();
    let each = component::kinds()
        .filter(is_it)
        .flat_map(|kind| of_verbs(kind, kind.verbs).chain(of_verbs(kind, kind.install_verbs)));
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
