//! The operator's report of its last reconciliation, and its meaning.

use super::memory::HealthMemory;
use super::view::ClusterObservation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportMeaning {
    Silent,
    /// The last reconciliation succeeded. That is not health.
    Ready,
    Creating,
    Paused,
    /// The operator refuses the spec. Nothing changes until the spec is corrected.
    Refused,
    /// The operator's wait for a pod timed out.
    GaveUp,
    /// The operator failed in another way, and will retry.
    Failed,
}

/// The reasons whose meaning is known. All others count as failures that may pass.
const REASONS: [(&str, ReportMeaning); 7] = [
    ("Creating", ReportMeaning::Creating),
    ("InvalidResourceException", ReportMeaning::Refused),
    ("InvalidConfigurationException", ReportMeaning::Refused),
    ("UnsupportedKafkaVersionException", ReportMeaning::Refused),
    ("KafkaUpgradeException", ReportMeaning::Refused),
    ("StrimziTimeoutException", ReportMeaning::GaveUp),
    ("FatalProblem", ReportMeaning::GaveUp),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OperatorReport {
    pub meaning: ReportMeaning,
    pub reason: String,
    pub message: String,
    /// Whether it is about the current spec.
    pub fresh: bool,
    /// Whether it is a failure that was reported before the newest pod was created, so that it says nothing
    /// about the present pods.
    pub overtaken: bool,
}

pub(super) fn read(seen: &ClusterObservation, memory: &HealthMemory) -> OperatorReport {
    let kafka = seen.kafka.as_ref();
    let fresh = memory.verdict_is_fresh() && !kafka.is_some_and(|kafka| kafka.is_behind());
    let said = |kind: &str| {
        kafka.into_iter().flat_map(|kafka| &kafka.conditions).find(|c| c.kind == kind && c.holds).cloned()
    };
    let (meaning, condition) = if let Some(condition) = said("NotReady") {
        let known = REASONS.iter().find(|(reason, _)| *reason == condition.reason);
        (known.map_or(ReportMeaning::Failed, |(_, meaning)| *meaning), Some(condition))
    } else if let Some(condition) = said("ReconciliationPaused") {
        (ReportMeaning::Paused, Some(condition))
    } else if let Some(condition) = said("Ready") {
        (ReportMeaning::Ready, Some(condition))
    } else {
        (ReportMeaning::Silent, None)
    };
    let newest = seen.pods.iter().flatten().filter(|(_, pod)| pod.pool.is_some());
    let newest = newest.filter_map(|(_, pod)| pod.created.as_ref()).max();
    // Both are RFC 3339 in UTC, which sorts as text.
    let written =
        condition.as_ref().map(|condition| &condition.written).filter(|written| !written.is_empty());
    let overtaken =
        meaning == ReportMeaning::Failed && written.zip(newest).is_some_and(|(said, made)| said < made);
    let fresh = fresh && !overtaken;
    let (reason, message) = condition.map(|c| (c.reason, c.message)).unwrap_or_default();
    OperatorReport { meaning, reason, message, fresh, overtaken }
}

impl OperatorReport {
    /// Whether the report is about the current spec and has this meaning.
    pub(super) fn says(&self, meaning: ReportMeaning) -> bool {
        self.fresh && self.meaning == meaning
    }
}
