//! The settings of an installation, read from a TOML file. Every key has a default.

mod acme;
mod addresses;
mod api;
mod base_url;
mod console_url;
mod images;
mod listen;
mod oidc;
mod operators;
mod prices;
mod release;
mod sample;
mod source;
mod tiered_storage;
mod units;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::FleetKey;
use crate::spec::MaintenanceWindow;
use crate::spec::describe::Description;

pub use acme::{AcmeConfig, Challenge};
pub use addresses::{AddressRange, DeniedAddress, denied_server, judge_address};
pub use api::{ApiConfig, is_email, not_emails};
pub use console_url::ConsoleUrlTemplate;
pub use images::ImagesConfig;
pub use listen::{Listen, ListenAddress};
pub use oidc::{OidcConfig, is_private_address};
pub use operators::{ManifestsFile, OperatorFault, OperatorRelease, OperatorsConfig};
pub use prices::{Amount, Currency, PriceTable, PricesConfig};
pub use release::Release;
pub use sample::sample;
pub use source::{SourceConfig, Transport};
pub use tiered_storage::TieredStorageConfig;
pub use units::{GIVEN_TOGETHER, UnitCatalogue, UnitSizes};

/// The settings of an installation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The state folder: what was applied, the age identities, the audit trail. By default
    /// `.streamfleet/state` in the spec tree, or beside this file when `source.git` is set. This and every
    /// other path in this file is relative to the file's own folder.
    #[schemars(with = "Option<String>", example = &"/var/lib/streamfleet/state")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that `directory` fleets write their manifests to. By default `.streamfleet/output` in the
    /// spec tree, or beside this file when `source.git` is set.
    #[schemars(with = "Option<String>", example = &"/var/lib/streamfleet/output")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder of `from_file` secrets, with one subfolder per organization. By default
    /// `.streamfleet/secrets` in the spec tree, or beside this file when `source.git` is set. It may be a
    /// credential of the systemd service that was loaded from such a folder:
    /// `$CREDENTIALS_DIRECTORY/secrets`.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/secrets")]
    pub secrets_dir: Option<Utf8PathBuf>,
    /// The address of the console of each cluster without one of its own, such as a Kafka UI that you run: the
    /// `console_url` of its record.
    /// `{organization}`, `{fleet}` and `{cluster}` stand for the identifiers. Nothing is deployed for it.
    pub console_url_template: Option<ConsoleUrlTemplate>,
    /// The source of specs for commands that name no spec folder.
    pub source: SourceConfig,
    /// Whether and where `serve` answers over HTTP.
    pub api: ApiConfig,
    /// How secrets may be given and where they are written.
    pub secrets: SecretsConfig,
    /// Limits on what is done without approval.
    pub policy: PolicyConfig,
    /// How `serve` works.
    pub daemon: DaemonConfig,
    /// Which Kubernetes clusters may be connected to.
    pub targets: TargetsConfig,
    /// The certificate authority of base domains without a certificate of their own.
    pub acme: Option<AcmeConfig>,
    /// Which operators may be installed on fleets.
    pub operators: OperatorsConfig,
    /// The source of the tiered storage plugin, which moves older log segments to a bucket.
    pub tiered_storage: TieredStorageConfig,
    /// Which container images the nodes of fleets pull for what Streamfleet itself renders, and from where. `plan`
    /// names the images of what it applies, the operator's own included; those of Kafka are the operator's choice.
    pub images: ImagesConfig,
    /// What a cluster's resources cost, for the cost of a month in plans and the `cost_endpoint` of fleets. Without a
    /// currency there are no costs; a resource without a price is free.
    pub prices: PricesConfig,
    /// The size of a Kafka unit.
    pub units: UnitCatalogue,
}

/// How secrets may be given and where they are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretsConfig {
    /// Accept plain secrets in specs that are fetched from a git repository. A folder of specs may always
    /// contain them, even if it is kept in git.
    pub allow_plain_in_git: bool,
    /// Write the Secrets of `directory` fleets, into a folder that only its owner can read. When false, they
    /// are left out and have to be created by other means.
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
    /// Address ranges that kubeconfigs may point to although they are loopback, link-local, multicast or
    /// metadata addresses: `["127.0.0.0/8"]`. The author of a fleet's kubeconfig can then reach any service
    /// that listens there.
    pub allow_addresses: Vec<AddressRange>,
    /// The fleets that may set `advanced_config.in_cluster`, to be the Kubernetes cluster that Streamfleet itself
    /// runs in. They are reached as the service account of its pod, whose token and authority are in
    /// `/var/run/secrets/kubernetes.io/serviceaccount`, or in the folder that the variable
    /// `STREAMFLEET_SERVICE_ACCOUNT_DIR` names. Whoever writes such a fleet's specs uses the rights of the pod.
    #[schemars(extend("examples" = [["acme/eu"]]))]
    pub in_cluster: Vec<FleetKey>,
}

/// Limits on what is done without approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// The changes that are made automatically: all that need no approval (`auto`), only approved ones
    /// (`approve`), or none (`plan-only`).
    pub mode: Mode,
    /// How many Kafka clusters per fleet and hour may be deleted without approval.
    #[schemars(range(max = 1000))]
    pub cluster_deletions_per_hour: u32,
    /// How many topics per fleet and hour may be deleted without approval. By default every deletion of a topic
    /// needs one.
    #[schemars(range(max = 1000))]
    pub topic_deletions_per_hour: u32,
    /// How many hours an approval is valid.
    #[schemars(range(min = 1, max = 168))]
    pub approval_hours: u32,
    /// When disruptions may begin that nobody asks for at that moment: a patch release of Kafka that a cluster
    /// follows by itself, Strimzi's own certificates, and with `certificate_renewal = "window"` a base domain's new
    /// certificate. By default at
    /// any time. A fleet's own `advanced_config.maintenance` takes their place. With `mode = "approve"`, whoever
    /// approves chooses the time.
    #[schemars(length(max = 20), extend("examples" = [[{"days": ["tue", "thu"], "from": "02:00", "hours": 4, "zone": "Europe/Berlin"}]]))]
    pub maintenance: Vec<MaintenanceWindow>,
    /// When clusters restart for a base domain's new certificate: one after another at once (`auto`), in the
    /// maintenance window (`window`), or when somebody approves it (`approve`). From 14 days before the old
    /// certificate ends, neither counts.
    pub certificate_renewal: CertificateRenewal,
}

/// When clusters restart for a base domain's new certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateRenewal {
    /// One after another, at once.
    #[default]
    Auto,
    /// In the maintenance window.
    Window,
    /// When somebody approves it.
    Approve,
}

/// The changes that are made automatically.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Everything except what needs an approval, such as a deletion beyond the limit.
    #[default]
    Auto,
    /// Nothing on a fleet without approval: every plan waits for `streamfleet approve`.
    Approve,
    /// Nothing at all. Plans are only printed.
    PlanOnly,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            cluster_deletions_per_hour: 1,
            topic_deletions_per_hour: 0,
            approval_hours: 24,
            maintenance: Vec::new(),
            certificate_renewal: CertificateRenewal::Auto,
        }
    }
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Approve => "approve",
            Mode::PlanOnly => "plan-only",
        }
    }
}

/// How `serve` works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// How many fleets are changed at a time. Organizations take turns. An organization with no fleet in
    /// progress doesn't wait for the others: as many slots again are reserved for such organizations.
    #[schemars(range(min = 1, max = 100))]
    pub fleets_at_once: u32,
    /// How many seconds apart a cluster is probed, to see that clients reach it. With more than 500 clusters, five
    /// times as many.
    #[schemars(range(min = 1, max = 3600))]
    pub probe_seconds: u32,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self { fleets_at_once: 8, probe_seconds: 60 }
    }
}

impl DaemonConfig {
    /// Returns an error for the first key outside the bounds of its schema.
    fn out_of_bounds(&self) -> Option<String> {
        let bounds =
            [("fleets_at_once", self.fleets_at_once, 1, 100), ("probe_seconds", self.probe_seconds, 1, 3600)];
        bounds.into_iter().find(|(_, value, min, max)| !(min..=max).contains(&value)).map(
            |(key, value, min, max)| format!("`daemon.{key}` is {value}, and must be from {min} to {max}"),
        )
    }
}

impl PolicyConfig {
    fn out_of_bounds(&self) -> Option<String> {
        let bounds = [
            ("cluster_deletions_per_hour", self.cluster_deletions_per_hour, 0, 1000),
            ("topic_deletions_per_hour", self.topic_deletions_per_hour, 0, 1000),
            ("approval_hours", self.approval_hours, 1, 168),
        ];
        let window = self.maintenance.iter().find_map(MaintenanceWindow::fault);
        let outside = bounds.into_iter().find(|(_, value, min, max)| !(min..=max).contains(&value)).map(
            |(key, value, min, max)| format!("`policy.{key}` is {value}, and must be from {min} to {max}"),
        );
        outside
            .or_else(|| window.map(|(key, why, hint)| format!("`policy.maintenance.{key}`: {why}; {hint}")))
    }
}

impl Config {
    /// Reads the text of a TOML file.
    ///
    /// # Errors
    /// On the first key that is unknown (with its line), has the wrong type (with its line), or is out of
    /// bounds.
    pub fn parse(text: &str) -> Result<Config, toml::de::Error> {
        let config: Config = toml::from_str(text).map_err(|error| whole(text, error))?;
        let Config {
            policy,
            daemon,
            units,
            operators,
            source,
            api,
            tiered_storage,
            prices,
            acme,
            images,
            ..
        } = &config;
        let wrong = policy.out_of_bounds().or_else(|| daemon.out_of_bounds());
        let wrong = wrong.or_else(|| units.out_of_bounds()).or_else(|| api.out_of_bounds());
        let wrong = wrong.or_else(|| tiered_storage.out_of_bounds()).or_else(|| prices.out_of_bounds());
        let wrong = wrong.or_else(|| images.out_of_bounds(tiered_storage));
        let wrong = wrong.or_else(|| acme.as_ref().and_then(AcmeConfig::out_of_bounds));
        let wrong = wrong.or_else(|| operators.out_of_bounds()).or_else(|| source.out_of_bounds());
        match wrong.or_else(|| config.unusable_webhook_secret()) {
            Some(why) => Err(serde::de::Error::custom(why)),
            None => Ok(config),
        }
    }
}

impl Config {
    /// Returns an error when a webhook secret is set but no webhook could arrive or have an effect.
    fn unusable_webhook_secret(&self) -> Option<String> {
        self.source.webhook_secret_file.as_ref()?;
        let address = "`api.listen`, the address that the git server calls";
        let (missing, is) = match (&self.source.git, self.api.listen) {
            (None, _) => ("`source.git`, the repository that is pushed to", "not set"),
            // The default address is on this host, and is given up if it is taken.
            (_, None) => (address, "not set"),
            (_, Some(Listen::Nowhere)) => (address, "`none`"),
            (Some(_), Some(Listen::On(_))) => return None,
        };
        Some(format!("`source.webhook_secret_file` needs {missing}, which is {is}"))
    }
}

/// For an incomplete table of sizes, lists all missing keys instead of only the first.
fn whole(text: &str, error: toml::de::Error) -> toml::de::Error {
    let first = error.message();
    match units::lacking(text).filter(|_| first.starts_with("missing field")) {
        Some(all) => serde::de::Error::custom(error.to_string().trim_end().replace(first, &all)),
        None => error,
    }
}

pub fn schema() -> Value {
    crate::spec::schema::of::<Config>()
}

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
        let whole = toml::to_string(&Config::default().units.dev).unwrap();
        let half = whole.replace("controllers = 0\n", "").replace("replication_factor = 1\n", "");
        let error = Config::parse(&format!("[units.dev]\n{half}")).unwrap_err().to_string();
        assert_eq!(
            error.trim_end(),
            "TOML parse error at line 1, column 1\n  |\n1 | [units.dev]\n  | ^^^^^^^^^^^\n`[units.dev]` lacks \
             `controllers`, `replication_factor`: a profile needs all of its sizes or none"
        );
        assert!(Config::parse(&format!("[units.dev]\n{whole}")).is_ok());
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
                "`policy.approval_hours` is 100000, and must be from 1 to 168",
            ),
            (
                "[policy]\ncluster_deletions_per_hour = 1001\n".to_owned(),
                "`policy.cluster_deletions_per_hour` is 1001, and must be from 0 to 1000",
            ),
            (
                "[[policy.maintenance]]\nfrom = \"2:00\"\nhours = 4\n".to_owned(),
                "`policy.maintenance.from`: `2:00` is no time of the day; write it like `02:00`",
            ),
            (
                "[policy]\nmaintenance = [{days = [\"sat\"], from = \"02:00\", hours = 4, zone = \"Berlin\"}]\n".to_owned(),
                "`policy.maintenance.zone`: `Berlin` is no time zone; write a name of the IANA database, such as \
                 `Europe/Berlin` or `UTC`",
            ),
            (
                "[source]\nwebhook_secret_file = \"a\"\n".to_owned(),
                "`source.webhook_secret_file` needs `source.git`, the repository that is pushed to, which is not set",
            ),
            (
                "[source]\ngit = \"a\"\nwebhook_secret_file = \"a\"\n".to_owned(),
                "`source.webhook_secret_file` needs `api.listen`, the address that the git server calls, which is not set",
            ),
            (
                "[api]\nlisten = \"none\"\n[source]\ngit = \"a\"\nwebhook_secret_file = \"a\"\n".to_owned(),
                "`source.webhook_secret_file` needs `api.listen`, the address that the git server calls, which is `none`",
            ),
            (
                "[api]\nrequests_per_owner = 0\n".to_owned(),
                "`api.requests_per_owner` is 0, and must be from 1 to 1000000",
            ),
            (
                "[api]\nrequests_per_address = 1000001\n".to_owned(),
                "`api.requests_per_address` is 1000001, and must be from 1 to 1000000",
            ),
            (
                "[api]\nsuper_user_emails = [\"ada@example.com\", \"grace\"]\n".to_owned(),
                "`api.super_user_emails` contains `grace`, which is not an e-mail address",
            ),
            (
                "[daemon]\nfleets_at_once = 0\n".to_owned(),
                "`daemon.fleets_at_once` is 0, and must be from 1 to 100",
            ),
            (units("brokers_per_unit", 0), "`units.standard.brokers_per_unit` is 0, and must be at least 1"),
            (
                units("replication_factor", 4),
                "`units.standard.replication_factor` is 4, and must be at most `brokers_per_unit`, 3",
            ),
            (
                units("min_insync_replicas", 3),
                "`units.standard.min_insync_replicas` is 3, and must be less than `replication_factor`, 3: otherwise \
                 writes stop while a broker restarts",
            ),
            (
                units("controllers", 2),
                "`units.standard.controllers` is 2, and must be odd, or 0 if brokers are also controllers: 2 controllers \
                 tolerate no more failures than 1",
            ),
            (
                "[tiered_storage]\nplugin_image = \"a b\"\n".to_owned(),
                "`tiered_storage.plugin_image` must be the name of a container image",
            ),
            (
                "[tiered_storage]\nplugin_folders = [\"../x:y\"]\n".to_owned(),
                "`tiered_storage.plugin_folders` must list folders of the image, such as `core`",
            ),
            (
                units("broker_heap_mib", 99999),
                "`units.standard.broker_heap_mib` is 99999, and must be at most `broker_memory_mib`, 17408",
            ),
        ];
        for (text, expected) in cases {
            let error = Config::parse(&text).unwrap_err().to_string();
            assert_eq!(error.trim_end(), expected);
        }
        assert!(Config::parse("[policy]\napproval_hours = 168\n").is_ok());
    }

    #[test]
    fn a_fleet_is_named_with_its_organization() {
        for (text, expected) in [
            ("in_cluster = [\"eu\"]", "a fleet: ORGANIZATION/FLEET"),
            ("in_cluster = [\"acme/EU\"]", "EU"),
            ("in_cluster = \"acme/eu\"", "expected a sequence"),
            ("in_cluster = true", "expected a sequence"),
        ] {
            let error = Config::parse(&format!("[targets]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(expected), "{error}");
        }
        assert!(Config::parse("[targets]\nin_cluster = [\"acme/eu\", \"acme/us\"]\n").is_ok());
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let error = Config::parse("[policy]\napproval_hour = 3\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("approval_hours"), "{error}");
    }
}
