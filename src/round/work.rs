//! Does what was planned: all of it, or each fleet's part by itself.

use std::time::Instant;

use jiff::Timestamp;

use super::kubeconfigs::{self, NotKept};
use super::{Checked, Round};
use crate::config::Mode;
use crate::execute::{self, Desk, Failure, Progress, Report};
use crate::plan::FleetPlan;
use crate::state::State;

/// Who keeps book of what is done, and where.
#[derive(Clone, Copy)]
pub struct Clerk<'a> {
    /// Where.
    pub state: &'a State,
    /// The time.
    pub clock: &'a dyn Fn() -> Timestamp,
    /// Who does it, for the audit trail.
    pub actor: &'a str,
}

impl Round {
    /// Does what the plan says. Where the settings want nothing to be changed, only what a plan found out is remembered.
    pub async fn execute(&self, clerk: Clerk<'_>, progress: &mut dyn FnMut(Progress<'_>)) -> Report {
        if self.checked.catalog.config.policy.mode == Mode::PlanOnly {
            return self.execute_beside_fleets(clerk, progress).await;
        }
        if let Err(report) = self.keep_kubeconfigs(clerk.state, progress) {
            return report;
        }
        execute::execute(self.desk(clerk), progress).await
    }

    /// Does of the plan what is no fleet's matter, which goes before what is.
    pub async fn execute_beside_fleets(
        &self,
        clerk: Clerk<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Report {
        if let Err(report) = self.keep_kubeconfigs(clerk.state, progress) {
            return report;
        }
        execute::execute_beside_fleets(self.desk(clerk), &self.under_way, progress).await
    }

    /// Does one fleet's part of the plan. From a certain time on, no further step is begun.
    pub async fn execute_fleet(
        &self,
        fleet: &FleetPlan,
        until: Instant,
        clerk: Clerk<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Report {
        execute::execute_fleet(self.desk(clerk), fleet, Some(until), progress).await
    }

    fn desk<'a>(&'a self, Clerk { state, clock, actor }: Clerk<'a>) -> Desk<'a> {
        let Round { plan, targets, checked: Checked { recorded, secrets, .. }, .. } = self;
        Desk { plan, recorded, targets, state, secrets, clock, actor }
    }

    /// Without them, nobody could remove later what is made now.
    fn keep_kubeconfigs(&self, state: &State, progress: &mut dyn FnMut(Progress<'_>)) -> Result<(), Report> {
        let Err(NotKept { message, hint }) = kubeconfigs::keep(self, state) else { return Ok(()) };
        let message = format!("cannot keep the fleets' kubeconfigs: {message}");
        let failure = Failure {
            fleet: None,
            resource: None,
            origin: None,
            object: None,
            message,
            hint,
            concealed: false,
        };
        progress(Progress::Failed(&failure));
        Err(Report { failed: vec![failure], ..Report::default() })
    }
}
