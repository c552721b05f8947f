//! Which objects of a target differ from what they should be.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::RecordedObject;
use crate::names::{Json, ObjectKey, ResourceKey};
use crate::plan::site::Site;
use crate::plan::world::{Identity, identity};
use crate::plan::{Contest, ObservedObject, Reach, Step, Verb, manifest_digest};
use crate::render::{Manifest, Objects, Stage};
use crate::spec::InfraType;

/// What one target holds, as far as it is known.
pub(super) struct Target<'a> {
    /// Whether it could be looked at.
    pub reach: Reach,
    /// What we made there: the state's memory and the target's own, which wins.
    inventory: BTreeMap<Identity<'a>, (&'a ObjectKey, &'a RecordedObject)>,
    /// What is there; none when it could not be looked at.
    objects: Option<BTreeMap<Identity<'a>, &'a ObservedObject>>,
    /// The state's memory alone, for the manifests that a target's inventory may lack.
    remembered: BTreeMap<Identity<'a>, &'a RecordedObject>,
    /// What the target's own inventory names; empty where it has none.
    named: BTreeSet<Identity<'a>>,
}

/// An object that is not as it should be.
#[derive(Clone)]
pub(super) struct Found {
    /// What would make it so.
    pub step: Step,
    /// Set where only the target changed.
    pub drift: Option<Drift>,
    /// Whether there is anything to delete. An object that is only remembered is forgotten by its deletion.
    pub there: bool,
    /// Whether what is there can't be read, so that the step was made from what was applied last, as far as that is known.
    pub unreadable: bool,
}

/// The target changed without us.
#[derive(Clone)]
pub(super) struct Drift {
    /// Who changed it, where that is known.
    pub by: Option<String>,
}

/// What of one resource is not as it should be.
#[derive(Default)]
pub(super) struct Differences {
    /// What differs.
    pub found: Vec<Found>,
    /// What is in the way and isn't ours.
    pub foreign: Vec<ObjectKey>,
    /// What can't be written, since something stands in its place that is no file, and where.
    pub obstacles: Vec<(ObjectKey, String)>,
    /// The fields of objects that are as they should be otherwise, and that other controllers have.
    pub contested: Vec<(ObjectKey, Contest)>,
}

impl<'a> Target<'a> {
    pub fn of(site: &Site<'a>, infra_type: InfraType) -> Self {
        let Site { recorded, observed, .. } = *site;
        let objects = recorded.map(|target| &target.objects).into_iter().flatten();
        let remembered: BTreeMap<_, _> =
            objects.clone().map(|(key, object)| (identity(key), object)).collect();
        let known = objects.chain(observed.map(|target| &target.inventory).into_iter().flatten());
        let inventory = known.map(|(key, object)| (identity(key), (key, object))).collect();
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
        let objects = observed.filter(|_| reach == Reach::Reached).map(|target| {
            target.objects.iter().map(|(key, object)| (identity(key), object)).collect::<BTreeMap<_, _>>()
        });
        let named = observed.map(|target| target.inventory.keys().map(identity).collect());
        Self { reach, inventory, objects, remembered, named: named.unwrap_or_default() }
    }

    /// The manifest that was last applied to an object, where it is still known.
    fn applied(&self, id: &Identity, known: &'a RecordedObject) -> Option<&'a Json> {
        let remembered = || self.remembered.get(id).filter(|object| object.applied == known.applied);
        known.manifest.as_ref().or_else(|| remembered()?.manifest.as_ref())
    }
}

fn never_looked_at(infra_type: InfraType) -> &'static str {
    match infra_type {
        InfraType::Byok => "no spec that could be used says how to reach it",
        InfraType::Directory => "its folder was not looked at",
    }
}

/// What differs, by the resource that it is made for.
pub(super) fn differences<'a>(
    desired: impl Iterator<Item = &'a Manifest>,
    target: &Target,
) -> BTreeMap<ResourceKey, Differences> {
    let mut all: BTreeMap<ResourceKey, Differences> = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    for manifest in desired {
        wanted.insert(identity(&manifest.key));
        match compare(manifest, target) {
            Comparison::Equal => {}
            Comparison::Contested(contests) => {
                let contested = contests.iter().map(|it| (manifest.key.clone(), it.clone()));
                all.entry(manifest.owner.clone()).or_default().contested.extend(contested);
            }
            Comparison::Foreign => {
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
    for (id, (key, known)) in target.inventory.iter().filter(|(id, _)| !wanted.contains(*id)) {
        let entry = all.entry(known.owner.clone()).or_default();
        match target.objects.as_ref().map(|objects| objects.get(id)) {
            Some(Some(there)) if !there.ours => entry.foreign.push((*key).clone()),
            there => entry.found.push(left_over(target, id, key, known, there.map(Option::<&&_>::copied))),
        }
    }
    all
}

/// What of one resource's objects is no longer as it was applied.
#[derive(Default)]
pub(super) struct Drifted {
    /// What would put it back.
    pub found: Vec<Found>,
    /// The objects of which it isn't known any more what was applied.
    pub unknown: Vec<ObjectKey>,
}

/// What is no longer as it was applied last, by the resource that it was made for, whatever should be there by now.
pub(super) fn drifted(
    target: &Target,
    desired: Option<&Objects>,
    of: impl Fn(&ResourceKey) -> bool,
) -> BTreeMap<ResourceKey, Drifted> {
    let mut all: BTreeMap<ResourceKey, Drifted> = BTreeMap::new();
    let Some(objects) = &target.objects else { return all };
    // An object without a uid was only intended. One that the target's inventory no longer names was deleted by us, though a run
    // that was killed then may have left its record.
    let is_named = |id: &Identity| target.named.is_empty() || target.named.contains(id);
    let made = target.inventory.iter().filter(|(id, _)| is_named(id));
    let made = made.filter(|(_, (_, known))| known.uid.is_some() && of(&known.owner));
    for (id, (key, known)) in made {
        if objects.get(id).is_some_and(|there| !there.ours || there.unchanged) {
            continue;
        }
        let entry = all.entry(known.owner.clone()).or_default();
        let is_it = |manifest: &&Manifest| manifest_digest(manifest) == known.applied;
        let rendered = || desired?.get(*key).filter(is_it).map(|manifest| &manifest.body);
        let Some(body) = target.applied(id, known).or_else(rendered).cloned() else {
            entry.unknown.push((*key).clone());
            continue;
        };
        let (key, owner, stage) = ((*key).clone(), known.owner.clone(), stage_of(&key.kind));
        if let Comparison::Differs(found) = compare(&Manifest { key, owner, stage, body }, target) {
            entry.found.extend(Some(*found).filter(|found| found.drift.is_some()));
        }
    }
    all
}

enum Comparison<'a> {
    Equal,
    /// Equal, but for the fields that other controllers have.
    Contested(&'a [Contest]),
    Foreign,
    /// Something stands there that is no file.
    Obstacle(&'a str),
    Differs(Box<Found>),
}

/// Compares one object that should exist with what was applied and with what is there.
fn compare<'a>(manifest: &Manifest, target: &Target<'a>) -> Comparison<'a> {
    let id = identity(&manifest.key);
    let known = target.inventory.get(&id).map(|(_, known)| *known);
    let as_applied = known.is_some_and(|known| known.applied == manifest_digest(manifest));
    let applied = known.and_then(|known| target.applied(&id, known));
    // The target's own memory may be older than ours, as after somebody put an older copy of it back.
    let is_it = |object: &&RecordedObject| object.applied == manifest_digest(manifest);
    let was_applied = as_applied || target.remembered.get(&id).is_some_and(is_it);
    let Some(objects) = &target.objects else {
        return match known {
            Some(_) if as_applied => Comparison::Equal,
            Some(known) => differs(manifest, Verb::Update, known.uid.clone(), applied.cloned(), None),
            None => differs(manifest, Verb::Create, None, None, None),
        };
    };
    match objects.get(&id) {
        None => {
            // An object without a uid was only intended: it is missing because we never made it.
            let made = known.is_some_and(|known| known.uid.is_some());
            let drift = (was_applied && made).then_some(Drift { by: None });
            // Its data outlives it, such as disks and records: what it was decides what it may become.
            let before = applied.filter(|_| made).cloned();
            differs(manifest, Verb::Create, None, before, drift)
        }
        Some(there) if let Some(path) = &there.obstacle => Comparison::Obstacle(path),
        Some(there) if !there.ours => Comparison::Foreign,
        Some(there) if there.unchanged && as_applied => match there.contested.as_slice() {
            [] => Comparison::Equal,
            contested => Comparison::Contested(contested),
        },
        Some(there) => {
            // What is as we applied it is best described by what we applied: there secrets are slots, and compare.
            let read = applied.filter(|_| there.unchanged).or(there.manifest.as_ref());
            // Of what can't be read, what was applied last is the best that is known: it decides what it may become.
            let last = || applied.or_else(|| as_applied.then_some(&manifest.body));
            let before = read.or_else(last).cloned();
            let drift = was_applied.then(|| Drift { by: there.changed_by.clone() });
            let unreadable = read.is_none();
            let update = found(manifest, Verb::Update, Some(there.uid.clone()), before, drift);
            Comparison::Differs(Box::new(Found { unreadable, ..update }))
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
) -> Found {
    let (object, stage, after) = (manifest.key.clone(), manifest.stage, Some(manifest.clone()));
    let step = Step { verb, object, stage, uid, before, after };
    Found { step, drift, there: true, unreadable: false }
}

/// An object of ours that nothing asks for any more. `there` is none where the target could not be looked at.
fn left_over(
    target: &Target,
    id: &Identity,
    key: &ObjectKey,
    known: &RecordedObject,
    there: Option<Option<&ObservedObject>>,
) -> Found {
    let object = there.flatten();
    let before = match there {
        Some(None) => None,
        _ => {
            let unchanged = object.is_none_or(|object| object.unchanged);
            let applied = target.inventory.get(id).and_then(|(_, known)| target.applied(id, known));
            // What can't be read takes along what it was applied with.
            applied.filter(|_| unchanged).or_else(|| object?.manifest.as_ref()).or(applied).cloned()
        }
    };
    let uid = object.map(|object| object.uid.clone()).or_else(|| known.uid.clone());
    let stage = stage_of(&key.kind);
    let step = Step { verb: Verb::Delete, object: key.clone(), stage, uid, before, after: None };
    Found { step, drift: None, there: there != Some(None), unreadable: false }
}

/// The stage of an object from its kind, where it isn't rendered: the record doesn't keep the stage.
fn stage_of(kind: &str) -> Stage {
    match kind {
        "Namespace" | "CustomResourceDefinition" => Stage::Namespace,
        "Deployment" => Stage::Operator,
        kind if kind.starts_with("Kafka") => Stage::Custom,
        _ => Stage::Configuration,
    }
}
