//! What the operator says of its last look, and what that means.

use super::memory::Memory;
use super::view::Seen;

/// What the operator's words mean for the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It says nothing.
    Silent,
    /// The last look ended well. That is not health.
    Ready,
    /// The first look runs.
    Creating,
    /// It leaves the cluster alone.
    Paused,
    /// It refuses what it was asked for. Nothing changes until that is put right.
    Refused,
    /// It waited for a pod until its own time limit.
    GaveUp,
    /// It failed in another way, and will try again.
    Failed,
}

/// The reasons whose meaning is known. Any other is a failure that may pass.
const REASONS: [(&str, Meaning); 7] = [
    ("Creating", Meaning::Creating),
    ("InvalidResourceException", Meaning::Refused),
    ("InvalidConfigurationException", Meaning::Refused),
    ("UnsupportedKafkaVersionException", Meaning::Refused),
    ("KafkaUpgradeException", Meaning::Refused),
    ("StrimziTimeoutException", Meaning::GaveUp),
    ("FatalProblem", Meaning::GaveUp),
];

/// The operator's last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// What it means.
    pub meaning: Meaning,
    /// The operator's reason, as one word.
    pub reason: String,
    /// The operator's own words.
    pub message: String,
    /// Whether it is about what is asked for now.
    pub fresh: bool,
    /// Whether it is a failure that was reported before the newest pod was made: it says nothing of the pods as they are now.
    pub overtaken: bool,
}

/// Reads the operator's last word.
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
    /// Whether it is about what is asked for now, and means this.
    pub(super) fn says(&self, meaning: Meaning) -> bool {
        self.fresh && self.meaning == meaning
    }
}
