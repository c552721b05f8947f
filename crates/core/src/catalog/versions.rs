//! The supported Kafka versions.

use std::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaVersion {
    pub version: &'static str,
    /// The metadata version in its long form. It can't be lowered: brokers refuse metadata newer than theirs.
    pub metadata: &'static str,
}

/// The versions that Strimzi 1.2.0 runs, oldest first, from `kafka-versions.yaml` in its repository.
pub const SUPPORTED: [KafkaVersion; 4] = [
    KafkaVersion { version: "4.2.0", metadata: "4.2-IV1" },
    KafkaVersion { version: "4.2.1", metadata: "4.2-IV1" },
    KafkaVersion { version: "4.3.0", metadata: "4.3-IV0" },
    KafkaVersion { version: "4.3.1", metadata: "4.3-IV0" },
];

pub fn find(version: &str) -> Option<&'static KafkaVersion> {
    SUPPORTED.iter().find(|supported| supported.version == version)
}

/// Returns the metadata version to pin. It is always pinned: otherwise Strimzi raises it when its operator is
/// upgraded, and it can't be lowered again. An unsupported version, which a record of another version of
/// Streamfleet may have, gets the short form `<major>.<minor>`. Strimzi takes that as the newest of that
/// release.
pub fn metadata_version(version: &str) -> &str {
    find(version).map_or_else(|| release(version), |supported| supported.metadata)
}

/// Returns the supported patch releases of a version's release from that version on, oldest first.
pub fn patches_from(version: &str) -> impl Iterator<Item = &'static str> {
    SUPPORTED.iter().map(|it| it.version).filter(move |patch| is_patch_from(patch, version))
}

/// Returns whether a version is in the release of `from` and not older.
pub fn is_patch_from(version: &str, from: &str) -> bool {
    release(version) == release(from) && compare(version, from) != Ordering::Less
}

/// Returns the newest version among those that are run.
pub fn newest(is_run: impl Fn(&str) -> bool) -> Option<&'static str> {
    SUPPORTED.iter().rev().map(|it| it.version).find(|version| is_run(version))
}

/// Returns the newest version among those that are run, if it is newer than `version`.
pub fn newer(version: &str, is_run: impl Fn(&str) -> bool) -> Option<&'static str> {
    let newest = newest(is_run)?;
    (compare(newest, version) == Ordering::Greater).then_some(newest)
}

/// Compares two versions of Kafka, or of its metadata, number by number.
pub fn compare(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        let digits = text.split(|it: char| !it.is_ascii_digit()).filter(|part| !part.is_empty());
        digits.map(|part| part.parse().unwrap_or(u64::MAX)).collect()
    };
    numbers(a).cmp(&numbers(b))
}

/// `4.3.1` becomes `4.3`.
fn release(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(release, _)| release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (older, newer) in
            [("4.2.1", "4.3.0"), ("4.9.0", "4.10.0"), ("4.2-IV1", "4.3-IV0"), ("4.3", "4.3-IV0")]
        {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} {older}");
        }
        assert_eq!(compare("4.3-IV0", "4.3-IV0"), Ordering::Equal);
        assert!(SUPPORTED.is_sorted_by(|a, b| compare(a.version, b.version) == Ordering::Less));
    }

    #[test]
    fn a_supported_version_has_its_metadata_and_its_patches() {
        assert_eq!(find("4.2.1").map(|found| found.metadata), Some("4.2-IV1"));
        assert_eq!(find("4.1.0"), None);
        assert_eq!((metadata_version("4.3.0"), metadata_version("4.4.0")), ("4.3-IV0", "4.4"));
        assert_eq!(patches_from("4.2.0").collect::<Vec<_>>(), ["4.2.0", "4.2.1"]);
        assert_eq!(patches_from("4.3.1").collect::<Vec<_>>(), ["4.3.1"]);
        assert_eq!(patches_from("4.4.0").count(), 0);
    }

    #[test]
    fn a_newer_version_is_one_that_is_run() {
        assert_eq!(newer("4.2.1", |_| true), Some("4.3.1"));
        assert_eq!(newer("4.2.1", |version| version < "4.3.1"), Some("4.3.0"));
        assert_eq!(newer("4.3.1", |_| true), None);
        assert_eq!(newer("4.2.1", |version| version == "4.2.1"), None);
    }
}
