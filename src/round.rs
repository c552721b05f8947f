//! One round, from a source to the executed plan: the pure steps joined with the effects around them. Every
//! verb, the daemon and the API use it, so that all of them see the same plan.

mod approval;
mod certificates;
mod dry_runs;
mod health;
mod known;
mod kubeconfigs;
mod look;
mod memory;
mod reachability;
mod records;
mod targets;
mod throttle;
mod unseen;
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

use crate::catalog::{Catalog, Recorded, ResolvedTree, Secrets};
use crate::component::{self, Extras};
use crate::config::Config;
use crate::names::{FleetKey, ResourceKey};
use crate::parallel;
use crate::plan::preflight::FleetSupport;
use crate::plan::{
    Announced, FleetInputs, Index, NewerVersions, ObservedFleet, Pauses, Plan, Planner, Policy, Reach,
    RecordCounts,
};
use crate::render::Renderer;
use crate::secret::{Keyring, SecretStore};
use crate::spec::Documents;
use crate::state::{KeptCertificates, State, StateError};
use crate::target::{FleetBasis, InventoryPlace, TargetError, TargetMarks, TargetView, Targets};

pub use approval::{Approved, waiting_approvals};
pub use health::{Health, ObservationError};
pub use look::LookError;
pub use memory::RoundMemory;
pub use reachability::{
    ChangedFinding, DueProbe, FailureWords, NameFinding, ProbeFindings, ReachabilityTable,
};
pub use throttle::{Throttle, left_out};
pub use waits::{WaitingChanges, WaitingDiff};
pub use work::Recorder;

/// Everything that stays the same between rounds.
#[derive(Clone)]
pub struct Installation {
    /// `None` if nothing was ever applied and nothing may be written.
    pub state: Option<Arc<State>>,
    pub secrets: Arc<SecretStore>,
    pub config: Arc<Config>,
    /// The folder that directory fleets write to.
    pub output_dir: Utf8PathBuf,
    /// The version of streamfleet that renders.
    pub software: String,
    /// Whether the specs are an unapproved proposal: no connection is opened because of them.
    pub proposed: bool,
}

pub struct Round {
    pub checked: Arc<ResolvedTree>,
    pub targets: Targets,
    pub plan: Plan,
    /// Objects of unknown owners. They aren't in the plan.
    pub unknown: Vec<Unknown>,
    pub health: BTreeMap<FleetKey, Health>,
    /// Kafka versions that clusters could upgrade to.
    pub newer: NewerVersions,
    /// The versions and disks that each fleet has for its clusters, as far as known.
    pub support: BTreeMap<FleetKey, FleetSupport>,
    /// How the DNS records of fleets stand, as far as they have some and nothing is being carried out there.
    pub records: BTreeMap<FleetKey, RecordCounts>,
    /// The number of fleets that were observed: all but those known to be unchanged since a round in which
    /// nothing was to be done.
    pub looked: usize,
    /// The fleets on which an earlier plan was being carried out when this one was made.
    pub under_way: BTreeSet<FleetKey>,
    /// Times at which API callers were told of creations and changes that aren't recorded yet.
    pub announced: BTreeMap<ResourceKey, Announced>,
    /// With the key to which is sealed what must outlive the specs.
    keyring: Arc<Keyring>,
    /// Created on first use.
    index: OnceLock<Index>,
}

/// The combined plan of all fleets.
struct PlannedFleets {
    plan: Plan,
    unknown: Vec<Unknown>,
    health: BTreeMap<FleetKey, Health>,
    newer: NewerVersions,
    support: BTreeMap<FleetKey, FleetSupport>,
    records: BTreeMap<FleetKey, RecordCounts>,
    looked: usize,
}

/// The fleets on which an earlier plan is being carried out, with the start time.
type UnderWay = BTreeMap<FleetKey, Timestamp>;

/// Our objects on a target whose owner is unknown: it was created after the backup that was restored.
pub struct Unknown {
    pub fleet: FleetKey,
    pub owner: ResourceKey,
    pub objects: usize,
}

/// A warning, as a sentence.
impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unknown { fleet, owner, objects } = self;
        write!(
            f,
            "fleet {fleet} has objects of {owner} ({objects}), which is neither recorded nor in the tree, as after the \
             restore of an older backup: they are kept; to manage or delete it, restore its spec and apply first"
        )
    }
}

impl Installation {
    /// Opens a tree's secrets and resolves it.
    ///
    /// # Errors
    /// When the state can't be read. Mistakes in specs aren't errors here: they are in the catalog.
    pub fn check(&self, documents: &Arc<Documents>, now: Timestamp) -> Result<ResolvedTree, StateError> {
        self.check_with(documents, now, None, None)
    }

    fn check_with(
        &self,
        documents: &Arc<Documents>,
        now: Timestamp,
        memory: Option<&RoundMemory>,
        issued: Option<KeptCertificates>,
    ) -> Result<ResolvedTree, StateError> {
        let mut recorded =
            self.state.as_deref().map(State::recorded_resources).transpose()?.unwrap_or_default();
        if let Some(memory) = memory {
            recorded.removed = memory.removed(documents, &recorded, now);
        }
        let mut secrets = self.secrets.open_all(documents);
        if self.proposed {
            let allowed = &self.config.targets.allow_addresses;
            kubeconfigs::keep_from_proposed(&mut secrets, &recorded, allowed);
        }
        let stored = || self.state.as_deref().map(State::certificates).transpose();
        let issued = issued.map_or_else(stored, |issued| Ok(Some(issued)))?;
        certificates::add(&mut secrets, &issued.unwrap_or_default(), &self.secrets.keyring());
        let before = memory.and_then(RoundMemory::last_tree);
        Ok(self.resolve(documents, recorded, secrets, now, before.as_deref()))
    }

    /// Resolves a tree, after an earlier one if there is one.
    pub fn resolve(
        &self,
        documents: &Arc<Documents>,
        recorded: Recorded,
        secrets: Secrets,
        now: Timestamp,
        before: Option<&ResolvedTree>,
    ) -> ResolvedTree {
        let settings = (&self.config, &*component::host_names());
        ResolvedTree::resolve(Arc::clone(documents), recorded, secrets, settings, now, before)
    }

    /// The place where a fleet's target keeps its inventory; `None` if it has none or can't be reached. It blocks, like [`Installation::plan`].
    ///
    /// # Errors
    /// Like [`Installation::check`].
    pub fn inventory(
        &self,
        documents: &Arc<Documents>,
        fleet: &FleetKey,
        now: Timestamp,
        runtime: &Handle,
    ) -> Result<Option<InventoryPlace>, StateError> {
        let checked = self.check(documents, now)?;
        let kept = kubeconfigs::open(self.state.as_deref(), &self.secrets.keyring(), &checked)?;
        let targets = targets::of(&self.output_dir, &self.config, &checked, &kept);
        let Some(target) = targets.get(fleet) else { return Ok(None) };
        let found = runtime.block_on(target.inventory());
        let found =
            found.inspect_err(|error| tracing::debug!(%fleet, %error, "fleet {fleet} is unreachable"));
        Ok(found.unwrap_or_default())
    }

    /// Checks a tree, observes the targets and plans. It blocks, so it must not be called from async code.
    /// With a memory, as in the daemon, Kubernetes clusters are watched and only fleets with changes are
    /// observed.
    ///
    /// # Errors
    /// Like [`Installation::check`].
    pub fn plan(
        &self,
        documents: &Arc<Documents>,
        now: Timestamp,
        runtime: &Handle,
        memory: Option<&RoundMemory>,
    ) -> Result<Round, StateError> {
        // Must be read first: if an execution ends in between, the records read before would be out of date.
        let (mut under_way, begun) = memory.map(RoundMemory::under_way).unwrap_or_default();
        let issued = match (self.state.as_deref(), &self.config.acme) {
            (Some(state), Some(acme)) if !self.proposed => {
                Some(runtime.block_on(certificates::look(state, acme, &self.secrets.keyring(), now))?)
            }
            _ => None,
        };
        let mut checked = self.check_with(documents, now, memory, issued)?;
        let kept = kubeconfigs::open(self.state.as_deref(), &self.secrets.keyring(), &checked)?;
        let mut targets = targets::of(&self.output_dir, &self.config, &checked, &kept);
        if let Some(memory) = memory {
            memory.targets.connect(&mut targets, runtime);
        }
        let unread = remember_ids(&mut checked, (&targets, &under_way), runtime);
        if !checked.recorded.remembered_ids.is_empty() {
            let ResolvedTree { recorded, secrets, .. } = checked;
            checked = self.resolve(documents, recorded, secrets, now, None);
        }
        let checked = Arc::new(checked);
        if let Some(memory) = memory {
            memory.keep_tree(&checked);
        }
        let pauses = memory.map(|memory| memory.pauses(&checked, now)).unwrap_or_default();
        let announced = memory.map(|memory| memory.announced(&checked, now)).unwrap_or_default();
        let policy = Policy { announced, ..self.policy(now, pauses) };
        let PlannedFleets { plan, unknown, health, newer, support, records, looked } =
            self.plan_fleets(&checked, (&targets, &unread, &under_way), &policy, runtime, (memory, begun))?;
        under_way.extend(plan.fleets.iter().filter_map(|fleet| match fleet.reach {
            Reach::UnderWay { since } => Some((fleet.fleet.clone(), since)),
            _ => None,
        }));
        let keyring = self.secrets.keyring();
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
            support,
            records,
            looked,
            under_way,
            announced,
            keyring,
            index,
        })
    }

    /// Renders, observes and plans the fleets, as many in parallel as there are processors; each fleet's
    /// objects are freed once it is planned, unless the fleet isn't at rest. A fleet whose inventory can't be
    /// read counts as unreachable in this round, even if it is reachable by now, since ids were assigned without
    /// it. Fleets on which an earlier plan is being carried out aren't observed. If an execution begins meanwhile
    /// (its number is above `begun`), the observation doesn't match the records that were read before, and is
    /// discarded.
    fn plan_fleets(
        &self,
        checked: &Arc<ResolvedTree>,
        (targets, unread, under_way): (&Targets, &BTreeMap<FleetKey, TargetError>, &UnderWay),
        policy: &Policy,
        runtime: &Handle,
        (memory, begun): (Option<&RoundMemory>, u64),
    ) -> Result<PlannedFleets, StateError> {
        let ResolvedTree { recorded, catalog, .. } = &**checked;
        let state = self.state.as_deref();
        let protected = protected(catalog, (targets, under_way), runtime);
        let plans = memory.map(|memory| &memory.plans);
        let planner = Planner::new(catalog, recorded, protected, policy, plans);
        planner.compare_all();
        let renderer = Renderer::after(catalog, memory.map(|memory| &memory.renderings));
        let mut fleets = planner.fleets();
        fleets.extend(targets.fleets().cloned());
        fleets.extend(state.map(State::fleets).transpose()?.unwrap_or_default());
        let fleets: Vec<FleetKey> = fleets.into_iter().collect();
        let looked = AtomicUsize::new(0);
        let judged = memory.map(|memory| &memory.judged);
        let reachability = memory.map(|memory| &*memory.reachability);
        let now = policy.now;
        let keeps = !memory.is_some_and(|memory| memory.is_copy);
        let context = &health::HealthContext { checked, state, judged, reachability, keeps, now, runtime };
        let look = |fleet: &FleetKey, last: Option<&TargetView>| -> Result<_, StateError> {
            looked.fetch_add(1, Ordering::Relaxed);
            if let Some(memory) = memory {
                memory.goes_on();
            }
            let held = state.map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
            let target = targets.get(fleet);
            let begun = target.map(|target| target.look(last, SystemTime::from(now)));
            let named = renderer.named_resources(fleet);
            let hosts = target.map(|target| runtime.block_on(target.hosts(&named)));
            let hosts = hosts.and_then(|found| found.ok()).unwrap_or_default();
            let mut desired = renderer.fleet(fleet);
            records::add(&mut desired, &named, &hosts);
            let resolved = catalog.fleets.get(fleet);
            let extras = resolved.map(|fleet| Extras::of(&fleet.spec)).unwrap_or_default();
            let applied = held.objects.iter().map(|(key, object)| (key, &object.owner));
            let wanted = desired.iter().flat_map(|it| &**it).map(|(key, object)| (key, &object.owner));
            let extras = extras.with(applied.chain(wanted));
            let there = &checked.recorded.resources;
            let seen = begun.map(|look| runtime.block_on(look.observe(&held, desired.as_deref(), there)));
            let (mut observed, view) = seen.unzip();
            records::keep_undecided(observed.as_mut(), &held, &named, &hosts);
            let reached = observed.as_ref().is_some_and(|observed| observed.reach == Reach::Reached);
            let answering = target.filter(|_| reached);
            let facts = answering.map(|target| runtime.block_on(target.preflight(extras)));
            let reached = observed.as_mut().filter(|observed| observed.reach == Reach::Reached);
            if let (Some(observed), Some(error)) = (reached, unread.get(fleet)) {
                *observed = ObservedFleet::unknown(error.reach(held.observed_at));
            }
            let health = health::FleetJudge { fleet, context }.judge(&held, target.zip(observed.as_mut()))?;
            let (desired, observed) = (desired.as_deref(), observed.as_ref());
            let indexed = planner.index(FleetInputs { fleet, desired, recorded: Some(&held), observed });
            let facts = facts.flatten();
            let mut compared = indexed.compare(facts.as_deref());
            let mut part = compared.part(None);
            let newer_facts;
            if let Some(target) = target.filter(|target| part.needs_facts() && !target.knows_facts()) {
                newer_facts = runtime.block_on(target.preflight_again(extras));
                compared = indexed.compare(newer_facts.as_deref());
                part = compared.part(None);
            }
            let ask = |target| match memory {
                None => runtime.block_on(dry_runs::ask(target, &part, &checked.secrets)),
                Some(RoundMemory { asked, .. }) => runtime.block_on(dry_runs::ask_unless_known(
                    asked,
                    (fleet, target),
                    &part,
                    &checked.secrets,
                    now,
                )),
            };
            let part = match target.and_then(ask) {
                Some(runs) => compared.part(Some(&runs)),
                None => part,
            };
            let unknown = observed.map(|observed| unknown(checked, fleet, observed)).unwrap_or_default();
            Ok(((part, unknown, health), view.flatten()))
        };
        let busy = |fleet: &FleetKey, since: Timestamp| {
            let part = unseen::plan_unseen((&planner, &renderer, state), (fleet, since), None, Vec::new())?;
            Ok((part, Vec::new(), context.last(fleet)))
        };
        let seen = |fleet: &FleetKey| {
            let (Some(RoundMemory { targets: memory, renderings, .. }), Some(target)) =
                (memory, targets.get(fleet))
            else {
                return Ok(look(fleet, None)?.0);
            };
            let recorded = state.map_or(0, |state| state.version_of(fleet));
            let basis = FleetBasis { desired: renderer.inputs(fleet), recorded };
            if let Some(quiet) = memory.recall(fleet, target, &basis, SystemTime::from(now))
                && let Some(health) = (health::FleetJudge { fleet, context }).judge_again(target)
                && let Some(part) = planner.unchanged_fleet(fleet, &quiet, health.judged.as_ref())
            {
                return Ok((part, Vec::new(), health));
            }
            let (looked, view) = look(fleet, memory.last_view(fleet).as_ref())?;
            let quiet = looked.0.quiet();
            if quiet.is_some() || !looked.0.is_reached() {
                // A fleet at rest is seldom rendered, and the objects of all would take much memory.
                renderings.put(fleet, None);
            }
            memory.remember(fleet, basis, view, quiet);
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
        let (mut newer, mut support, mut records) = (NewerVersions::new(), BTreeMap::new(), BTreeMap::new());
        for (fleet, done) in fleets.iter().zip(parallel::map(&fleets, part)) {
            let (part, of_nobody, of_fleet) = done?;
            newer.extend(part.newer().clone());
            support.insert(fleet.clone(), part.support().clone());
            if !part.records().is_empty() {
                records.insert(fleet.clone(), part.records().clone());
            }
            parts.push(part);
            unknown.extend(of_nobody);
            health.insert(fleet.clone(), of_fleet);
        }
        if let Some(memory) = memory {
            memory.forget_all_but(&fleets);
        }
        let (plan, looked) = (planner.finish(parts), looked.into_inner());
        Ok(PlannedFleets { plan, unknown, health, newer, support, records, looked })
    }

    fn policy(&self, now: Timestamp, pauses: Pauses) -> Policy {
        let policy = &self.config.policy;
        Policy {
            now,
            mode: policy.mode,
            cluster_deletions_per_hour: policy.cluster_deletions_per_hour,
            topic_deletions_per_hour: policy.topic_deletions_per_hour,
            approval_lifetime: SignedDuration::from_hours(i64::from(policy.approval_hours)),
            maintenance: policy.maintenance.clone(),
            certificate_renewal: policy.certificate_renewal,
            software: self.software.clone(),
            pauses,
            announced: BTreeMap::new(),
        }
    }
}

/// Takes over the ids that targets keep for unrecorded resources, as after the registry was lost or an older
/// one restored: an id is for life. Returns the fleets that may keep further ids, each with the error that
/// prevented reading them.
fn remember_ids(
    checked: &mut ResolvedTree,
    (targets, under_way): (&Targets, &UnderWay),
    runtime: &Handle,
) -> BTreeMap<FleetKey, TargetError> {
    let ResolvedTree { recorded, catalog, .. } = checked;
    let is_unrecorded =
        |key: &ResourceKey| !recorded.resources.contains_key(key) && !recorded.generations.contains_key(key);
    let unrecorded = recorded.resources.missing(&catalog.resources).filter(|key| is_unrecorded(key));
    let fleets: BTreeSet<FleetKey> =
        unrecorded.filter_map(|key| catalog.resources.get(key)?.fleet()).collect();
    let asked = |fleet: &FleetKey| fleets.contains(fleet) && !under_way.contains_key(fleet);
    let TargetMarks { remembered: marks, unread } = runtime.block_on(targets.marks(asked));
    let differing =
        marks.into_iter().filter(|(key, mark)| is_unrecorded(key) && recorded.id_of(key) != mark.id);
    let remembered: BTreeMap<ResourceKey, Uuid> = differing.map(|(key, mark)| (key, mark.id)).collect();
    recorded.remembered_ids = remembered;
    unread
}

/// The resources that targets remember as protected. Only deletions need the targets of other fleets; a
/// fleet's own target is read when it is observed, and without an observation nothing there is deleted.
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

/// The unknown owners of objects on a target. Namespaces don't count, since they are kept on purpose when a
/// cluster is deleted, and neither do custom resource definitions.
fn unknown(checked: &ResolvedTree, fleet: &FleetKey, observed: &ObservedFleet) -> Vec<Unknown> {
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
