//! What the operator reports of its last reconciliation, and what that means.

use super::memory::Memory;
use super::view::Seen;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Silent,
    /// The last reconciliation succeeded. That is not health.
    Ready,
    Creating,
    Paused,
    /// It refuses the spec. Nothing changes until the spec is corrected.
    Refused,
    /// Its wait for a pod timed out.
    GaveUp,
    /// It failed in another way, and will retry.
    Failed,
}

/// The reasons whose meaning is known. All others count as failures that may pass.
const REASONS: [(&str, Meaning); 7] = [
    ("Creating", Meaning::Creating),
    ("InvalidResourceException", Meaning::Refused),
    ("InvalidConfigurationException", Meaning::Refused),
    ("UnsupportedKafkaVersionException", Meaning::Refused),
    ("KafkaUpgradeException", Meaning::Refused),
    ("StrimziTimeoutException", Meaning::GaveUp),
    ("FatalProblem", Meaning::GaveUp),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub meaning: Meaning,
    pub reason: String,
    pub message: String,
    /// Whether it is about the current spec.
    pub fresh: bool,
    /// Whether it is a failure that was reported before the newest pod was created, so that it says nothing
    /// about the present pods.
    pub overtaken: bool,
}

pub(super) fn read(seen: &Seen, memory: &Memory) -> Report {
    let kafka = seen.kafka.as_ref();
    let fresh = memory.verdict_is_fresh() && !kafka.is_some_and(|kafka| kafka.is_behind());
    let said = |kind: &str| {
        kafka.into_iter().flat_map(|kafka| &kafka.conditions).find(|c| c.kind == kind && c.holds).cloned()
    };
    let (meaning, condition) = if let Some(condition) = said("NotReady") {
        let known = REASONS.iter().find(|(reason, _)| *reason == condition.reason);
        (known.map_or(Meaning::Failed, |(_, meaning)| *meaning), Some(condition))
    } else if let Some(condition) = said("ReconciliationPaused") {
        (Meaning::Paused, Some(condition))
    } else if let Some(condition) = said("Ready") {
        (Meaning::Ready, Some(condition))
    } else {
        (Meaning::Silent, None)
    };
    let newest = seen.pods.iter().flatten().filter(|(_, pod)| pod.pool.is_some());
    let newest = newest.filter_map(|(_, pod)| pod.created.as_ref()).max();
    // Both are RFC 3339 in UTC, which sorts as text.
    let written =
        condition.as_ref().map(|condition| &condition.written).filter(|written| !written.is_empty());
    let overtaken = meaning == Meaning::Failed && written.zip(newest).is_some_and(|(said, made)| said < made);
    let fresh = fresh && !overtaken;
    let (reason, message) = condition.map(|c| (c.reason, c.message)).unwrap_or_default();
    Report { meaning, reason, message, fresh, overtaken }
}

impl Report {
    /// Whether the report is about the current spec and has this meaning.
    pub(super) fn says(&self, meaning: Meaning) -> bool {
        self.fresh && self.meaning == meaning
    }
}
