//! One round of writing to a Kubernetes cluster: the intent is recorded, carried out and settled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, FuturesUnordered, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::AT_ONCE;
use super::api::{Api, ApplyError, KindRef, Mode, uid};
use super::definition;
use super::fields;
use super::inventory::{AppliedObject, Inventory, Left, ObjectEntry};
use super::leftovers::{self, OperatorCluster};
use super::live::Live;
use super::observe::{EntryOutcome, judge};
use super::untrusted;
use super::write::{self, ApplyOutcome};
use super::{KubeError, KubernetesTarget};
use crate::catalog::RecordedObject;
use crate::component::dns_records::is_record;
use crate::names::{ObjectKey, ResourceKey};
use crate::target::{Intent, ObjectWrite, ResourceMark, TargetError, Task, TaskResult};

/// How long to wait for a deleted object to be gone. After that, what keeps it is reported.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const INTERVAL: Duration = Duration::from_millis(200);

pub struct ClusterSession {
    target: KubernetesTarget,
    inventory: Inventory,
    ready: BTreeMap<ObjectKey, ObjectWrite>,
    running: FuturesUnordered<BoxFuture<'static, TaskOutcome>>,
}

struct TaskOutcome {
    number: usize,
    key: ObjectKey,
    result: Result<Option<AppliedObject>, KubeError>,
}

impl KubernetesTarget {
    /// Settles what an earlier round left unfinished, then records the intent.
    pub(in crate::target) async fn begin(&self, intent: Intent) -> Result<ClusterSession, KubeError> {
        let inventory = self.current_inventory().await?;
        let mut session = ClusterSession {
            target: self.clone(),
            inventory,
            ready: BTreeMap::new(),
            running: FuturesUnordered::new(),
        };
        session.settle(self.swap_ahead(BTreeSet::new()), &[]).await?;
        session.inventory.resources.announce(intent.marks);
        for write in intent.writes {
            session.intend(write);
        }
        for key in &intent.deletes {
            if let Some(known) = session.inventory.find(key).cloned() {
                session.inventory.objects.entry(known).and_modify(|entry| entry.deleting = true);
            } else if !is_record(key)
                && let Some(entry) = leftovers::entry_of(self.api().await?, &session.inventory, key).await?
            {
                session.inventory.objects.insert(key.clone(), entry);
            }
        }
        session.save().await?;
        Ok(session)
    }
}

impl ClusterSession {
    pub(in crate::target) fn has_room(&self) -> bool {
        self.running.len() < AT_ONCE
    }

    pub(in crate::target) fn start(&mut self, number: usize, task: Task) {
        let Task { object, uid, deletes } = task;
        let key = self.inventory.find(&object).cloned().unwrap_or(object);
        let entry = self.inventory.objects.get(&key).cloned();
        let ours = entry.as_ref().and_then(|entry| entry.written.clone());
        let (target, write) = (self.target.clone(), self.ready.remove(&key));
        let cluster = leftovers::cluster_of(&self.inventory, &key);
        self.running.push(Box::pin(async move {
            let result = match write {
                _ if is_record(&key) && deletes => target.release_record(&key, entry).await.map(|()| None),
                Some(write) if is_record(&key) => target.write_record(write).await.map(Some),
                _ if deletes => delete(&target, &key, uid, ours, cluster).await.map(|()| None),
                Some(write) => apply(&target, write, uid, ours).await.map(Some),
                None => Err(KubeError::NotIntended { object: key.clone() }),
            };
            TaskOutcome { number, key, result }
        }));
    }

    pub(in crate::target) async fn next(&mut self) -> Option<(usize, TaskResult)> {
        let TaskOutcome { number, key, result } = self.running.next().await?;
        match &result {
            Ok(Some(written)) => drop(self.inventory.objects.entry(key).and_modify(|entry| {
                entry.written = Some(written.clone());
                entry.intended = None;
                entry.adopts = None;
            })),
            Ok(None) => drop(self.inventory.objects.remove(&key)),
            Err(_) => {}
        }
        let taken = result.map(|written| written.map(|written| written.uid));
        Some((number, taken.map_err(TargetError::from)))
    }

    pub(in crate::target) fn known(&self) -> BTreeSet<ObjectKey> {
        let written = self.inventory.objects.iter().filter(|(_, entry)| entry.written.is_some());
        written.map(|(key, _)| key.clone()).collect()
    }

    pub(in crate::target) fn protected(&self) -> BTreeSet<ResourceKey> {
        self.inventory.resources.protected()
    }

    /// Rebuilds a lost record from the inventory, which has no manifests.
    pub(in crate::target) fn recall(&self, key: &ObjectKey) -> Option<RecordedObject> {
        self.inventory.objects.get(key)?.recorded()
    }

    /// Records the outcome of the round. `mark` returns what is now recorded of a resource.
    pub(in crate::target) async fn finish(
        mut self,
        mark: impl Fn(&ResourceKey) -> Option<ResourceMark>,
    ) -> Result<(), KubeError> {
        // Entries of forgotten resources are dropped once their objects were removed by hand.
        let orphans = self.inventory.objects.iter().filter(|(_, entry)| mark(&entry.owner).is_none());
        let orphans: Vec<ObjectKey> = orphans.map(|(key, _)| key.clone()).collect();
        self.settle(BTreeSet::new(), &orphans).await?;
        let owners = self.inventory.objects.values().map(|entry| &entry.owner).collect();
        self.inventory.resources.refresh(&owners, mark);
        self.save().await
    }

    /// Adds the intent of a write to the inventory. A new object must be in the inventory before it exists.
    /// An existing one of ours needs no intent: its annotation names the manifest that was applied last.
    fn intend(&mut self, write: ObjectWrite) {
        let key = write.key.clone();
        let before = self.inventory.find(&key).cloned();
        let before = before.and_then(|known| self.inventory.objects.remove(&known));
        let written = before.and_then(|entry| entry.written);
        // A DNS server that didn't answer left open whether the record is ours.
        let is_open = is_record(&key) && written.is_none();
        let is_new = write.uid.is_none() || write.recreate || write.adopts || is_open;
        let entry = ObjectEntry {
            owner: write.owner.clone(),
            written,
            intended: is_new.then(|| write.applied.clone()),
            adopts: write.uid.clone().filter(|_| write.adopts),
            deleting: false,
        };
        self.inventory.objects.insert(key.clone(), entry);
        self.ready.insert(key, write);
    }

    /// Determines the outcome of all intents and of objects newer than the inventory. Entries of `orphans`
    /// are removed when the object is gone.
    async fn settle(&mut self, ahead: BTreeSet<ObjectKey>, orphans: &[ObjectKey]) -> Result<(), KubeError> {
        let open = self.inventory.objects.iter();
        let open = open.filter(|(_, entry)| entry.intended.is_some() || entry.deleting).map(|(key, _)| key);
        let open = open.chain(orphans).cloned().chain(ahead);
        let (records, open): (BTreeSet<ObjectKey>, BTreeSet<ObjectKey>) = open.partition(is_record);
        for key in records {
            self.settle_record(&key).await;
        }
        let api = self.target.api().await?;
        let look = |key: ObjectKey| async move {
            Ok::<_, KubeError>((api.get(&key).await?.as_ref().map(Live::of), key))
        };
        let looks: Vec<_> = open.into_iter().map(look).collect();
        let looks: Vec<_> = stream::iter(looks).buffer_unordered(AT_ONCE).try_collect().await?;
        for (live, key) in looks {
            let Some(entry) = self.inventory.objects.get_mut(&key) else { continue };
            let is_orphan = live.is_none() && orphans.contains(&key);
            match judge(&key, entry, live.as_ref()) {
                EntryOutcome::Written(written) if !is_orphan => {
                    *entry = ObjectEntry {
                        written: Some(written),
                        intended: None,
                        adopts: None,
                        deleting: false,
                        ..entry.clone()
                    };
                }
                // The object is foreign, and ours is gone.
                EntryOutcome::Written(_)
                | EntryOutcome::Intended
                | EntryOutcome::Gone
                | EntryOutcome::Foreign => {
                    let entry = self.inventory.objects.remove(&key);
                    let intended = entry.and_then(|entry| entry.intended);
                    if let Some(live) = live.filter(|live| intended.is_some() && live.applied == intended) {
                        release(api, &key, &live.uid).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Determines the outcome of an intent about a DNS record. Without an answer, it stays open.
    async fn settle_record(&mut self, key: &ObjectKey) {
        let Some(entry) = self.inventory.objects.get(key) else { return };
        let Ok(ours) = self.target.own_record(key, &entry.owner).await else { return };
        match (ours, self.inventory.objects.get_mut(key)) {
            (Some(written), Some(entry)) => {
                *entry = ObjectEntry {
                    written: Some(written),
                    intended: None,
                    adopts: None,
                    deleting: false,
                    ..entry.clone()
                };
            }
            _ => drop(self.inventory.objects.remove(key)),
        }
    }

    async fn save(&mut self) -> Result<(), KubeError> {
        self.inventory.save(self.target.api().await?).await
    }
}

/// Creates or changes an object and returns its new entry. `planned` is the UID that the plan was made for,
/// none when there was no object. `ours` is the entry so far.
async fn apply(
    target: &KubernetesTarget,
    write: ObjectWrite,
    planned: Option<String>,
    ours: Option<AppliedObject>,
) -> Result<AppliedObject, KubeError> {
    let ObjectWrite { key, applied, filled, recreate, adopts, .. } = write;
    let api = target.api().await?;
    if let Some(planned) = &planned
        && !adopts
        && ours.as_ref().is_none_or(|ours| ours.uid != *planned)
    {
        return Err(KubeError::Changed { attempted: "apply", object: key });
    }
    let planned = match planned {
        Some(uid) if recreate => {
            end(api, &key, &uid).await?;
            None
        }
        planned => planned,
    };
    let body = write::body(filled, &applied, planned.as_deref());
    let ApplyOutcome { object, left, .. } = match planned {
        None => make(api, &key, &body, ours.as_ref()).await?,
        Some(_) => write::apply(api, &key, body, false).await?,
    };
    definition::wait_until_served(api, &key, &object).await?;
    if key.kind == "Namespace" {
        api.grant_secret_access(&key.name).await;
    }
    let uid = uid(&object).unwrap_or_default().to_owned();
    let left = (!left.is_empty()).then(|| Left { contests: left, managers: fields::others(&object) });
    Ok(AppliedObject { uid, applied, fields: fields::digest(&object), left })
}

/// Creates an object where the plan found none. Only the server's response tells whether another client was
/// faster. If the existing object is the one in `known`, it is ours and the plan merely couldn't see it.
async fn make(
    api: &Api,
    key: &ObjectKey,
    body: &Value,
    known: Option<&AppliedObject>,
) -> Result<ApplyOutcome, KubeError> {
    let is_known = |object: &Value| known.is_some_and(|known| uid(object) == Some(known.uid.as_str()));
    let foreign = || KubeError::Foreign { object: key.clone() };
    let applied = match api.apply(key, body, Mode { force: false, dry: false }).await {
        Ok(applied) => applied,
        Err(ApplyError::Conflict(_)) if known.is_none() => return Err(foreign()),
        Err(ApplyError::Conflict(_)) => {
            let there = api.get(key).await?;
            return Err(match there.as_ref().is_some_and(is_known) {
                true => KubeError::Changed { attempted: "apply", object: key.clone() },
                false => foreign(),
            });
        }
        Err(ApplyError::Other(error)) => return Err(error),
    };
    // This very call may have created the object, when the first response was lost.
    let ours = applied.made
        || is_known(&applied.object)
        || (fields::is_made_by_us(&applied.object) && fields::changed_by(&applied.object).is_none());
    if !ours {
        release(api, key, uid(&applied.object).unwrap_or_default()).await?;
        return Err(foreign());
    }
    Ok(ApplyOutcome { object: applied.object, overwritten: Vec::new(), left: Vec::new() })
}

/// Gives up all fields that we set on a foreign object. Fields without another owner are removed.
async fn release(api: &Api, key: &ObjectKey, uid: &str) -> Result<(), KubeError> {
    let metadata = json!({"name": key.name, "namespace": key.namespace, "uid": uid});
    let identity = json!({"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata});
    match api.apply(key, &identity, Mode { force: false, dry: false }).await {
        // The object is gone, or replaced by another one.
        Ok(_) | Err(ApplyError::Conflict(_)) => Ok(()),
        Err(ApplyError::Other(error)) => Err(error),
    }
}

/// Deletes an object and waits until it is gone. `planned` is the UID that the plan was made for, `ours` the
/// entry so far. An object that was gone before is no error. If the two don't name the same object, and
/// either exists, it stays and that is an error. `cluster` is set for objects of the operator, which are
/// deleted only after the cluster's pods have ended.
async fn delete(
    target: &KubernetesTarget,
    key: &ObjectKey,
    planned: Option<String>,
    ours: Option<AppliedObject>,
    cluster: Option<OperatorCluster>,
) -> Result<(), KubeError> {
    let api = target.api().await?;
    let known = ours.map(|ours| ours.uid);
    let Some(ours) = planned.clone().filter(|planned| known.as_ref() == Some(planned)) else {
        // While either exists, it must not be reported as gone.
        let there = api.get(key).await?;
        let is_either = |uid: &str| [&known, &planned].into_iter().flatten().any(|either| either == uid);
        return match there.as_ref().and_then(uid).is_some_and(is_either) {
            true => Err(KubeError::Changed { attempted: "delete", object: key.clone() }),
            false => Ok(()),
        };
    };
    if let Some(cluster) = cluster {
        leftovers::wait_until_quiet(api, key, &cluster).await?;
    }
    if key.kind == "Namespace" {
        wait_for_claims(api, &key.name).await?;
    }
    end(api, key, &ours).await
}

async fn end(api: &Api, key: &ObjectKey, ours: &str) -> Result<(), KubeError> {
    match api.delete(key, ours).await? {
        true => Ok(()),
        false => wait_until_gone(api, key, ours).await,
    }
}

/// Waits until a namespace has no disks: those of a deleted cluster are removed shortly after it.
async fn wait_for_claims(api: &Api, namespace: &str) -> Result<(), KubeError> {
    let since = Instant::now();
    loop {
        let claims =
            api.list(KindRef::core("PersistentVolumeClaim"), Some(namespace), "", untrusted::outline).await?;
        let Some(claim) = claims.first() else { return Ok(()) };
        if since.elapsed() >= PATIENCE {
            let name = claim.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            return Err(KubeError::HasClaims { namespace: namespace.to_owned(), claim: name.to_owned() });
        }
        sleep(INTERVAL).await;
    }
}

async fn wait_until_gone(api: &Api, key: &ObjectKey, ours: &str) -> Result<(), KubeError> {
    let since = Instant::now();
    loop {
        let there = api.get(key).await?;
        let Some(there) = there.filter(|there| uid(there) == Some(ours)) else { return Ok(()) };
        if since.elapsed() >= PATIENCE {
            return Err(KubeError::Held {
                object: Box::new(key.clone()),
                holder: KubeError::line(&holder(&there)),
            });
        }
        sleep(INTERVAL).await;
    }
}

/// The cause that keeps an object that is being deleted, as a clause.
fn holder(object: &Value) -> String {
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    // A namespace's conditions list its remaining content.
    let remaining = list("/status/conditions").filter(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        kind.starts_with("Namespace") && condition["status"] == "True"
    });
    let remaining: Vec<&str> = remaining.filter_map(|condition| condition["message"].as_str()).collect();
    let finalizers: Vec<&str> =
        list("/metadata/finalizers").chain(list("/spec/finalizers")).filter_map(Value::as_str).collect();
    match (remaining.is_empty(), finalizers.is_empty()) {
        (false, _) => format!("not done: {}", remaining.join(" ")),
        (true, false) => format!("blocked by {}", finalizers.join(", ")),
        (true, true) => "its blocker is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_holds_what_is_being_deleted_is_named() {
        for (object, expected) in [
            (
                json!({"metadata": {"finalizers": ["strimzi.io/topic-operator"]}}),
                "blocked by strimzi.io/topic-operator",
            ),
            (json!({"spec": {"finalizers": ["kubernetes"]}}), "blocked by kubernetes"),
            (
                json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"conditions": [
                    {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 left"},
                    {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "no"},
                ]}}),
                "not done: pods. has 1 left",
            ),
            (json!({}), "its blocker is unknown"),
        ] {
            assert_eq!(holder(&object), expected);
        }
    }
}
