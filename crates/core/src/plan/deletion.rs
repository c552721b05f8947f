//! The deletion of a recorded resource that no spec names any more.

use std::collections::BTreeMap;

use crate::catalog::{Absence, Hold, RecordedResource};
use crate::component::{self, Manifest};
use crate::names::{Identifier, Kind, ObjectKey, ResourceKey};
use crate::plan::change::kept_resource;
use crate::plan::compare::diff::{Differences, ObjectDiff};
use crate::plan::model::site::FleetInputs;
use crate::plan::world::PlanContext;
use crate::plan::{
    Change, Step, Verb, Verdict, Waiting, compare::cause, guard::on_target, guard::pause, model::order,
};
use crate::spec::{OnDelete, Spec, TopicOnDelete};

pub(super) fn resource_deletion(
    world: &PlanContext,
    key: &ResourceKey,
    absence: &Absence,
    differences: Differences,
    site: Option<&FleetInputs>,
) -> Option<Change> {
    if key.kind == Kind::Organization && key.name == Identifier::ROOT {
        return None;
    }
    let record = world.recorded(key);
    let origin = record.and_then(|record| record.cached.last_good.as_ref()).map(|good| good.origin.clone());
    let kept = Change { record: record.cloned(), ..kept_resource(key, origin) };
    Some(match absence {
        Absence::Unknown { unreadable } => {
            Change { waiting: vec![Waiting::UnreadableFile { origin: unreadable.clone() }], ..kept }
        }
        Absence::Renamed { to } => Change {
            waiting: vec![Waiting::Refused {
                why: format!(
                    "it became {to} in the same revision; a rename would delete one resource and create the other"
                ),
            }],
            ..kept
        },
        Absence::Removed => delete(world, kept, differences, None, site),
        Absence::Suspicious { why } => delete(world, kept, differences, Some(why), site),
    })
}

fn delete(
    world: &PlanContext,
    kept: Change,
    differences: Differences,
    suspicious: Option<&str>,
    site: Option<&FleetInputs>,
) -> Change {
    let key = kept.resource.clone();
    let on = SharedFate::of(world, &key, site);
    let released = if on.is_released { release(&key, &differences) } else { Vec::new() };
    let data = DataRetention::of(&key, world.recorded(&key), &differences);
    let occupied = foreign_by_namespace(&differences);
    let (verdict, effects) = match key.kind.is_on_cluster() {
        true => outcome_on_cluster(&key, &on, &differences),
        false => outcome(&key, &data, &differences, &occupied),
    };
    let on_fleet = key.kind.is_on_fleet();
    let mut waiting = Vec::new();
    if on_fleet && is_protected(world, on.cluster.as_ref().unwrap_or(&key), &differences, site) {
        waiting.push(Waiting::Protected);
    }
    waiting.extend(pause::of_absence(world, &key));
    waiting.extend(suspension(world, &key));
    waiting.extend(children(world, &key));
    waiting.extend(site.and_then(|site| on_target::leftovers(world, site, &key)));
    if let Some(why) = suspicious.filter(|_| !on_fleet) {
        // Approvals belong to a fleet. A resource without one can only be restored, or removed again later.
        waiting.push(Waiting::Refused {
            why: format!(
                "{why}, which looks like a mistake; to delete it anyway, restore its \
                                                      spec, apply, then remove the spec"
            ),
        });
    }
    waiting.extend(replaced(site, &differences).map(|object| Waiting::ForeignObject { object }));
    let mut steps: Vec<_> = differences.found.into_iter().map(|found| found.step).collect();
    let is_occupied = |object: &ObjectKey| object.kind == "Namespace" && occupied.contains_key(&object.name);
    steps.retain(|step| {
        step.verb == Verb::Delete && !data.keeps(&step.object.kind) && !is_occupied(&step.object)
    });
    let stays = occupied.iter().map(|(namespace, claim)| {
        format!("its namespace {namespace} is kept: it contains {claim}, which isn't managed by streamfleet")
    });
    let effects = effects.into_iter().chain(stays).collect();
    order::sort(&mut steps);
    if !released.is_empty() {
        // The deletion follows when this is done, and is then a deletion that has begun.
        let mut record = world.recorded(&key).cloned();
        record.iter_mut().for_each(|record| record.durable.deleting = true);
        return Change {
            verb: Verb::Update,
            guarded: suspicious.is_some(),
            verdict,
            effects,
            waiting,
            steps: released,
            record,
            ..kept
        };
    }
    Change {
        verb: Verb::Delete,
        guarded: key.kind == Kind::Cluster
            || key.kind == Kind::Topic && verdict == Verdict::DataLoss
            || suspicious.is_some(),
        verdict,
        effects,
        waiting,
        steps,
        record: None,
        ..kept
    }
}

/// The conditions for deleting a topic or user, beside its own record.
struct SharedFate {
    /// Its cluster, if that is deleted as well. Then the cluster's protection decides.
    cluster: Option<ResourceKey>,
    /// Whether the topic stays in Kafka: until its cluster is deleted, or for good by `on_delete: Retain`. A
    /// target that isn't observed can't tell when the topic operator has let it go.
    is_released: bool,
}

impl SharedFate {
    fn of(world: &PlanContext, key: &ResourceKey, site: Option<&FleetInputs>) -> Self {
        let cluster = key.within_cluster().map(|(cluster, _)| cluster);
        let is_going = |cluster: &ResourceKey| {
            matches!(world.absence(cluster), Some(Absence::Removed | Absence::Suspicious { .. }))
        };
        let cluster = cluster.filter(is_going);
        let retained = match world.recorded(key).and_then(|record| record.applied_spec(key.kind)) {
            Some(Spec::Topic(topic)) => topic.on_delete == TopicOnDelete::Retain,
            _ => false,
        };
        let observes = site.and_then(|site| world.observes(site.fleet)) == Some(true);
        Self { is_released: key.kind == Kind::Topic && observes && (retained || cluster.is_some()), cluster }
    }
}

/// Returns the steps after which the objects of a resource can be deleted without their data; empty if they can
/// be already.
fn release(owner: &ResourceKey, differences: &Differences) -> Vec<Step> {
    let steps = differences.found.iter().filter(|found| found.there).filter_map(|found| {
        let step = &found.step;
        let body = component::facts(&step.object.kind).released?(step.before.as_ref()?)?;
        Some((step, body))
    });
    let steps = steps.map(|(step, body)| {
        let (key, stage) = (step.object.clone(), step.stage);
        let after = Some(Manifest { key, owner: owner.clone(), stage, body });
        Step { verb: Verb::Update, after, ..step.clone() }
    });
    steps.collect()
}

/// Describes the deletion of a topic or user.
fn outcome_on_cluster(
    key: &ResourceKey,
    on: &SharedFate,
    differences: &Differences,
) -> (Verdict, Vec<String>) {
    if !differences.found.iter().any(|found| found.there) {
        return (Verdict::NoOp, Vec::new());
    }
    let (verdict, effect) = match (key.kind, on.is_released, &on.cluster) {
        (Kind::Topic, true, Some(cluster)) => (
            Verdict::InPlace,
            format!("the topic stays in Kafka with its records until {cluster} is deleted"),
        ),
        (Kind::Topic, true, None) => (
            Verdict::InPlace,
            "the topic stays in Kafka with its records, and is no longer managed".to_owned(),
        ),
        (Kind::Topic, false, _) => {
            (Verdict::DataLoss, "the topic is deleted with all its records".to_owned())
        }
        _ => (
            Verdict::InPlace,
            "the user is deleted with its rights and its Secret: clients can't log in as it any more"
                .to_owned(),
        ),
    };
    (verdict, vec![effect])
}

/// Returns the namespaces that contain foreign objects, each with one such object, preferably a disk.
fn foreign_by_namespace(differences: &Differences) -> BTreeMap<String, ObjectKey> {
    let mut others: Vec<&ObjectKey> = differences.foreign.iter().collect();
    others.sort_by_key(|object| object.kind == "PersistentVolumeClaim");
    others.into_iter().filter_map(|other| Some((other.namespace.clone()?, other.clone()))).collect()
}

/// Returns a foreign object in the place of one of ours, or one that an operator combines with ours. A person
/// has to decide about the rest: it may be in use.
fn replaced(site: Option<&FleetInputs>, differences: &Differences) -> Option<ObjectKey> {
    let ours = &site?.recorded?.objects;
    let is_it = |object: &&ObjectKey| ours.contains_key(*object) || component::is_custom(object);
    differences.foreign.iter().find(is_it).cloned()
}

/// Whether a resource is protected. If its creation was stopped before it made anything, it is not.
fn is_protected(
    world: &PlanContext,
    key: &ResourceKey,
    differences: &Differences,
    site: Option<&FleetInputs>,
) -> bool {
    let nothing_there = differences.foreign.is_empty() && differences.found.iter().all(|found| !found.there);
    let protected =
        |record: &RecordedResource| record.durable.protected || on_target::is_protected(world, site, key);
    world.recorded(key).is_none_or(|record| protected(record) && !(record.durable.creating && nothing_there))
}

/// Returns the hold of a resource that it or its fleet suspends. Without that spec, its record decides.
fn suspension(world: &PlanContext, key: &ResourceKey) -> Option<Waiting> {
    let fleet = world.recorded(key).and_then(|record| record.fleet(key));
    let mut asked = [Some(key.clone()), fleet.map(|fleet| fleet.resource())].into_iter().flatten();
    let by = asked.find(|by| is_suspended(world, by))?;
    Some(Waiting::Held(Hold::Suspended { by }))
}

/// Whether a resource that isn't as its spec says is suspended.
pub(super) fn is_suspended(world: &PlanContext, key: &ResourceKey) -> bool {
    match world.catalog.resources.get(key) {
        Some(resource) if resource.hold.is_none() => false,
        Some(resource) if resource.safeguards.suspended => true,
        _ => world.recorded(key).is_some_and(|record| record.durable.suspended),
    }
}

/// The fate of a cluster's disks.
struct DataRetention {
    /// Whether all data may be deleted: `on_delete: Delete` was applied, and no node pool contradicts it.
    deletes_everything: bool,
    /// Whether any data is deleted, even if not all may be: a pool's disks may be deleted with the pool.
    deletes_data: bool,
}

impl DataRetention {
    fn of(key: &ResourceKey, record: Option<&RecordedResource>, differences: &Differences) -> Self {
        let claims: Vec<bool> = differences.found.iter().filter_map(delete_claim).collect();
        let applied = match record.and_then(|record| record.applied_spec(key.kind)) {
            Some(Spec::Cluster(cluster)) => {
                Some(cluster.advanced_config.storage.on_delete == OnDelete::Delete)
            }
            // Of what a fleet has, Prometheus alone has a disk, and the deletion waits for its namespace.
            _ if key.kind == Kind::Fleet => Some(true),
            _ => None,
        };
        // Anybody may have edited a node pool, so its settings alone can't permit the deletion of data.
        let deletes_everything = applied == Some(true) && claims.iter().all(|claim| *claim);
        Self { deletes_everything, deletes_data: deletes_everything || claims.contains(&true) }
    }

    /// Definitions are never deleted: that would delete every Kafka on the Kubernetes cluster.
    fn keeps(&self, kind: &str) -> bool {
        match kind {
            "CustomResourceDefinition" => true,
            "Namespace" | "PersistentVolumeClaim" => !self.deletes_everything,
            _ => false,
        }
    }
}

/// Whether the disks of an existing object are deleted with it; `None` if it has none.
fn delete_claim(found: &ObjectDiff) -> Option<bool> {
    let deletes_disks = component::facts(&found.step.object.kind).deletes_disks.filter(|_| found.there)?;
    Some(found.step.before.as_ref().is_some_and(deletes_disks))
}

fn outcome(
    key: &ResourceKey,
    data: &DataRetention,
    differences: &Differences,
    occupied: &BTreeMap<String, ObjectKey>,
) -> (Verdict, Vec<String>) {
    let there = differences.found.iter().filter(|found| found.there).map(|found| &found.step.object);
    let namespaces = there.clone().filter(|object| object.kind == "Namespace");
    let (kept, going): (Vec<&str>, Vec<&str>) =
        namespaces.map(|object| object.name.as_str()).partition(|_| data.keeps("Namespace"));
    let going: Vec<&str> = going.into_iter().filter(|namespace| !occupied.contains_key(*namespace)).collect();
    if key.kind != Kind::Cluster {
        let verdict = if there.clone().next().is_some() { Verdict::InPlace } else { Verdict::NoOp };
        let stays = kept.iter().map(|namespace| format!("its namespace is kept: {namespace}"));
        return (verdict, stays.collect());
    }
    let (verdict, effect) = match (data.deletes_data, kept.is_empty()) {
        (true, true) if going.is_empty() => {
            (Verdict::DataLoss, "the cluster is deleted with all data on its disks".to_owned())
        }
        (true, true) => {
            let effect = format!(
                "the cluster is deleted with all data on its disks and everything else in Namespace {}",
                going.join(", ")
            );
            (Verdict::DataLoss, effect)
        }
        (true, false) => {
            let effect = format!(
                "the cluster is deleted with the data of its node pools; its namespace is kept: {}",
                kept.join(", ")
            );
            (Verdict::DataLoss, effect)
        }
        (false, true) => (Verdict::ServiceLoss, "the cluster is deleted; its disks are kept".to_owned()),
        (false, false) => {
            let effect =
                format!("the cluster is deleted; its namespace and disks are kept: {}", kept.join(", "));
            (Verdict::ServiceLoss, effect)
        }
    };
    let in_bucket = differences.found.iter().filter_map(left_behind);
    (verdict, [effect].into_iter().chain(in_bucket).collect())
}

/// Describes data of an object that stays somewhere else.
fn left_behind(found: &ObjectDiff) -> Option<String> {
    found.step.before.as_ref().and_then(component::facts(&found.step.object.kind).left_behind)
}

fn children(world: &PlanContext, key: &ResourceKey) -> Option<Waiting> {
    let recorded = world.recorded.resources.iter();
    let mut left: Vec<ResourceKey> = match key.kind {
        Kind::Cluster => {
            let is_its = |other: &ResourceKey| other.within_cluster().is_some_and(|(on, _)| on == *key);
            let applied = recorded.map(|(other, _)| other).filter(|other| is_its(other)).cloned();
            let named = referring(world, key);
            applied.chain(named.into_iter().filter(|other| other.kind.is_on_cluster())).collect()
        }
        Kind::Topic | Kind::User => return None,
        Kind::Organization => recorded
            .map(|(other, _)| other)
            .chain(world.catalog.resources.keys())
            .filter(|other| other.organization == key.organization && *other != key)
            .cloned()
            .collect(),
        Kind::Fleet => {
            let applied = recorded.filter(|(other, record)| {
                other.kind == Kind::Cluster
                    && record.fleet(other).is_some_and(|fleet| fleet.resource() == *key)
            });
            let applied = applied.map(|(other, _)| other.clone());
            applied.chain(referring(world, key)).filter(|other| other.kind == Kind::Cluster).collect()
        }
        Kind::BaseDomain | Kind::IdentityProvider | Kind::CloudAccount => referring(world, key),
    };
    left.sort();
    left.dedup();
    let example = left.first()?.clone();
    Some(Waiting::Children { count: u32::try_from(left.len()).unwrap_or(u32::MAX), example })
}

/// Returns the resources that refer to this one, by their spec or by the record of one that isn't deleted yet.
fn referring(world: &PlanContext, key: &ResourceKey) -> Vec<ResourceKey> {
    let absent = world.absent().map(|(other, _)| other);
    let all = world.catalog.resources.keys().chain(absent);
    let all = all.filter(|other| other.organization == key.organization && *other != key);
    let refers = |other: &&ResourceKey| {
        world.spec(other).is_some_and(|spec| cause::direct_references(world, other, spec).contains(key))
    };
    all.filter(refers).cloned().collect()
}
