//! One round, from what a source says to what is done: the pure steps joined with the effects around them. Every way to run
//! Streamfleet goes through here, so that all of them see the same plan.

mod approval;
mod foresee;
mod health;
mod known;
mod kubeconfigs;
mod memory;
mod targets;
mod throttle;
mod verify;
mod waits;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::catalog::{self, Catalog, Recorded, Secrets};
use crate::config::Config;
use crate::names::{FleetKey, ResourceKey};
use crate::parallel;
use crate::plan::preflight::Extras;
use crate::plan::{
    Announced, FleetPart, Index, Newer, ObservedFleet, Pauses, Plan, Planner, Policy, Reach, Site,
};
use crate::render::Renderer;
use crate::secret::SecretStore;
use crate::spec::Documents;
use crate::state::{State, StateError};
use crate::target::{Basis, Marks, Target, TargetError, Targets};

pub use approval::Approved;
pub use health::Health;
pub use memory::Memory;
pub use throttle::{Throttle, left_out};
pub use waits::{News, Waits};
pub use work::Clerk;

/// What stays the same from round to round.
#[derive(Clone)]
pub struct Installation {
    /// What is recorded; none where nothing was ever applied and nothing may be written.
    pub state: Option<Arc<State>>,
    /// Where secrets are, and the keys that open them.
    pub secrets: Arc<SecretStore>,
    /// The settings.
    pub config: Config,
    /// The folder that directory fleets write to.
    pub output_dir: Utf8PathBuf,
    /// The version that renders.
    pub software: String,
    /// Whether the specs are somebody's proposal, which nobody agreed to yet: nothing is connected to because of them.
    pub proposed: bool,
}

/// A tree that was checked against what is recorded.
pub struct Checked {
    /// What is recorded.
    pub recorded: Recorded,
    /// The tree's secrets.
    pub secrets: Secrets,
    /// The tree, resolved.
    pub catalog: Catalog,
}

/// A tree that was planned.
pub struct Round {
    /// The tree, with what it was resolved against.
    pub checked: Checked,
    /// The fleets' targets.
    pub targets: Targets,
    /// What would be done.
    pub plan: Plan,
    /// What is ours on a target and neither recorded nor described. Nothing of it is in the plan.
    pub unknown: Vec<Unknown>,
    /// How fleets and clusters are, and what is remembered of that.
    pub health: BTreeMap<FleetKey, Health>,
    /// What newer versions of Kafka clusters could have.
    pub newer: Newer,
    /// How many fleets were looked at: all but those that are known to be as they were when nothing was to be done.
    pub looked: usize,
    /// The fleets on which an earlier plan was being carried out when this one was made.
    pub under_way: BTreeSet<FleetKey>,
    /// When whoever had resources made or changed was told that they are, as far as that isn't recorded yet.
    pub announced: BTreeMap<ResourceKey, Announced>,
    /// What kubeconfigs that outlive their specs are sealed to.
    recipient: String,
    /// Where everything is in the plan.
    index: OnceLock<Index>,
}

/// What came of planning all fleets.
struct Planned {
    plan: Plan,
    unknown: Vec<Unknown>,
    health: BTreeMap<FleetKey, Health>,
    newer: Newer,
    looked: usize,
}

/// The fleets on which an earlier plan is being carried out, each with since when.
type UnderWay = BTreeMap<FleetKey, Timestamp>;

/// Objects of ours on a target whose owner nobody knows any more: it was made after the backup that was restored.
pub struct Unknown {
    /// Where.
    pub fleet: FleetKey,
    /// The owner.
    pub owner: ResourceKey,
    /// How many objects.
    pub objects: usize,
}

/// What a person should know of them, as a sentence.
impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unknown { fleet, owner, objects } = self;
        write!(
            f,
            "fleet {fleet} holds objects of {owner} ({objects}), which is neither recorded nor in the tree, as after an \
             older backup was restored: they stay; to go on with it or to delete it, put its spec back and apply first"
        )
    }
}

impl Installation {
    /// Opens a tree's secrets and resolves it.
    ///
    /// # Errors
    /// When the state can't be read. Mistakes in specs are no such error: they are in the catalog.
    pub fn check(&self, documents: &Documents, now: Timestamp) -> Result<Checked, StateError> {
        self.check_with(documents, now, None)
    }

    fn check_with(
        &self,
        documents: &Documents,
        now: Timestamp,
        memory: Option<&Memory>,
    ) -> Result<Checked, StateError> {
        let mut recorded =
            self.state.as_deref().map(State::recorded_resources).transpose()?.unwrap_or_default();
        if let Some(memory) = memory {
            recorded.removed = memory.removed(documents, &recorded, now);
        }
        let mut secrets = self.secrets.open_all(documents);
        if self.proposed {
            kubeconfigs::keep_from_proposed(&mut secrets, &recorded);
        }
        let catalog = catalog::resolve(documents, &recorded, &secrets, &self.config, now);
        Ok(Checked { recorded, secrets, catalog })
    }

    /// Where a fleet's Kubernetes cluster remembers what of it is ours; none where it remembers nothing or can't be reached,
    /// and where the fleet has none. It blocks, as [`Installation::plan`] does.
    ///
    /// # Errors
    /// As [`Installation::check`].
    pub fn cluster_inventory(
        &self,
        documents: &Documents,
        fleet: &FleetKey,
        now: Timestamp,
        runtime: &Handle,
    ) -> Result<Option<String>, StateError> {
        let checked = self.check(documents, now)?;
        let kept = kubeconfigs::open(self.state.as_deref(), &self.secrets.keyring(), &checked)?;
        let targets = targets::of(&self.output_dir, &self.config, &checked, &kept);
        let Some(Target::Kubernetes(cluster)) = targets.get(fleet) else { return Ok(None) };
        let found = runtime.block_on(cluster.inventory());
        Ok(found.inspect_err(|error| tracing::debug!(%fleet, %error, "out of reach")).unwrap_or_default())
    }

    /// Checks a tree, looks at the targets and plans. It blocks, so it may not be called where async work runs. A process that
    /// plans again and again gives what it remembers: it watches Kubernetes clusters then, and looks only at fleets of
    /// which something changed.
    ///
    /// # Errors
    /// As [`Installation::check`].
    pub fn plan(
        &self,
        documents: &Documents,
        now: Timestamp,
        runtime: &Handle,
        memory: Option<&Memory>,
    ) -> Result<Round, StateError> {
        // Before anything is read: who ends meanwhile wrote records of which these would be the older ones.
        let (mut under_way, begun) = memory.map(Memory::under_way).unwrap_or_default();
        let mut checked = self.check_with(documents, now, memory)?;
        let kept = kubeconfigs::open(self.state.as_deref(), &self.secrets.keyring(), &checked)?;
        let mut targets = targets::of(&self.output_dir, &self.config, &checked, &kept);
        if let Some(memory) = memory {
            memory.targets.connect(&mut targets, runtime);
        }
        let unread = remember_ids(&mut checked, (&targets, &under_way), runtime);
        if !checked.recorded.remembered_ids.is_empty() {
            let Checked { recorded, secrets, .. } = &checked;
            checked.catalog = catalog::resolve(documents, recorded, secrets, &self.config, now);
        }
        let pauses = memory.map(|memory| memory.pauses(&checked, now)).unwrap_or_default();
        let announced = memory.map(|memory| memory.announced(&checked, now)).unwrap_or_default();
        let policy = Policy { announced, ..self.policy(now, pauses) };
        let Planned { plan, unknown, health, newer, looked } =
            self.plan_fleets(&checked, (&targets, &unread, &under_way), &policy, runtime, (memory, begun))?;
        under_way.extend(plan.fleets.iter().filter_map(|fleet| match fleet.reach {
            Reach::UnderWay { since } => Some((fleet.fleet.clone(), since)),
            _ => None,
        }));
        let recipient = self.secrets.keyring().recipient();
        let under_way = under_way.into_keys().collect();
        let index = OnceLock::new();
        let Policy { announced, .. } = policy;
        Ok(Round {
            checked,
            targets,
            plan,
            unknown,
            health,
            newer,
            looked,
            under_way,
            announced,
            recipient,
            index,
        })
    }

    /// Renders, looks at and plans one fleet after the other, as many at a time as there are processors: what a fleet holds
    /// is forgotten when its part of the plan is made. A fleet of which it could not be read what it remembers is out of reach
    /// in this round, even if it can be by now: ids were given without it. A fleet on which an earlier plan is being carried out
    /// isn't looked at. Who plans beside that may find that one was begun meanwhile, after so many: what was seen of the
    /// fleet doesn't fit what was read before, and counts as not looked at.
    fn plan_fleets(
        &self,
        checked: &Checked,
        (targets, unread, under_way): (&Targets, &BTreeMap<FleetKey, TargetError>, &UnderWay),
        policy: &Policy,
        runtime: &Handle,
        (memory, begun): (Option<&Memory>, u64),
    ) -> Result<Planned, StateError> {
        let Checked { recorded, catalog, .. } = checked;
        let state = self.state.as_deref();
        let planner =
            Planner::new(catalog, recorded, protected(catalog, (targets, under_way), runtime), policy);
        let renderer = Renderer::new(catalog);
        let mut fleets = planner.fleets();
        fleets.extend(targets.fleets().cloned());
        fleets.extend(state.map(State::fleets).transpose()?.unwrap_or_default());
        let fleets: Vec<FleetKey> = fleets.into_iter().collect();
        let looked = AtomicUsize::new(0);
        let judged = memory.map(|memory| &memory.judged);
        let now = policy.now;
        let keeps = !memory.is_some_and(|memory| memory.is_copy);
        let desk = &health::Desk { checked, state, judged, keeps, now, runtime };
        let look = |fleet: &FleetKey| -> Result<(FleetPart, Vec<Unknown>, Health), StateError> {
            looked.fetch_add(1, Ordering::Relaxed);
            if let Some(memory) = memory {
                memory.goes_on();
            }
            let held = state.map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
            let desired = renderer.fleet(fleet);
            let target = targets.get(fleet);
            let resolved = catalog.fleets.get(fleet);
            let extras = resolved.map(|fleet| Extras::of(&fleet.spec)).unwrap_or_default();
            let there = &checked.recorded.resources;
            let mut observed =
                target.map(|target| runtime.block_on(target.observe(&held, desired.as_ref(), there)));
            // Whoever doesn't answer isn't asked for more.
            let reached = observed.as_ref().is_some_and(|observed| observed.reach == Reach::Reached);
            let answering = target.filter(|_| reached);
            let facts = answering.map(|target| runtime.block_on(target.preflight(extras)));
            let reached = observed.as_mut().filter(|observed| observed.reach == Reach::Reached);
            if let (Some(observed), Some(error)) = (reached, unread.get(fleet)) {
                *observed = ObservedFleet::unknown(Reach::Unreachable {
                    reason: error.to_string(),
                    hint: error.hint().to_owned(),
                    refused: false,
                    lost: error.may_be_lost(),
                    concealed: error.is_unreached(),
                    last_seen: held.observed_at,
                });
            }
            let health = health::Book { fleet, desk }.judge(&held, target.zip(observed.as_mut()))?;
            let (desired, observed) = (desired.as_ref(), observed.as_ref());
            let site = Site { fleet, desired, recorded: Some(&held), observed, dry_runs: None };
            let mut facts = facts.flatten();
            let mut part = planner.checked_fleet(&site, facts.as_deref());
            if let Some(target) = target.filter(|target| part.needs_facts() && !target.knows_facts()) {
                facts = runtime.block_on(target.preflight_again(extras));
                part = planner.checked_fleet(&site, facts.as_deref());
            }
            let ask = |target| match memory {
                None => runtime.block_on(verify::ask(target, &part, &checked.secrets)),
                Some(Memory { asked, .. }) => {
                    runtime.block_on(asked.ask((fleet, target), &part, &checked.secrets, now))
                }
            };
            let part = match target.and_then(ask) {
                Some(runs) => {
                    planner.checked_fleet(&Site { dry_runs: Some(&runs), ..site }, facts.as_deref())
                }
                None => part,
            };
            let unknown = observed.map(|observed| unknown(checked, fleet, observed)).unwrap_or_default();
            Ok((part, unknown, health))
        };
        let busy = |fleet: &FleetKey, since: Timestamp| {
            let held = state.map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
            let observed = &ObservedFleet::unknown(Reach::UnderWay { since });
            let (desired, dry_runs) = (renderer.fleet(fleet), None);
            let (recorded, observed) = (Some(&held), Some(observed));
            let site = Site { fleet, desired: desired.as_ref(), recorded, observed, dry_runs };
            Ok((planner.fleet(&site), Vec::new(), desk.last(fleet)))
        };
        let seen = |fleet: &FleetKey| {
            let (Some(Memory { targets: memory, .. }), Some(target)) = (memory, targets.get(fleet)) else {
                return look(fleet);
            };
            let recorded = state.map_or(0, |state| state.version_of(fleet));
            let basis = Basis { desired: renderer.inputs(fleet), recorded };
            if let Some(quiet) = memory.recall(fleet, target, &basis)
                && let Some(health) = (health::Book { fleet, desk }).judge_again(target)
                && let Some(part) = planner.quiet_fleet(fleet, &quiet, health.judged.as_ref())
            {
                return Ok((part, Vec::new(), health));
            }
            let begun = memory.begin(target, basis, SystemTime::from(now));
            let looked = look(fleet)?;
            memory.remember(fleet, begun, looked.0.quiet());
            Ok(looked)
        };
        let part = |fleet: &FleetKey| {
            if let Some(&since) = under_way.get(fleet) {
                return busy(fleet, since);
            }
            let seen = seen(fleet)?;
            match memory.and_then(|memory| memory.begun_after(begun, fleet)) {
                Some(since) => busy(fleet, since),
                None => Ok(seen),
            }
        };
        let (mut parts, mut unknown, mut health) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut newer = Newer::new();
        for (fleet, done) in fleets.iter().zip(parallel::map(&fleets, part)) {
            let (part, of_nobody, of_fleet) = done?;
            newer.extend(part.newer().clone());
            parts.push(part);
            unknown.extend(of_nobody);
            health.insert(fleet.clone(), of_fleet);
        }
        Ok(Planned { plan: planner.finish(parts), unknown, health, newer, looked: looked.into_inner() })
    }

    fn policy(&self, now: Timestamp, pauses: Pauses) -> Policy {
        let policy = &self.config.policy;
        Policy {
            now,
            mode: policy.mode,
            cluster_deletions_per_hour: policy.cluster_deletions_per_hour,
            approval_lifetime: SignedDuration::from_hours(i64::from(policy.approval_hours)),
            software: self.software.clone(),
            pauses,
            announced: BTreeMap::new(),
        }
    }
}

/// Takes over the ids that targets remember of what isn't recorded, as after the registry was lost or an older one was
/// restored: an id is for life. Gives the fleets that may remember others, with why that could not be read.
fn remember_ids(
    checked: &mut Checked,
    (targets, under_way): (&Targets, &UnderWay),
    runtime: &Handle,
) -> BTreeMap<FleetKey, TargetError> {
    let Checked { recorded, catalog, .. } = checked;
    let is_unrecorded =
        |key: &ResourceKey| !recorded.resources.contains_key(key) && !recorded.generations.contains_key(key);
    let unrecorded = catalog.resources.values().filter(|resource| is_unrecorded(&resource.key));
    let fleets: BTreeSet<FleetKey> = unrecorded.filter_map(|resource| resource.fleet()).collect();
    let asked = |fleet: &FleetKey| fleets.contains(fleet) && !under_way.contains_key(fleet);
    let Marks { remembered: marks, unread } = runtime.block_on(targets.marks(asked));
    let differing =
        marks.into_iter().filter(|(key, mark)| is_unrecorded(key) && recorded.id_of(key) != mark.id);
    let remembered: BTreeMap<ResourceKey, Uuid> = differing.map(|(key, mark)| (key, mark.id)).collect();
    recorded.remembered_ids = remembered;
    unread
}

/// What targets remember as protected. Only a deletion asks what those of other fleets do; what its own fleet remembers is
/// seen when that is looked at, and without that look nothing of it is deleted.
fn protected(
    catalog: &Catalog,
    (targets, under_way): (&Targets, &UnderWay),
    runtime: &Handle,
) -> BTreeSet<ResourceKey> {
    if catalog.absent.is_empty() {
        return BTreeSet::new();
    }
    let marks = runtime.block_on(targets.marks(|fleet| !under_way.contains_key(fleet))).remembered;
    marks.into_iter().filter(|(_, mark)| mark.protected).map(|(resource, _)| resource).collect()
}

/// Whose objects are on a target without anybody knowing the owner. Namespaces are kept on purpose when a cluster is
/// deleted, and definitions always.
fn unknown(checked: &Checked, fleet: &FleetKey, observed: &ObservedFleet) -> Vec<Unknown> {
    let is_known = |owner: &ResourceKey| {
        checked.recorded.resources.contains_key(owner) || checked.catalog.resources.contains_key(owner)
    };
    let mut owners: BTreeMap<&ResourceKey, usize> = BTreeMap::new();
    for (object, known) in &observed.inventory {
        let stays = ["Namespace", "CustomResourceDefinition"].contains(&object.kind.as_str());
        if !stays && !is_known(&known.owner) {
            *owners.entry(&known.owner).or_default() += 1;
        }
    }
    let unknown = |(owner, objects): (&ResourceKey, usize)| Unknown {
        fleet: fleet.clone(),
        owner: owner.clone(),
        objects,
    };
    owners.into_iter().map(unknown).collect()
}
