//! The words for what changes wait for, as a plan's JSON has them.

use super::Waiting;

impl Waiting {
    /// Every word.
    pub const KINDS: [&'static str; 20] = [
        "held",
        "unreadable-file",
        "protected",
        "approval",
        "one-disruption",
        "unsettled",
        "unreachable",
        "secret-unavailable",
        "foreign-object",
        "refused-by-target",
        "contested",
        "children",
        "leftovers",
        "in-use",
        "preflight",
        "upgrade",
        "absence",
        "flapping",
        "retry",
        "refused",
    ];

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Waiting::Held(_) => "held",
            Waiting::UnreadableFile { .. } => "unreadable-file",
            Waiting::Protected => "protected",
            Waiting::Approval { .. } => "approval",
            Waiting::OneDisruption { .. } => "one-disruption",
            Waiting::Unsettled => "unsettled",
            Waiting::Unreachable { .. } => "unreachable",
            Waiting::SecretUnavailable { .. } => "secret-unavailable",
            Waiting::ForeignObject { .. } => "foreign-object",
            Waiting::RefusedByTarget { .. } => "refused-by-target",
            Waiting::Contested { .. } => "contested",
            Waiting::Children { .. } => "children",
            Waiting::Leftovers { .. } => "leftovers",
            Waiting::InUse { .. } => "in-use",
            Waiting::Preflight { .. } => "preflight",
            Waiting::Upgrade { .. } => "upgrade",
            Waiting::Absence { .. } => "absence",
            Waiting::Flapping { .. } => "flapping",
            Waiting::Retry { .. } => "retry",
            Waiting::Refused { .. } => "refused",
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
