//! One fleet's work, on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;

use crate::execute::{Failure, Progress, Report};
use crate::names::FleetKey;
use crate::plan::FleetPlan;
use crate::round::{Clerk, Installation, Memory, Round};

/// What work is done with.
pub(super) struct Work {
    installation: Arc<Installation>,
    memory: Arc<Memory>,
    actor: Arc<str>,
    runtime: Handle,
}

impl Work {
    pub(super) fn new(
        installation: Arc<Installation>,
        memory: Arc<Memory>,
        actor: String,
        runtime: Handle,
    ) -> Self {
        Self { installation, memory, actor: actor.into(), runtime }
    }

    /// Takes on what a plan says of a fleet. From now on no plan looks at the fleet, until that is done.
    pub(super) fn begin(&self, round: Arc<Round>, fleet: FleetKey) -> Task {
        self.memory.begins(&fleet, Timestamp::now());
        let (installation, memory) = (Arc::clone(&self.installation), Arc::clone(&self.memory));
        Task {
            installation,
            memory,
            actor: Arc::clone(&self.actor),
            runtime: self.runtime.clone(),
            round,
            fleet,
        }
    }
}

/// What is done on one fleet.
pub(super) struct Task {
    installation: Arc<Installation>,
    memory: Arc<Memory>,
    actor: Arc<str>,
    runtime: Handle,
    round: Arc<Round>,
    fleet: FleetKey,
}

impl Task {
    /// Does it, and says whether anything failed.
    pub(super) fn run(&self) -> bool {
        let plan = self.round.plan.fleets.iter().find(|plan| plan.fleet == self.fleet);
        let Some(plan) = plan else { return false };
        // Who dies over one fleet leaves the others alone.
        let report = catch_unwind(AssertUnwindSafe(|| self.execute(plan)));
        let report = report.unwrap_or_else(|_| died(&self.fleet));
        let until = self.memory.ends(&self.round, plan, &report, Timestamp::now());
        for failed in &report.failed {
            let (fleet, until) = (&self.fleet, until.map(tracing::field::display));
            tracing::error!(%fleet, hint = failed.hint, again = until, "{failed}");
        }
        !report.failed.is_empty()
    }

    fn execute(&self, plan: &FleetPlan) -> Report {
        let Some(state) = &self.installation.state else { return Report::default() };
        let clerk = Clerk { state, clock: &Timestamp::now, actor: &self.actor };
        let mut progress = |_: Progress<'_>| {};
        self.runtime.block_on(self.round.execute_fleet(plan, clerk, &mut progress))
    }
}

fn died(fleet: &FleetKey) -> Report {
    let failed = Failure {
        fleet: Some(fleet.clone()),
        resource: None,
        origin: None,
        object: None,
        message: "a mistake in streamfleet itself ended what was being done".to_owned(),
        hint: "report it, with what the log says above".to_owned(),
    };
    Report { failed: vec![failed], ..Report::default() }
}
