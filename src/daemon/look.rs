//! Reads the specs, looks at the targets and plans, again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::feed::Specs;
use super::log::Log;
use super::schedule::Ready;
use super::{Event, Lost, Outlook, Planned, until};
use crate::api::{Desk, Given, Made, Question, Unanswered, Wants};
use crate::execute::{Progress, Report};
use crate::names::FleetKey;
use crate::plan::{Change, FleetPlan, LONG, Verb, Waiting};
use crate::round::{Approved, Clerk, Installation, Memory, Round, Waits};
use crate::spec::{self, Documents};
use crate::state::{State, StateError};
use crate::target::Pace;
use crate::vitals::{Outcome, Vitals};

/// How long is waited before book is kept again where that failed, as on a full disk.
const PAUSES: Pace = Pace::around(Duration::from_secs(1), Duration::from_secs(30));

/// How long what was found in the folders that fleets write to is taken to be there still, in plans for other reasons: nothing
/// tells what others do in them, and to look at every file of every fleet takes longer than all the rest.
const FOLDERS: Duration = Duration::from_secs(30);

/// How soon there is another plan when something changed that is no fleet's matter.
const SOON: std::time::Duration = std::time::Duration::from_millis(100);

/// What plans are made with.
pub(super) struct Look {
    desk: Arc<Desk>,
    memory: Arc<Memory>,
    specs: Specs,
    actor: String,
    vitals: Arc<Vitals>,
    runtime: Handle,
    /// What was read last: files that are as they were aren't parsed again.
    documents: Option<Arc<Documents>>,
    log: Log,
    /// Why the specs can't be read, as it was told last.
    unreadable: Option<String>,
    /// Why no book could be kept, as it was told last.
    unkept: Option<String>,
    pauses: Pace,
    /// When all folders that fleets write to were last looked at.
    folders: Option<Instant>,
    /// What waited for what, as it was recorded last.
    waits: Waits<String>,
}

impl Look {
    pub(super) fn new(
        desk: Arc<Desk>,
        specs: Specs,
        actor: String,
        vitals: Arc<Vitals>,
        runtime: Handle,
    ) -> Self {
        let (documents, unreadable, unkept, folders) = (None, None, None, None);
        let (log, pauses, waits) = (Log::default(), PAUSES, Waits::default());
        let memory = desk.memory();
        Self {
            desk,
            memory,
            specs,
            actor,
            vitals,
            runtime,
            documents,
            log,
            unreadable,
            unkept,
            pauses,
            folders,
            waits,
        }
    }

    /// What the last plan says of a fleet begins to be done.
    pub(super) fn begins(&mut self, fleet: &FleetKey) {
        self.log.begins(fleet);
    }

    /// Plans, and does what is no fleet's matter.
    pub(super) fn look(&mut self, installation: &Arc<Installation>) -> Event {
        let begun = Instant::now();
        match self.planned(installation) {
            Ok((planned, outcome)) => {
                if let Some(outcome) = outcome {
                    self.vitals.round(outcome, begun.elapsed());
                }
                Event::Planned(Box::new(planned))
            }
            Err(lost) => Event::Lost(lost),
        }
    }

    /// What was planned, and what came of that; nothing where there are no specs yet.
    fn planned(&mut self, installation: &Arc<Installation>) -> Result<(Planned, Option<Outcome>), Lost> {
        let nothing = Planned { outlook: Outlook::default(), round: None };
        let Some(state) = &installation.state else { return Ok((nothing, None)) };
        state.still_there()?;
        let questions = self.desk.take();
        // Before they are read: what is written from now on may not be in them.
        let mark = self.desk.writer().map(|writer| writer.mark()).unwrap_or_default();
        let snapshot = match self.specs.snapshot() {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => {
                refuse(questions, "no specs were fetched yet");
                return Ok((nothing, None));
            }
            Err(error) => {
                // Where they are, and how they are reached, is for those who run this to know.
                refuse(questions, "the specs can't be read, and everything stays as it is");
                self.tell_unreadable(&error.to_string());
                return Ok((nothing, Some(Outcome::Unreadable)));
            }
        };
        if self.unreadable.take().is_some() {
            tracing::info!("the specs can be read again");
        }
        self.vitals.turned();
        let documents = Arc::new(spec::read(&snapshot, self.documents.as_deref()));
        let folders = self.trust_folders(questions.is_empty());
        let mut now = Timestamp::now();
        let plan = |now| installation.plan(&documents, now, &self.runtime, Some(&self.memory));
        let begun = Instant::now();
        let mut round = plan(now)?;
        let (approvals, questions): (Vec<_>, Vec<_>) =
            questions.into_iter().partition(|question| matches!(question.wants, Wants::Approve { .. }));
        if approve(approvals, state, &round) {
            now = Timestamp::now();
            round = plan(now)?;
        }
        self.folders = Some(folders);
        self.documents = Some(Arc::clone(&documents));
        tracing::debug!(plan = round.plan.id, looked = round.looked, took = ?begun.elapsed(), "planned");
        self.memory.planned(&round);
        self.log.decisions(&round);
        self.vitals.planned(&round, now);
        self.waits.record(&round, state, &self.actor, now);
        let mut outlook = outlook(&round, now);
        let again = FOLDERS.saturating_sub(folders.elapsed());
        outlook.next = Some(outlook.next.map_or(again, |next| next.min(again)));
        let mut outcome = if outlook.fleets.is_empty() { Outcome::Idle } else { Outcome::Begun };
        let is_kept = if needs_book(&round, &outlook) { self.keep_book(&round, state) } else { Some(0) };
        match is_kept {
            // Nothing may change before it is kept.
            None => {
                outcome = Outcome::Failed;
                outlook = Outlook { fleets: Vec::new(), next: Some(self.pauses.next_pause()) };
            }
            Some(done) => {
                if done > 0 {
                    // Whoever asks is to see it as it is now.
                    outlook.next = Some(outlook.next.map_or(SOON, |next| next.min(SOON)));
                }
                if round.under_way.is_empty() {
                    self.specs.settled();
                }
            }
        }
        let round = Arc::new(round);
        let trouble = self.unkept.clone().filter(|_| is_kept.is_none());
        let made =
            Made::new(Arc::clone(installation), documents, Arc::clone(&round), mark).with_trouble(trouble);
        self.desk.put(made.clone());
        questions.into_iter().for_each(|question| question.answer(Ok(Given::Plan(made.clone()))));
        Ok((Planned { outlook, round: Some(round) }, Some(outcome)))
    }

    /// Has folders looked at where that was last done a while ago, and where somebody asks how everything is. Gives when it
    /// was last done.
    fn trust_folders(&self, nobody_asks: bool) -> Instant {
        let last = self.folders.filter(|last| nobody_asks && last.elapsed() < FOLDERS);
        let is_trusted = self.memory.trust_folders(last.is_some());
        last.filter(|_| is_trusted).unwrap_or_else(Instant::now)
    }

    /// Does what is no fleet's matter, and says how many resources that changed; none where not all of it could be done.
    fn keep_book(&mut self, round: &Round, state: &State) -> Option<usize> {
        let clerk = Clerk { state, clock: &Timestamp::now, actor: &self.actor };
        let mut progress = |_: Progress<'_>| self.vitals.turned();
        let report = self.runtime.block_on(round.execute_beside_fleets(clerk, &mut progress));
        self.vitals.noted(&report);
        self.memory.noted(round, &report, Timestamp::now());
        let Report { failed, done, .. } = report;
        let Some(first) = failed.first() else {
            self.pauses.reset();
            self.unkept = None;
            return Some(done.len());
        };
        let why = first.to_string();
        if self.unkept.as_ref() != Some(&why) {
            failed.iter().for_each(|failed| tracing::error!(hint = failed.hint, "{failed}"));
            self.unkept = Some(why);
        }
        None
    }

    /// The tree could not be read, so that nothing is changed.
    fn tell_unreadable(&mut self, error: &str) {
        if self.unreadable.as_deref() != Some(error) {
            tracing::error!(error, "the specs can't be read, and everything stays as it is");
            self.unreadable = Some(error.to_owned());
        }
    }
}

/// Approves what people ask for, by the plan that was just made. Says whether anything was, so that there is another plan now.
fn approve(questions: Vec<Question>, state: &State, round: &Round) -> bool {
    let mut is_approved = false;
    for question in questions {
        let Wants::Approve { id, by } = &question.wants else { continue };
        let approved = round.approve(state, id, by, Timestamp::now());
        if let Ok(Approved::Now { fleet, changes }) = &approved {
            tracing::info!(%fleet, approved = id, by, "approved: {changes}");
            is_approved = true;
        }
        let failed = |error: StateError| Unanswered {
            why: format!("could not record the approval: {error}"),
            hint: error.hint(),
        };
        question.answer(approved.map(Given::Approved).map_err(failed));
    }
    is_approved
}

/// There are no specs to make a plan from.
fn refuse(questions: Vec<Question>, why: &str) {
    let hint = "see the log of `streamfleet serve`, and try again when it reads them".to_owned();
    let unanswered = Unanswered { why: why.to_owned(), hint };
    questions.into_iter().for_each(|question| question.answer(Err(unanswered.clone())));
}

/// What a plan leaves to be done on fleets, and when it is time for another one.
fn outlook(round: &Round, now: Timestamp) -> Outlook {
    let waits = round.plan.changes().flat_map(|change| &change.waiting);
    let times = waits.filter_map(|waiting| match waiting {
        Waiting::Absence { until }
        | Waiting::Flapping { until, .. }
        | Waiting::Repeated { until, .. }
        | Waiting::Retry { until, .. } => Some(*until),
        // It is told then.
        Waiting::UnderWay { since } => since.checked_add(LONG).ok().filter(|told| *told > now),
        _ => None,
    });
    let next = times.chain(round.health.values().filter_map(|health| health.again)).min();
    Outlook {
        fleets: round.plan.fleets.iter().filter_map(ready).collect(),
        next: next.map(|next| until(next, now)),
    }
}

/// What a plan leaves to be done on a fleet; none where nothing is to be done there now.
fn ready(plan: &FleetPlan) -> Option<Ready> {
    let deletes = |verb| matches!(verb, Verb::Delete | Verb::Recreate);
    let harms = |change: &Change| {
        change.guarded || deletes(change.verb) || change.steps.iter().any(|step| deletes(step.verb))
    };
    let ready: Vec<&Change> = plan.changes.iter().filter(|change| change.is_ready()).collect();
    (!ready.is_empty())
        .then(|| Ready { fleet: plan.fleet.clone(), is_harmless: !ready.into_iter().any(harms) })
}

/// Whether there is anything to do that is no fleet's matter, or that has to be noted before fleets are changed.
fn needs_book(round: &Round, outlook: &Outlook) -> bool {
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
        || organizations.any(Change::is_ready)
        || is_another_source()
}
