//! The inputs of the rules.

use jiff::Timestamp;

use super::applied_manifests::AppliedCluster;
use super::memory::{HealthMemory, TroubleSign};
use super::pods::PodCount;
use super::progress::HealthProgress;
use super::report::OperatorReport;
use super::view::{ClusterObservation, RemainingObject};
use crate::catalog::Condition;

#[derive(Debug)]
pub(super) struct HealthInputs<'a> {
    pub wanted: &'a AppliedCluster,
    pub seen: &'a ClusterObservation,
    pub memory: &'a HealthMemory,
    pub report: &'a OperatorReport,
    pub pods: &'a PodCount,
    pub progress: &'a [HealthProgress],
    pub conditions: &'a [Condition],
    pub remains: &'a [RemainingObject],
    pub now: Timestamp,
}

impl HealthInputs<'_> {
    /// Whether the pods still show the problem because of which the operator gave up.
    pub(super) fn pods_explain_it(&self) -> bool {
        match self.seen.pods {
            Some(_) => [TroubleSign::Stuck, TroubleSign::StuckHelper]
                .iter()
                .any(|sign| self.memory.has_lasted_debounce(*sign, self.now)),
            None => !self.pods.is_complete(),
        }
    }
}
