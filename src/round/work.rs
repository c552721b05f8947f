//! Executes a plan, as a whole or for each fleet.

use std::time::Instant;

use jiff::Timestamp;

use super::kubeconfigs::{self, NotKept};
use super::{Round, certificates};
use crate::catalog::ResolvedTree;
use crate::config::Mode;
use crate::execute::{self, ExecutionFailure, ExecutionProgress, ExecutionReport, RunContext};
use crate::plan::FleetPlan;
use crate::state::State;

/// The place of results, and the name that they are recorded under.
#[derive(Clone, Copy)]
pub struct Recorder<'a> {
    pub state: &'a State,
    pub clock: &'a dyn Fn() -> Timestamp,
    /// For the audit trail.
    pub actor: &'a str,
}

impl Round {
    /// Executes the whole plan. If the settings forbid changes, it only remembers the findings of the plan.
    pub async fn execute(
        &self,
        recorder: Recorder<'_>,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> ExecutionReport {
        if self.checked.catalog.config.policy.mode == Mode::PlanOnly {
            return self.execute_beside_fleets(recorder, progress).await;
        }
        if let Err(report) = self.keep_secrets(recorder.state, progress) {
            return report;
        }
        execute::execute(self.context(recorder), progress).await
    }

    /// Executes the part of the plan that belongs to no fleet; it comes before the fleets.
    pub async fn execute_beside_fleets(
        &self,
        recorder: Recorder<'_>,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> ExecutionReport {
        if let Err(report) = self.keep_secrets(recorder.state, progress) {
            return report;
        }
        execute::execute_beside_fleets(self.context(recorder), &self.under_way, progress).await
    }

    /// Whether certificates are due that nothing holds up.
    pub fn has_certificates(&self) -> bool {
        let changes = self.plan.organizations.iter().flat_map(|organization| &organization.changes);
        changes.filter(|change| change.is_ready()).any(|change| change.certificate.is_some())
    }

    /// Gets the first certificate that is due: a later plan knows more of the others.
    pub async fn execute_certificates(
        &self,
        recorder: Recorder<'_>,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> ExecutionReport {
        execute::execute_certificates(self.context(recorder), progress).await
    }

    /// Executes one fleet's part of the plan. No step begins after `until`.
    pub async fn execute_fleet(
        &self,
        fleet: &FleetPlan,
        until: Instant,
        recorder: Recorder<'_>,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> ExecutionReport {
        execute::execute_fleet(self.context(recorder), fleet, Some(until), progress).await
    }

    fn context<'a>(&'a self, Recorder { state, clock, actor }: Recorder<'a>) -> RunContext<'a> {
        let Round { plan, targets, keyring, checked, .. } = self;
        let ResolvedTree { recorded, secrets, .. } = &**checked;
        RunContext { plan, recorded, targets, state, secrets, keyring, clock, actor }
    }

    /// Without its kubeconfig, a fleet couldn't be cleaned up later. Without its key, a certificate is of no use.
    fn keep_secrets(
        &self,
        state: &State,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> Result<(), ExecutionReport> {
        let kept = kubeconfigs::keep(self, state).map_err(|why| ("the fleets' kubeconfigs", why));
        let kept = kept.and_then(|()| certificates::keep(self, state).map_err(|why| ("certificates", why)));
        let Err((what, NotKept { message, hint })) = kept else { return Ok(()) };
        let message = format!("cannot save {what}: {message}");
        let failure = ExecutionFailure {
            fleet: None,
            resource: None,
            origin: None,
            object: None,
            message,
            hint,
            concealed: false,
            alone: false,
        };
        progress(ExecutionProgress::Failed(&failure));
        Err(ExecutionReport { failed: vec![failure], ..ExecutionReport::default() })
    }
}
