//! The fields of records that aren't in the spec, or that answers give in another form: where the interface
//! specification wants a string or an object, it is empty and never null. Doc comments are descriptions in the
//! OpenAPI document.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Standing, timestamp};
use crate::catalog::{Condition, Status};
use crate::names::{Domain, Identifier};
use crate::spec::certificate::Certificate;
use crate::spec::{BaseDomain, Cluster, DnsProvider, Fleet};

// The output fields of every kind.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ResourceOutputs {
    /// Its id. Null before the first apply.
    pub id: Option<Uuid>,
    /// The time of its creation.
    #[serde(serialize_with = "optional_time")]
    #[schemars(with = "Option<String>", extend("format" = "date-time", "examples" = ["2026-11-22T09:30:00.000000Z"]))]
    pub created_at: Option<Timestamp>,
    /// The time of its last change.
    #[serde(serialize_with = "optional_time")]
    #[schemars(with = "Option<String>", extend("format" = "date-time", "examples" = ["2026-11-22T09:30:00.000000Z"]))]
    pub updated_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StandingOutputs {
    status: Status,
    /// The reason, if the status alone is ambiguous.
    status_reason: Option<String>,
    /// Warnings and facts for people.
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FleetOutputs {
    #[serde(flatten)]
    pub standing: StandingOutputs,
    /// The base domain of its clusters. Empty if unset.
    domain: String,
    /// The address of the fleet for clients: that of its Gateway. Null with other exposures, whose clusters have
    /// addresses of their own, and until the Gateway has one.
    pub loadbalancer_dns: Option<String>,
    /// Always empty: no fleet has advanced properties.
    advanced_properties: Map<String, Value>,
    /// Always empty: no fleet has metadata.
    metadata: Map<String, Value>,
    /// The network of the fleet. Always null: its Kubernetes cluster has its own, and Streamfleet makes none.
    network: Option<Value>,
    /// The job that made the fleet. Always null: no job of its own makes a fleet, the daemon does.
    provisioner_name: Option<String>,
    /// The job that deletes the fleet. Always null: no job of its own deletes a fleet, the daemon does.
    destroyer_name: Option<String>,
    /// The kubeconfig. Always null, since it is a secret: only the answer to the call that creates a fleet has it,
    /// in `advanced_config`.
    kubeconfig: Option<String>,
    /// The kubeconfig as text. Always null, as `kubeconfig` is.
    kubeconfig_str: Option<String>,
    /// The address of the fleet's own Prometheus; or of the metrics of its clusters, as Prometheus' text. Null before the
    /// fleet is applied, unless `advanced_config.monitoring.prometheus` is `own`, or `advanced_config.monitoring.federate`
    /// is true and the settings have a full URL as `api.base_url`.
    pub metrics_endpoint: Option<String>,
    /// The address of the fleet's cost: `GET` it with `from` and `to`. Null before the fleet is applied, and unless
    /// the settings have `[prices]` and a full URL as `api.base_url`.
    pub cost_endpoint: Option<String>,
    /// The address of the logs of the fleet's brokers. Null before the fleet is applied, unless the settings have a
    /// full URL as `api.base_url`, and for a fleet that is a folder, where nothing runs that could be read.
    pub logs_endpoint: Option<String>,
    /// Why addresses are null, by field, where it depends on this installation.
    pub null_reasons: NullReasons,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClusterOutputs {
    #[serde(flatten)]
    pub standing: StandingOutputs,
    advanced_config: ClusterConfigOutputs,
    /// As it was sent.
    provisioner_name: String,
    /// A label for people. Empty if unset.
    region: String,
    /// The `infra_type` of its fleet. Empty if unset.
    cloud_provider: String,
    /// The properties that clients need to connect, without secrets. Null before the cluster is applied.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub client_properties: Option<Value>,
    /// The newest supported version of Kafka, if it is newer; otherwise null.
    pub new_version: Option<String>,
    /// The path of its manifests, if they are files: for super users the folder on the daemon's host, for others
    /// the same below the folder of all manifests. Null on a Kubernetes cluster.
    pub storage_manifests_file_path: Option<String>,
    /// The job that deletes the cluster. Always null: no job of its own deletes a cluster, the daemon does.
    destroyer_name: Option<String>,
    /// The job that updates the version. Always null: no job of its own updates a version, the daemon does.
    version_updater_name: Option<String>,
    /// The address of the cluster's console: its own, or one by the settings' `console_url_template`. Null before the
    /// cluster is applied, and without either.
    pub console_url: Option<String>,
    /// The address of the cluster's metrics, as Prometheus' text. Null before the cluster is applied, unless its
    /// `advanced_config.operations.metrics` and its fleet's `advanced_config.monitoring.federate` are true and the
    /// settings have a full URL as `api.base_url`.
    pub metrics_endpoint: Option<String>,
    /// Why addresses are null, by field, where it depends on this installation.
    pub null_reasons: NullReasons,
}

/// Why fields are null, by their names.
pub type NullReasons = BTreeMap<&'static str, String>;

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ClusterConfigOutputs {
    /// The identity provider for the authentication of clients. Empty if unset.
    oauth: String,
    /// The bucket for tiered storage. Empty if unset.
    tiered_storage_bucket_name: String,
    tiered_storage_provider: TieredStorageOutputs,
}

// Empty if no provider is set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct TieredStorageOutputs {
    /// The cloud account that the bucket belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_account: Option<Identifier>,
    /// The region of the bucket. Empty if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_region: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BaseDomainOutputs {
    /// The domain whose subdomains are the addresses of clusters. With managed DNS, its first label is the
    /// organization.
    domain: Domain,
    /// The domain that the DNS provider serves.
    dns_base_domain: Domain,
    /// The cloud account of the managed DNS. Without managed DNS there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_account: Option<Identifier>,
    /// The time from which the certificate is valid. Null if it can't be read.
    #[serde(serialize_with = "optional_time")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    not_before: Option<Timestamp>,
    /// The time at which the first certificate of the chain expires. Null if it can't be read.
    #[serde(serialize_with = "optional_time")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    not_after: Option<Timestamp>,
    /// The host names that the certificate covers. Empty if it can't be read.
    covered_names: Vec<String>,
}

impl From<&Standing> for StandingOutputs {
    fn from(Standing { status, reason, conditions, since: _ }: &Standing) -> Self {
        Self { status: *status, status_reason: reason.clone(), conditions: conditions.clone() }
    }
}

impl StandingOutputs {
    pub fn pending() -> Self {
        Self { status: Status::Pending, status_reason: None, conditions: Vec::new() }
    }
}

impl FleetOutputs {
    pub fn of(fleet: &Fleet) -> Self {
        Self {
            standing: StandingOutputs::pending(),
            domain: text(fleet.domain.as_ref()),
            loadbalancer_dns: None,
            advanced_properties: Map::new(),
            metadata: Map::new(),
            network: None,
            provisioner_name: None,
            destroyer_name: None,
            kubeconfig: None,
            kubeconfig_str: None,
            metrics_endpoint: None,
            cost_endpoint: None,
            logs_endpoint: None,
            null_reasons: NullReasons::new(),
        }
    }
}

impl ClusterOutputs {
    pub fn of(cluster: &Cluster) -> Self {
        let config = &cluster.advanced_config;
        let provider = config.tiered_storage_provider.as_ref();
        Self {
            standing: StandingOutputs::pending(),
            advanced_config: ClusterConfigOutputs {
                oauth: text(config.oauth.as_ref()),
                tiered_storage_bucket_name: text(config.tiered_storage_bucket_name.as_ref()),
                tiered_storage_provider: TieredStorageOutputs {
                    cloud_account: provider.map(|provider| provider.cloud_account.clone()),
                    cloud_region: provider.map(|provider| text(provider.cloud_region.as_ref())),
                },
            },
            provisioner_name: text(cluster.provisioner_name.as_ref()),
            region: text(cluster.region.as_ref()),
            cloud_provider: text(cluster.cloud_provider.as_ref()),
            client_properties: None,
            new_version: None,
            storage_manifests_file_path: None,
            destroyer_name: None,
            version_updater_name: None,
            console_url: None,
            metrics_endpoint: None,
            null_reasons: NullReasons::new(),
        }
    }
}

impl BaseDomainOutputs {
    pub fn of(domain: &BaseDomain) -> Self {
        let certificate = domain.tls_cert.as_deref().and_then(Certificate::read);
        Self {
            domain: domain.derived_domain().unwrap_or_else(|| domain.domain.clone()),
            dns_base_domain: domain.dns_base_domain.as_ref().unwrap_or(&domain.domain).clone(),
            cloud_account: domain.cloud_account.clone().filter(|_| domain.dns_provider != DnsProvider::None),
            not_before: certificate.as_ref().map(|certificate| certificate.not_before),
            not_after: certificate.as_ref().map(|certificate| certificate.not_after),
            covered_names: certificate.map(|certificate| certificate.names).unwrap_or_default(),
        }
    }
}

/// A value that is written as a string; empty if there is none.
fn text(given: Option<&impl Serialize>) -> String {
    match serde_json::to_value(given) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn optional_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(timestamp).serialize(serializer)
}
