//! Reads the specs, observes the targets and plans, repeatedly.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::feed::SpecReader;
use super::log::DecisionLog;
use super::schedule::ReadyFleet;
use super::{DaemonError, Event, PendingWork, PlannedRound, until};
use crate::api::{NoReply, PendingRequest, RequestQueue};
use crate::execute::{ExecutionProgress, ExecutionReport};
use crate::names::FleetKey;
use crate::plan::{Change, FleetPlan, LONG, Verb, Waiting};
use crate::round::{Approved, Installation, Recorder, Round, RoundMemory, WaitingChanges};
use crate::source::SourceError;
use crate::spec::{self, Documents, Snapshot};
use crate::state::{State, StateError};
use crate::target::Backoff;
use crate::vitals::{RoundOutcome, Vitals};
use crate::writing::CurrentPlan;

/// The backoff after bookkeeping failed, for example on a full disk.
const BOOKKEEPING_BACKOFF: Backoff = Backoff::around(Duration::from_secs(1), Duration::from_secs(30));

/// How long plans that are made for other reasons trust the last observation of output folders. Changes in
/// them by others are not notified, and reading every file of every fleet takes longer than everything else.
const FOLDER_CACHE_TIME: Duration = Duration::from_secs(30);

/// How soon another plan follows after bookkeeping changed something.
const REPLAN_DELAY: std::time::Duration = std::time::Duration::from_millis(100);

/// The inputs of plans, kept between them.
pub(super) struct PlanningContext {
    request_queue: Arc<RequestQueue>,
    memory: Arc<RoundMemory>,
    specs: SpecReader,
    actor: String,
    vitals: Arc<Vitals>,
    runtime: Handle,
    /// The last documents: unchanged files aren't parsed again.
    documents: Option<Arc<Documents>>,
    /// The snapshot that they were read from. A `Weak` keeps its address from being used again, and a source that changes
    /// its snapshot in place moves it away from one.
    snapshot: Weak<Snapshot>,
    log: DecisionLog,
    /// The last logged error about reading the specs.
    unreadable: Option<String>,
    /// The last logged error about bookkeeping.
    bookkeeping_error: Option<String>,
    pauses: Backoff,
    /// When all output folders were last read.
    folders: Option<Instant>,
    /// The waiting changes that were last recorded.
    waits: WaitingChanges<String>,
}

impl PlanningContext {
    pub(super) fn new(
        request_queue: Arc<RequestQueue>,
        specs: SpecReader,
        actor: String,
        vitals: Arc<Vitals>,
        runtime: Handle,
    ) -> Self {
        let (documents, unreadable, bookkeeping_error, folders) = (None, None, None, None);
        let (log, pauses, waits) = (DecisionLog::default(), BOOKKEEPING_BACKOFF, WaitingChanges::default());
        let memory = Arc::clone(&request_queue.memory);
        Self {
            request_queue,
            memory,
            specs,
            actor,
            vitals,
            runtime,
            documents,
            snapshot: Weak::new(),
            log,
            unreadable,
            bookkeeping_error,
            pauses,
            folders,
            waits,
        }
    }

    /// Marks the work on a fleet by the last plan as begun.
    pub(super) fn begins(&mut self, fleet: &FleetKey) {
        self.log.begins(fleet);
    }

    /// Plans, and does the bookkeeping that belongs to no fleet.
    pub(super) fn run_planning(&mut self, installation: &Arc<Installation>) -> Event {
        let begun = Instant::now();
        match self.planned(installation) {
            Ok((planned, outcome)) => {
                if let Some(outcome) = outcome {
                    self.vitals.round(outcome, begun.elapsed());
                }
                Event::Planned(Box::new(planned))
            }
            Err(lost) => Event::PlanningFailed(lost),
        }
    }

    /// Makes a plan and returns it with the outcome of the round; neither contains anything if there are no
    /// specs yet.
    fn planned(
        &mut self,
        installation: &Arc<Installation>,
    ) -> Result<(PlannedRound, Option<RoundOutcome>), DaemonError> {
        let nothing = PlannedRound { outlook: PendingWork::default(), round: None };
        let Some(state) = &installation.state else { return Ok((nothing, None)) };
        state.check_not_replaced()?;
        let questions = self.request_queue.take();
        // Taken before the specs are read: later writes may not be included.
        let mark = self.request_queue.writer.as_ref().map(|writer| writer.mark()).unwrap_or_default();
        let snapshot = match self.specs.snapshot() {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => {
                refuse(questions, "the specs have not been fetched yet");
                return Ok((nothing, None));
            }
            Err(error) => {
                // Paths and URLs of the specs are shown to the administrator only, not to API callers.
                refuse(questions, "cannot read the specs; no changes until they can be read");
                self.tell_unreadable(&error);
                return Ok((nothing, Some(RoundOutcome::Unreadable)));
            }
        };
        if self.unreadable.take().is_some() {
            tracing::info!("the specs can be read again");
        }
        self.vitals.loop_iterated();
        let documents = self.documents.clone().filter(|_| self.snapshot.as_ptr() == Arc::as_ptr(&snapshot));
        let documents =
            documents.unwrap_or_else(|| Arc::new(spec::read(&snapshot, self.documents.as_deref())));
        let snapshot = Arc::downgrade(&snapshot);
        let folders = self.trust_folders(questions.is_empty());
        let mut now = Timestamp::now();
        let plan = |now| installation.plan(&documents, now, &self.runtime, Some(&self.memory));
        let begun = Instant::now();
        let mut round = match plan(now) {
            Err(error) if error.is_full_disk() => {
                refuse(questions, "cannot read the state on a full disk; no changes until there is room");
                tracing::debug!(looked = 0, "planned nothing");
                self.log_once(&[(error.to_string(), error.hint())]);
                let outlook = PendingWork { fleets: Vec::new(), next: Some(self.pauses.next_pause()) };
                return Ok((PlannedRound { outlook, round: None }, Some(RoundOutcome::Failed)));
            }
            round => round?,
        };
        let (approvals, questions): (Vec<_>, Vec<_>) =
            questions.into_iter().partition(|question| matches!(question, PendingRequest::Approve { .. }));
        if approve(approvals, state, &round) {
            now = Timestamp::now();
            round = plan(now)?;
        }
        self.folders = Some(folders);
        (self.documents, self.snapshot) = (Some(Arc::clone(&documents)), snapshot);
        if !round.checked.catalog.absent.is_empty() {
            // A file may come back without an event, as with a mount. Nothing is deleted by what was told alone.
            self.specs.doubt();
        }
        tracing::debug!(plan = round.plan.id, looked = round.looked, took = ?begun.elapsed(), "planned");
        let round = Arc::new(round);
        self.memory.planned(&round);
        self.log.decisions(&round);
        self.vitals.planned(&round, now);
        self.waits.record(&round, state, &self.actor, now);
        let mut outlook = outlook(&round, now);
        let again = FOLDER_CACHE_TIME.saturating_sub(folders.elapsed());
        outlook.next = Some(outlook.next.map_or(again, |next| next.min(again)));
        let mut outcome = if outlook.fleets.is_empty() { RoundOutcome::Idle } else { RoundOutcome::Begun };
        let is_kept =
            if needs_bookkeeping(&round, &outlook) { self.do_bookkeeping(&round, state) } else { Some(0) };
        match is_kept {
            // The bookkeeping is stored before anything changes.
            None => {
                outcome = RoundOutcome::Failed;
                outlook = PendingWork { fleets: Vec::new(), next: Some(self.pauses.next_pause()) };
            }
            Some(done) => {
                if done > 0 {
                    // API callers should see the new state soon.
                    outlook.next = Some(outlook.next.map_or(REPLAN_DELAY, |next| next.min(REPLAN_DELAY)));
                }
                if round.under_way.is_empty() {
                    self.specs.clear_rewritten();
                }
            }
        }
        let trouble = self.bookkeeping_error.clone().filter(|_| is_kept.is_none());
        let made = CurrentPlan::new(Arc::clone(installation), documents, Arc::clone(&round), mark)
            .with_trouble(trouble);
        self.request_queue.publish_plan(made.clone());
        for question in questions {
            if let PendingRequest::Plan(reply) = question {
                let _ = reply.send(Ok(made.clone()));
            }
        }
        Ok((PlannedRound { outlook, round: Some(round) }, Some(outcome)))
    }

    /// Makes the plan read all output folders if the last time was a while ago or a caller asked for the
    /// current state. Returns when they were last read.
    fn trust_folders(&self, nobody_asks: bool) -> Instant {
        let last = self.folders.filter(|last| nobody_asks && last.elapsed() < FOLDER_CACHE_TIME);
        let is_trusted = self.memory.trust_folders(last.is_some());
        last.filter(|_| is_trusted).unwrap_or_else(Instant::now)
    }

    /// Does the bookkeeping that belongs to no fleet. Returns how many resources it changed; `None` if any of
    /// it failed.
    fn do_bookkeeping(&mut self, round: &Round, state: &State) -> Option<usize> {
        let recorder = Recorder { state, clock: &Timestamp::now, actor: &self.actor };
        let mut progress = |_: ExecutionProgress<'_>| self.vitals.loop_iterated();
        let report = self.runtime.block_on(round.execute_beside_fleets(recorder, &mut progress));
        self.vitals.noted(&report);
        self.memory.noted(round, &report, Timestamp::now());
        let ExecutionReport { failed, done, .. } = report;
        if failed.is_empty() {
            self.pauses.reset();
            self.bookkeeping_error = None;
            return Some(done.len());
        }
        let failed = failed.iter().map(|failed| (failed.to_string(), failed.hint.clone()));
        self.log_once(&failed.collect::<Vec<_>>());
        None
    }

    /// Logs errors with their hints, unless the first is the one that was logged last.
    fn log_once(&mut self, errors: &[(String, String)]) {
        let first = errors.first().map(|(error, _)| error);
        if self.bookkeeping_error.as_ref() != first {
            errors.iter().for_each(|(error, hint)| tracing::error!(hint, "{error}"));
            self.bookkeeping_error = first.cloned();
        }
    }

    /// Logs once that the tree could not be read. Nothing is changed then.
    fn tell_unreadable(&mut self, error: &SourceError) {
        let (hint, error) = (error.hint(), error.to_string());
        if self.unreadable.as_ref() != Some(&error) {
            tracing::error!(error, hint, "cannot read the specs; no changes until they can be read");
            self.unreadable = Some(error);
        }
    }
}

/// Handles requests for approval with the current plan. Returns whether anything was approved, so that
/// another plan is needed.
fn approve(questions: Vec<PendingRequest>, state: &State, round: &Round) -> bool {
    let mut is_approved = false;
    for question in questions {
        let PendingRequest::Approve { id, by, reply } = question else { continue };
        let approved = round.approve(state, &id, &by, Timestamp::now());
        if let Ok(Approved::Now { fleet, changes }) = &approved {
            tracing::info!(%fleet, approved = id, by, "approved: {changes}");
            is_approved = true;
        }
        let failed = |error: StateError| NoReply {
            why: format!("cannot record the approval: {error}"),
            hint: error.hint(),
        };
        let _ = reply.send(approved.map_err(failed));
    }
    is_approved
}

fn refuse(questions: Vec<PendingRequest>, why: &str) {
    let hint = "check the log of `streamfleet serve`, and try again when it reads the specs".to_owned();
    let unanswered = NoReply { why: why.to_owned(), hint };
    for question in questions {
        let _ = match question {
            PendingRequest::Plan(reply) => reply.send(Err(unanswered.clone())).is_ok(),
            PendingRequest::Approve { reply, .. } => reply.send(Err(unanswered.clone())).is_ok(),
        };
    }
}

fn outlook(round: &Round, now: Timestamp) -> PendingWork {
    let waits = round.plan.changes().flat_map(|change| &change.waiting);
    let times = waits.filter_map(|waiting| match waiting {
        Waiting::Absence { until }
        | Waiting::Maintenance { until, .. }
        | Waiting::Flapping { until, .. }
        | Waiting::Repeated { until, .. }
        | Waiting::Retry { until, .. } => Some(*until),
        // The delay is logged then.
        Waiting::UnderWay { since } => since.checked_add(LONG).ok().filter(|told| *told > now),
        _ => None,
    });
    let certificates = round.checked.catalog.managed.values();
    let certificates = certificates.flat_map(|it| [it.renew_at, it.look_at]).flatten().filter(|at| *at > now);
    let next = times.chain(round.health.values().filter_map(|health| health.again)).chain(certificates).min();
    PendingWork {
        fleets: round.plan.fleets.iter().filter_map(ready).collect(),
        next: next.map(|next| until(next, now)),
    }
}

/// Returns the work that a plan leaves on a fleet; `None` if there is nothing to do now.
fn ready(plan: &FleetPlan) -> Option<ReadyFleet> {
    let deletes = |verb| matches!(verb, Verb::Delete | Verb::Recreate);
    let harms = |change: &Change| {
        change.guarded || deletes(change.verb) || change.steps.iter().any(|step| deletes(step.verb))
    };
    let ready: Vec<&Change> = plan.changes.iter().filter(|change| change.is_ready()).collect();
    (!ready.is_empty())
        .then(|| ReadyFleet { fleet: plan.fleet.clone(), is_harmless: !ready.into_iter().any(harms) })
}

/// Whether there is bookkeeping to do that belongs to no fleet, or that has to be stored before fleets are
/// changed.
fn needs_bookkeeping(round: &Round, outlook: &PendingWork) -> bool {
    let plan = &round.plan;
    let mut organizations = plan.organizations.iter().flat_map(|organization| &organization.changes);
    let is_another_source = || {
        let is_deletion = plan.changes().any(|change| change.verb == Verb::Delete);
        round.under_way.is_empty()
            && !is_deletion
            && round.checked.recorded.source.as_ref() != Some(&plan.inputs.source)
    };
    !outlook.fleets.is_empty()
        || !plan.remember.is_empty()
        || plan.fleets.iter().any(|fleet| !fleet.void_approvals.is_empty())
        || organizations.any(Change::is_bookkeeping)
        || is_another_source()
}
