//! Which metadata version a Kafka version runs with.

/// The Kafka versions of Strimzi 1.2 with the newest metadata version of each (its `kafka-versions.yaml`).
const METADATA_VERSIONS: [(&str, &str); 4] =
    [("4.2.0", "4.2-IV1"), ("4.2.1", "4.2-IV1"), ("4.3.0", "4.3-IV0"), ("4.3.1", "4.3-IV0")];

/// The metadata version to pin. It is always pinned, because Strimzi would otherwise raise it when its operator is
/// upgraded, and a raised one can't be lowered again. A Kafka version that isn't known here gets the short form
/// `<major>.<minor>`, which Strimzi takes as the newest of that release.
pub fn metadata_version(version: &str) -> &str {
    METADATA_VERSIONS
        .iter()
        .find(|(known, _)| *known == version)
        .map(|(_, metadata)| *metadata)
        .or_else(|| version.rsplit_once('.').map(|(release, _)| release))
        .unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_metadata_version() {
        for (version, expected) in
            [("4.2.0", "4.2-IV1"), ("4.2.1", "4.2-IV1"), ("4.3.1", "4.3-IV0"), ("4.4.0", "4.4")]
        {
            assert_eq!(metadata_version(version), expected);
        }
    }
}
