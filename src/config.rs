//! The settings of an installation, as a TOML file has them. Every key has a default.

mod units;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::describe::Description;

pub use units::{UnitCatalogue, UnitSizes};

/// The settings of an installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The folder of the state: what was applied, the age identities, the audit trail. By default
    /// `.streamfleet/state` in the spec tree.
    #[schemars(with = "Option<String>")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that `directory` fleets write their manifests to. By default `.streamfleet/output` in the spec tree.
    #[schemars(with = "Option<String>")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder that `from_file` secrets are in, one folder an organization. By default `.streamfleet/secrets` in the
    /// spec tree.
    #[schemars(with = "Option<String>")]
    pub secrets_dir: Option<Utf8PathBuf>,
    /// How secrets may be given.
    pub secrets: SecretsConfig,
    /// What may be done without asking.
    pub policy: PolicyConfig,
    /// What a Kafka unit is.
    pub units: UnitCatalogue,
}

/// How secrets may be given and where they go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Accept plain secrets in a git repository.
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

impl Config {
    /// Reads a TOML file's text.
    ///
    /// # Errors
    /// On the first key that is unknown or of the wrong type, with its line.
    pub fn parse(text: &str) -> Result<Config, toml::de::Error> {
        toml::from_str(text)
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
    fn an_unknown_key_is_refused_with_its_line() {
        let error = Config::parse("[policy]\napproval_hour = 3\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("approval_hours"), "{error}");
    }
}
