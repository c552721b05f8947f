//! The inputs of a plan by hash, and what has changed since.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use sha2::Digest as _;

use crate::catalog::{CachedRecord, DurableRecord, RecordedResource};
use crate::config::{CertificateRenewal, ImagesConfig, Mode};
use crate::names::{Digest, FleetKey, Json, ResourceKey};
use crate::plan::model::site::FleetInputs;
use crate::plan::roster::Roster;
use crate::plan::world::PlanContext;
use crate::plan::{Change, Inputs, Plan, Reach, Step};
use crate::render::Manifest;

/// Returns the hashes of everything that a plan is made from, without times and status.
pub(super) fn of(world: &PlanContext, observed: BTreeMap<FleetKey, Digest>) -> Inputs {
    Inputs {
        source: world.catalog.source.clone(),
        revision: world.catalog.revision.clone(),
        commit: world.catalog.commit.clone(),
        software: world.policy.software.clone(),
        recorded: recorded(world),
        settings: settings(world),
        observed,
    }
}

fn recorded(world: &PlanContext) -> Digest {
    let recorded = world.recorded;
    let mut others = written(&(&recorded.installation, &recorded.source, &recorded.generations));
    others.extend(written(&(&recorded.approvals, &recorded.deletions)));
    let mut hash = Hash::default();
    hash.0.update(others);
    for roster in world.rosters().filter(|roster| roster.records.is_some()) {
        hash.0.update(roster.records_digest.get_or_init(|| records(roster)).as_str());
    }
    hash.finish()
}

fn records(roster: &Roster) -> Digest {
    let mut hash = Hash::default();
    for (key, record) in roster.records.iter().flat_map(|records| records.iter()) {
        let digest = record.digest(|record| Digest::of(written(&(key, timeless(record)))));
        hash.0.update(digest.as_str());
    }
    hash.finish()
}

fn settings(world: &PlanContext) -> Digest {
    let (config, policy) = (&world.catalog.config, world.policy);
    let mut hash = Hash::default();
    hash.add(&(&config.units, &config.secrets, &config.operators));
    hash.add(&(policy.cluster_deletions_per_hour, policy.approval_lifetime.as_millis().to_string()));
    if policy.topic_deletions_per_hour > 0 {
        hash.add(&policy.topic_deletions_per_hour);
    }
    if !policy.maintenance.is_empty() || policy.certificate_renewal != CertificateRenewal::default() {
        hash.add(&(&policy.maintenance, policy.certificate_renewal));
    }
    if config.images != ImagesConfig::default() {
        hash.add(&config.images);
    }
    if policy.mode != Mode::default() {
        hash.add(&policy.mode);
    }
    hash.finish()
}

/// Hashes what a plan depends on of a target: not its health, and not the manifests that are as applied.
pub(super) fn target(site: &FleetInputs) -> Digest {
    let mut hash = Hash::default();
    let recorded = site.recorded.map(|target| &target.objects);
    let observed = site.observed;
    let mut inventory: BTreeMap<_, _> = recorded.into_iter().flatten().collect();
    inventory.extend(observed.into_iter().flat_map(|target| &target.inventory));
    for (key, object) in inventory {
        hash.add(&(key, &object.owner, &object.uid, &object.applied));
    }
    hash.add(&observed.is_some_and(|target| target.reach == Reach::Reached));
    for (key, object) in observed.into_iter().flat_map(|target| &target.objects) {
        let manifest = object.manifest.as_ref().filter(|_| !object.unchanged);
        hash.add(&(key, &object.uid, object.ours, object.unchanged, manifest, &object.contested));
    }
    hash.finish()
}

/// Returns the short id that names a plan: a hash of everything that it does, without times and problems.
///
/// The ids and keys of an installation are created by its first apply, so every plan before it has different
/// ones. Its id hashes the specs instead, so that the first plan can be compared with what is then applied.
pub(super) fn id(plan: &Plan, is_new: bool) -> String {
    let hash = if is_new { of_specs(plan) } else { of_everything(plan) };
    hash.as_str().chars().take(12).collect()
}

fn of_specs(plan: &Plan) -> Digest {
    let Inputs { source, revision, commit, software, recorded: _, settings, observed } = &plan.inputs;
    let mut hash = Hash::default();
    hash.add(&(plan.format, source, revision, commit, software, settings, &plan.summary));
    hash.add(&observed);
    for change in plan.changes() {
        let Change { resource, verb, cause, verdict, effects, waiting, remarks, steps, .. } = change;
        hash.add(&(resource, verb, cause, verdict, effects, waiting, remarks));
        steps.iter().for_each(|step| hash.add(&(step.verb, &step.object, step.stage, &step.uid)));
    }
    hash.finish()
}

fn of_everything(plan: &Plan) -> Digest {
    let mut hash = Hash::default();
    hash.add(&(plan.format, &plan.inputs, &plan.summary));
    for (key, record) in &plan.remember {
        hash.add(&(key, timeless(record)));
    }
    for organization in &plan.organizations {
        hash.add(&(&organization.organization, &organization.capacity));
        organization.changes.iter().for_each(|change| hash.add_change(change));
    }
    for fleet in &plan.fleets {
        hash.add(&(&fleet.fleet, fleet.infra_type, &fleet.clusters, &fleet.kafka_units));
        hash.add(&(&fleet.conditions, &fleet.guard, &fleet.foreign));
        fleet.changes.iter().for_each(|change| hash.add_change(change));
    }
    hash.finish()
}

impl Change {
    /// Returns the hash of what the change does, to recognize it when the same would be done again.
    pub fn effect_digest(&self) -> Digest {
        let mut hash = Hash::default();
        hash.add(&(&self.resource, self.verb, &self.fields));
        if let Some(bucket) = &self.bucket {
            hash.add(bucket);
        }
        for Step { verb, object, before, after, .. } in &self.steps {
            let after = after.as_ref().map(|manifest| manifest.body.digest());
            hash.add(&(verb, object, before.as_ref().map(Json::digest), after));
        }
        hash.finish()
    }
}

fn timeless(record: &RecordedResource) -> impl Serialize + '_ {
    let RecordedResource { durable, cached } = record;
    let CachedRecord { updated_at: _, last_good, secrets, made_from } = cached;
    let durable = DurableRecord { created_at: Timestamp::UNIX_EPOCH, ..durable.clone() };
    // As text: parsing the spec would take longer than hashing it.
    let last_good = last_good.as_ref().map(|good| (good.spec().as_str(), &good.origin));
    (durable, last_good, secrets, made_from)
}

/// Serializes a value to one line of JSON for hashing.
fn written(value: &impl Serialize) -> Vec<u8> {
    // The maps hashed here have text keys, so serialization can't fail.
    let written = serde_json::to_vec(value);
    debug_assert!(written.is_ok(), "{written:?}");
    let mut line = written.unwrap_or_default();
    line.push(b'\n');
    line
}

/// A hash of values as JSON, each serialized whole first: hashing small pieces takes much longer.
#[derive(Default)]
struct Hash(sha2::Sha256);

impl Hash {
    fn add(&mut self, value: &impl Serialize) {
        self.0.update(written(value));
    }

    fn add_change(&mut self, change: &Change) {
        let Change {
            resource,
            verb,
            origin,
            cause,
            fields,
            verdict,
            effects,
            waiting,
            guarded,
            bucket,
            certificate,
            steps,
            remarks,
            record,
            repair,
        } = change;
        self.add(&(resource, verb, origin, cause, fields, verdict, effects, waiting, guarded, remarks));
        for Step { verb, object, stage, uid, before, after } in steps {
            // A digest identifies the object and is shorter to hash.
            let after =
                after.as_ref().map(|Manifest { key, owner, stage, body }| (key, owner, stage, body.digest()));
            self.add(&(verb, object, stage, uid, before.as_ref().map(Json::digest), after));
        }
        if let Some(bucket) = bucket {
            self.add(bucket);
        }
        if let Some(certificate) = certificate {
            self.add(certificate);
        }
        self.add(&record.as_ref().map(timeless));
        if *repair {
            self.add(repair);
        }
    }

    fn finish(self) -> Digest {
        Digest::of(self.0.finalize())
    }
}

impl Plan {
    /// Returns what has changed since this plan, compared with one made now; empty if this one is valid. Time
    /// alone changes nothing, but its consequences do, such as an expired approval.
    pub fn staleness(&self, fresh: &Plan) -> Vec<String> {
        let mut changed = self.changed_inputs(fresh);
        if changed.is_empty() && self.id != fresh.id {
            let differing: Vec<String> = differing(self, fresh).map(ToString::to_string).collect();
            let what =
                if differing.is_empty() { String::new() } else { format!(": see {}", differing.join(", ")) };
            changed.push(format!("time has passed or a cluster's health changed{what}"));
        }
        if changed.is_empty() {
            // The id of the first plan doesn't include secrets.
            let secrets = with_other_secrets(self, fresh);
            changed.extend(secrets.map(|resource| format!("a secret of {resource} changed")));
        }
        changed
    }

    fn changed_inputs(&self, fresh: &Plan) -> Vec<String> {
        let (was, is) = (&self.inputs, &fresh.inputs);
        let mut changed = Vec::new();
        if was.software != is.software {
            changed.push(format!("streamfleet {} made the plan, and this is {}", was.software, is.software));
        }
        if was.source != is.source {
            changed.push(format!("the plan was made from {}, and this is {}", was.source.0, is.source.0));
        }
        if was.revision != is.revision {
            let specs: Vec<String> = differing(self, fresh).map(|key| key.to_string()).collect();
            let which = if specs.is_empty() { String::new() } else { format!(": see {}", specs.join(", ")) };
            changed.push(format!("the spec tree changed{which}"));
        }
        if was.recorded != is.recorded {
            changed.push("a change was applied, approved or forgotten since".to_owned());
        }
        if was.settings != is.settings {
            changed.push("the settings of the installation changed".to_owned());
        }
        let fleets: BTreeSet<&FleetKey> = was.observed.keys().chain(is.observed.keys()).collect();
        let moved = fleets.into_iter().filter(|fleet| was.observed.get(*fleet) != is.observed.get(*fleet));
        changed.extend(moved.map(|fleet| target_changed(self, fresh, fleet)));
        changed
    }
}

fn with_other_secrets<'a>(was: &Plan, is: &'a Plan) -> impl Iterator<Item = &'a ResourceKey> {
    let secrets = |change: &Change| change.record.as_ref().map(|record| record.cached.secrets.clone());
    // A repair doesn't change the record.
    fn whole(plan: &Plan) -> impl Iterator<Item = &Change> {
        plan.changes().filter(|change| !change.repair)
    }
    let before: BTreeMap<ResourceKey, _> =
        whole(was).map(|change| (change.resource.clone(), secrets(change))).collect();
    let differs = move |change: &&Change| before.get(&change.resource) != Some(&secrets(change));
    whole(is).filter(differs).map(|change| &change.resource)
}

fn target_changed(was: &Plan, is: &Plan, fleet: &FleetKey) -> String {
    let steps = |plan: &Plan| -> BTreeMap<String, String> {
        let plans = plan.fleets.iter().filter(|plan| plan.fleet == *fleet);
        let steps = plans.flat_map(|plan| &plan.changes).flat_map(|change| &change.steps);
        steps.map(|step| (step.object.to_string(), format!("{step:?}"))).collect()
    };
    let (was, is) = (steps(was), steps(is));
    let object = was.keys().chain(is.keys()).find(|object| was.get(*object) != is.get(*object));
    let object = object.map(|object| format!(": {object}")).unwrap_or_default();
    format!("the objects on fleet {fleet} changed{object}")
}

fn differing<'a>(was: &'a Plan, is: &'a Plan) -> impl Iterator<Item = &'a ResourceKey> {
    let hashes = |plan: &'a Plan| -> BTreeMap<(&'a ResourceKey, bool), Digest> {
        let hash = |change: &Change| {
            let mut hash = Hash::default();
            hash.add_change(change);
            hash.finish()
        };
        plan.changes().map(|change| ((&change.resource, change.repair), hash(change))).collect()
    };
    let (was, is) = (hashes(was), hashes(is));
    let all = was.keys().chain(is.keys()).filter(|key| was.get(key) != is.get(key));
    all.map(|(resource, _)| *resource).collect::<BTreeSet<_>>().into_iter()
}
