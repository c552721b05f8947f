//! Preflight facts: what a fleet's Kubernetes cluster has beside our objects, from a handful of concurrent
//! calls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::api::{Api, KindRef, unexpected_response};
use super::untrusted::outline;
use super::watch::health_fields::pick;
use super::{KubeError, KubernetesTarget};
use crate::component::kind::STORAGE_CLASS;
use crate::component::{
    COMPONENTS, Extras, GATEWAY_CLASS, OPERATOR, OPERATOR_SELECTOR, PROMETHEUS, PrometheusSelectors,
    written_versions,
};
use crate::plan::preflight::{
    LoadBalancers, NodeCapacity, NodeConstraints, Operator, Permission, PodRequest, PreflightFacts, Requests,
    StorageClass, Version, missing, name_of, permissions,
};

const AT_ONCE: usize = 16;

/// The time limit for a fact. A plan needs none of them, so a hanging call must not delay it for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Selects pods that take capacity of a node: scheduled and not ended.
const SCHEDULED: &str =
    "fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

impl KubernetesTarget {
    /// Collects the facts. None without a usable kubeconfig, which the observation reports. Facts that can't
    /// be read are left out.
    pub(in crate::target) async fn preflight(&self, extras: Extras) -> Option<PreflightFacts> {
        let api = self.api().await.ok()?;
        let (
            version,
            denied,
            groups,
            kinds,
            classes,
            gateways,
            operators,
            nodes,
            pods,
            services,
            prometheuses,
            namespaces,
        ) = tokio::join!(
            known(api.call("read the server's version", Method::GET, "/version", None, &Value::Null)),
            known(denied(api, extras)),
            known(groups(api)),
            kinds(api, extras),
            known(api.list((&STORAGE_CLASS).into(), None, "", of_class)),
            known(gateway_classes(api)),
            known(operators(api)),
            known(api.list(KindRef::core("Node"), None, "", of_node)),
            known(api.list(KindRef::core("Pod"), None, SCHEDULED, |pod| PodRequest::of(&pod))),
            known(services(api, extras)),
            of_monitoring(extras, api.list((&PROMETHEUS).into(), None, "", of_prometheus)),
            of_monitoring(extras, api.list(KindRef::core("Namespace"), None, "", of_namespace)),
        );
        Some(PreflightFacts {
            version: version.as_ref().and_then(Version::of),
            denied,
            groups,
            kinds,
            storage_classes: classes.map(|it| it.iter().filter_map(named).map(class).collect()),
            gateway_classes: gateways,
            operators,
            room: nodes.as_deref().map(NodeCapacity::of),
            requests: pods.zip(nodes.as_deref()).map(|(pods, nodes)| Requests::of(&pods, nodes)),
            places: nodes.as_deref().map(NodeConstraints::all),
            load_balancers: services.map(|services| LoadBalancers::of(&services)),
            prometheuses: prometheuses
                .map(|found| found.iter().filter_map(PrometheusSelectors::of).collect()),
            namespaces: namespaces.map(|found| found.iter().filter_map(named).map(labels).collect()),
        })
    }
}

/// Waits for a fact. A failure isn't reported here, but by the step that needs the fact.
async fn known<T>(read: impl Future<Output = Result<T, KubeError>>) -> Option<T> {
    let read = timeout(PATIENCE, read).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", PATIENCE.as_secs());
        Err(KubeError::connection("check the Kubernetes cluster", reason))
    });
    read.inspect_err(|error| tracing::debug!(%error, "preflight continues without this check")).ok()
}

/// A fact that matters only where there are objects for a Prometheus.
async fn of_monitoring<T>(extras: Extras, read: impl Future<Output = Result<T, KubeError>>) -> Option<T> {
    if extras.monitoring { known(read).await } else { None }
}

/// Returns a response if it has the requested kind, and is not a proxy's response.
fn of_kind(attempted: &str, kind: &str, answer: Value) -> Result<Value, KubeError> {
    if answer["kind"] == kind { Ok(answer) } else { Err(unexpected_response(attempted)) }
}

/// The permissions that we lack. A cluster-admin is recognized with one call.
async fn denied(api: &Api, extras: Extras) -> Result<BTreeSet<Permission>, KubeError> {
    if is_allowed(api, &Permission { group: "*", resource: "*", verb: "*" }).await? {
        return Ok(BTreeSet::new());
    }
    let ask = |permission: Permission| async move {
        let allowed = is_allowed(api, &permission).await?;
        Ok::<_, KubeError>((!allowed).then_some(permission))
    };
    let asked: Vec<_> = permissions(extras).into_iter().map(ask).collect();
    let denied: Vec<_> = stream::iter(asked).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(missing(denied.into_iter().flatten().collect()))
}

pub(super) async fn is_allowed(api: &Api, permission: &Permission) -> Result<bool, KubeError> {
    let Permission { group, resource, verb } = *permission;
    // Without a namespace or name, the review is about all of them.
    let kind = "SelfSubjectAccessReview";
    let name = permission.name();
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": kind,
        "spec": {"resourceAttributes": {"group": group, "resource": resource, "verb": verb, "name": name}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let attempted = format!("ask whether the fleet's user may {verb} {resource}");
    let answer = api.call(&attempted, Method::POST, path, Some("application/json"), &review).await?;
    let answer = of_kind(&attempted, kind, answer)?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

async fn groups(api: &Api) -> Result<BTreeMap<String, Vec<String>>, KubeError> {
    let attempted = "list the API groups";
    let list = api.call(attempted, Method::GET, "/apis", None, &Value::Null).await?;
    let list = of_kind(attempted, "APIGroupList", list)?;
    let items = |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned();
    let groups = items(&list, "groups").unwrap_or_default();
    let versions = |group: &Value| {
        let versions = items(group, "versions").unwrap_or_default();
        let versions = versions.iter().filter_map(|it| it.get("version")?.as_str().map(str::to_owned));
        Some((group.get("name")?.as_str()?.to_owned(), versions.collect()))
    };
    Ok(groups.iter().filter_map(versions).collect())
}

/// The kinds of the API versions that matter. A version that can't be read is left out.
async fn kinds(api: &Api, extras: Extras) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for api_version in written_versions(extras) {
        let kinds = known(api.kinds(api_version)).await.map(Option::unwrap_or_default);
        found.extend(kinds.map(|kinds| (api_version.to_owned(), kinds.into_keys().collect())));
    }
    found
}

async fn gateway_classes(api: &Api) -> Result<BTreeSet<String>, KubeError> {
    let classes = api.list((&GATEWAY_CLASS).into(), None, "", outline).await?;
    Ok(classes.iter().filter_map(named).map(|(name, _)| name).collect())
}

/// The Services by which clusters are reached from outside.
async fn services(api: &Api, extras: Extras) -> Result<Vec<Value>, KubeError> {
    let mut found = Vec::new();
    let components = COMPONENTS.iter().filter(|component| extras.have(component));
    for selector in components.filter_map(|component| component.services) {
        found.extend(api.list(KindRef::core("Service"), None, selector, of_service).await?);
    }
    Ok(found)
}

/// The operators. Without one that has the label of the published manifests, all Deployments are searched.
async fn operators(api: &Api) -> Result<Vec<Operator>, KubeError> {
    for labels in [OPERATOR_SELECTOR, ""] {
        let of_operator = |it: Value| Operator::of(&it).is_some().then(|| pick(&it, OF_OPERATOR));
        let deployments = api.list((&OPERATOR).into(), None, labels, of_operator).await?;
        let found: Vec<Operator> = deployments.iter().filter_map(Operator::of).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The part of a node that is kept. The whole object, with its list of images, takes 50 KiB.
fn of_node(node: Value) -> Option<Value> {
    let paths: &[&[&str]] = &[
        &["metadata", "labels"],
        &["spec", "taints"],
        &["spec", "unschedulable"],
        &["status", "allocatable"],
    ];
    Some(pick(&node, paths))
}

fn of_class(class: Value) -> Option<Value> {
    let paths: &[&[&str]] = &[&["metadata", "name"], &["metadata", "annotations"], &["allowVolumeExpansion"]];
    Some(pick(&class, paths))
}

fn of_service(service: Value) -> Option<Value> {
    let paths: &[&[&str]] = &[
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["spec", "type"],
        &["status", "loadBalancer", "ingress"],
    ];
    Some(pick(&service, paths))
}

fn of_prometheus(object: Value) -> Option<Value> {
    let paths: &[&[&str]] = &[
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["spec", "podMonitorSelector"],
        &["spec", "podMonitorNamespaceSelector"],
        &["spec", "ruleSelector"],
        &["spec", "ruleNamespaceSelector"],
    ];
    Some(pick(&object, paths))
}

fn of_namespace(namespace: Value) -> Option<Value> {
    Some(pick(&namespace, &[&["metadata", "name"], &["metadata", "labels"]]))
}

fn labels((name, namespace): (String, &Value)) -> (String, BTreeMap<String, String>) {
    let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(label, value): (&String, &Value)| Some((label.clone(), value.as_str()?.to_owned()));
    (name, labels.into_iter().flatten().filter_map(text).collect())
}

const OF_OPERATOR: &[&[&str]] = &[
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["spec", "template", "spec", "containers", "*", "image"],
    &["spec", "template", "spec", "containers", "*", "env"],
    &["spec", "template", "metadata"],
];

fn named(object: &Value) -> Option<(String, &Value)> {
    Some((name_of(object)?, object))
}

fn class((name, object): (String, &Value)) -> (String, StorageClass) {
    (name, StorageClass::of(object))
}
