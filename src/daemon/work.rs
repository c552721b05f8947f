//! The work on one fleet, on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::execute::{ExecutionFailure, ExecutionProgress, ExecutionReport};
use crate::names::FleetKey;
use crate::plan::FleetPlan;
use crate::round::{Recorder, Round, RoundMemory};
use crate::state::State;
use crate::vitals::Vitals;

/// How long a fleet is worked on before it is another fleet's turn: no further step begins after that.
const TURN: Duration = Duration::from_secs(30);

/// The timeout of one fleet's work: a turn, a step that waits up to 90 s for a deletion, and the inventory
/// that is written after it, each on a slow server.
const FLEET_WORK_TIMEOUT: Duration = Duration::from_secs(240);

#[derive(Clone)]
pub(super) struct FleetWorker {
    state: Option<Arc<State>>,
    memory: Arc<RoundMemory>,
    actor: Arc<str>,
    vitals: Arc<Vitals>,
    runtime: Handle,
    /// How long a fleet is worked on at a time.
    pub(super) turn: Duration,
}

impl FleetWorker {
    pub(super) fn new(
        state: Option<Arc<State>>,
        memory: Arc<RoundMemory>,
        actor: &str,
        vitals: Arc<Vitals>,
        runtime: Handle,
    ) -> Self {
        Self { state, memory, actor: actor.into(), vitals, runtime, turn: TURN }
    }

    /// Accepts the work of a plan on a fleet. Until it is done, plans leave the fleet out.
    pub(super) fn begin(&self, round: Arc<Round>, fleet: FleetKey) -> Task {
        self.memory.begins(&fleet, Timestamp::now());
        Task { work: self.clone(), round, fleet }
    }
}

/// The work on one fleet. However it ends, later plans include the fleet again.
pub(super) struct Task {
    work: FleetWorker,
    round: Arc<Round>,
    fleet: FleetKey,
}

impl Task {
    /// Does the work. `Event::FleetWorkEnded` has to be sent afterwards.
    pub(super) fn run(self) {
        let Some(plan) = self.round.fleet_plan(&self.fleet) else { return };
        // A panic on one fleet must not affect the others.
        let report = catch_unwind(AssertUnwindSafe(|| self.execute(plan)));
        let report = report.unwrap_or_else(|_| died(&self.fleet));
        let FleetWorker { memory, vitals, .. } = &self.work;
        vitals.carried_out(&report);
        let retries = memory.ends(&self.round, plan, &report, Timestamp::now());
        for failed in &report.failed {
            let until = retries.get(&failed.retried().cloned()).map(tracing::field::display);
            let fleet = &self.fleet;
            tracing::error!(%fleet, hint = failed.hint, again = until, "{failed}");
        }
    }

    fn execute(&self, plan: &FleetPlan) -> ExecutionReport {
        let FleetWorker { state, actor, vitals, runtime, turn, .. } = &self.work;
        let Some(state) = state else { return ExecutionReport::default() };
        let recorder = Recorder { state, clock: &Timestamp::now, actor };
        let mut progress = |progress: ExecutionProgress<'_>| vitals.progress(&progress);
        let run = self.round.execute_fleet(plan, Instant::now() + *turn, recorder, &mut progress);
        runtime.block_on(in_time(&self.fleet, run))
    }
}

/// Aborts work that takes too long. The journal keeps unfinished steps, as after a kill.
async fn in_time(fleet: &FleetKey, work: impl Future<Output = ExecutionReport>) -> ExecutionReport {
    timeout(FLEET_WORK_TIMEOUT, work).await.unwrap_or_else(|_| overdue(fleet))
}

impl Drop for Task {
    fn drop(&mut self) {
        self.work.memory.ended(&self.fleet);
    }
}

fn died(fleet: &FleetKey) -> ExecutionReport {
    let message = "internal error: the work was aborted".to_owned();
    failed(fleet, message, "report it, with the log lines above")
}

fn overdue(fleet: &FleetKey) -> ExecutionReport {
    let message = format!("the work took longer than {} s, and was aborted", FLEET_WORK_TIMEOUT.as_secs());
    failed(
        fleet,
        message,
        "the cluster answers slowly: check its API server; the remaining work is done when it answers",
    )
}

fn failed(fleet: &FleetKey, message: String, hint: &str) -> ExecutionReport {
    let (resource, origin, object) = (None, None, None);
    let (fleet, hint) = (Some(fleet.clone()), hint.to_owned());
    let failed =
        ExecutionFailure { fleet, resource, origin, object, message, hint, concealed: false, alone: false };
    ExecutionReport { failed: vec![failed], ..ExecutionReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_without_an_end_is_aborted_and_the_fleet_is_told() {
        let (fleet, began) = ("acme/eu".to_owned().try_into().unwrap(), tokio::time::Instant::now());
        let report = in_time(&fleet, std::future::pending()).await;
        assert_eq!(began.elapsed(), FLEET_WORK_TIMEOUT);
        let [failed] = report.failed.as_slice() else { panic!("{report:?}") };
        assert_eq!(failed.message, "the work took longer than 240 s, and was aborted");
        assert_eq!(failed.fleet, Some(fleet));
    }
}
