//! Our own judgement of how a cluster is, from what is wanted, what is seen, and what was seen before.
//!
//! Strimzi's `Ready` says that the operator's last look ended well. It stays true while every pod is gone and the
//! operator is down, while a broker crashes again and again, and while the controllers have lost their quorum. So what
//! counts here is pods; generations and pod sets tell progress; and the cause of trouble is read from pods, claims and
//! events. Nothing here reads a clock: [`judge`] is given the time and a [`Memory`] of what lasts since when, and gives
//! it back.

mod authorities;
mod conditions;
mod deletion;
pub mod fleet;
mod memory;
pub mod objects;
mod outputs;
mod pods;
mod progress;
mod reason;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod trouble;
mod update;
pub mod view;
pub mod wanted;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::ResourceStatus;

pub use conditions::{ARMED, PendingDestruction};
pub use fleet::{FleetHealth, FleetSeen, Memories, Unserved};
pub use memory::Memory;
pub use outputs::Outputs;
pub use progress::Progress;
pub use view::Seen;
pub use wanted::{Wanted, WantedPool};

/// How long trouble must last before a person is told. Pod sets' counts drop to 0 and return in the same second, and a
/// killed pod is replaced in one; a person can't act faster than this anyway.
pub const DEBOUNCE: SignedDuration = SignedDuration::from_secs(10);

/// After how long without a look what is seen for the first time is taken for lasting. Whoever looks now and then, as a
/// person at a terminal does, wants to know how it is, and not to look again.
pub const GAP: SignedDuration = SignedDuration::from_secs(60);

/// How long all must be still before a change counts as done whose end the operator doesn't announce: it may restart
/// more pods. The longest pause between two restarts of one change that was recorded is 26 s.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// How long nothing may move, or one pod may stay away, before that isn't patience any more: the 300 s for which the
/// operator waits for a pod (`STRIMZI_OPERATION_TIMEOUT_MS`) and sees nothing else, its periodic look every 120 s
/// (`STRIMZI_FULL_RECONCILIATION_INTERVAL_MS`), and 60 s in which pods start.
pub const DEADLINE: SignedDuration = SignedDuration::from_secs(300 + 120 + 60);

/// How a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The word, the reason, what else to know, and since when.
    pub status: ResourceStatus,
    /// What is still under way.
    pub in_progress: Vec<Progress>,
    /// What the operator will destroy by itself.
    pub pending_destructions: Vec<PendingDestruction>,
    /// What to hand on: the last known values, which a failed look of the operator doesn't take away.
    pub outputs: Outputs,
    /// The pod that no node takes, and why, once that has lasted.
    pub unschedulable: Option<String>,
    /// Whether it was to be deleted and nothing is left that would still go.
    pub gone: bool,
    /// Whether trouble that it has doesn't come from the certificates that it shows to clients; none where nothing is known of
    /// that, as after the state was lost.
    pub clear_certificates: Option<bool>,
}

/// Judges a cluster.
///
/// `before` is what the last judgement gave back, or [`Memory::default`]; with it, what lasts only for a moment isn't
/// told. Call it after each change that is seen, and every few seconds in between, since deadlines pass while nothing
/// changes.
pub fn judge(wanted: &Wanted, seen: &Seen, before: &Memory, now: Timestamp) -> (Judgement, Memory) {
    let mut memory = before.of_the_same_cluster(seen);
    memory.hear(seen, now);
    let report = report::read(seen, &memory);
    let pods = pods::count(wanted, seen, &mut memory, now);
    update::count_restarts(&mut memory, seen, &pods, now);
    let in_progress = progress::of(wanted, seen, &pods, &memory);
    update::follow(&mut memory, wanted, seen, &pods, &report, &in_progress, now);
    let conditions = conditions::of(wanted, seen, &mut memory, now);
    let remains = deletion::remains(seen);
    let facts = state::Facts {
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
    // A word that is only kept until trouble has lasted proves nothing.
    let is_well = decision.status == crate::catalog::Status::Healthy && pods.is_complete();
    let clear_certificates = memory.clear_certificates(wanted, is_well);
    memory.note_wanted(wanted);
    let unschedulable = pods.unschedulable().filter(|_| memory.lasts(memory::Sign::Unschedulable, now));
    let unschedulable =
        unschedulable.map(|trouble| format!("{} {}", reason::quoted(&trouble.pod), trouble.why));
    let status = memory.settle_on(decision, conditions, now);
    let judgement = Judgement {
        status,
        in_progress,
        pending_destructions: conditions::pending_destructions(seen),
        outputs: memory.outputs.clone(),
        unschedulable,
        gone: wanted.deleting && remains.is_empty(),
        clear_certificates,
    };
    (judgement, memory)
}
