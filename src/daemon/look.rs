//! Reads the specs, looks at the targets and plans, again and again.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::feed::Specs;
use super::log::Log;
use super::{Event, Lost, Outlook, Planned, approvals, until};
use crate::execute::{Progress, Report};
use crate::plan::{FleetPlan, LONG, Verb, Waiting};
use crate::round::{Clerk, Installation, Memory, Round, Waits};
use crate::spec::{self, Documents};
use crate::state::State;
use crate::target::Pace;
use crate::vitals::{Outcome, Vitals};

/// How long is waited before book is kept again where that failed, as on a full disk.
const PAUSES: Pace = Pace::around(std::time::Duration::from_secs(1), std::time::Duration::from_secs(30));

/// What plans are made with.
pub(super) struct Look {
    memory: Arc<Memory>,
    specs: Specs,
    actor: String,
    vitals: Arc<Vitals>,
    runtime: Handle,
    /// What was read last: files that are as they were aren't parsed again.
    documents: Option<Documents>,
    log: Log,
    /// Why the specs can't be read, as it was told last.
    unreadable: Option<String>,
    /// Why no book could be kept, as it was told last.
    unkept: Option<String>,
    pauses: Pace,
    /// What waited for what, as it was recorded last.
    waits: Waits,
}

impl Look {
    pub(super) fn new(
        memory: Arc<Memory>,
        specs: Specs,
        (actor, color): (String, bool),
        vitals: Arc<Vitals>,
        runtime: Handle,
    ) -> Self {
        let (documents, unreadable, unkept) = (None, None, None);
        let (log, pauses, waits) = (Log::new(color), PAUSES, Waits::default());
        Self { memory, specs, actor, vitals, runtime, documents, log, unreadable, unkept, pauses, waits }
    }

    /// Plans, and does what is no fleet's matter.
    pub(super) fn look(&mut self, installation: &Installation) -> Event {
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
    fn planned(&mut self, installation: &Installation) -> Result<(Planned, Option<Outcome>), Lost> {
        let nothing = Planned { outlook: Outlook::default(), round: None };
        let Some(state) = &installation.state else { return Ok((nothing, None)) };
        state.still_there()?;
        let snapshot = match self.specs.snapshot() {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok((nothing, None)),
            Err(error) => {
                self.tell_unreadable(&error.to_string());
                return Ok((nothing, Some(Outcome::Unreadable)));
            }
        };
        self.unreadable = None;
        self.vitals.turned();
        let documents = spec::read(&snapshot, self.documents.as_ref());
        let mut now = Timestamp::now();
        let plan = |now| installation.plan(&documents, now, &self.runtime, Some(&self.memory));
        let begun = Instant::now();
        let mut round = plan(now)?;
        if approvals::answer(state, &round) {
            now = Timestamp::now();
            round = plan(now)?;
        }
        self.documents = Some(documents);
        tracing::debug!(plan = round.plan.id, looked = round.looked, took = ?begun.elapsed(), "planned");
        self.log.decisions(&round);
        self.vitals.planned(&round, now);
        self.waits.record(&round, state, &self.actor, now);
        let mut outlook = outlook(&round, now);
        let mut outcome = if outlook.fleets.is_empty() { Outcome::Idle } else { Outcome::Begun };
        if needs_book(&round, &outlook) && !self.keep_book(&round, state) {
            // Nothing may change before it is kept.
            outcome = Outcome::Failed;
            outlook = Outlook { fleets: Vec::new(), next: Some(self.pauses.next_pause()) };
        } else if round.under_way.is_empty() {
            self.specs.settled();
        }
        Ok((Planned { outlook, round: Some(Arc::new(round)) }, Some(outcome)))
    }

    /// Does what is no fleet's matter, and says whether all of it could be.
    fn keep_book(&mut self, round: &Round, state: &State) -> bool {
        let clerk = Clerk { state, clock: &Timestamp::now, actor: &self.actor };
        let mut progress = |_: Progress<'_>| self.vitals.turned();
        let report = self.runtime.block_on(round.execute_beside_fleets(clerk, &mut progress));
        self.vitals.noted(&report);
        let Report { failed, .. } = report;
        let Some(first) = failed.first() else {
            self.pauses.reset();
            self.unkept = None;
            return true;
        };
        let why = first.to_string();
        if self.unkept.as_ref() != Some(&why) {
            failed.iter().for_each(|failed| tracing::error!(hint = failed.hint, "{failed}"));
            self.unkept = Some(why);
        }
        false
    }

    /// The tree could not be read, so that nothing is changed.
    fn tell_unreadable(&mut self, error: &str) {
        if self.unreadable.as_deref() != Some(error) {
            tracing::error!(error, "the specs can't be read, and everything stays as it is");
            self.unreadable = Some(error.to_owned());
        }
    }
}

/// What a plan leaves to be done on fleets, and when it is time for another one.
fn outlook(round: &Round, now: Timestamp) -> Outlook {
    let is_ready = |plan: &&FleetPlan| {
        plan.changes.iter().any(|change| change.waiting.is_empty() && change.verb != Verb::Keep)
    };
    let fleets = round.plan.fleets.iter().filter(is_ready);
    let waits = round.plan.changes().flat_map(|change| &change.waiting);
    let times = waits.filter_map(|waiting| match waiting {
        Waiting::Absence { until } | Waiting::Flapping { until, .. } | Waiting::Retry { until, .. } => {
            Some(*until)
        }
        // It is told then.
        Waiting::UnderWay { since } => since.checked_add(LONG).ok().filter(|told| *told > now),
        _ => None,
    });
    let next = times.chain(round.health.values().filter_map(|health| health.again)).min();
    Outlook {
        fleets: fleets.map(|plan| (plan.fleet.clone(), plan.digest().to_string())).collect(),
        next: next.map(|next| until(next, now)),
    }
}

/// Whether there is anything to do that is no fleet's matter, or that has to be noted before fleets are changed.
fn needs_book(round: &Round, outlook: &Outlook) -> bool {
    let plan = &round.plan;
    let organizations = plan.organizations.iter().flat_map(|organization| &organization.changes);
    let mut organizations = organizations.filter(|change| change.verb != Verb::Keep);
    let is_another_source = || {
        let is_deletion = plan.changes().any(|change| change.verb == Verb::Delete);
        round.under_way.is_empty()
            && !is_deletion
            && round.checked.recorded.source.as_ref() != Some(&plan.inputs.source)
    };
    !outlook.fleets.is_empty()
        || !plan.remember.is_empty()
        || plan.fleets.iter().any(|fleet| !fleet.void_approvals.is_empty())
        || organizations.any(|change| change.waiting.is_empty())
        || is_another_source()
}
