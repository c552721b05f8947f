//! One fleet's work, on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::execute::{Failure, Progress, Report};
use crate::names::FleetKey;
use crate::plan::FleetPlan;
use crate::round::{Clerk, Memory, Round};
use crate::state::State;
use crate::vitals::Vitals;

/// How long a fleet is worked on before others have their turn: no further step is begun then.
const TURN: Duration = Duration::from_secs(30);

/// How long what was begun may take altogether: a turn, a step that waits up to 90 s for something to go, and the inventory
/// that is written behind it, each on a slow server.
const LONGEST: Duration = Duration::from_secs(240);

/// What work is done with.
#[derive(Clone)]
pub(super) struct Work {
    state: Option<Arc<State>>,
    memory: Arc<Memory>,
    actor: Arc<str>,
    vitals: Arc<Vitals>,
    runtime: Handle,
}

impl Work {
    pub(super) fn new(
        state: Option<Arc<State>>,
        memory: Arc<Memory>,
        actor: &str,
        vitals: Arc<Vitals>,
        runtime: Handle,
    ) -> Self {
        Self { state, memory, actor: actor.into(), vitals, runtime }
    }

    /// Takes on what a plan says of a fleet. From now on no plan looks at the fleet, until that is done.
    pub(super) fn begin(&self, round: Arc<Round>, fleet: FleetKey) -> Task {
        self.memory.begins(&fleet, Timestamp::now());
        Task { work: self.clone(), round, fleet }
    }
}

/// What is done on one fleet. However it ends, plans look at the fleet again.
pub(super) struct Task {
    work: Work,
    round: Arc<Round>,
    fleet: FleetKey,
}

impl Task {
    /// Does it. Whoever tells that it ended does so afterwards.
    pub(super) fn run(self) {
        let Some(plan) = self.round.fleet_plan(&self.fleet) else { return };
        // Who dies over one fleet leaves the others alone.
        let report = catch_unwind(AssertUnwindSafe(|| self.execute(plan)));
        let report = report.unwrap_or_else(|_| died(&self.fleet));
        let Work { memory, vitals, .. } = &self.work;
        vitals.carried_out(&report);
        let until = memory.ends(&self.round, plan, &report, Timestamp::now());
        for failed in &report.failed {
            let (fleet, until) = (&self.fleet, until.map(tracing::field::display));
            tracing::error!(%fleet, hint = failed.hint, again = until, "{failed}");
        }
    }

    fn execute(&self, plan: &FleetPlan) -> Report {
        let Work { state, actor, vitals, runtime, .. } = &self.work;
        let Some(state) = state else { return Report::default() };
        let clerk = Clerk { state, clock: &Timestamp::now, actor };
        let mut progress = |progress: Progress<'_>| vitals.progress(&progress);
        let run = self.round.execute_fleet(plan, Instant::now() + TURN, clerk, &mut progress);
        // What is left half done is in the journal, as after a kill.
        let ended = runtime.block_on(async { timeout(LONGEST, run).await });
        ended.unwrap_or_else(|_| overdue(&self.fleet))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.work.memory.ended(&self.fleet);
    }
}

fn died(fleet: &FleetKey) -> Report {
    let message = "a mistake in streamfleet itself ended what was being done".to_owned();
    failed(fleet, message, "report it, with what the log says above")
}

fn overdue(fleet: &FleetKey) -> Report {
    let message = format!("what was begun was not done within {} s, and was broken off", LONGEST.as_secs());
    failed(
        fleet,
        message,
        "its cluster is slow to answer: see to its API server; what is left is done when it answers",
    )
}

fn failed(fleet: &FleetKey, message: String, hint: &str) -> Report {
    let (resource, origin, object) = (None, None, None);
    let (fleet, hint) = (Some(fleet.clone()), hint.to_owned());
    let failed = Failure { fleet, resource, origin, object, message, hint, concealed: false };
    Report { failed: vec![failed], ..Report::default() }
}
