//! The Strimzi operator of a fleet: the project's published manifests, changed so that it watches every
//! namespace from its own.

pub mod health;
pub mod kinds;
pub mod read;

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::catalog::ResolvedFleet;
use crate::component::Verdict::{self, InPlace, RollingRestart};
use crate::component::consequence::*;
use crate::component::{Component, Manifest, ObjectFacts, Size, Stage, fleet_manifest, images_of_template};
use crate::config::OperatorsConfig;

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.operator,
    in_fleet: |scope| operator(scope.fleet, &scope.config.operators),
    observe: |wanted, read, seen| seen.operator = read::Operators::of(read).of_any(wanted),
    objects: &[
        ObjectFacts { kind: "CustomResourceDefinition", stage: Stage::Namespace, ..ObjectFacts::NONE },
        ObjectFacts {
            kind: "Deployment",
            stage: Stage::Operator,
            size: Size::of_deployment,
            images: images_of_template,
            ..ObjectFacts::NONE
        },
    ],
    definitions: Some("kafka.strimzi.io"),
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    of_ours("/spec/**", CHANGES, RollingRestart, "{object} changes; a new version of the operator restarts the \
        brokers of every cluster"),
    of_ours("", DELETED, InPlace, "{object} is deleted; clusters keep running, and changes have no effect until \
        another operator is installed"),
];

/// A row of the operator's own Deployment.
const fn of_ours(path: &'static str, when: DirectionFilter, verdict: Verdict, words: &'static str) -> Row {
    let outcome = RowVerdict::Does(verdict, Cow::Borrowed(words));
    Row { kind: "Deployment", of: ObjectFilter::Namespace(NAMESPACE), path, when, outcome }
}

pub const NAMESPACE: &str = "strimzi-operator";

const WATCHED: &str = "STRIMZI_NAMESPACE";

/// The roles that the operator needs in each watched namespace, from Strimzi's documentation on watching all
/// namespaces. The role for leader election stays in the operator's own namespace.
const WATCHING_ROLES: [&str; 3] =
    ["strimzi-cluster-operator-namespaced", "strimzi-cluster-operator-watched", "strimzi-entity-operator"];

const CLUSTER_SCOPED: [&str; 2] = ["ClusterRole", "ClusterRoleBinding"];

/// The objects of the operator that a fleet asks for; empty if the fleet uses an existing operator. Unusable
/// versions were refused earlier.
fn operator(fleet: &ResolvedFleet, operators: &OperatorsConfig) -> Vec<Manifest> {
    let version = fleet.spec.advanced_config.components.installs();
    let Some(release) = version.and_then(|version| operators.strimzi(version).ok()) else {
        return Vec::new();
    };
    // Shared unchanged: definitions are large, and the same for all fleets.
    let definitions = release.definitions.iter().map(|it| fleet_manifest::shared(fleet, it.clone()));
    let objects = release.objects.iter().map(|it| fleet_manifest::object(fleet, adapted(it.clone())));
    std::iter::once(fleet_manifest::namespace(fleet, NAMESPACE, "restricted"))
        .chain(definitions)
        .chain(objects)
        .collect()
}

/// Moves the object to our namespace and makes it apply to all namespaces.
fn adapted(mut object: Value) -> Value {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if subject["kind"] == "ServiceAccount" {
            subject["namespace"] = NAMESPACE.into();
        }
    }
    match kind.as_str() {
        "RoleBinding" if is_for_watching(&object) => {
            // A ClusterRoleBinding of this name may exist already, so it is named after its role.
            object["kind"] = "ClusterRoleBinding".into();
            object["metadata"]["name"] = object["roleRef"]["name"].clone();
        }
        "Deployment" => set_variables(&mut object),
        _ => {}
    }
    match object["kind"].as_str().is_some_and(|kind| CLUSTER_SCOPED.contains(&kind)) {
        true => drop(object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("namespace"))),
        false => object["metadata"]["namespace"] = NAMESPACE.into(),
    }
    object
}

fn is_for_watching(binding: &Value) -> bool {
    let role = binding.pointer("/roleRef/name").and_then(Value::as_str).unwrap_or_default();
    WATCHING_ROLES.contains(&role)
}

/// Makes the operator watch all namespaces, create pods that `restricted` pod security accepts, and admit
/// only its own namespace in the network policies that it creates.
fn set_variables(deployment: &mut Value) {
    let labels = format!("kubernetes.io/metadata.name={NAMESPACE}");
    let ours = [
        (WATCHED, "*"),
        ("STRIMZI_POD_SECURITY_PROVIDER_CLASS", "restricted"),
        ("STRIMZI_OPERATOR_NAMESPACE_LABELS", labels.as_str()),
    ];
    let containers = deployment.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    let variables = containers.into_iter().flatten().filter_map(|it| it.get_mut("env")?.as_array_mut());
    for variables in variables.filter(|variables| variables.iter().any(|it| it["name"] == WATCHED)) {
        variables.retain(|variable| ours.iter().all(|(name, _)| variable["name"] != *name));
        variables.splice(0..0, ours.map(|(name, value)| json!({"name": name, "value": value})));
    }
}

#[cfg(test)]
mod tests;
