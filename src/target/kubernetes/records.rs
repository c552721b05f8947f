//! DNS records among the objects of a fleet. They are on the servers of the base domains; only their inventory is on the
//! Kubernetes cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::api::KindRef;
use super::inventory::{AppliedObject, ObjectEntry};
use super::observe::{ObjectComparison, intended};
use super::watch::health_fields::pick;
use super::{KubeError, KubernetesTarget};
use crate::catalog::{Condition, RecordedObject};
use crate::component::dns_records::{
    FAILING, FoundHosts, HostRecords, NODES, NameSource, NamedResource, OWNER, gateway_key, of_gateway,
    of_service,
};
use crate::names::{Json, ObjectKey, ResourceKey};
use crate::plan::{ObservedFleet, ObservedObject};
use crate::target::ObjectWrite;
use crate::target::dns::{self, RecordFault, SeenRecord, owner_text};

/// The most names that are asked for at a time.
const AT_ONCE: usize = 8;

impl KubernetesTarget {
    /// Adds what is known of DNS records to an observation. A server that doesn't answer makes its records
    /// undecided, and hinders nothing else.
    pub(super) async fn see_records(
        &self,
        keys: BTreeSet<&ObjectKey>,
        look: &ObjectComparison<'_>,
        fleet: &mut ObservedFleet,
    ) {
        let seen = keys.into_iter().map(async |key| (key, dns::see(&self.zones, &key.name).await));
        let seen: Vec<_> = stream::iter(seen.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
        let mut failing: BTreeMap<String, RecordFault> = BTreeMap::new();
        for (key, seen) in seen {
            let seen = seen.unwrap_or_else(|fault| {
                fleet.undecided.insert(key.clone());
                let zone = self.zones.of_host(&key.name).map(|kept| kept.zone.to_string());
                failing.entry(zone.unwrap_or_else(|| key.name.clone())).or_insert(fault);
                None
            });
            let (known, object) = self.record_at(key, seen, look);
            fleet.inventory.extend(known.map(|known| (key.clone(), known)));
            fleet.objects.extend(object.map(|object| (key.clone(), object)));
        }
        fleet.conditions.extend(failing.into_iter().map(|(zone, fault)| Condition {
            kind: FAILING.to_owned(),
            degraded: true,
            message: format!(
                "the DNS records of {zone} can't be read, and stay as they are: {fault}; {}",
                fault.hint()
            ),
        }));
    }

    fn record_at(
        &self,
        key: &ObjectKey,
        seen: Option<SeenRecord>,
        look: &ObjectComparison<'_>,
    ) -> (Option<RecordedObject>, Option<ObservedObject>) {
        let entry = look.inventory.objects.get(key);
        let desired = look.desired.and_then(|desired| desired.get(key));
        let owner = entry.map(|entry| &entry.owner).or(desired.map(|manifest| &manifest.owner));
        let ours = owner.map(|owner| owner_text(self.installation, owner));
        let known = entry.and_then(|entry| entry.recorded().or_else(|| intended(entry)));
        let with_manifest = |known: RecordedObject| {
            let manifest = look.applied(key, &known.applied);
            RecordedObject { manifest, ..known }
        };
        // One that somebody else has by now is of interest only if we want it.
        let is_ours = |seen: &SeenRecord| seen.owner.is_some() && seen.owner == ours;
        let seen = seen.filter(|seen| is_ours(seen) || desired.is_some());
        let Some((seen, kept)) = seen.zip(self.zones.of_host(&key.name)) else {
            return (known.map(with_manifest), None);
        };
        let is_ours = is_ours(&seen);
        let body = seen.records.body(&key.name, &kept.zone);
        // A run that was killed may have written what the inventory only intends.
        let is_wanted = desired.is_some_and(|manifest| manifest.digest() == body.digest());
        let known = known.map(|known| match is_ours && (known.uid.is_none() || is_wanted) {
            true => RecordedObject { uid: ours.clone(), applied: body.digest(), ..known },
            false => known,
        });
        let unchanged = is_ours && known.as_ref().is_some_and(|known| known.applied == body.digest());
        let manifest = match &seen.owner {
            Some(owner) if !is_ours => {
                let mut body = body.value();
                body[OWNER] = owner.as_str().into();
                Json::from(&body)
            }
            _ => body,
        };
        let object = ObservedObject {
            uid: ours.filter(|_| is_ours).unwrap_or_else(|| seen.identity()),
            ours: is_ours,
            unchanged,
            manifest: Some(manifest),
            changed_by: None,
            contested: Vec::new(),
            obstacle: None,
        };
        (known.map(with_manifest), Some(object))
    }

    pub(super) async fn write_record(&self, write: ObjectWrite) -> Result<AppliedObject, KubeError> {
        let ObjectWrite { key, owner, applied, filled, uid, adopts, .. } = write;
        let owner = owner_text(self.installation, &owner);
        let adopts = uid.as_deref().filter(|_| adopts);
        let leads = HostRecords::of_body(&filled);
        let written = dns::write(&self.zones, &key.name, &leads, (&owner, adopts)).await;
        written.map_err(|fault| failed("change", &key, fault))?;
        Ok(AppliedObject { uid: owner, applied, fields: None, left: None })
    }

    /// `entry` is that of the inventory; a record that was only intended may be there all the same.
    pub(super) async fn release_record(
        &self,
        key: &ObjectKey,
        entry: Option<ObjectEntry>,
    ) -> Result<(), KubeError> {
        let Some(ObjectEntry { owner, written, .. }) = entry else { return Ok(()) };
        let owner = written.map_or_else(|| owner_text(self.installation, &owner), |written| written.uid);
        let released = dns::release(&self.zones, &key.name, &owner).await;
        released.map_err(|fault| failed("delete", key, fault))
    }

    /// The record as it is, if it is ours.
    pub(super) async fn own_record(
        &self,
        key: &ObjectKey,
        owner: &ResourceKey,
    ) -> Result<Option<AppliedObject>, KubeError> {
        let owner = owner_text(self.installation, owner);
        let seen = dns::see_now(&self.zones, &key.name).await.map_err(|fault| failed("read", key, fault))?;
        let ours = seen.filter(|seen| seen.owner.as_ref() == Some(&owner));
        Ok(ours.zip(self.zones.of_host(&key.name)).map(|(seen, kept)| {
            let applied = seen.records.body(&key.name, &kept.zone).digest();
            AppliedObject { uid: owner, applied, fields: None, left: None }
        }))
    }

    /// Finds out where the host names of resources lead.
    ///
    /// # Errors
    /// If the Kubernetes cluster can't be read.
    pub(in crate::target) async fn hosts(
        &self,
        named: &[NamedResource<'_>],
    ) -> Result<BTreeMap<ResourceKey, FoundHosts>, KubeError> {
        let (by_service, by_gateway): (Vec<&NamedResource>, Vec<&NamedResource>) =
            named.iter().partition(|named| named.source == NameSource::Services);
        let mut found = BTreeMap::new();
        if !by_service.is_empty() {
            let selectors = by_service.iter().flat_map(|named| &named.services).copied().collect();
            let services = by_namespace(self.services(selectors).await?);
            found.extend(by_service.into_iter().map(|named| {
                let own = services.get(named.namespace).into_iter().flatten();
                (named.key.clone(), own.filter_map(of_service).collect())
            }));
        }
        if !by_gateway.is_empty() {
            let api = self.api().await?;
            let gateway = api.get(&gateway_key()).await?;
            let leads = gateway.as_ref().map(of_gateway).unwrap_or_default();
            let nodes = by_namespace(api.list(NODES.into(), None, "", of_node_pool).await?);
            found.extend(by_gateway.into_iter().map(|named| {
                let own = nodes.get(named.namespace).into_iter().flatten();
                (named.key.clone(), named.behind(&leads, own))
            }));
        }
        Ok(found)
    }

    /// The Services of load balancers with any of these selectors.
    async fn services(&self, selectors: BTreeSet<&'static str>) -> Result<Vec<Value>, KubeError> {
        let mut found = Vec::new();
        for selector in selectors {
            found
                .extend(self.api().await?.list(KindRef::core("Service"), None, selector, of_balancer).await?);
        }
        Ok(found)
    }
}

fn failed(attempted: &'static str, key: &ObjectKey, fault: RecordFault) -> KubeError {
    KubeError::Record { attempted, host: key.name.clone(), fault }
}

fn by_namespace(objects: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for object in objects {
        if let Some(namespace) = object.pointer("/metadata/namespace").and_then(Value::as_str) {
            found.entry(namespace.to_owned()).or_default().push(object);
        }
    }
    found
}

/// The part of a load balancer's Service that is kept.
fn of_balancer(service: Value) -> Option<Value> {
    let paths: &[&[&str]] =
        &[&["metadata", "namespace"], &["metadata", "annotations"], &["status", "loadBalancer", "ingress"]];
    of_service(&service).map(|_| pick(&service, paths))
}

/// The part of a node pool that is kept. `pick` would shorten a long list, and a broker that is missing there loses its
/// record.
fn of_node_pool(pool: Value) -> Option<Value> {
    Some(json!({
        "metadata": {"namespace": pool.pointer("/metadata/namespace")},
        "status": {"nodeIds": pool.pointer("/status/nodeIds")},
    }))
}
