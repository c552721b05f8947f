//! Objects that an operator created for a cluster and that outlive it: disks, and ClusterRoleBindings.
//!
//! They are looked up when a cluster is about to be deleted, so that the plan says what happens to them, and
//! recorded as the cluster's before anything is deleted.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::KubeError;
use super::api::{Api, KindRef, uid};
use super::inventory::{AppliedObject, Inventory, ObjectEntry, namespace_key};
use super::session::{INTERVAL, PATIENCE};
use super::untrusted::{TOKEN_OF, outline};
use super::watch::health_fields::pick;
use crate::catalog::Records;
use crate::component::health::reading::at;
use crate::component::{self, Leftovers};
use crate::names::{Digest, ObjectKey, ResourceKey};
use crate::plan::{ObservedFleet, ObservedObject};
use crate::render::FleetManifests;

const CLAIM: &str = "PersistentVolumeClaim";

/// Kinds of Kubernetes that others may have put into a cluster's namespace, limited to those that our role may
/// list.
const OTHERS: [KindRef; 5] = [
    KindRef::core("ConfigMap"),
    KindRef::core("Secret"),
    KindRef::core("Service"),
    KindRef::core("Pod"),
    KindRef { api_version: "apps/v1", kind: "Deployment" },
];

/// ConfigMaps that controllers create in every namespace.
const EVERYWHERE: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];

/// Adds the operator's objects of the clusters in `going` to an observation. Claims of others in
/// their namespaces are added as foreign.
pub(super) async fn add(
    api: &Api,
    inventory: &Inventory,
    going: BTreeMap<&str, &ResourceKey>,
    fleet: &mut ObservedFleet,
) -> Result<(), KubeError> {
    for (namespace, owner) in going {
        let is_ours = |key: &ObjectKey| fleet.objects.get(key).is_some_and(|there| there.ours);
        // A foreign cluster in the place of ours has disks of its own.
        let is_replaced = |(key, entry): (&ObjectKey, &ObjectEntry)| {
            entry.owner == *owner
                && uses_disks(key)
                && fleet.objects.get(key).is_some_and(|there| !there.ours)
        };
        if !is_ours(&namespace_key(namespace)) || inventory.objects.iter().any(is_replaced) {
            continue;
        }
        let mut found = read(api, namespace, owner).await?;
        found.extend(others(api, inventory, namespace, owner).await?);
        for (key, live) in found {
            let Some(uid) = uid(&live) else { continue };
            let known = ObjectEntry { written: Some(written(uid)), ..entry(owner) }.recorded();
            fleet.inventory.extend(known.map(|known| (key.clone(), known)));
            let there = ObservedObject {
                uid: uid.to_owned(),
                ours: is_operators(&key) && is_of(&live, owner),
                unchanged: true,
                manifest: None,
                changed_by: None,
                contested: Vec::new(),
                obstacle: None,
            };
            fleet.objects.insert(key, there);
        }
    }
    Ok(())
}

/// Finds disks of earlier clusters that new clusters of the same name would adopt, as far as claims may be
/// listed. If the status of existing nodes has the cluster id, the disks are not an earlier cluster's: the new
/// one gets the same id.
pub(super) async fn adoptable_disks(
    api: &Api,
    desired: Option<&FleetManifests>,
    fleet: &ObservedFleet,
) -> Result<BTreeMap<ResourceKey, BTreeSet<String>>, KubeError> {
    let mut kept = BTreeMap::new();
    let clusters = desired.into_iter().flatten().filter_map(|(key, object)| {
        let leftovers = component::leftovers().find(|leftovers| leftovers.cluster.kind == key.kind)?;
        Some((key, &object.owner, leftovers))
    });
    for (key, owner, leftovers) in clusters.filter(|(key, ..)| !fleet.objects.contains_key(*key)) {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        if !fleet.objects.contains_key(&namespace_key(namespace)) {
            continue;
        }
        let claims = match api.list(KindRef::core(CLAIM), Some(namespace), "", outline).await {
            Err(error) if error.is_code(403) => continue,
            claims => claims?,
        };
        let its = claims.iter().filter(|claim| is_of(claim, owner));
        let names = its.filter_map(|claim| claim.pointer("/metadata/name")?.as_str());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        if !names.is_empty() && !has_its_id(api, namespace, owner, leftovers).await? {
            kept.insert(owner.clone(), names);
        }
    }
    Ok(kept)
}

async fn has_its_id(
    api: &Api,
    namespace: &str,
    owner: &ResourceKey,
    leftovers: &Leftovers,
) -> Result<bool, KubeError> {
    let keep = |nodes: Value| is_of(&nodes, owner).then(|| pick(&nodes, &[leftovers.disks_id]));
    let nodes = match api.list(leftovers.nodes.into(), Some(namespace), "", keep).await {
        Err(error) if error.is_code(403) || error.is_code(404) => return Ok(false),
        nodes => nodes?,
    };
    let has_id = |nodes: &Value| at(nodes, leftovers.disks_id).is_some_and(Value::is_string);
    Ok(nodes.iter().any(has_id))
}

/// Recorded clusters that still exist and are no longer desired, by namespace. Unrecorded ones don't count:
/// the namespace of a deleted cluster may have been kept on purpose.
pub(super) fn deleted_clusters<'i>(
    inventory: &'i Inventory,
    desired: Option<&FleetManifests>,
    there: &Records,
) -> BTreeMap<&'i str, &'i ResourceKey> {
    let wanted: BTreeSet<&ResourceKey> =
        desired.into_iter().flat_map(BTreeMap::values).map(|manifest| &manifest.owner).collect();
    let is_going = |owner: &ResourceKey| there.contains_key(owner) && !wanted.contains(owner);
    let left = inventory.objects.iter().filter(|(_, entry)| is_going(&entry.owner));
    let namespaces = left.filter_map(|(key, entry)| match key.kind.as_str() {
        "Namespace" => Some((key.name.as_str(), &entry.owner)),
        _ if uses_disks(key) => Some((key.namespace.as_deref()?, &entry.owner)),
        _ => None,
    });
    namespaces.collect()
}

fn uses_disks(key: &ObjectKey) -> bool {
    component::leftovers().any(|leftovers| leftovers.uses_disks(key))
}

/// Whether an operator creates the objects of this key.
pub(super) fn is_operators(key: &ObjectKey) -> bool {
    key.kind == CLAIM || component::leftovers().any(|leftovers| (leftovers.is_binding)(key))
}

/// Foreign objects in a cluster's namespace, which deleting the namespace would delete. Objects that have an
/// owner, the cluster's label or a place in every namespace don't count. Kinds that may not be read are left
/// out.
async fn others(
    api: &Api,
    inventory: &Inventory,
    namespace: &str,
    owner: &ResourceKey,
) -> Result<Vec<(ObjectKey, Value)>, KubeError> {
    let of_components = component::kinds().filter(|kind| kind.custom && kind.is_written()).map(KindRef::from);
    let lists = OTHERS
        .into_iter()
        .chain(of_components)
        .map(|kind| async move { (kind, api.list(kind, Some(namespace), "", outline).await) });
    let mut found = Vec::new();
    for (KindRef { api_version, kind }, listed) in join_all(lists).await {
        let listed = match listed {
            Err(error) if error.is_code(403) => continue,
            listed => listed?,
        };
        for live in listed {
            let Some(name) = live.pointer("/metadata/name").and_then(Value::as_str) else { continue };
            let key = ObjectKey {
                namespace: Some(namespace.to_owned()),
                kind: kind.to_owned(),
                name: name.to_owned(),
                api_version: api_version.to_owned(),
            };
            let belongs =
                live.pointer("/metadata/ownerReferences").is_some_and(|owners| owners[0].is_object());
            let is_known = inventory.find(&key).is_some() || is_of(&live, owner);
            if !belongs && !is_known && !EVERYWHERE.contains(&name) && !is_token(&live) {
                found.push((key, live));
            }
        }
    }
    Ok(found)
}

/// Whether a Secret is the token of a service account, which is deleted with it. Only metadata of Secrets is
/// listed.
fn is_token(live: &Value) -> bool {
    live.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(TOKEN_OF).is_some())
}

/// All claims of a namespace, and the bindings of its cluster. Where they may not be read there are none to
/// delete, and the namespace isn't deleted either.
async fn read(api: &Api, namespace: &str, owner: &ResourceKey) -> Result<Vec<(ObjectKey, Value)>, KubeError> {
    let claims = match api.list(KindRef::core(CLAIM), Some(namespace), "", outline).await {
        Err(error) if error.is_code(403) => Vec::new(),
        claims => claims?,
    };
    let name = |live: &Value| Some(live.pointer("/metadata/name")?.as_str()?.to_owned());
    let mut found: Vec<(ObjectKey, Value)> =
        claims.into_iter().filter_map(|live| Some((claim_key(namespace, name(&live)?), live))).collect();
    for binding in component::leftovers().map(|leftovers| (leftovers.binding)(namespace, &owner.name)) {
        match api.get(&binding).await {
            Err(error) if !error.is_code(403) => return Err(error),
            // A foreign binding that only has the same name doesn't concern the plan.
            Ok(Some(live)) if is_of(&live, owner) => found.push((binding, live)),
            _ => {}
        }
    }
    Ok(found)
}

/// Whether the operator created an object for a cluster. This is only asked about claims in a cluster's own
/// namespace, and about the binding that is named after namespace and cluster.
fn is_of(live: &Value, owner: &ResourceKey) -> bool {
    let cluster = |label| at(live, &["metadata", "labels", label])?.as_str();
    component::leftovers().any(|leftovers| cluster(leftovers.label) == Some(&owner.name))
}

/// An inventory entry for an object that will be deleted and isn't in the inventory. None unless the operator
/// created it for a cluster that is.
pub(super) async fn entry_of(
    api: &Api,
    inventory: &Inventory,
    key: &ObjectKey,
) -> Result<Option<ObjectEntry>, KubeError> {
    let namespaces = inventory.objects.iter().filter(|(known, _)| known.kind == "Namespace");
    let mut owners = namespaces.map(|(namespace, entry)| (namespace.name.as_str(), &entry.owner));
    let owner = owners.find(|(namespace, owner)| match key.kind.as_str() {
        CLAIM => key.namespace.as_deref() == Some(namespace),
        _ => component::leftovers().any(|leftovers| *key == (leftovers.binding)(namespace, &owner.name)),
    });
    let Some((_, owner)) = owner else { return Ok(None) };
    let live = api.get(key).await?.filter(|live| is_of(live, owner));
    Ok(live.as_ref().and_then(uid).map(|uid| ObjectEntry { written: Some(written(uid)), ..entry(owner) }))
}

fn entry(owner: &ResourceKey) -> ObjectEntry {
    ObjectEntry { owner: owner.clone(), written: None, intended: None, adopts: None, deleting: true }
}

/// The object was never applied, so it has no digest.
fn written(uid: &str) -> AppliedObject {
    AppliedObject {
        uid: uid.to_owned(),
        applied: Digest::of("created by the operator"),
        fields: None,
        left: None,
    }
}

pub(super) struct OperatorCluster {
    namespace: String,
    name: String,
}

/// The cluster that the operator created an object for. None for an object of ours.
pub(super) fn cluster_of(inventory: &Inventory, key: &ObjectKey) -> Option<OperatorCluster> {
    if !is_operators(key) {
        return None;
    }
    let owner = &inventory.objects.get(key)?.owner;
    let mut namespaces = inventory.objects.iter();
    let is_its =
        |(known, entry): &(&ObjectKey, &ObjectEntry)| known.kind == "Namespace" && entry.owner == *owner;
    let (namespace, _) = namespaces.find(is_its)?;
    Some(OperatorCluster { namespace: namespace.name.clone(), name: owner.name.to_string() })
}

/// Waits until no pod of a cluster runs. Before that, the operator may recreate what is deleted, and disks
/// are in use.
pub(super) async fn wait_until_quiet(
    api: &Api,
    key: &ObjectKey,
    cluster: &OperatorCluster,
) -> Result<(), KubeError> {
    for leftovers in component::leftovers() {
        wait_until_pods_are_gone(api, key, cluster, leftovers).await?;
    }
    Ok(())
}

async fn wait_until_pods_are_gone(
    api: &Api,
    key: &ObjectKey,
    cluster: &OperatorCluster,
    leftovers: &Leftovers,
) -> Result<(), KubeError> {
    let selector = format!("labelSelector={}%3D{}", leftovers.label.replace('/', "%2F"), cluster.name);
    let since = Instant::now();
    loop {
        let pods = api.list(KindRef::core("Pod"), Some(&cluster.namespace), &selector, outline).await?;
        let Some(pod) = pods.first() else { return Ok(()) };
        if since.elapsed() >= PATIENCE {
            let pod = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Err(KubeError::StillRuns { object: Box::new(key.clone()), pod });
        }
        sleep(INTERVAL).await;
    }
}

fn claim_key(namespace: &str, name: String) -> ObjectKey {
    ObjectKey {
        namespace: Some(namespace.to_owned()),
        kind: CLAIM.to_owned(),
        name,
        api_version: "v1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The token is recognized by an annotation, and only an outline of listed objects is kept.
    #[test]
    fn the_token_of_a_service_account_is_known_by_its_outline() {
        for (annotations, expected) in [
            (json!({"kubernetes.io/service-account.name": "default", "a": "b"}), true),
            (json!({"kubernetes.io/service-account.name": "\u{1b}[2J"}), false),
            (json!({"kubernetes.io/service-account.name": 1}), false),
            (json!({"a": "b"}), false),
            (json!(null), false),
        ] {
            let secret = json!({"metadata": {"name": "a", "annotations": annotations}, "data": {"a": "b"}});
            let kept = outline(secret).unwrap();
            assert_eq!(is_token(&kept), expected, "{annotations}");
            let metadata = kept["metadata"].as_object().unwrap();
            assert!(kept.get("data").is_none() && metadata.len() == 1 + usize::from(expected), "{kept}");
            assert!(kept.pointer("/metadata/annotations/a").is_none());
        }
    }

    #[test]
    fn the_role_that_is_printed_allows_to_find_and_delete_what_is_left() {
        // Kinds in the inventory are watched, too.
        let ends = ["get", "list", "watch", "delete"];
        for (kind, verbs) in [(CLAIM, &ends[..]), ("ClusterRoleBinding", &ends[..]), ("Pod", &["list"])] {
            let mut kinds = component::kinds().filter(|it| it.kind == kind);
            assert!(kinds.any(|it| verbs.iter().all(|verb| it.verbs.contains(verb))), "{kind}");
        }
    }
}
