//! Our own judgement of a Kafka cluster's health, from what was applied, what is observed now, and what was
//! observed before.
//!
//! Strimzi's `Ready` only says that the operator's last reconciliation succeeded. It stays true while every
//! pod is gone and the operator is down, while a broker crashes again and again, and while the controllers
//! have lost their quorum. So health is judged from pods, progress from generations and pod sets, and the
//! cause of trouble from pods, claims and events. Nothing here reads a clock: [`judge`] takes the time and a
//! `HealthMemory` of how long each sign has lasted, and returns the next one.

pub mod applied_manifests;
mod authorities;
mod conditions;
mod deletion;
mod inputs;
mod memory;
pub mod objects;
mod outputs;
mod pods;
mod progress;
mod public;
mod read;
mod reason;
mod report;
mod scale_down;
mod state;
#[cfg(test)]
mod tests;
mod trouble;
mod update;
mod view;

use jiff::Timestamp;

use crate::catalog::{ResourceStatus, Status};
use crate::component::health::words;
pub use applied_manifests::{AppliedCluster, ProbeUser, PublicListener, WantedPool};
pub use memory::HealthMemory;
pub use outputs::Outputs;
pub use progress::HealthProgress;
pub use public::PublicSide;
pub use read::{is_leaving, is_troubled, observe};
pub use scale_down::{PendingDestruction, SCALE_DOWN_PREVENTION};
pub use view::ClusterObservation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub status: ResourceStatus,
    pub in_progress: Vec<HealthProgress>,
    /// The last known values; a failed reconciliation of the operator doesn't clear them.
    pub outputs: Outputs,
    /// A pod that fits no node, and why. Set once that has lasted for [`DEBOUNCE`].
    pub unschedulable: Option<String>,
    /// Whether the certificates of the listeners are ruled out as the cause of trouble. `None` if unknown,
    /// for example after the state was lost.
    pub clear_certificates: Option<bool>,
}

/// Judges a cluster.
///
/// `before` is what the last judgement returned, or an empty one; it is needed to debounce. Call this
/// after every observed change, and every few seconds in between, since deadlines pass while nothing changes.
pub fn judge(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    before: &HealthMemory,
    now: Timestamp,
) -> (Judgement, HealthMemory) {
    let mut memory = before.of_the_same_cluster(seen);
    memory.absorb_observation(seen, now);
    let report = report::read(seen, &memory);
    let pods = pods::count(wanted, seen, &mut memory, now);
    update::count_restarts(&mut memory, seen, &pods, now);
    let in_progress = progress::of(wanted, seen, &pods, &memory);
    update::follow(&mut memory, wanted, seen, &pods, &report, &in_progress, now);
    let conditions = conditions::of(wanted, seen, &mut memory, now);
    let remains = deletion::remains(seen);
    let facts = inputs::HealthInputs {
        wanted,
        seen,
        memory: &memory,
        report: &report,
        pods: &pods,
        progress: &in_progress,
        conditions: &conditions,
        remains: &remains,
        now,
    };
    let decision = state::decide(&facts);
    // A status that was only carried over until trouble has lasted proves nothing.
    let is_well = decision.status == Status::Healthy && pods.is_complete();
    let clear_certificates = memory.clear_certificates(wanted, is_well);
    memory.note_wanted(wanted);
    let unschedulable =
        pods.unschedulable().filter(|_| memory.has_lasted_debounce(memory::TroubleSign::Unschedulable, now));
    let unschedulable =
        unschedulable.map(|trouble| format!("{} {}", words::quoted(&trouble.pod), trouble.why));
    let status = memory.settle_on(decision, conditions, now);
    let judgement =
        Judgement { status, in_progress, outputs: memory.outputs.clone(), unschedulable, clear_certificates };
    (judgement, memory)
}

/// Judges a cluster that can't be observed: the last reported status if it is recent, `Unreachable` with this
/// reason otherwise. A status from before the last applied change doesn't count.
pub fn judge_unobserved(
    wanted: &AppliedCluster,
    reason: Option<String>,
    before: &HealthMemory,
    now: Timestamp,
) -> Judgement {
    let unknown = ResourceStatus { status: Status::Unreachable, reason, conditions: Vec::new(), since: now };
    Judgement {
        status: before.recently_reported_status(wanted, now).cloned().unwrap_or(unknown),
        in_progress: Vec::new(),
        outputs: before.outputs().clone(),
        unschedulable: None,
        clear_certificates: before.had_clear_certificates(wanted),
    }
}
