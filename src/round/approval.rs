//! Approvals of guarded steps.

use jiff::Timestamp;

use super::Round;
use crate::catalog::Approval;
use crate::names::FleetKey;
use crate::plan::{FleetPlan, Guard, Plan, Waiting};
use crate::state::{RecordedEvent, State, StateError};

#[derive(Debug, Clone)]
pub enum Approved {
    Now {
        fleet: FleetKey,
        /// The approved changes: `delete cluster acme/orders`.
        changes: String,
    },
    /// It had already been approved.
    Before { by: String },
    /// No guarded steps have this id.
    Unknown {
        /// The ids that can be approved, each with its fleet: `03b369592dea on fleet acme/eu`.
        waiting: Vec<String>,
    },
}

impl Round {
    /// Approves the guarded steps with this id, and no others, once.
    ///
    /// # Errors
    /// When it can't be recorded.
    pub fn approve(&self, state: &State, id: &str, by: &str, now: Timestamp) -> Result<Approved, StateError> {
        let Some((fleet, guard)) = guarded(&self.plan).find(|(_, guard)| guard.id == id) else {
            return Ok(Approved::Unknown { waiting: waiting_approvals(&self.plan) });
        };
        if let Some(by) = &guard.approved_by {
            return Ok(Approved::Before { by: by.clone() });
        }
        let (fleet, changes) = (fleet.fleet.clone(), guarded_changes(fleet, id));
        // The audit trail comes first, since no approval may be missing from it.
        state.audit_person(RecordedEvent {
            plan: Some(self.plan.id.clone()),
            commit: self.plan.inputs.commit.clone(),
            ..RecordedEvent::done(now, by, format!("approved {id} on fleet {fleet}: {changes}"))
        })?;
        let (id, by) = (id.to_owned(), by.to_owned());
        state.approve(Approval { fleet: fleet.clone(), id, by, at: now })?;
        Ok(Approved::Now { fleet, changes })
    }
}

fn guarded(plan: &Plan) -> impl Iterator<Item = (&FleetPlan, &Guard)> {
    plan.fleets.iter().filter_map(|fleet| Some((fleet, fleet.guard.as_ref()?)))
}

/// The ids that wait for approval, each with its fleet.
pub fn waiting_approvals(plan: &Plan) -> Vec<String> {
    guarded(plan).map(|(fleet, guard)| format!("{} on fleet {}", guard.id, fleet.fleet)).collect()
}

/// The approved changes, as the plan shows them next to the id.
fn guarded_changes(fleet: &FleetPlan, id: &str) -> String {
    let asks = |waiting: &Waiting| matches!(waiting, Waiting::Approval { id: asked, .. } if asked == id);
    let asking = fleet.changes.iter().filter(|change| change.waiting.iter().any(asks));
    let named: Vec<String> = asking.map(|change| format!("{} {}", change.verb, change.resource)).collect();
    named.join(", ")
}
