//! Settings of the tiered storage plugin, which moves older log segments to a bucket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of the tiered storage plugin, which moves older log segments to a bucket. Strimzi's own image
/// doesn't contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TieredStorageConfig {
    /// A container image with the plugin's jars, which is mounted into brokers unchanged. It needs Kubernetes
    /// 1.35, where image volumes are on by default. Without it, the image that the operator runs brokers from
    /// has to contain the plugin under `/opt/kafka/plugins/tiered-storage`.
    #[schemars(regex(pattern = r"^[a-z0-9][-a-z0-9.:/_@A-Z]*$"), example = &"registry.example.com/tiered-storage-for-apache-kafka:1.1.0")]
    pub plugin_image: Option<String>,
    /// The folders of that image that contain jars.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$"))
    )]
    pub plugin_folders: Vec<String>,
}

impl Default for TieredStorageConfig {
    /// The folders are those of the plugin's own distribution.
    fn default() -> Self {
        Self { plugin_image: None, plugin_folders: ["core", "s3"].map(str::to_owned).into() }
    }
}

impl TieredStorageConfig {
    /// Returns an error for the first key with an invalid value. Accepted values contain no character that is
    /// special on the way to the broker's class path.
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let is_plain = |text: &str, also: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
            text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && text.chars().all(fits)
        };
        let is_folder = |folder: &String| folder.split('/').all(|part| is_plain(part, "-_."));
        if self.plugin_image.as_deref().is_some_and(|image| !is_plain(image, "-._:/@")) {
            return Some("`tiered_storage.plugin_image` must be the name of a container image".to_owned());
        }
        (self.plugin_folders.is_empty() || !self.plugin_folders.iter().all(is_folder)).then(|| {
            "`tiered_storage.plugin_folders` must list folders of the image, such as `core`".to_owned()
        })
    }
}
