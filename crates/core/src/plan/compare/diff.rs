use std::collections::{BTreeMap, HashMap, HashSet};

use crate::catalog::RecordedObject;
use crate::component::{self, Manifest};
use crate::names::{Json, ObjectKey, ResourceKey};
use crate::plan::model::site::FleetInputs;
use crate::plan::{Contest, ForeignRecord, ObservedObject, Reach, Step, Verb};
use crate::render::FleetManifests;
use crate::spec::InfraType;

pub(in crate::plan) struct TargetContents<'a> {
    pub reach: Reach,
    // Names have long beginnings in common, so comparing them would take longer than hashing them.
    objects: HashMap<Identity<'a>, KnownObject<'a>>,
    is_observed: bool,
    /// Whether anything is in the target's own inventory.
    has_inventory: bool,
}

#[derive(Default)]
struct KnownObject<'a> {
    /// Set if we made it, by the state and by the target's own inventory, which takes precedence.
    made: Option<(&'a ObjectKey, &'a RecordedObject)>,
    /// The state's memory alone, for manifests that the target's inventory may lack.
    remembered: Option<&'a RecordedObject>,
    /// Whether the target's own inventory has it.
    is_named: bool,
    /// Set if it exists, as far as the target was observed.
    there: Option<&'a ObservedObject>,
}

#[derive(Clone)]
pub(in crate::plan) struct ObjectDiff {
    pub step: Step,
    /// Set if only the target changed.
    pub drift: Option<Drift>,
    /// Whether the object exists. Deleting one that is only recorded removes its record.
    pub there: bool,
    /// Whether the existing object can't be read. The step is then made from what was applied last, if known.
    pub unreadable: bool,
}

impl ObjectDiff {
    /// The DNS record in its place that somebody else made.
    pub fn as_foreign_record(&self) -> Option<ForeignRecord> {
        ForeignRecord::of(&self.step.object, self.step.before.as_ref())
    }
}

/// A change of the target that Streamfleet didn't make.
#[derive(Clone)]
pub(in crate::plan) struct Drift {
    pub by: Option<String>,
}

#[derive(Clone, Default)]
pub(in crate::plan) struct Differences {
    pub found: Vec<ObjectDiff>,
    pub foreign: Vec<ObjectKey>,
    /// Objects that can't be written because a link or something of the wrong type is in their place or on the way there,
    /// with its path.
    pub obstacles: Vec<(ObjectKey, String)>,
    /// DNS records that another installation has.
    pub strangers: Vec<ForeignRecord>,
    /// DNS records that somebody made by hand. They are taken over with approval, and alone.
    pub adoptable: Vec<ObjectDiff>,
    /// Fields that other controllers own, of objects that are otherwise as they should be.
    pub contested: Vec<(ObjectKey, Contest)>,
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        let Self { found, foreign, obstacles, strangers, adoptable, contested } = self;
        found.is_empty()
            && foreign.is_empty()
            && obstacles.is_empty()
            && strangers.is_empty()
            && adoptable.is_empty()
            && contested.is_empty()
    }
}

impl<'a> TargetContents<'a> {
    pub fn of(site: &FleetInputs<'a>, infra_type: Option<InfraType>) -> Self {
        let FleetInputs { recorded, observed, .. } = *site;
        let mut objects: HashMap<Identity, KnownObject> = HashMap::new();
        for (key, object) in recorded.map(|target| &target.objects).into_iter().flatten() {
            let known = objects.entry(identity(key)).or_default();
            (known.made, known.remembered) = (Some((key, object)), Some(object));
        }
        for (key, object) in observed.map(|target| &target.inventory).into_iter().flatten() {
            let known = objects.entry(identity(key)).or_default();
            (known.made, known.is_named) = (Some((key, object)), true);
        }
        let reach = observed.map_or_else(
            || Reach::Unreachable {
                reason: never_looked_at(infra_type).to_owned(),
                hint: String::new(),
                refused: false,
                lost: false,
                concealed: false,
                last_seen: recorded.and_then(|target| target.observed_at),
            },
            |target| target.reach.clone(),
        );
        let there = observed.filter(|_| reach == Reach::Reached);
        for (key, object) in there.map(|target| &target.objects).into_iter().flatten() {
            objects.entry(identity(key)).or_default().there = Some(object);
        }
        let has_inventory = observed.is_some_and(|target| !target.inventory.is_empty());
        Self { reach, objects, is_observed: there.is_some(), has_inventory }
    }

    /// The objects that we made, in the order of their identities.
    fn made(
        &self,
        is_meant: impl Fn(&Identity, &KnownObject, &RecordedObject) -> bool,
    ) -> Vec<(&'a ObjectKey, &'a RecordedObject, &KnownObject<'a>)> {
        let made = self.objects.iter().filter_map(|(id, known)| Some((id, known.made?, known)));
        let mut made: Vec<_> = made.filter(|(id, (_, object), known)| is_meant(id, known, object)).collect();
        made.sort_unstable_by_key(|(id, ..)| **id);
        made.into_iter().map(|(_, (key, object), known)| (key, object, known)).collect()
    }
}

impl<'a> KnownObject<'a> {
    /// The manifest that was last applied.
    fn applied(&self) -> Option<&'a Json> {
        let (_, made) = self.made?;
        let remembered = || self.remembered.filter(|object| object.applied == made.applied);
        made.manifest.as_ref().or_else(|| remembered()?.manifest.as_ref())
    }
}

fn never_looked_at(infra_type: Option<InfraType>) -> &'static str {
    match infra_type {
        None | Some(InfraType::Byok) => "no valid spec describes its target",
        Some(InfraType::Directory) => "its folder was not read",
    }
}

pub(in crate::plan) fn differences<'a>(
    desired: impl Iterator<Item = &'a Manifest>,
    target: &TargetContents,
    adopts: impl Fn(&ResourceKey) -> bool,
) -> BTreeMap<ResourceKey, Differences> {
    let mut all: BTreeMap<ResourceKey, Differences> = BTreeMap::new();
    let mut wanted = HashSet::new();
    for manifest in desired {
        wanted.insert(identity(&manifest.key));
        match compare(manifest, target) {
            Comparison::Equal => {}
            Comparison::Contested(contests) => {
                let contested = contests.iter().map(|it| (manifest.key.clone(), it.clone()));
                all.entry(manifest.owner.clone()).or_default().contested.extend(contested);
            }
            Comparison::Foreign(there) if adopts(&manifest.owner) => {
                let (uid, before) = (Some(there.uid.clone()), there.manifest.clone());
                let adopted = found(manifest, Verb::Adopt, uid, before, None);
                all.entry(manifest.owner.clone()).or_default().found.push(adopted);
            }
            Comparison::Foreign(there)
                if let Some(record) = ForeignRecord::of(&manifest.key, there.manifest.as_ref()) =>
            {
                let differences = all.entry(manifest.owner.clone()).or_default();
                let (uid, before) = (Some(there.uid.clone()), there.manifest.clone());
                match record.owner {
                    Some(_) => differences.strangers.push(record),
                    None => differences.adoptable.push(found(manifest, Verb::Adopt, uid, before, None)),
                }
            }
            Comparison::Foreign(_) => {
                all.entry(manifest.owner.clone()).or_default().foreign.push(manifest.key.clone());
            }
            Comparison::Obstacle(path) => {
                let obstacle = (manifest.key.clone(), path.to_owned());
                all.entry(manifest.owner.clone()).or_default().obstacles.push(obstacle);
            }
            Comparison::Differs(found) => {
                all.entry(manifest.owner.clone()).or_default().found.push(*found);
            }
        }
    }
    for (key, made, known) in target.made(|id, _, _| !wanted.contains(id)) {
        let entry = all.entry(made.owner.clone()).or_default();
        match known.there {
            Some(there) if !there.ours => entry.foreign.push(key.clone()),
            _ => entry.found.push(left_over(key, made, known, target.is_observed)),
        }
    }
    all
}

/// The objects of one resource that are no longer as applied.
#[derive(Default)]
pub(in crate::plan) struct Drifted {
    pub found: Vec<ObjectDiff>,
    /// Objects whose applied manifest is no longer known.
    pub unknown: Vec<ObjectKey>,
}

/// Returns the differences from what was last applied, by owning resource, independent of the present specs.
pub(in crate::plan) fn drifted(
    target: &TargetContents,
    desired: Option<&FleetManifests>,
    of: impl Fn(&ResourceKey) -> bool,
) -> BTreeMap<ResourceKey, Drifted> {
    let mut all: BTreeMap<ResourceKey, Drifted> = BTreeMap::new();
    if !target.is_observed {
        return all;
    }
    let differs = |known: &KnownObject| !known.there.is_some_and(|there| !there.ours || there.unchanged);
    let made = target.made(|_, known, made| {
        // An object without a UID was only intended. One that the target's inventory no longer names was
        // deleted by us, though a run that was killed then may have left its record.
        let is_named = !target.has_inventory || known.is_named;
        is_named && made.uid.is_some() && of(&made.owner) && differs(known)
    });
    for (key, made, known) in made {
        let entry = all.entry(made.owner.clone()).or_default();
        let is_it = |manifest: &&Manifest| manifest.digest() == made.applied;
        let rendered = || desired?.get(key).filter(is_it).map(|manifest| &manifest.body);
        let Some(body) = known.applied().or_else(rendered).cloned() else {
            entry.unknown.push(key.clone());
            continue;
        };
        let (key, owner, stage) = (key.clone(), made.owner.clone(), component::facts(&key.kind).stage);
        if let Comparison::Differs(found) = compare(&Manifest { key, owner, stage, body }, target) {
            entry.found.extend(Some(*found).filter(|found| found.drift.is_some()));
        }
    }
    all
}

enum Comparison<'a> {
    Equal,
    Contested(&'a [Contest]),
    Foreign(&'a ObservedObject),
    /// The path of a link or something of the wrong type, in its place or on the way there.
    Obstacle(&'a str),
    Differs(Box<ObjectDiff>),
}

fn compare<'a>(manifest: &Manifest, target: &TargetContents<'a>) -> Comparison<'a> {
    let nothing = KnownObject::default();
    let object = target.objects.get(&identity(&manifest.key)).unwrap_or(&nothing);
    let known = object.made.map(|(_, made)| made);
    let as_applied = known.is_some_and(|known| known.applied == manifest.digest());
    let applied = object.applied();
    // The target's inventory may be older than the state, for example after a copy of it was restored.
    let is_it = |object: &&RecordedObject| object.applied == manifest.digest();
    let was_applied = as_applied || object.remembered.as_ref().is_some_and(is_it);
    if !target.is_observed {
        return match known {
            Some(_) if as_applied => Comparison::Equal,
            Some(known) => differs(manifest, Verb::Update, known.uid.clone(), applied.cloned(), None),
            None => differs(manifest, Verb::Create, None, None, None),
        };
    }
    match object.there {
        None => {
            // An object without a UID was only intended: it is missing because we never made it.
            let made = known.is_some_and(|known| known.uid.is_some());
            let drift = (was_applied && made).then_some(Drift { by: None });
            // Its data, such as disks and records, outlives it, so its last manifest limits the allowed changes.
            let before = applied.filter(|_| made).cloned();
            differs(manifest, Verb::Create, None, before, drift)
        }
        Some(there) if let Some(path) = &there.obstacle => Comparison::Obstacle(path),
        Some(there) if !there.ours => Comparison::Foreign(there),
        Some(there) if there.unchanged && as_applied => match there.contested.as_slice() {
            [] => Comparison::Equal,
            contested => Comparison::Contested(contested),
        },
        Some(there) => {
            // The applied manifest describes an unchanged object best: its secrets are comparable slots.
            let read = applied.filter(|_| there.unchanged).or(there.manifest.as_ref());
            // The manifest applied last is the best knowledge of an unreadable object.
            let last = || applied.or_else(|| as_applied.then_some(&manifest.body));
            let before = read.or_else(last).cloned();
            let drift = was_applied.then(|| Drift { by: there.changed_by.clone() });
            let unreadable = read.is_none();
            let update = found(manifest, Verb::Update, Some(there.uid.clone()), before, drift);
            Comparison::Differs(Box::new(ObjectDiff { unreadable, ..update }))
        }
    }
}

fn differs(
    manifest: &Manifest,
    verb: Verb,
    uid: Option<String>,
    before: Option<Json>,
    drift: Option<Drift>,
) -> Comparison<'static> {
    Comparison::Differs(Box::new(found(manifest, verb, uid, before, drift)))
}

fn found(
    manifest: &Manifest,
    verb: Verb,
    uid: Option<String>,
    before: Option<Json>,
    drift: Option<Drift>,
) -> ObjectDiff {
    let (object, stage, after) = (manifest.key.clone(), manifest.stage, Some(manifest.clone()));
    let step = Step { verb, object, stage, uid, before, after };
    ObjectDiff { step, drift, there: true, unreadable: false }
}

/// Returns the deletion of an object without a manifest.
fn left_over(key: &ObjectKey, made: &RecordedObject, known: &KnownObject, is_observed: bool) -> ObjectDiff {
    let object = known.there;
    let is_gone = is_observed && object.is_none();
    let before = match is_gone {
        true => None,
        false => {
            let unchanged = object.is_none_or(|object| object.unchanged);
            let applied = known.applied();
            // An unreadable object is described by what was applied last.
            applied.filter(|_| unchanged).or_else(|| object?.manifest.as_ref()).or(applied).cloned()
        }
    };
    let uid = object.map(|object| object.uid.clone()).or_else(|| made.uid.clone());
    let stage = component::facts(&key.kind).stage;
    let step = Step { verb: Verb::Delete, object: key.clone(), stage, uid, before, after: None };
    ObjectDiff { step, drift: None, there: !is_gone, unreadable: false }
}

/// The identity of an object in any version of its API: group, kind, namespace, name.
type Identity<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

fn identity(key: &ObjectKey) -> Identity<'_> {
    (key.group(), &key.kind, key.namespace.as_deref(), &key.name)
}
