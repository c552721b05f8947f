//! Memory between rounds. It can be lost at any time: a restarted process observes all targets again.

mod corrections;
mod repeats;
mod timer;
mod wanted;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::dry_runs::DryRunAnswers;
use super::health::Judgements;
use super::{ReachabilityTable, Round, UnderWay};
use crate::catalog::{Recorded, ResolvedTree};
use crate::execute::ExecutionReport;
use crate::names::{FleetKey, ResourceKey};
use crate::parallel::locked;
use crate::plan::{Announced, Change, FleetPlan, Pauses, PlanMemory, Retry, Verb};
use crate::render::Renderings;
use crate::spec::Documents;
use crate::target::{self, Backoff};
use corrections::DriftCorrections;
use repeats::RepeatedChanges;
use timer::{Moment, RecentDeletions, Timer};
use wanted::WantedFleet;

/// The backoff before a fleet is retried after a failure.
const PAUSES: Backoff = Backoff::around(Duration::from_secs(1), LONGEST);

/// The longest backoff, not counting jitter.
const LONGEST: Duration = Duration::from_secs(300);

/// How long an announced resource may be missing from the specs before it is forgotten: a plan that began
/// earlier doesn't include it yet.
const MISSING: SignedDuration = SignedDuration::from_mins(10);

#[derive(Default)]
pub struct RoundMemory {
    /// The last looks at fleets, and the connections to clusters.
    pub(super) targets: target::TargetMemory,
    pub(super) judged: Judgements,
    /// The resources and fleets that the last plan left as they are.
    pub(super) plans: PlanMemory,
    /// The last tree, after which the next one is resolved.
    tree: Mutex<Option<Arc<ResolvedTree>>>,
    /// The objects of fleets that aren't in their desired state.
    pub(super) renderings: Renderings,
    /// The findings of probes. Copies share it.
    pub reachability: Arc<ReachabilityTable>,
    pub(super) asked: DryRunAnswers,
    /// How long a resource must be missing from the specs before it counts as removed.
    absence: Duration,
    /// Whether plans made with it won't be carried out.
    pub(super) is_copy: bool,
    /// Called as planning proceeds.
    watcher: Option<Box<dyn Fn() + Send + Sync>>,
    /// The executions at present. Copies share them.
    works: Arc<Mutex<Executions>>,
    state: Mutex<MemoryState>,
}

#[derive(Default)]
struct Executions {
    under_way: UnderWay,
    /// The number of executions so far.
    number: u64,
    /// The number and time of each fleet's last execution.
    begun: BTreeMap<FleetKey, (u64, Timestamp)>,
}

#[derive(Default)]
struct MemoryState {
    /// The resources that are missing from the specs, each with the time until which that is ignored.
    absent: BTreeMap<ResourceKey, Timer>,
    losses: RecentDeletions,
    corrections: DriftCorrections,
    repeats: RepeatedChanges,
    /// The failures of fleets, and of single resources on them that hold up nothing else.
    failed: BTreeMap<(FleetKey, Option<ResourceKey>), Failed>,
    /// Resources that API callers were told are created and that aren't recorded yet, with the time.
    announced: BTreeMap<ResourceKey, Timestamp>,
    /// Resources that API callers were told are changed, with the time and the new spec without secrets.
    changed: BTreeMap<ResourceKey, (Timestamp, Value)>,
    /// Resources that an API call removed from the specs.
    removed: BTreeMap<ResourceKey, Removed>,
}

#[derive(Debug, Clone, Copy)]
struct Removed {
    at: Timestamp,
    /// Whether the specs were read without it since. If they then name it, it was added back.
    is_seen: bool,
}

struct Failed {
    /// The fleet's desired state at the time. A change of the specs may be the fix, and ends the backoff.
    wanted: WantedFleet,
    pace: Backoff,
    failed: String,
    hint: String,
    pause: Timer,
}

impl RoundMemory {
    /// For specs that may be read in the middle of an edit: a resource must be missing for `absence` before
    /// it counts as removed.
    pub fn with_absence(absence: Duration) -> Self {
        Self { absence, ..Self::default() }
    }

    /// `watcher` is called whenever planning proceeds to another fleet.
    pub fn watched_by(self, watcher: impl Fn() + Send + Sync + 'static) -> Self {
        Self { watcher: Some(Box::new(watcher)), ..self }
    }

    /// A copy for plans that aren't carried out. Their findings are discarded with it, and the delays for
    /// plans that are carried out don't apply.
    pub fn copy(&self) -> Self {
        let (announced, changed, removed) = {
            let state = self.state();
            (state.announced.clone(), state.changed.clone(), state.removed.clone())
        };
        let state = MemoryState { announced, changed, removed, ..MemoryState::default() };
        Self {
            targets: self.targets.copy(),
            judged: self.judged.copy(),
            plans: self.plans.copy(),
            tree: Mutex::new(self.last_tree()),
            renderings: self.renderings.copy(),
            reachability: Arc::clone(&self.reachability),
            works: Arc::clone(&self.works),
            state: Mutex::new(state),
            is_copy: true,
            ..Self::default()
        }
    }

    pub(super) fn last_tree(&self) -> Option<Arc<ResolvedTree>> {
        locked(&self.tree).as_ref().map(Arc::clone)
    }

    pub(super) fn keep_tree(&self, tree: &Arc<ResolvedTree>) {
        *locked(&self.tree) = Some(Arc::clone(tree));
    }

    /// Forgets all fleets but these, which are in order.
    pub(super) fn forget_all_but(&self, fleets: &[FleetKey]) {
        let is_there = |fleet: &FleetKey| fleets.binary_search(fleet).is_ok();
        self.targets.retain(is_there);
        self.judged.retain(is_there);
        self.asked.retain(is_there);
        self.renderings.retain(is_there);
    }

    pub(super) fn goes_on(&self) {
        if let Some(watcher) = &self.watcher {
            watcher();
        }
    }

    /// Waits until a watched target changes.
    pub async fn changed(&self) {
        self.targets.changed().await;
    }

    /// Sets whether the next plans trust that folders are unchanged (`TargetMemory::trust_folders`).
    pub fn trust_folders(&self, trust: bool) -> bool {
        self.targets.trust_folders(trust)
    }

    /// Makes the next plan read all folders.
    pub fn doubt_folders(&self) {
        self.targets.doubt_folders();
    }

    /// The delays for the next plan of these specs.
    pub(super) fn pauses(&self, checked: &ResolvedTree, now: Timestamp) -> Pauses {
        let (ResolvedTree { catalog, recorded, .. }, now) = (checked, Moment::now(now));
        let mut state = self.state();
        let MemoryState { absent, losses, corrections, repeats, failed, .. } = &mut *state;
        failed.retain(|(fleet, _), failed| failed.wanted == WantedFleet::of(catalog, fleet));
        absent.retain(|key, _| catalog.absent.contains_key(key));
        // A removal by an API call is deliberate, so it needs no delay.
        absent.retain(|key, _| !recorded.removed.contains(key));
        for key in catalog.absent.keys().filter(|key| !recorded.removed.contains(*key)) {
            absent.entry(key.clone()).or_insert_with(|| Timer::begin(self.absence, now));
        }
        let (mut fleets, mut alone) = (BTreeMap::new(), BTreeMap::new());
        for ((fleet, resource), Failed { failed, hint, pause, .. }) in failed {
            let retry = Retry { failed: failed.clone(), hint: hint.clone(), until: pause.until(now) };
            match resource {
                Some(resource) => drop(alone.insert(resource.clone(), retry)),
                None => drop(fleets.insert(fleet.clone(), retry)),
            }
        }
        Pauses {
            absent: absent.iter_mut().map(|(key, pause)| (key.clone(), pause.until(now))).collect(),
            flapping: corrections.flapping(now.clock),
            failed: fleets,
            failed_alone: alone,
            repeated: repeats.repeated(now),
            lost: losses.within_the_hour(&recorded.deletions, now),
        }
    }

    /// Notes that a caller was told of a creation; the record gets its time.
    pub fn announce(&self, key: &ResourceKey, at: Timestamp) {
        self.state().announced.insert(key.clone(), at);
    }

    /// Notes that a call removes a resource from the specs.
    pub fn remove(&self, key: &ResourceKey, at: Timestamp) {
        self.state().removed.insert(key.clone(), Removed { at, is_seen: false });
    }

    /// Undoes `remove`: the resource stays, or has a document again.
    pub fn keep(&self, key: &ResourceKey) {
        self.state().removed.remove(key);
    }

    /// The recorded resources that calls removed, if the specs were read since. Older specs still name such a
    /// resource; if newer specs name it again, its removal is forgotten.
    pub(super) fn removed(
        &self,
        documents: &Documents,
        recorded: &Recorded,
        now: Timestamp,
    ) -> BTreeSet<ResourceKey> {
        let mut state = self.state();
        let named = |key: &ResourceKey| {
            // Invalid documents count, too.
            let mut files = documents.files.values();
            files.any(|file| {
                let good = file.documents.iter().map(|document| &document.key);
                good.chain(file.invalid.iter().map(|document| &document.key)).any(|named| named == key)
            })
        };
        state.removed.retain(|key, removed| {
            let is_named = named(key);
            let is_over = is_named && (removed.is_seen || now.duration_since(removed.at) >= MISSING);
            removed.is_seen |= !is_named;
            !is_over && recorded.resources.contains_key(key)
        });
        state.removed.iter().filter(|(_, removed)| removed.is_seen).map(|(key, _)| key.clone()).collect()
    }

    /// Undoes `announce`.
    pub fn withdraw(&self, key: &ResourceKey) {
        self.state().announced.remove(key);
    }

    /// Notes that a caller was told of a change to `spec`; the record gets its time.
    pub fn announce_change(&self, key: &ResourceKey, at: Timestamp, spec: Value) {
        self.state().changed.insert(key.clone(), (at, spec));
    }

    /// Undoes `announce_change`.
    pub fn withdraw_change(&self, key: &ResourceKey) {
        self.state().changed.remove(key);
    }

    /// Creations and changes that callers were told of and that aren't recorded yet.
    pub(super) fn announced(
        &self,
        checked: &ResolvedTree,
        now: Timestamp,
    ) -> BTreeMap<ResourceKey, Announced> {
        let (recorded, named) = (&checked.recorded.resources, &checked.catalog.resources);
        let mut state = self.state();
        let MemoryState { announced, changed, .. } = &mut *state;
        announced.retain(|key, at| {
            !recorded.contains_key(key) && (named.contains_key(key) || now.duration_since(*at) < MISSING)
        });
        changed.retain(|key, (at, _)| {
            let is_recorded = recorded.get(key).is_some_and(|record| record.cached.updated_at >= *at);
            !is_recorded && (named.contains_key(key) || now.duration_since(*at) < MISSING)
        });
        let mut all: BTreeMap<ResourceKey, Announced> = BTreeMap::new();
        for (key, at) in announced {
            all.entry(key.clone()).or_default().made = Some(*at);
        }
        // If the file differs by now, that is another change.
        let is_so = |key: &ResourceKey, spec: &Value| {
            named.get(key).is_some_and(|resource| resource.spec.redacted() == *spec)
        };
        for (key, (at, _)) in changed.iter().filter(|(key, (_, spec))| is_so(key, spec)) {
            all.entry(key.clone()).or_default().changed = Some(*at);
        }
        all
    }

    /// Begins an execution on a fleet. Until `ends`, the fleet isn't observed.
    pub fn begins(&self, fleet: &FleetKey, now: Timestamp) {
        let mut works = locked(&self.works);
        works.number += 1;
        let begun = (works.number, now);
        works.under_way.insert(fleet.clone(), now);
        works.begun.insert(fleet.clone(), begun);
    }

    /// The fleets with an execution, and the number of executions so far.
    pub(super) fn under_way(&self) -> (UnderWay, u64) {
        let works = locked(&self.works);
        (works.under_way.clone(), works.number)
    }

    /// When an execution began on a fleet, if its number is above `number`.
    pub(super) fn begun_after(&self, number: u64, fleet: &FleetKey) -> Option<Timestamp> {
        let begun = locked(&self.works).begun.get(fleet).copied();
        begun.filter(|(begun, _)| *begun > number).map(|(_, at)| at)
    }

    /// Ends an execution on a fleet, whatever its result.
    pub fn ended(&self, fleet: &FleetKey) {
        locked(&self.works).under_way.remove(fleet);
    }

    /// Records the result of an execution on a fleet. Returns when failures are retried: of a resource by itself, or of
    /// the fleet (`None`).
    pub fn ends(
        &self,
        round: &Round,
        plan: &FleetPlan,
        report: &ExecutionReport,
        now: Timestamp,
    ) -> BTreeMap<Option<ResourceKey>, Timestamp> {
        let mut state = self.state();
        self.targets.forget_facts(&plan.fleet);
        for change in done(&plan.changes, report) {
            state.corrections.done(&plan.fleet, change, now);
            state.repeats.done(Some(&plan.fleet), change, Moment::now(now));
        }
        let wanted = || WantedFleet::of(&round.checked.catalog, &plan.fleet);
        let retries = state.tried(&plan.fleet, wanted, report, Moment::now(now));
        drop(state);
        // This comes last, so that the fleet's next plan includes all of the above.
        self.ended(&plan.fleet);
        retries
    }

    /// Records the result of changes that belong to no fleet.
    pub fn noted(&self, round: &Round, report: &ExecutionReport, now: Timestamp) {
        let changes = round.plan.organizations.iter().flat_map(|organization| &organization.changes);
        let mut state = self.state();
        done(changes, report).for_each(|change| state.repeats.done(None, change, Moment::now(now)));
    }

    /// Records a plan that will be carried out. If it leaves a resource unchanged, earlier changes of that
    /// resource had their effect, except on fleets with an execution, which it doesn't cover.
    pub fn planned(&self, round: &Round) {
        let changed = round.plan.changes().filter(|change| change.verb != Verb::Keep);
        let changed: BTreeSet<&ResourceKey> = changed.map(|change| &change.resource).collect();
        self.state().repeats.forget(|resource, fleet| {
            !changed.contains(resource) && fleet.is_none_or(|fleet| !round.under_way.contains(fleet))
        });
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // A panic halfway loses at most some entries, and the next round plans more.
        locked(&self.state)
    }
}

impl MemoryState {
    /// Records success or failure on a fleet. Returns when failures are retried.
    fn tried(
        &mut self,
        fleet: &FleetKey,
        wanted: impl FnOnce() -> WantedFleet,
        report: &ExecutionReport,
        now: Moment,
    ) -> BTreeMap<Option<ResourceKey>, Timestamp> {
        let (mut before, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.failed).into_iter().partition(|((of, _), _)| of == fleet);
        self.failed = others;
        let failed = &report.failed;
        let of_fleet = failed.iter().find(|failure| !failure.alone);
        let alone = failed.iter().filter(|failure| failure.alone && failure.resource.is_some());
        let mut retries = BTreeMap::new();
        let wanted = LazyCell::new(wanted);
        for failure in of_fleet.into_iter().chain(alone) {
            let key = (fleet.clone(), failure.retried().cloned());
            let before = before.remove(&key).filter(|before| before.wanted == *wanted);
            let mut pace = before.map_or(PAUSES, |before| before.pace);
            let mut pause = Timer::begin(pace.next_pause(), now);
            retries.insert(key.1.clone(), pause.until(now));
            let failed = failure.for_tenants().to_string();
            let (wanted, hint) = (WantedFleet::clone(&wanted), failure.hint.clone());
            self.failed.insert(key, Failed { wanted, pace, failed, hint, pause });
        }
        // Those that wait for their next attempt weren't tried.
        let is_done = |resource: &ResourceKey| report.done.iter().any(|done| done.resource == *resource);
        before.retain(|(_, resource), _| resource.as_ref().is_some_and(|resource| !is_done(resource)));
        self.failed.extend(before);
        retries
    }
}

fn done<'p>(
    changes: impl IntoIterator<Item = &'p Change>,
    report: &ExecutionReport,
) -> impl Iterator<Item = &'p Change> {
    let done: BTreeSet<&ResourceKey> = report.done.iter().map(|done| &done.resource).collect();
    // A blocked change of a resource may be next to a repair that was done.
    changes.into_iter().filter(move |change| change.is_ready() && done.contains(&change.resource))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::execute::{CompletedChange, ExecutionFailure};
    use crate::render::RenderInputs;
    use crate::target::{DirectoryTarget, FleetBasis, Target};
    use uuid::Uuid;

    #[test]
    fn a_fleet_that_is_gone_is_forgotten() {
        let memory = RoundMemory::default();
        let fleets = ["acme/eu", "acme/us"].map(|fleet| FleetKey::try_from(fleet.to_owned()).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let output = camino::Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for fleet in &fleets {
            let folder = DirectoryTarget::new(output.clone(), fleet.clone(), "".into(), Uuid::nil());
            let target = Target::Directory(folder);
            let look = target.look(None, std::time::SystemTime::UNIX_EPOCH);
            let (_, view) = runtime.block_on(look.observe(&Default::default(), None, &Default::default()));
            let desired = RenderInputs { config: Arc::default(), fleet: None, clusters: Vec::new() };
            memory.targets.remember(fleet, FleetBasis { desired, recorded: 0 }, view, None);
        }
        memory.forget_all_but(&fleets[1..]);
        assert_eq!(fleets.each_ref().map(|fleet| memory.targets.last_view(fleet).is_some()), [false, true]);
    }

    #[test]
    fn what_fails_is_tried_again_after_pauses_that_grow_until_it_is_mended() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let failed = |message: &str| ExecutionFailure {
            fleet: Some(fleet.clone()),
            resource: None,
            origin: None,
            object: None,
            message: message.to_owned(),
            hint: String::new(),
            concealed: false,
            alone: false,
        };
        let report = |failed: Vec<ExecutionFailure>| ExecutionReport { failed, ..ExecutionReport::default() };
        let wanted = |state_dir: &str| {
            let config = Config { state_dir: Some(state_dir.into()), ..Config::default() };
            let inputs = RenderInputs { config: config.into(), fleet: None, clusters: Vec::new() };
            WantedFleet { own: None, inputs }
        };
        let (mut state, specs) = (MemoryState::default(), wanted("specs"));
        let now = Moment::now(now);
        let pause = |until: Timestamp| until.duration_since(now.clock).as_secs_f64();
        for seconds in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            let until = state.tried(&fleet, || specs.clone(), &report(vec![failed("no")]), now)[&None];
            assert!((seconds * 0.79..seconds * 1.21).contains(&pause(until)), "{seconds}: {until}");
        }
        assert_eq!(state.failed[&(fleet.clone(), None)].failed, "fleet acme/eu: no");
        // Both other specs and a success reset the backoff.
        let until = state.tried(&fleet, || wanted("others"), &report(vec![failed("no")]), now)[&None];
        assert!(pause(until) < 1.21);
        let cluster: ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
        let alone = ExecutionFailure { resource: Some(cluster.clone()), alone: true, ..failed("no") };
        let retries = state.tried(&fleet, || specs.clone(), &report(vec![alone]), now);
        assert_eq!(retries.keys().collect::<Vec<_>>(), [&Some(cluster.clone())]);
        // It waits while others of its fleet are done.
        assert!(state.tried(&fleet, || specs.clone(), &report(vec![]), now).is_empty());
        assert_eq!(state.failed.keys().collect::<Vec<_>>(), [&(fleet.clone(), Some(cluster.clone()))]);
        let done = CompletedChange { fleet: Some(fleet.clone()), resource: cluster, verb: Verb::Update };
        let done = ExecutionReport { done: vec![done], ..ExecutionReport::default() };
        assert!(state.tried(&fleet, || specs.clone(), &done, now).is_empty());
        assert!(state.failed.is_empty());
    }
}
