//! The disruption that a change causes.

use crate::catalog::Status;
use crate::plan::{Change, Remark, Verb, Verdict, compare::verdict};

/// The status of a cluster that works but may not survive another loss, or whose health is unknown.
pub const NOT_HEALTHY: [Status; 4] =
    [Status::Updating, Status::Upgrading, Status::Degraded, Status::Unreachable];

/// Whether a change disrupts a cluster and doesn't wait. Growing disks count: Strimzi restarts a broker whose
/// file system has to be resized.
pub fn disrupts(change: &Change) -> bool {
    let verdict = disruption(change);
    let disrupts =
        verdict.restarts_brokers() || matches!(verdict, Verdict::StorageGrowth | Verdict::BrokerRemoval);
    change.waiting.is_empty() && disrupts
}

/// Returns the worst effect on brokers and clients. Deleting records of a cluster disrupts nothing by itself,
/// but what else changes with it may.
pub fn disruption(change: &Change) -> Verdict {
    match (change.verdict, change.verb) {
        (Verdict::DataLoss, Verb::Update) => {
            // Overwriting an unreadable object may change more than is known.
            let is_unreadable = |remark: &Remark| matches!(remark, Remark::Unreadable { .. });
            let unreadable = change.remarks.iter().any(is_unreadable).then_some(Verdict::RollingRestart);
            verdict::disruption(&change.steps).max(unreadable.unwrap_or(Verdict::NoOp))
        }
        (verdict, _) => verdict,
    }
}
