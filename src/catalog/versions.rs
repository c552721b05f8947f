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

/// The metadata version to pin. It is always pinned, because Strimzi would otherwise raise it when its operator is
/// upgraded, and a raised one can't be lowered again. A version that isn't supported, as a record of another version of
/// this software may have, gets the short form `<major>.<minor>`, which Strimzi takes as the newest of that release.
pub fn metadata_version(version: &str) -> &str {
    let release = || version.rsplit_once('.').map_or(version, |(release, _)| release);
    find(version).map_or_else(release, |supported| supported.metadata)
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
        assert_eq!((metadata_version("4.3.0"), metadata_version("4.4.0")), ("4.3-IV0", "4.4"));
    }
}
