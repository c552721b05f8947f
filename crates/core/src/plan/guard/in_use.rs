//! Protects existing objects that are in use, independent of the present specs. A lost cache changes
//! nothing, since use is derived from the objects themselves.
//!
//! A fleet's Gateway stays until no cluster is reached through it: clusters change how they are reached one
//! at a time, and a cluster whose document is gone runs until its deletion is approved. A Gateway doesn't
//! become public while a cluster behind it has an unknown spec. Host names stay while clients use them, and
//! so does the domain of the Gateway. Kept disks contain data of an earlier cluster.

use std::collections::BTreeSet;

use crate::component::{self, ObjectRole};
use crate::names::{Json, Kind, ObjectKey, ResourceKey};
use crate::plan::compare::diff::Differences;
use crate::plan::compare::verdict::RefusedChange;
use crate::plan::model::site::FleetInputs;
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Change, ObservedObject, Remark, Step, Verb, Verdict, Waiting};

fn role(object: &ObjectKey) -> ObjectRole {
    component::facts(&object.kind).role
}

/// Removes the deletion of a Gateway from a fleet's differences while clusters need it, and returns the wait.
pub(in crate::plan) fn keep(
    site: &FleetInputs,
    owner: &ResourceKey,
    differences: &mut Differences,
) -> Option<Waiting> {
    let is_deletion =
        |step: &crate::plan::Step| step.verb == Verb::Delete && role(&step.object) == ObjectRole::Gateway;
    let found = differences.found.iter().find(|found| is_deletion(&found.step));
    let object = found.filter(|_| owner.kind == Kind::Fleet)?.step.object.clone();
    let users = users(site);
    let example = (*users.first()?).clone();
    differences.found.retain(|found| !is_deletion(&found.step));
    Some(Waiting::InUse { object, count: u32::try_from(users.len()).unwrap_or(u32::MAX), example })
}

/// Returns the clusters that are reached through a Gateway by their objects, or may be.
fn users<'a>(site: &FleetInputs<'a>) -> BTreeSet<&'a ResourceKey> {
    let observed = site.observed;
    let stands =
        move |key: &ObjectKey| observed?.objects.get(key).filter(|live| live.ours)?.manifest.as_ref();
    let recorded = site.recorded.into_iter().flat_map(|recorded| &recorded.objects);
    let inventory = observed.into_iter().flat_map(|observed| &observed.inventory);
    let kafkas = recorded.chain(inventory).filter(|(key, _)| role(key) == ObjectRole::Cluster);
    let used = kafkas.filter(|(key, known)| {
        let body: Option<&Json> = stands(key).or(known.manifest.as_ref());
        body.is_none_or(component::facts(&key.kind).is_routed)
    });
    used.map(|(_, known)| &known.owner).collect()
}

/// Refuses changes that would cut off users of existing objects, and requires approval if disks were kept.
pub(in crate::plan) fn judge(
    world: &PlanContext,
    site: &FleetInputs,
    change: &mut Change,
) -> Vec<RefusedChange> {
    tell_disks(world, site, change);
    // Drift is restored without a check.
    if matches!(change.cause, Cause::Drift { .. }) {
        return Vec::new();
    }
    let refusals =
        moved(change).into_iter().chain(redirected(site, change)).chain(opened(world, site, change));
    let refusals: Vec<RefusedChange> = refusals.collect();
    for refusal in &refusals {
        change.waiting.push(Waiting::Refused { why: refusal.why.clone() });
        change.verdict = Verdict::Refused;
    }
    refusals
}

/// Adds remarks about disks of an earlier cluster to the creation of one of its name, which then needs
/// approval. If only the Kafka object is recreated, the disks are the cluster's own.
fn tell_disks(world: &PlanContext, site: &FleetInputs, change: &mut Change) {
    let is_made = |step: &&Step| step.verb == Verb::Create && role(&step.object) == ObjectRole::Cluster;
    let Some(kafka) = change.steps.iter().find(is_made).map(|step| step.object.clone()) else { return };
    let kept = site.observed.and_then(|observed| observed.kept.get(&change.resource));
    if let Some((kept, example)) = kept.and_then(|kept| Some((kept, kept.first()?))) {
        let disks = u32::try_from(kept.len()).unwrap_or(u32::MAX);
        change.remarks.push(Remark::KeptDisks { disks, example: example.clone() });
        change.guarded = true;
    } else if knows_its_id(world, site, change, &kafka) {
        let is_seen = world.observes(site.fleet) != Some(false);
        change.remarks.push(Remark::NewAuthorities { is_seen });
    } else if world.observes(site.fleet) == Some(false) && may_have_disks(world, site, change, &kafka) {
        change.remarks.push(Remark::UnseenDisks);
    }
}

/// A recreated Kafka keeps its id if its node pools exist: the operator finds the id in their status.
fn knows_its_id(world: &PlanContext, site: &FleetInputs, change: &Change, kafka: &ObjectKey) -> bool {
    let is_made = |step: &Step| step.verb == Verb::Create && role(&step.object) == ObjectRole::Nodes;
    let is_its = |(key, there): (&ObjectKey, &ObservedObject)| {
        role(key) == ObjectRole::Nodes && key.namespace == kafka.namespace && there.ours
    };
    world.is_made(&change.resource)
        && !change.steps.iter().any(is_made)
        && site.observed.is_some_and(|observed| observed.objects.iter().any(is_its))
}

/// Whether a cluster that is created in a folder may find disks of an earlier one: its namespace, which is
/// deleted only if no disk is kept, is older than the creation.
fn may_have_disks(world: &PlanContext, site: &FleetInputs, change: &Change, kafka: &ObjectKey) -> bool {
    let is_begun = world.recorded(&change.resource).is_some_and(|record| record.durable.creating);
    let was_deleted = world.recorded.generations.contains_key(&change.resource);
    let is_its = |(key, there): (&ObjectKey, &ObservedObject)| {
        key.kind == "Namespace" && Some(&key.name) == kafka.namespace.as_ref() && there.ours
    };
    let is_there = site.observed.is_some_and(|observed| observed.objects.iter().any(is_its));
    is_there && (!is_begun || was_deleted)
}

/// Refuses to change a cluster's host name while clients use it.
fn moved(change: &Change) -> Option<RefusedChange> {
    let kafkas = change.steps.iter().filter(|step| role(&step.object) == ObjectRole::Cluster);
    let (from, to) = kafkas.filter_map(|step| step.before.as_ref().zip(step.after.as_ref())).find_map(
        |(before, after)| {
            let hosts = after.facts().hosts;
            let after = hosts(&after.body);
            let lost = |(listener, from): (String, String)| {
                let to = after.get(&listener)?;
                (*to != from).then(|| (from, to.clone()))
            };
            hosts(before).into_iter().find_map(lost)
        },
    )?;
    Some(RefusedChange {
        code: "host-in-use",
        why: format!("clients outside find the cluster at {from}, which would become {to}"),
        hint: "restore the fleet's `domain` and its base domain, or first set `cluster_access: Internal` on the \
            cluster and apply, which closes it to those clients",
    })
}

/// Refuses to change a Gateway's domain while clients use it, since they keep asking for the old host names.
fn redirected(site: &FleetInputs, change: &Change) -> Option<RefusedChange> {
    let gateways = change.steps.iter().filter(|step| role(&step.object) == ObjectRole::Gateway);
    let (from, to) = gateways.filter_map(|step| step.before.as_ref().zip(step.after.as_ref())).find_map(
        |(before, after)| {
            let [from, to] =
                [before, &after.body].map(|body| (after.facts().hosts)(body).into_values().next());
            from.zip(to).filter(|(from, to)| from != to)
        },
    )?;
    let example = users(site).into_iter().next()?;
    Some(RefusedChange {
        code: "host-in-use",
        why: format!("clients outside find {example} under {from}, which would become {to}"),
        hint: "restore the fleet's `domain` and its base domain, or first set `cluster_access: Internal` on its \
            clusters and apply, which closes them to clients outside",
    })
}

/// Refuses to make a Gateway public while a cluster behind it may be private, since its spec is unknown.
fn opened(world: &PlanContext, site: &FleetInputs, change: &Change) -> Option<RefusedChange> {
    let opens = |step: &&Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        before.zip(after).is_some_and(|(before, after)| {
            let is_private = after.facts().is_private;
            is_private(before) && !is_private(&after.body)
        })
    };
    change.steps.iter().filter(|step| role(&step.object) == ObjectRole::Gateway).find(opens)?;
    let says = |cluster: &ResourceKey| {
        let named = world.catalog.resources.get(cluster).filter(|resource| resource.hold.is_none());
        let recorded = || world.recorded(cluster)?.cached.last_good.as_ref();
        (named.is_some() && world.absence(cluster).is_none()) || recorded().is_some()
    };
    let silent = users(site).into_iter().find(|cluster| !says(cluster))?;
    Some(RefusedChange {
        code: "gateway-opened",
        why: format!(
            "it would open {silent} to the public, and no valid spec says whether that cluster is private"
        ),
        hint: "restore `private: true` of the fleet's `gateway` and the cluster's spec, or delete the cluster first",
    })
}
