//! The Kafka versions that clusters may have.

/// A version of Kafka and the metadata version that it is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaVersion {
    /// The version as specs have it: `4.3.1`.
    pub version: &'static str,
    /// The metadata version in its long form. It never goes back: brokers refuse metadata newer than their own.
    pub metadata: &'static str,
}

/// What Strimzi 1.2.0 runs, oldest first, from `kafka-versions.yaml` in its repository.
pub const SUPPORTED: [KafkaVersion; 4] = [
    KafkaVersion { version: "4.2.0", metadata: "4.2-IV1" },
    KafkaVersion { version: "4.2.1", metadata: "4.2-IV1" },
    KafkaVersion { version: "4.3.0", metadata: "4.3-IV0" },
    KafkaVersion { version: "4.3.1", metadata: "4.3-IV0" },
];

/// Finds a supported version.
pub fn find(version: &str) -> Option<&'static KafkaVersion> {
    SUPPORTED.iter().find(|supported| supported.version == version)
}

/// Whether going from one version to another would take the metadata back. Versions that are not supported are never
/// a downgrade here; that they are unknown is said elsewhere.
pub(super) fn takes_metadata_back(from: &str, to: &str) -> bool {
    let position = |version: &str| SUPPORTED.iter().position(|supported| supported.version == version);
    match (position(from), position(to)) {
        (Some(from), Some(to)) => to < from && SUPPORTED[to].metadata != SUPPORTED[from].metadata,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_goes_back_only_between_minor_versions() {
        for (from, to, back) in [
            ("4.3.1", "4.2.1", true),
            ("4.3.1", "4.3.0", false),
            ("4.2.0", "4.3.1", false),
            ("4.3.1", "9.9.9", false),
        ] {
            assert_eq!(takes_metadata_back(from, to), back, "{from} to {to}");
        }
        assert_eq!(find("4.2.1").map(|found| found.metadata), Some("4.2-IV1"));
        assert_eq!(find("4.1.0"), None);
    }
}
