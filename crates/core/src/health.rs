//! Our own judgement of a cluster's health, from what was applied, what is observed now, and what was
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
pub mod fleet;
mod inputs;
mod memory;
pub mod objects;
mod outputs;
mod pods;
mod progress;
mod reason;
mod report;
mod scale_down;
mod state;
#[cfg(test)]
mod tests;
mod trouble;
mod update;
pub mod view;
mod words;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::ResourceStatus;

pub use applied_manifests::{AppliedCluster, WantedPool};
pub use fleet::{FleetHealth, FleetMemories, FleetObservation, GatewayWithoutAddress};
pub use memory::HealthMemory;
pub use outputs::Outputs;
pub use progress::HealthProgress;
pub use scale_down::{PendingDestruction, SCALE_DOWN_PREVENTION};
pub use view::ClusterObservation;

/// How long trouble must last before it is reported. A pod set's counts drop to 0 and return within the same
/// second, and a killed pod is replaced within one. People can't react faster than this anyway.
pub const DEBOUNCE: SignedDuration = SignedDuration::from_secs(10);

/// After a gap of this length between two judgements, trouble that is seen for the first time is reported at
/// once instead of being debounced. A command that is run now and then should give the answer without being
/// run twice.
pub const OBSERVATION_GAP: SignedDuration = SignedDuration::from_secs(60);

/// How long everything must be quiet before a change counts as finished when the operator doesn't announce
/// its end, since it may restart more pods. The longest recorded pause between two restarts of one change is
/// 26 s.
pub const QUIET_PERIOD: SignedDuration = SignedDuration::from_secs(30);

/// How long nothing may move, or one pod may be away, before it counts as trouble: the 300 s for which the
/// operator waits for a pod and ignores everything else (`STRIMZI_OPERATION_TIMEOUT_MS`), the 120 s between
/// its periodic reconciliations (`STRIMZI_FULL_RECONCILIATION_INTERVAL_MS`), and 60 s for pods to start.
pub const DEADLINE: SignedDuration = SignedDuration::from_secs(300 + 120 + 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub status: ResourceStatus,
    pub in_progress: Vec<HealthProgress>,
    pub pending_destructions: Vec<PendingDestruction>,
    /// The last known values; a failed reconciliation of the operator doesn't clear them.
    pub outputs: Outputs,
    /// A pod that fits no node, and why. Set once that has lasted for [`DEBOUNCE`].
    pub unschedulable: Option<String>,
    /// The cluster is to be deleted, and no object is left that would still be deleted.
    pub gone: bool,
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
    let is_well = decision.status == crate::catalog::Status::Healthy && pods.is_complete();
    let clear_certificates = memory.clear_certificates(wanted, is_well);
    memory.note_wanted(wanted);
    let unschedulable =
        pods.unschedulable().filter(|_| memory.has_lasted_debounce(memory::TroubleSign::Unschedulable, now));
    let unschedulable =
        unschedulable.map(|trouble| format!("{} {}", words::quoted(&trouble.pod), trouble.why));
    let status = memory.settle_on(decision, conditions, now);
    let judgement = Judgement {
        status,
        in_progress,
        pending_destructions: scale_down::pending_destructions(seen),
        outputs: memory.outputs.clone(),
        unschedulable,
        gone: wanted.deleting && remains.is_empty(),
        clear_certificates,
    };
    (judgement, memory)
}
