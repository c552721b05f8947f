//! The names of reasons to wait, as in a plan's JSON, and which are too short-lived to show.

use jiff::{SignedDuration, Timestamp};

use crate::plan::Waiting;

/// How long work on a fleet may run before the plan mentions that other changes wait for it.
pub const LONG: SignedDuration = SignedDuration::from_secs(5);

impl Waiting {
    pub const KINDS: [&'static str; 30] = [
        "held",
        "unreadable-file",
        "protected",
        "approval",
        "one-disruption",
        "renewal",
        "maintenance",
        "unsettled",
        "unconfirmed",
        "unseen",
        "unreachable",
        "under-way",
        "repeated",
        "plan-only",
        "secret-unavailable",
        "foreign-object",
        "foreign-record",
        "not-a-file",
        "refused-by-target",
        "contested",
        "children",
        "leftovers",
        "in-use",
        "preflight",
        "upgrade",
        "metadata-unknown",
        "absence",
        "flapping",
        "retry",
        "refused",
    ];

    pub fn kind(&self) -> &'static str {
        match self {
            Waiting::Held(_) => "held",
            Waiting::UnreadableFile { .. } => "unreadable-file",
            Waiting::Protected => "protected",
            Waiting::Approval { .. } => "approval",
            Waiting::OneDisruption { .. } => "one-disruption",
            Waiting::Renewal { .. } => "renewal",
            Waiting::Maintenance { .. } => "maintenance",
            Waiting::Unsettled => "unsettled",
            Waiting::Unconfirmed { .. } => "unconfirmed",
            Waiting::Unseen { .. } => "unseen",
            Waiting::Unreachable { .. } => "unreachable",
            Waiting::UnderWay { .. } => "under-way",
            Waiting::Repeated { .. } => "repeated",
            Waiting::PlanOnly => "plan-only",
            Waiting::SecretUnavailable { .. } => "secret-unavailable",
            Waiting::ForeignObject { .. } => "foreign-object",
            Waiting::ForeignRecord(_) => "foreign-record",
            Waiting::NotAFile { .. } => "not-a-file",
            Waiting::RefusedByTarget { .. } => "refused-by-target",
            Waiting::Contested { .. } => "contested",
            Waiting::Children { .. } => "children",
            Waiting::Leftovers { .. } => "leftovers",
            Waiting::InUse { .. } => "in-use",
            Waiting::Preflight { .. } => "preflight",
            Waiting::Upgrade { .. } => "upgrade",
            Waiting::MetadataUnknown { .. } => "metadata-unknown",
            Waiting::Absence { .. } => "absence",
            Waiting::Flapping { .. } => "flapping",
            Waiting::Retry { .. } => "retry",
            Waiting::Refused { .. } => "refused",
        }
    }

    /// Whether the wait ends too soon to be shown: work has just begun, or is repeated within seconds.
    pub fn is_soon_over(&self, now: Timestamp) -> bool {
        match self {
            Waiting::UnderWay { since } => now.duration_since(*since) < LONG,
            Waiting::Repeated { until, .. } => until.duration_since(now) < LONG,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_schema() {
        let schema = schemars::schema_for!(Waiting).to_value();
        let variants = schema["oneOf"].as_array().unwrap().iter();
        let words: Vec<&str> =
            variants.map(|variant| variant["properties"]["for"]["const"].as_str().unwrap()).collect();
        assert_eq!(words, Waiting::KINDS);
        assert!(Waiting::KINDS.contains(&Waiting::Protected.kind()));
    }
}
