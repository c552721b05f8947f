use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use tokio::time::timeout;

use super::AT_ONCE;
use super::api::{Api, KindRef};
use super::budget::{Charge, OverBudget};
use super::fields;
use super::inventory::{AppliedObject, Inventory, ObjectEntry, namespace_key};
use super::leftovers;
use super::live::Live;
use super::untrusted::Weigh;
use super::watch::{CachedState, ClusterWatch, Name, SELECTOR};
use super::{KubeError, KubernetesTarget};
use crate::catalog::{RecordedFleet, RecordedObject, Records};
use crate::component::dns_records::is_record;
use crate::names::{Digest, Json, ObjectKey};
use crate::parallel::locked;
use crate::plan::{ObservedFleet, ObservedObject, Reach};
use crate::render::FleetManifests;

/// From this many objects of a kind on, the kind is listed instead of reading each object.
const LIST_FROM: usize = 16;

/// The time limit for reading the differing objects when the watches have all others. A hanging server delays
/// all fleets that are planned in the same round.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time limit of a whole observation in the daemon. It consists of many calls, each with its own limit,
/// while other fleets wait. It is twice the limit of a list in a plan.
const LONGEST_LOOK: Duration = Duration::from_secs(120);

struct LiveObject {
    live: Live,
    /// The object without `managedFields`. None when only `live` is needed.
    whole: Option<Json>,
}

impl From<Value> for LiveObject {
    fn from(object: Value) -> Self {
        LiveObject { live: Live::of(&object), whole: Some(Json::from(fields::trimmed(object))) }
    }
}

impl Weigh for (Name, LiveObject) {
    fn weight(&self) -> usize {
        let ((namespace, name), LiveObject { live: _, whole }) = self;
        let names = namespace.as_ref().map_or(0, String::len) + name.len();
        size_of::<(Name, LiveObject)>() + names + whole.as_ref().map_or(0, Weigh::weight)
    }
}

impl KubernetesTarget {
    /// Observes the cluster. Any read error makes the whole fleet unreachable, because unread is not the same
    /// as empty.
    pub(in crate::target) async fn observe(
        &self,
        recorded: &RecordedFleet,
        desired: Option<&FleetManifests>,
        there: &Records,
    ) -> ObservedFleet {
        let look = Box::pin(self.look_at_all(recorded, desired, there));
        let look = async move {
            if self.view.is_none() {
                return look.await;
            }
            timeout(LONGEST_LOOK, look).await.unwrap_or_else(|_| {
                let reason = format!("not all answers came within {} s", LONGEST_LOOK.as_secs());
                Err(KubeError::connection("list the objects on the Kubernetes cluster", reason))
            })
        };
        self.while_planning(look).await.unwrap_or_else(|error| {
            ObservedFleet::unknown(Reach::Unreachable {
                reason: error.to_string(),
                hint: error.hint().to_owned(),
                refused: error.is_final(),
                lost: error.may_be_lost(),
                concealed: error.is_unreached(),
                last_seen: recorded.observed_at,
            })
        })
    }

    async fn look_at_all(
        &self,
        recorded: &RecordedFleet,
        desired: Option<&FleetManifests>,
        there: &Records,
    ) -> Result<ObservedFleet, KubeError> {
        let (cluster, inventory) = self.base().await?;
        let wanted = desired.into_iter().flat_map(BTreeMap::keys).chain(recorded.objects.keys());
        // An object that moved to another version of its API is looked up by the version that it was created
        // in.
        let others = wanted.filter(|key| inventory.find(key).is_none());
        let keys: BTreeSet<&ObjectKey> = others.chain(inventory.objects.keys()).collect();
        let (records, keys): (BTreeSet<&ObjectKey>, BTreeSet<&ObjectKey>) =
            keys.into_iter().partition(|key| is_record(key));
        let look = ObjectComparison { inventory: &inventory, recorded, desired };
        let live = self.find(&keys, &look).await?;
        let ahead = keys.iter().filter(|key| look.is_ahead(key, live.get(*key)));
        self.swap_ahead(ahead.map(|key| (*key).clone()).collect());
        let mut fleet = ObservedFleet {
            reach: Reach::Reached,
            cluster: Some(cluster),
            inventory: BTreeMap::new(),
            marks: inventory.resources.all(),
            objects: BTreeMap::new(),
            undecided: BTreeSet::new(),
            conditions: Vec::new(),
            kept: BTreeMap::new(),
            health: None,
        };
        self.see_records(records, &look, &mut fleet).await;
        for key in keys {
            let (known, object) = look.at(key, live.get(key));
            fleet.inventory.extend(known.map(|known| (key.clone(), known)));
            fleet.objects.extend(object.map(|object| (key.clone(), object)));
        }
        let going = leftovers::deleted_clusters(&inventory, desired, there);
        leftovers::add(self.api().await?, &inventory, going, &mut fleet).await?;
        fleet.kept = leftovers::adoptable_disks(self.api().await?, desired, &fleet).await?;
        Ok(fleet)
    }

    async fn find<'k>(
        &self,
        keys: &BTreeSet<&'k ObjectKey>,
        look: &ObjectComparison<'_>,
    ) -> Result<BTreeMap<&'k ObjectKey, LiveObject>, KubeError> {
        let api = self.api().await?;
        if let Some(view) = &self.view
            && view.follow_kinds(keys.iter().copied()).await?
        {
            return view_all(view, api, keys, look).await;
        }
        fetch(api, keys, look.inventory).await
    }
}

/// Takes objects from the watches' cache. Objects that the cache lacks, or that differ from what was applied,
/// are read.
async fn view_all<'k>(
    view: &ClusterWatch,
    api: &Api,
    keys: &BTreeSet<&'k ObjectKey>,
    look: &ObjectComparison<'_>,
) -> Result<BTreeMap<&'k ObjectKey, LiveObject>, KubeError> {
    let (mut found, mut unseen, mut differing) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    for key in keys {
        match view.find(key) {
            Some(CachedState::There(live, None)) if look.needs_all(key, &live) => differing.push(*key),
            Some(CachedState::There(live, whole)) => {
                drop(found.insert(*key, LiveObject { live: *live, whole }))
            }
            Some(CachedState::Unseen) | None => drop(unseen.insert(*key)),
        }
    }
    let read = async {
        let mut read = fetch_kinds(api, differing, look.inventory).await?;
        read.extend(fetch(api, &unseen, look.inventory).await?);
        Ok(read)
    };
    let read = timeout(PATIENCE, read).await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", PATIENCE.as_secs());
        Err(KubeError::connection("read objects that differ", reason))
    })?;
    for (key, object) in read {
        if let Some(whole) = &object.whole {
            view.keep(key, &object.live.version, whole);
        }
        found.insert(key, object);
    }
    Ok(found)
}

pub(super) struct ObjectComparison<'a> {
    pub(super) inventory: &'a Inventory,
    recorded: &'a RecordedFleet,
    pub(super) desired: Option<&'a FleetManifests>,
}

impl ObjectComparison<'_> {
    fn at(
        &self,
        key: &ObjectKey,
        found: Option<&LiveObject>,
    ) -> (Option<RecordedObject>, Option<ObservedObject>) {
        let entry = self.inventory.objects.get(key).filter(|_| !leftovers::is_operators(key));
        let Some(entry) = entry else {
            return (None, found.map(|found| self.foreign(key, found)));
        };
        let settled = judge(key, entry, found.map(|found| &found.live));
        let known = match &settled {
            EntryOutcome::Gone => None,
            EntryOutcome::Written(written) => {
                let entry = ObjectEntry { written: Some(written.clone()), ..entry.clone() };
                entry.recorded()
            }
            EntryOutcome::Intended | EntryOutcome::Foreign => entry.recorded().or_else(|| intended(entry)),
        };
        let object = found.map(|found| match &settled {
            EntryOutcome::Written(written) => self.ours(key, written, found),
            _ => self.foreign(key, found),
        });
        let manifest = known.as_ref().and_then(|known| self.applied(key, &known.applied));
        (known.map(|known| RecordedObject { manifest, ..known }), object)
    }

    /// Whether the annotation of an object of ours names another manifest than the inventory does.
    fn is_ahead(&self, key: &ObjectKey, found: Option<&LiveObject>) -> bool {
        let entry = self.inventory.objects.get(key);
        let Some((entry, known)) = entry.and_then(|entry| Some((entry, entry.written.as_ref()?))) else {
            return false;
        };
        let settled = judge(key, entry, found.map(|found| &found.live));
        matches!(settled, EntryOutcome::Written(written) if written.applied != known.applied)
    }

    /// Whether the comparison needs the whole object, because it isn't as it was applied.
    fn needs_all(&self, key: &ObjectKey, live: &Live) -> bool {
        let Some(entry) = self.inventory.objects.get(key) else { return true };
        let EntryOutcome::Written(written) = judge(key, entry, Some(live)) else { return true };
        !is_unchanged(&written, live) || self.applied(key, &written.applied).is_none()
    }

    pub(super) fn applied(&self, key: &ObjectKey, applied: &Digest) -> Option<Json> {
        let recorded = self.recorded.objects.get(key).filter(|recorded| recorded.applied == *applied);
        recorded.and_then(|recorded| recorded.manifest.clone()).or_else(|| {
            let desired = self.desired?.get(key)?;
            (desired.digest() == *applied).then(|| desired.body.clone())
        })
    }

    fn ours(&self, key: &ObjectKey, written: &AppliedObject, found: &LiveObject) -> ObservedObject {
        let same = is_as_applied(written, &found.live);
        let left = written.left.as_ref().filter(|_| same);
        ObservedObject {
            unchanged: is_unchanged(written, &found.live),
            changed_by: found.live.changed_by.clone().filter(|_| !same),
            contested: left.map(|left| left.contests.clone()).unwrap_or_default(),
            ours: true,
            ..self.foreign(key, found)
        }
    }

    fn foreign(&self, key: &ObjectKey, found: &LiveObject) -> ObservedObject {
        let shown = |whole: &Json| {
            let desired = self.desired.and_then(|desired| desired.get(key));
            fields::shown(key, &whole.value(), desired.map(|desired| desired.body.value()).as_ref())
        };
        ObservedObject {
            uid: found.live.uid.clone(),
            ours: false,
            unchanged: false,
            manifest: found.whole.as_ref().map(shown),
            changed_by: None,
            contested: Vec::new(),
            obstacle: None,
        }
    }
}

fn is_unchanged(written: &AppliedObject, live: &Live) -> bool {
    is_as_applied(written, live) && !live.is_leaving
}

/// Whether all of our fields are still ours. When another controller gave up a field that was left to it, we
/// have to set the field again.
fn is_as_applied(written: &AppliedObject, live: &Live) -> bool {
    let still = written.left.as_ref().is_none_or(|left| left.managers == live.others);
    written.fields.is_some() && written.fields == live.fields && still
}

/// The record of an object that is only intended: there is nothing to delete, but the entry may have to go.
pub(super) fn intended(entry: &ObjectEntry) -> Option<RecordedObject> {
    let applied = entry.intended.clone()?;
    Some(RecordedObject { owner: entry.owner.clone(), uid: None, applied, manifest: None })
}

/// The actual outcome of an inventory entry.
pub(super) enum EntryOutcome {
    /// The object is, or was, ours as it was applied.
    Written(AppliedObject),
    Intended,
    Foreign,
    Gone,
}

/// Determines the outcome of an inventory entry from the object itself. After a crash, the object's
/// annotation may name a later manifest than the inventory.
pub(super) fn judge(key: &ObjectKey, entry: &ObjectEntry, live: Option<&Live>) -> EntryOutcome {
    let Some(live) = live else {
        return match &entry.written {
            _ if entry.deleting => EntryOutcome::Gone,
            Some(written) => EntryOutcome::Written(written.clone()),
            None => EntryOutcome::Intended,
        };
    };
    // The cluster's owner can write any object into our ConfigMaps, but can't make its fields ours.
    let known = entry.written.as_ref().filter(|written| written.uid == live.uid);
    let known = known.filter(|_| live.fields.is_some() || leftovers::is_operators(key));
    let is_intended = live.applied.is_some() && live.applied == entry.intended;
    let is_new = is_intended && (live.is_made_by_us || entry.adopts.as_ref() == Some(&live.uid));
    match (known, live.applied.clone()) {
        (Some(written), Some(applied)) if applied != written.applied => {
            EntryOutcome::Written(recovered(applied, live))
        }
        (Some(written), _) => EntryOutcome::Written(written.clone()),
        (None, Some(applied)) if is_new => EntryOutcome::Written(recovered(applied, live)),
        (None, _) => EntryOutcome::Foreign,
    }
}

/// An entry for an apply that was not recorded. If somebody else changed the object since, it is unknown
/// which fields were ours.
fn recovered(applied: Digest, live: &Live) -> AppliedObject {
    let fields = live.fields.clone().filter(|_| live.changed_by.is_none());
    AppliedObject { uid: live.uid.clone(), applied, fields, left: None }
}

/// Reads the objects that exist. Objects in a missing namespace are not requested.
async fn fetch<'k>(
    api: &Api,
    keys: &BTreeSet<&'k ObjectKey>,
    inventory: &Inventory,
) -> Result<BTreeMap<&'k ObjectKey, LiveObject>, KubeError> {
    let is_namespace = |key: &ObjectKey| key.kind == "Namespace" && key.namespace.is_none();
    let around = |key: &ObjectKey| match &key.namespace {
        Some(namespace) => Some(namespace_key(namespace)),
        None => is_namespace(key).then(|| key.clone()),
    };
    let namespaces: BTreeSet<ObjectKey> = keys.iter().filter_map(|key| around(key)).collect();
    let namespaces = fetch_kinds(api, namespaces.iter().collect(), inventory).await?;
    let mut namespaces: BTreeMap<String, LiveObject> =
        namespaces.into_iter().map(|(key, object)| (key.name.clone(), object)).collect();
    let is_inside = |key: &ObjectKey| match &key.namespace {
        Some(namespace) => namespaces.contains_key(namespace),
        None => !is_namespace(key),
    };
    let inside = keys.iter().copied().filter(|key| is_inside(key)).collect();
    let mut found = fetch_kinds(api, inside, inventory).await?;
    for key in keys.iter().filter(|key| is_namespace(key)) {
        found.extend(namespaces.remove(&key.name).map(|object| (*key, object)));
    }
    Ok(found)
}

async fn fetch_kinds<'k>(
    api: &Api,
    keys: Vec<&'k ObjectKey>,
    inventory: &Inventory,
) -> Result<BTreeMap<&'k ObjectKey, LiveObject>, KubeError> {
    let mut kinds: BTreeMap<KindRef, Vec<&ObjectKey>> = BTreeMap::new();
    for key in keys {
        kinds.entry(key.into()).or_default().push(key);
    }
    let mut found = BTreeMap::new();
    let mut single = Vec::new();
    // The budget for the results is held until all are read.
    let mut charge = Charge::new(api.budget());
    for (kind, keys) in kinds {
        // Namespaces are listed without a selector. Otherwise, a first apply would request each of them by
        // name.
        let (selector, whole) =
            if kind == KindRef::core("Namespace") { ("", true) } else { (SELECTOR, false) };
        // Secrets are never listed as a whole, and a list would lack their data.
        let listed = match keys.len() {
            LIST_FROM.. if kind != KindRef::core("Secret") => {
                list(api, kind, selector, &keys, &mut charge).await?
            }
            _ => None,
        };
        // A truncated list looks like a shorter one, so expected objects that it lacks are requested by name.
        let known = match whole && listed.is_some() {
            true => Some(inventory.namespaces()),
            false => None,
        };
        let mut listed = listed.unwrap_or_default();
        for key in keys {
            match listed.remove(&(key.namespace.clone(), key.name.clone())) {
                Some(object) => drop(found.insert(key, object)),
                None if known.as_ref().is_some_and(|known| !known.contains(key.name.as_str())) => {}
                None => single.push(key),
            }
        }
    }
    let charge = Mutex::new(charge);
    let get = |key: &'k ObjectKey| {
        let charge = &charge;
        async move {
            let found = api.get(key).await?.map(LiveObject::from);
            let weight = found.as_ref().and_then(|found| found.whole.as_ref()).map_or(0, Weigh::weight);
            let counted = locked(charge).add(weight);
            counted.map_err(|OverBudget(reason)| KubeError::too_much(&format!("read {key}"), reason))?;
            Ok::<_, KubeError>((key, found))
        }
    };
    let gets: Vec<_> = single.into_iter().map(get).collect();
    let gets: Vec<_> = stream::iter(gets).buffer_unordered(AT_ONCE).try_collect().await?;
    found.extend(gets.into_iter().filter_map(|(key, object)| Some((key, object?))));
    Ok(found)
}

/// Lists the wanted objects of a kind with these labels. None when we may only read single objects.
async fn list(
    api: &Api,
    kind: KindRef<'_>,
    labels: &str,
    wanted: &[&ObjectKey],
    charge: &mut Charge,
) -> Result<Option<BTreeMap<Name, LiveObject>>, KubeError> {
    let wanted: BTreeSet<(Option<&str>, &str)> =
        wanted.iter().map(|key| (key.namespace.as_deref(), key.name.as_str())).collect();
    let keep = |object: Value| {
        let text = |field: &str| object.pointer("/metadata")?.get(field)?.as_str();
        let name = (text("namespace"), text("name")?);
        let name = wanted.contains(&name).then(|| (name.0.map(str::to_owned), name.1.to_owned()))?;
        Some((name, LiveObject::from(object)))
    };
    let listed = match api.list_counted(kind, None, &format!("labelSelector={labels}"), keep).await {
        Err(error) if error.is_code(403) => return Ok(None),
        listed => listed?,
    };
    charge.absorb(listed.charge);
    Ok(Some(listed.kept.into_iter().collect()))
}
