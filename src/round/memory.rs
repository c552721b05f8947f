//! What a running process remembers from round to round. All of it can be lost: a process that starts anew looks at
//! everything.

mod corrections;
mod repeats;
mod timer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::health::Judged;
use super::verify::Asked;
use super::{Checked, Round, UnderWay};
use crate::catalog::{Catalog, Recorded};
use crate::execute::{Failure, Report};
use crate::names::{Digest, FleetKey, ResourceKey};
use crate::parallel::locked;
use crate::plan::{Announced, Change, FleetPlan, Pauses, Retry, Verb};
use crate::render::Renderer;
use crate::spec::Documents;
use crate::target::{self, Pace};
use corrections::Corrections;
use repeats::Repeats;
use timer::{Losses, Moment, Timer};

/// The pauses before a fleet on which something failed is tried again.
const PAUSES: Pace = Pace::around(Duration::from_secs(1), LONGEST);

/// The longest of them, which chance may make a little longer.
const LONGEST: Duration = Duration::from_secs(300);

/// How long what somebody was told is made may be missing from the specs before it is forgotten: a plan that was begun before
/// doesn't know of it yet.
const MISSING: SignedDuration = SignedDuration::from_mins(10);

/// What a running process remembers.
#[derive(Default)]
pub struct Memory {
    /// The fleets that were found as they should be, and the connections to clusters.
    pub(super) targets: target::Memory,
    /// How fleets were found to be.
    pub(super) judged: Judged,
    /// What their targets would say to what is to be done.
    pub(super) asked: Asked,
    /// How long a resource has to be missing from the specs before it counts as removed.
    absence: Duration,
    /// Whether plans made with it are nobody's to carry out.
    pub(super) is_copy: bool,
    /// Who is told that planning goes on.
    watcher: Option<Box<dyn Fn() + Send + Sync>>,
    /// What is being carried out, as it is in each moment: copies share it.
    works: Arc<Mutex<Works>>,
    state: Mutex<State>,
}

/// What is being carried out.
#[derive(Default)]
struct Works {
    /// The fleets on which a plan is being carried out, each with since when.
    under_way: UnderWay,
    /// How often anything was begun.
    number: u64,
    /// What was begun last on each fleet: its number, and when.
    begun: BTreeMap<FleetKey, (u64, Timestamp)>,
}

#[derive(Default)]
struct State {
    /// The resources that are missing from the specs, each until when that doesn't count.
    absent: BTreeMap<ResourceKey, Timer>,
    losses: Losses,
    corrections: Corrections,
    repeats: Repeats,
    /// The fleets on which something failed.
    failed: BTreeMap<FleetKey, Failed>,
    /// The resources that somebody was told are made and that aren't recorded yet, each with when that was.
    announced: BTreeMap<ResourceKey, Timestamp>,
    /// The resources that somebody was told are changed, each with when that was and what it is to say, without secrets.
    changed: BTreeMap<ResourceKey, (Timestamp, Value)>,
    /// The resources that a call removed from the specs.
    removed: BTreeMap<ResourceKey, Removed>,
}

/// A resource that a call removed from the specs.
#[derive(Debug, Clone, Copy)]
struct Removed {
    /// When.
    at: Timestamp,
    /// Whether the specs were seen without it since: once they name it again, they do so anew.
    is_seen: bool,
}

/// Something failed on a fleet.
struct Failed {
    /// What the fleet should be, by its specs. Whoever changes them may do so to mend it.
    wanted: Digest,
    pace: Pace,
    /// What.
    failed: String,
    pause: Timer,
}

impl Memory {
    /// Of a process whose specs may be looked at while somebody is changing them: a resource has to be missing for so long
    /// before it counts as removed.
    pub fn with_absence(absence: Duration) -> Self {
        Self { absence, ..Self::default() }
    }

    /// The same, telling somebody whenever it goes on to another fleet.
    pub fn watched_by(self, watcher: impl Fn() + Send + Sync + 'static) -> Self {
        Self { watcher: Some(Box::new(watcher)), ..self }
    }

    /// What is known now, for a plan that nobody carries out: what that finds out is forgotten with it, and what only a process
    /// that carries out plans puts off isn't put off.
    pub fn copy(&self) -> Self {
        let (announced, changed, removed) = {
            let state = self.state();
            (state.announced.clone(), state.changed.clone(), state.removed.clone())
        };
        let state = Mutex::new(State { announced, changed, removed, ..State::default() });
        let (targets, judged, works) = (self.targets.copy(), self.judged.copy(), Arc::clone(&self.works));
        Self { targets, judged, works, state, is_copy: true, ..Self::default() }
    }

    /// Another fleet is looked at.
    pub(super) fn goes_on(&self) {
        if let Some(watcher) = &self.watcher {
            watcher();
        }
    }

    /// Comes back when something happened on a target that is watched.
    pub async fn changed(&self) {
        self.targets.changed().await;
    }

    /// Whether the next plans take folders to be as they were found ([`target::Memory::trust_folders`]).
    pub fn trust_folders(&self, trust: bool) -> bool {
        self.targets.trust_folders(trust)
    }

    /// The next plan looks at all folders.
    pub fn doubt_folders(&self) {
        self.targets.doubt_folders();
    }

    /// What has to be put off in the next plan of these specs.
    pub(super) fn pauses(&self, checked: &Checked, now: Timestamp) -> Pauses {
        let (Checked { catalog, recorded, .. }, now) = (checked, Moment::now(now));
        let mut state = self.state();
        let State { absent, losses, corrections, repeats, failed, .. } = &mut *state;
        failed.retain(|fleet, failed| failed.wanted == wanted(catalog, fleet));
        absent.retain(|key, _| catalog.absent.contains_key(key));
        // What a call removed isn't missing for a moment only.
        absent.retain(|key, _| !recorded.removed.contains(key));
        for key in catalog.absent.keys().filter(|key| !recorded.removed.contains(*key)) {
            absent.entry(key.clone()).or_insert_with(|| Timer::begin(self.absence, now));
        }
        let failed = failed.iter_mut().map(|(fleet, Failed { failed, pause, .. })| {
            (fleet.clone(), Retry { failed: failed.clone(), until: pause.until(now) })
        });
        Pauses {
            absent: absent.iter_mut().map(|(key, pause)| (key.clone(), pause.until(now))).collect(),
            flapping: corrections.flapping(now.clock),
            failed: failed.collect(),
            repeated: repeats.repeated(now),
            lost: losses.within_the_hour(&recorded.deletions, now),
        }
    }

    /// Somebody is told that a resource is made now. When it is recorded, it was made then.
    pub fn announce(&self, key: &ResourceKey, at: Timestamp) {
        self.state().announced.insert(key.clone(), at);
    }

    /// A call removes a resource from the specs.
    pub fn remove(&self, key: &ResourceKey, at: Timestamp) {
        self.state().removed.insert(key.clone(), Removed { at, is_seen: false });
    }

    /// It stays after all, or is described anew.
    pub fn keep(&self, key: &ResourceKey) {
        self.state().removed.remove(key);
    }

    /// The resources that a call removed from specs that are read by now, as far as they are recorded. Specs that were read before
    /// still name them; where others name one that was missing, its removal is forgotten.
    pub(super) fn removed(
        &self,
        documents: &Documents,
        recorded: &Recorded,
        now: Timestamp,
    ) -> BTreeSet<ResourceKey> {
        let mut state = self.state();
        let named = |key: &ResourceKey| {
            // One with a mistake names it, too.
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

    /// It isn't made after all.
    pub fn withdraw(&self, key: &ResourceKey) {
        self.state().announced.remove(key);
    }

    /// Somebody is told that a resource is changed now to say this. When that is recorded, it was changed then.
    pub fn announce_change(&self, key: &ResourceKey, at: Timestamp, spec: Value) {
        self.state().changed.insert(key.clone(), (at, spec));
    }

    /// It isn't changed after all.
    pub fn withdraw_change(&self, key: &ResourceKey) {
        self.state().changed.remove(key);
    }

    /// The resources that somebody was told are made or changed, as far as that isn't recorded yet.
    pub(super) fn announced(&self, checked: &Checked, now: Timestamp) -> BTreeMap<ResourceKey, Announced> {
        let (recorded, named) = (&checked.recorded.resources, &checked.catalog.resources);
        let mut state = self.state();
        let State { announced, changed, .. } = &mut *state;
        announced.retain(|key, at| {
            !recorded.contains_key(key) && (named.contains_key(key) || now.duration_since(*at) < MISSING)
        });
        changed.retain(|key, (at, _)| {
            let is_recorded = recorded.get(key).is_some_and(|record| record.updated_at >= *at);
            !is_recorded && (named.contains_key(key) || now.duration_since(*at) < MISSING)
        });
        let mut all: BTreeMap<ResourceKey, Announced> = BTreeMap::new();
        for (key, at) in announced {
            all.entry(key.clone()).or_default().made = Some(*at);
        }
        // Where a file says something else by now, that is another change.
        let is_so = |key: &ResourceKey, spec: &Value| {
            named.get(key).is_some_and(|resource| resource.spec.redacted() == *spec)
        };
        for (key, (at, _)) in changed.iter().filter(|(key, (_, spec))| is_so(key, spec)) {
            all.entry(key.clone()).or_default().changed = Some(*at);
        }
        all
    }

    /// A plan begins to be carried out on a fleet. Until [`Memory::ends`], nobody looks at the fleet.
    pub fn begins(&self, fleet: &FleetKey, now: Timestamp) {
        let mut works = locked(&self.works);
        works.number += 1;
        let begun = (works.number, now);
        works.under_way.insert(fleet.clone(), now);
        works.begun.insert(fleet.clone(), begun);
    }

    /// The fleets on which a plan is being carried out, and how often one was begun before.
    pub(super) fn under_way(&self) -> (UnderWay, u64) {
        let works = locked(&self.works);
        (works.under_way.clone(), works.number)
    }

    /// When a plan was begun on a fleet, if one was after so many.
    pub(super) fn begun_after(&self, number: u64, fleet: &FleetKey) -> Option<Timestamp> {
        let begun = locked(&self.works).begun.get(fleet).copied();
        begun.filter(|(begun, _)| *begun > number).map(|(_, at)| at)
    }

    /// Nothing is carried out on a fleet any more, whatever came of it.
    pub fn ended(&self, fleet: &FleetKey) {
        locked(&self.works).under_way.remove(fleet);
    }

    /// A plan was carried out on a fleet. Where something failed, gives when it is tried again.
    pub fn ends(
        &self,
        round: &Round,
        plan: &FleetPlan,
        report: &Report,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut state = self.state();
        self.targets.forget_facts(&plan.fleet);
        for change in done(&plan.changes, report) {
            state.corrections.done(&plan.fleet, change, now);
            state.repeats.done(Some(&plan.fleet), change, Moment::now(now));
        }
        let wanted = wanted(&round.checked.catalog, &plan.fleet);
        let until = state.tried(&plan.fleet, wanted, report.failed.first(), Moment::now(now));
        drop(state);
        // Last, so that whoever plans the fleet again knows of all that.
        self.ended(&plan.fleet);
        until
    }

    /// What is no fleet's matter was done.
    pub fn noted(&self, round: &Round, report: &Report, now: Timestamp) {
        let changes = round.plan.organizations.iter().flat_map(|organization| &organization.changes);
        let mut state = self.state();
        done(changes, report).for_each(|change| state.repeats.done(None, change, Moment::now(now)));
    }

    /// A plan was made that is to be carried out. What was done to resources that it leaves as they are had its effect; how those
    /// are that are on a fleet which is worked on, it doesn't know.
    pub fn planned(&self, round: &Round) {
        let changed = round.plan.changes().filter(|change| change.verb != Verb::Keep);
        let changed: BTreeSet<&ResourceKey> = changed.map(|change| &change.resource).collect();
        self.state().repeats.forget(|resource, fleet| {
            !changed.contains(resource) && fleet.is_none_or(|fleet| !round.under_way.contains(fleet))
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is lost by a panic in the middle only makes the next round plan more.
        locked(&self.state)
    }
}

impl State {
    /// Something was done on a fleet, or failed. Gives when it is tried again where it did.
    fn tried(
        &mut self,
        fleet: &FleetKey,
        wanted: Digest,
        failed: Option<&Failure>,
        now: Moment,
    ) -> Option<Timestamp> {
        let before = self.failed.remove(fleet).filter(|before| before.wanted == wanted);
        let failed = failed?.for_tenants().to_string();
        let mut pace = before.map_or(PAUSES, |before| before.pace);
        let mut pause = Timer::begin(pace.next_pause(), now);
        let until = pause.until(now);
        self.failed.insert(fleet.clone(), Failed { wanted, pace, failed, pause });
        Some(until)
    }
}

/// The changes that were made.
fn done<'p>(
    changes: impl IntoIterator<Item = &'p Change>,
    report: &Report,
) -> impl Iterator<Item = &'p Change> {
    let done: BTreeSet<&ResourceKey> = report.done.iter().map(|done| &done.resource).collect();
    // Of a resource, a change may wait beside a repair that was done.
    changes.into_iter().filter(move |change| change.is_ready() && done.contains(&change.resource))
}

/// What a fleet should be, with its clusters and how it is reached.
fn wanted(catalog: &Catalog, fleet: &FleetKey) -> Digest {
    let own = catalog.resources.get(&fleet.resource());
    // What is written for debugging has all fields, and of secrets only their marks.
    let own = format!("{:?}", own.map(|own| (&own.spec, &own.secrets)));
    Digest::of(format!("{own} {}", Renderer::new(catalog).inputs(fleet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_after_pauses_that_grow_until_it_is_mended() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let failed = |message: &str| Failure {
            fleet: Some(fleet.clone()),
            resource: None,
            origin: None,
            object: None,
            message: message.to_owned(),
            hint: String::new(),
            concealed: false,
        };
        let (mut state, specs) = (State::default(), Digest::of("specs"));
        let now = Moment::now(now);
        let pause = |until: Timestamp| until.duration_since(now.clock).as_secs_f64();
        for seconds in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            let until = state.tried(&fleet, specs.clone(), Some(&failed("no")), now).unwrap();
            assert!((seconds * 0.79..seconds * 1.21).contains(&pause(until)), "{seconds}: {until}");
        }
        assert_eq!(state.failed[&fleet].failed, "fleet acme/eu: no");
        // Other specs begin anew, and so does what worked once.
        let until = state.tried(&fleet, Digest::of("others"), Some(&failed("no")), now).unwrap();
        assert!(pause(until) < 1.21);
        assert_eq!(state.tried(&fleet, specs.clone(), None, now), None);
        assert!(state.failed.is_empty());
    }
}
