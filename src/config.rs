//! The settings of an installation, as a TOML file has them. Every key has a default.

mod addresses;
mod api;
mod operators;
mod release;
mod sample;
mod source;
mod tiered_storage;
mod units;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::describe::Description;

pub use addresses::AddressRange;
pub use api::ApiConfig;
pub use operators::{Content, OperatorFault, OperatorRelease, OperatorsConfig};
pub use release::Release;
pub use sample::sample;
pub use source::{SourceConfig, Transport};
pub use tiered_storage::TieredStorageConfig;
pub use units::{UnitCatalogue, UnitSizes};

/// The settings of an installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The folder of the state: what was applied, the age identities, the audit trail. By default
    /// `.streamfleet/state` in the spec tree.
    #[schemars(with = "Option<String>", example = &"/var/lib/streamfleet/state")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that `directory` fleets write their manifests to. By default `.streamfleet/output` in the spec tree.
    #[schemars(with = "Option<String>", example = &"/var/lib/streamfleet/output")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder that `from_file` secrets are in, one folder an organization. By default `.streamfleet/secrets` in the
    /// spec tree. It may be a credential of the systemd service that was loaded from such a folder:
    /// `$CREDENTIALS_DIRECTORY/secrets`.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/secrets")]
    pub secrets_dir: Option<Utf8PathBuf>,
    /// Where specs come from where a command names no folder of them.
    pub source: SourceConfig,
    /// Whether and where `serve` answers over HTTP.
    pub api: ApiConfig,
    /// How secrets may be given.
    pub secrets: SecretsConfig,
    /// What may be done without asking.
    pub policy: PolicyConfig,
    /// Which Kubernetes clusters may be connected to.
    pub targets: TargetsConfig,
    /// Which operators may be installed on fleets.
    pub operators: OperatorsConfig,
    /// Where brokers get the plugin from that moves the older part of the log to a bucket.
    pub tiered_storage: TieredStorageConfig,
    /// What a Kafka unit is.
    pub units: UnitCatalogue,
}

/// How secrets may be given and where they go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Accept plain secrets where specs are fetched from a git repository. A folder may hold them, whoever keeps it in git.
    pub allow_plain_in_git: bool,
    /// Write the Secrets of `directory` fleets, into a folder that only its owner can read. When false they are left
    /// out, for somebody else to make.
    pub write_to_output: bool,
}

impl Default for SecretsConfig {
    fn default() -> Self {
        Self { allow_plain_in_git: false, write_to_output: true }
    }
}

/// Which Kubernetes clusters may be connected to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TargetsConfig {
    /// Addresses that kubeconfigs may lead to though they are loopback, link-local, multicast or metadata addresses,
    /// as ranges: `["127.0.0.0/8"]`. Whoever writes a fleet's kubeconfig can then reach what listens there.
    pub allow_addresses: Vec<AddressRange>,
}

/// What may be done without asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// How many Kafka clusters a fleet may lose in an hour without approval.
    #[schemars(range(max = 1000))]
    pub cluster_deletions_per_hour: u32,
    /// How many hours an approval holds.
    #[schemars(range(min = 1, max = 168))]
    pub approval_hours: u32,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self { cluster_deletions_per_hour: 1, approval_hours: 24 }
    }
}

impl PolicyConfig {
    /// The first key that is out of its bounds, which are those of the schema.
    fn out_of_bounds(&self) -> Option<String> {
        let bounds = [
            ("cluster_deletions_per_hour", self.cluster_deletions_per_hour, 0, 1000),
            ("approval_hours", self.approval_hours, 1, 168),
        ];
        bounds.into_iter().find(|(_, value, min, max)| !(min..=max).contains(&value)).map(
            |(key, value, min, max)| {
                format!("`policy.{key}` is {value}, and it has to be from {min} to {max}")
            },
        )
    }
}

impl Config {
    /// Reads a TOML file's text.
    ///
    /// # Errors
    /// On the first key that is unknown or of the wrong type, with its line, or out of its bounds.
    pub fn parse(text: &str) -> Result<Config, toml::de::Error> {
        let config: Config = toml::from_str(text)?;
        let Config { policy, units, operators, source, tiered_storage, .. } = &config;
        let wrong = policy.out_of_bounds().or_else(|| units.out_of_bounds());
        let wrong = wrong.or_else(|| tiered_storage.out_of_bounds());
        match wrong.or_else(|| operators.out_of_bounds()).or_else(|| source.out_of_bounds()) {
            Some(why) => Err(serde::de::Error::custom(why)),
            None => Ok(config),
        }
    }
}

/// The JSON Schema of the settings.
pub fn schema() -> Value {
    crate::spec::schema::of::<Config>()
}

/// Describes the settings, under a name.
pub fn describe(name: &str) -> Description {
    crate::spec::describe::described(name, crate::spec::schema::inlined::<Config>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn half_a_size_table_is_refused_since_it_would_mix_two_products() {
        let error = Config::parse("[units.dev]\nbrokers_per_unit = 1\n").unwrap_err().to_string();
        assert!(error.contains("missing field"), "{error}");
    }

    #[test]
    fn a_value_out_of_its_bounds_is_refused_by_name() {
        let units = |key: &str, value: u32| {
            let text = toml::to_string(&Config::default()).unwrap();
            let (before, standard) = text.split_once("[units.standard]").unwrap();
            let line = standard.lines().find(|line| line.starts_with(&format!("{key} ="))).unwrap();
            format!("{before}[units.standard]{}", standard.replacen(line, &format!("{key} = {value}"), 1))
        };
        let cases = [
            (
                "[policy]\napproval_hours = 100000\n".to_owned(),
                "`policy.approval_hours` is 100000, and it has to be from 1 to 168",
            ),
            (
                "[policy]\ncluster_deletions_per_hour = 1001\n".to_owned(),
                "`policy.cluster_deletions_per_hour` is 1001, and it has to be from 0 to 1000",
            ),
            (
                units("brokers_per_unit", 0),
                "`units.standard.brokers_per_unit` is 0, and it has to be at least 1",
            ),
            (
                units("replication_factor", 4),
                "`units.standard.replication_factor` is 4, and it has to be at most `brokers_per_unit`, 3",
            ),
            (
                units("min_insync_replicas", 4),
                "`units.standard.min_insync_replicas` is 4, and it has to be at most `replication_factor`, 3",
            ),
            (
                "[tiered_storage]\nplugin_image = \"a b\"\n".to_owned(),
                "`tiered_storage.plugin_image` has to be the name of a container image",
            ),
            (
                "[tiered_storage]\nplugin_folders = [\"../x:y\"]\n".to_owned(),
                "`tiered_storage.plugin_folders` has to list folders of the image, such as `core`",
            ),
            (
                units("broker_heap_mib", 99999),
                "`units.standard.broker_heap_mib` is 99999, and it has to be at most `broker_memory_mib`, 17408",
            ),
        ];
        for (text, expected) in cases {
            let error = Config::parse(&text).unwrap_err().to_string();
            assert_eq!(error.trim_end(), expected);
        }
        assert!(Config::parse("[policy]\napproval_hours = 168\n").is_ok());
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = Config::parse("[policy]\napproval_hour = 3\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("approval_hours"), "{error}");
    }
}
