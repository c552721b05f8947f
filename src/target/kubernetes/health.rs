//! Collects what the health of clusters is judged by: all objects of a few kinds, with one call per kind for
//! the whole fleet.
//!
//! The caller decides where the objects come from: calls to the server, or the watches of the daemon.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::Value;

use super::watch::health_fields;
use super::{KubeError, KubernetesTarget};
use crate::catalog::Condition;
use crate::health::GatewayWithoutAddress;
use crate::health::view::OperatorState;
use crate::health::{AppliedCluster, ClusterObservation, FleetObservation};
use crate::names::{Json, ResourceKey};
use crate::plan::UNREACHED;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WatchedKind {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The plural name with the group, as in roles.
    pub resource: &'static str,
    /// The selector, as a part of the URL's query. Empty for all objects.
    pub selector: &'static str,
}

const fn kind(
    api_version: &'static str,
    kind: &'static str,
    resource: &'static str,
    selector: &'static str,
) -> WatchedKind {
    WatchedKind { api_version, kind, resource, selector }
}

/// Strimzi's label on everything that belongs to one of its clusters.
const OF_A_CLUSTER: &str = "labelSelector=strimzi.io%2Fcluster";

const STRIMZI: &str = "kafka.strimzi.io/v1";

/// Without these two, no health can be judged.
const KAFKA: WatchedKind = kind(STRIMZI, "Kafka", "kafkas.kafka.strimzi.io", "");
const NODE_POOL: WatchedKind =
    kind(STRIMZI, "KafkaNodePool", "kafkanodepools.kafka.strimzi.io", OF_A_CLUSTER);
/// One of these two is enough.
pub(super) const POD: WatchedKind = kind("v1", "Pod", "pods", OF_A_CLUSTER);
const POD_SET: WatchedKind =
    kind("core.strimzi.io/v1", "StrimziPodSet", "strimzipodsets.core.strimzi.io", OF_A_CLUSTER);
const USER: WatchedKind = kind(STRIMZI, "KafkaUser", "kafkausers.kafka.strimzi.io", OF_A_CLUSTER);
const CLAIM: WatchedKind = kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", OF_A_CLUSTER);
/// The operator with the label of Strimzi's own manifests and chart. If there is none, any Deployment may be
/// the operator.
const OPERATOR: WatchedKind =
    kind("apps/v1", "Deployment", "deployments.apps", "labelSelector=app%3Dstrimzi");
const ANY_OPERATOR: WatchedKind = kind("apps/v1", "Deployment", "deployments.apps", "");
const EVENT: WatchedKind = kind("v1", "Event", "events", "fieldSelector=type%3DWarning");
const CLASS: WatchedKind = kind("storage.k8s.io/v1", "StorageClass", "storageclasses.storage.k8s.io", "");
const GATEWAY: WatchedKind =
    kind("gateway.networking.k8s.io/v1", "Gateway", "gateways.gateway.networking.k8s.io", "");

const ALWAYS: [&WatchedKind; 6] = [&KAFKA, &NODE_POOL, &POD_SET, &POD, &CLAIM, &USER];

/// Further kinds that may remain of a cluster that is being deleted.
const LEFT: [WatchedKind; 4] = [
    kind("v1", "Service", "services", OF_A_CLUSTER),
    kind("apps/v1", "Deployment", "deployments.apps", OF_A_CLUSTER),
    kind("apps/v1", "ReplicaSet", "replicasets.apps", OF_A_CLUSTER),
    kind(STRIMZI, "KafkaTopic", "kafkatopics.kafka.strimzi.io", OF_A_CLUSTER),
];

/// Whether this is a kind of our objects by which health is judged.
pub(super) fn is_of_ours(api_version: &str, kind: &str) -> bool {
    [&KAFKA, &NODE_POOL, &USER].iter().any(|known| (known.api_version, known.kind) == (api_version, kind))
}

impl KubernetesTarget {
    /// Collects everything that the health of the fleet's clusters is judged by. The daemon has it from its
    /// watches, except for the remains of clusters that are being deleted.
    pub(in crate::target) async fn observe_health(
        &self,
        wanted: &BTreeMap<ResourceKey, AppliedCluster>,
    ) -> Result<FleetObservation, KubeError> {
        let api = self.api().await?;
        let view = self.view.as_deref();
        let list = |kind: &'static WatchedKind| async move {
            if let Some(view) = view.filter(|_| !LEFT.contains(kind))
                && let Some(told) = view.signs(kind).await?
            {
                return Ok(told);
            }
            let keep = |object: Value| kept(kind, &object);
            api.list((kind.api_version, kind.kind), None, kind.selector, keep).await
        };
        see(list, wanted).await
    }
}

type KindObjects = Result<Vec<Json>, KubeError>;

fn kept(kind: &WatchedKind, object: &Value) -> Option<Json> {
    let read = if LEFT.contains(kind) { health_fields::of_any } else { health_fields::of };
    read(kind.kind, object).map(Json::from)
}

/// How many operators of one Kubernetes cluster are read: one for each namespace of the largest fleet.
const MAX_OPERATORS: usize = 1_000;

/// An object's namespace, parsed without the rest of the object.
fn namespace(object: &Json) -> String {
    #[derive(Deserialize)]
    struct Placed {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: Option<String>,
    }
    object.read::<Placed>().ok().and_then(|it| it.metadata.namespace).unwrap_or_default()
}

pub(super) async fn see<R>(
    list: impl Fn(&'static WatchedKind) -> R,
    wanted: &BTreeMap<ResourceKey, AppliedCluster>,
) -> Result<FleetObservation, KubeError>
where
    R: Future<Output = KindObjects>,
{
    let mut look = HealthCollection::new(list, wanted);
    look.at([&OPERATOR]).await?;
    if look.objects(&OPERATOR).is_some_and(<[_]>::is_empty) {
        look.at([&ANY_OPERATOR]).await?;
    }
    if wanted.is_empty() {
        return Ok(look.seen());
    }
    look.at(ALWAYS).await?;
    if look.is_leaving() {
        look.at(&LEFT).await?;
    }
    if wanted.values().any(|wanted| wanted.gateway.is_some()) {
        look.at([&GATEWAY]).await?;
    }
    if look.is_amiss() {
        look.at([&EVENT, &CLASS]).await?;
    }
    Ok(look.seen())
}

struct HealthCollection<'a, F> {
    list: F,
    wanted: &'a BTreeMap<ResourceKey, AppliedCluster>,
    namespaces: BTreeSet<&'a str>,
    found: Vec<(&'static WatchedKind, KindObjects)>,
}

impl<'a, F, R> HealthCollection<'a, F>
where
    F: Fn(&'static WatchedKind) -> R,
    R: Future<Output = KindObjects>,
{
    fn new(list: F, wanted: &'a BTreeMap<ResourceKey, AppliedCluster>) -> Self {
        let namespaces = wanted.values().map(|wanted| wanted.namespace.as_str()).collect();
        Self { list, wanted, namespaces, found: Vec::new() }
    }

    /// Reads some kinds concurrently. A kind that the server refuses to list is only unknown; an
    /// authentication failure (401) fails the whole collection.
    async fn at(&mut self, kinds: impl IntoIterator<Item = &'static WatchedKind>) -> Result<(), KubeError> {
        let looks = kinds.into_iter().map(|kind| {
            let objects = (self.list)(kind);
            async move {
                match objects.await {
                    Err(error) if error.is_code(401) || !matches!(error, KubeError::Refused { .. }) => {
                        Err(error)
                    }
                    answer => Ok((kind, answer)),
                }
            }
        });
        for (kind, objects) in try_join_all(looks.collect::<Vec<_>>()).await? {
            let objects = objects.map(|objects| self.ours(kind, objects));
            self.found.push((kind, objects));
        }
        Ok(())
    }

    /// Drops the objects of other namespaces, except for kinds that matter anywhere.
    fn ours(&self, kind: &WatchedKind, mut objects: Vec<Json>) -> Vec<Json> {
        let anywhere = [&OPERATOR, &ANY_OPERATOR, &CLASS, &GATEWAY].contains(&kind);
        objects.retain(|object| anywhere || self.namespaces.contains(namespace(object).as_str()));
        objects
    }

    fn objects(&self, kind: &WatchedKind) -> Option<&[Json]> {
        self.found.iter().find(|(found, _)| *found == kind)?.1.as_deref().ok()
    }

    fn is_leaving(&self) -> bool {
        let kafkas = self.objects(&KAFKA).unwrap_or_default();
        self.wanted.values().any(|wanted| wanted.deleting)
            || kafkas.iter().any(|kafka| kafka.value().pointer("/metadata/deletionTimestamp").is_some())
    }

    /// Whether events and storage classes are needed to explain a problem: a pod that isn't ready, a claim
    /// that isn't bound.
    fn is_amiss(&self) -> bool {
        let pods = self.objects(&POD).unwrap_or_default();
        let claims = self.objects(&CLAIM).unwrap_or_default();
        pods.iter().any(|pod| !is_ready(&pod.value()))
            || claims.iter().any(|claim| text(&claim.value(), "/status/phase") != "Bound")
    }

    fn seen(&self) -> FleetObservation {
        let operators = [&OPERATOR, &ANY_OPERATOR].map(|kind| self.objects(kind));
        let may_look = operators.iter().any(Option::is_some);
        let operators = operators.into_iter().flatten().flatten().take(MAX_OPERATORS);
        let operators: Vec<Value> = operators.map(Json::value).collect();
        let operator = |namespace: &str| match may_look {
            true => OperatorState::of_namespace(&operators, namespace),
            false => OperatorState::Unknown,
        };
        let any = self.wanted.values().next().map_or("", |wanted| &wanted.namespace);
        FleetObservation {
            operator: operator(any),
            clusters: if self.is_enough() { self.clusters(operator) } else { BTreeMap::new() },
            unobservable: self.hidden(),
            gateway: self.gateway().as_ref().and_then(address),
            unserved: self.gateway().as_ref().and_then(unserved),
        }
    }

    fn hidden(&self) -> Vec<Condition> {
        let failed = self.found.iter().filter_map(|(kind, objects)| Some((kind, objects.as_ref().err()?)));
        failed.map(|(kind, error)| hidden(kind, error)).collect()
    }

    fn is_enough(&self) -> bool {
        let known = |kind| self.objects(kind).is_some();
        known(&KAFKA) && known(&NODE_POOL) && (known(&POD) || known(&POD_SET))
    }

    fn clusters(
        &self,
        operator: impl Fn(&str) -> OperatorState,
    ) -> BTreeMap<ResourceKey, ClusterObservation> {
        let mut places: BTreeMap<String, Vec<&Json>> = BTreeMap::new();
        for object in self.found.iter().filter_map(|(_, objects)| objects.as_ref().ok()).flatten() {
            places.entry(namespace(object)).or_default().push(object);
        }
        let cluster = |(key, wanted): (&ResourceKey, &AppliedCluster)| {
            let AppliedCluster { namespace, cluster, .. } = wanted;
            // Parsed one at a time: parsed objects take ten times as much memory.
            let objects = places.get(namespace).into_iter().flatten().map(|object| object.value());
            let seen = ClusterObservation::of(namespace, cluster, operator(namespace), objects);
            let seen = if self.objects(&POD).is_some() { seen.watching_pods() } else { seen };
            let seen = match self.objects(&CLASS) {
                Some(classes) => {
                    seen.knowing_storage_classes(classes.iter().map(|class| name(&class.value())))
                }
                None => seen,
            };
            (key.clone(), seen)
        };
        self.wanted.iter().map(cluster).collect()
    }

    fn gateway(&self) -> Option<Value> {
        let (namespace, name) = self.wanted.values().find_map(|wanted| wanted.gateway.as_ref())?;
        let is_it = |object: &Value| {
            text(object, "/metadata/namespace") == namespace && text(object, "/metadata/name") == name
        };
        self.objects(&GATEWAY)?.iter().map(Json::value).find(is_it)
    }
}

fn address(gateway: &Value) -> Option<String> {
    Some(text(gateway, "/status/addresses/0/value").to_owned()).filter(|address| !address.is_empty())
}

/// A Gateway without an address, with its controller's complaint.
fn unserved(gateway: &Value) -> Option<GatewayWithoutAddress> {
    let conditions = gateway.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    // Conditions that are still `Unknown` are no complaint.
    let complains = |it: &&Value| {
        ["Accepted", "Programmed"].contains(&text(it, "/type")) && text(it, "/status") == "False"
    };
    let says = conditions.filter(complains).map(|it| text(it, "/message").to_owned());
    address(gateway).is_none().then(|| GatewayWithoutAddress {
        gateway: format!("{}/{}", text(gateway, "/metadata/namespace"), name(gateway)),
        made: text(gateway, "/metadata/creationTimestamp").parse().ok(),
        controller_message: says.into_iter().find(|says| !says.is_empty()),
    })
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(object: &Value) -> String {
    text(object, "/metadata/name").to_owned()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The condition for a kind that can't be read, with a hint.
fn hidden(kind: &WatchedKind, error: &KubeError) -> Condition {
    let WatchedKind { kind, resource, .. } = kind;
    let partly = "how clusters are can't be told in full";
    match error.is_code(403) {
        true => Condition {
            kind: "PermissionMissing".to_owned(),
            degraded: true,
            message: format!(
                "{partly}: the user of the fleet's `kubeconfig` may not list {kind} objects; allow it `list` on \
                 `{resource}` by a ClusterRole"
            ),
        },
        false => Condition {
            kind: "NotSeen".to_owned(),
            degraded: false,
            message: match error.is_unreached() {
                true => format!("{partly}: {UNREACHED}"),
                false => format!("{partly}: {error}; {}", error.hint()),
            },
        },
    }
}

#[cfg(test)]
mod tests;
