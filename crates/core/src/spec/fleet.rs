//! Fleets: Kubernetes capacity that hosts Kafka clusters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Domain, Identifier};
use crate::spec::{MaintenanceWindow, SecretValue};

/// A set of Kubernetes capacity that hosts Kafka clusters: the user's own Kubernetes cluster, or a folder
/// that another engine applies to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// The organization that owns the fleet. It can't change.
    pub organization: Identifier,
    /// The fleet's name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The kind of target that the fleet's manifests are written to.
    pub infra_type: InfraType,
    /// The base domain of the fleet's clusters, by its submitted or its derived name. Required as soon as a
    /// cluster is reached from outside.
    #[serde(default)]
    #[schemars(example = &"kafka.example.com")]
    pub domain: Option<Domain>,
    /// How clusters are isolated from each other. It can't change.
    pub tenancy_mode: TenancyMode,
    /// How many Kafka clusters the fleet may host.
    #[schemars(range(min = 1, max = 1000))]
    pub max_tenants: u32,
    /// How many Kafka units its clusters may have together.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_kafka_units: u32,
    /// How the fleet is reached and what it offers.
    #[serde(default)]
    pub advanced_config: FleetAdvancedConfig,
    /// The location of the fleet, in the owner's own words. Recorded only.
    #[serde(default)]
    pub placement_config: BTreeMap<String, String>,
    /// Leave the fleet as it is until this is false again.
    #[serde(default)]
    pub suspend: bool,
    /// Refuse to delete the fleet. Removing the file doesn't remove the protection.
    #[serde(default = "crate::spec::protected_by_default")]
    pub deletion_protection: bool,
}

/// The kind of target that a fleet's manifests are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InfraType {
    /// The user's own Kubernetes cluster, reached with its `kubeconfig`.
    Byok,
    /// A folder of manifests for another engine to apply. Needs no Kubernetes.
    Directory,
}

/// The differences between the kinds of targets, beside how they are reached.
#[derive(Debug, Clone, Copy)]
pub struct TargetCapabilities {
    /// Whether pods, disks and health are observed. Where they aren't, others apply what is written.
    pub observes: bool,
    /// Whether Secrets are always written to it. The settings may keep them out of others.
    pub holds_secrets: bool,
}

impl InfraType {
    /// The word for it in specs.
    pub fn word(self) -> &'static str {
        match self {
            InfraType::Byok => "byok",
            InfraType::Directory => "directory",
        }
    }

    pub fn capabilities(self) -> TargetCapabilities {
        match self {
            InfraType::Byok => TargetCapabilities { observes: true, holds_secrets: true },
            InfraType::Directory => TargetCapabilities { observes: false, holds_secrets: false },
        }
    }
}

/// How the clusters of a fleet are isolated from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-case-insensitive" = true))]
pub enum TenancyMode {
    /// Each cluster has its own namespace and quotas.
    Shared,
    /// As Shared, with network policies that deny by default, in and out, and brokers that share no node with
    /// another cluster's brokers.
    Isolated,
    /// One cluster on the fleet, on nodes reserved for it.
    Dedicated,
}

/// How a fleet is reached and what it offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetAdvancedConfig {
    /// The kubeconfig of a `byok` fleet, with a static, long-lived token or a client certificate.
    #[serde(default)]
    pub kubeconfig: Option<SecretValue>,
    /// Instead of a kubeconfig: the fleet is the Kubernetes cluster that Streamfleet itself runs in, reached as
    /// the service account of its pod. The settings have to name the fleet, in `targets.in_cluster`.
    #[serde(default)]
    pub in_cluster: bool,
    /// How clients outside Kubernetes reach the brokers. By default a load balancer for each broker.
    #[serde(default)]
    pub exposure: Exposure,
    /// The Gateway of a fleet with `exposure: tlsroute`; required there, and not allowed otherwise.
    #[serde(default)]
    pub gateway: Option<GatewayConfig>,
    /// Whether Streamfleet connects to the clusters as clients outside of Kubernetes do, by every public name, to
    /// see that they are reachable.
    #[serde(default)]
    pub reachability: Reachability,
    /// How the metrics of the fleet's clusters are read.
    #[serde(default)]
    pub monitoring: Option<Monitoring>,
    /// Components that run on the fleet beside the clusters.
    #[serde(default)]
    pub components: Components,
    /// When disruptions may begin that nobody asks for at that moment: a patch release of Kafka that a cluster
    /// follows by itself, Strimzi's own certificates and, where the settings say so, a base domain's new
    /// certificate. By default as the settings say; an empty list is any time.
    #[serde(default)]
    #[schemars(length(max = 20), example = &serde_json::json!([{"days": ["tue", "thu"], "from": "02:00", "hours": 4, "zone": "Europe/Berlin"}]))]
    pub maintenance: Option<Vec<MaintenanceWindow>>,
    /// The storage class of clusters that name none. By default the default class of the Kubernetes cluster.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"), extend("x-expected" = "the name of a StorageClass"), example = &"gp3")]
    pub storage_class: Option<String>,
    /// For a `directory` fleet: a subfolder for the manifests, inside the fleet's folder in the
    /// organization's folder.
    #[serde(default)]
    #[schemars(length(max = 200), regex(pattern = r"^[A-Za-z0-9_][-A-Za-z0-9_.]*(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$"), extend("x-expected" = "a relative path without dot folders"), example = &"manifests")]
    pub path: Option<String>,
}

/// How clients outside Kubernetes reach the brokers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Exposure {
    /// A load balancer for the bootstrap address and one for each broker.
    #[default]
    LoadBalancer,
    /// One Gateway for the fleet, with a TLSRoute for each broker.
    TlsRoute,
}

/// Whether Streamfleet connects to clusters as their clients do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reachability {
    /// It does, as a Kafka user of its own, whose rights end at a topic of its own.
    #[default]
    Probe,
    /// It doesn't, for example because its network has no way to the clusters.
    None,
}

/// How the metrics of a fleet's clusters are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Monitoring {
    /// Pass on the metrics of brokers and controllers by the API, at the `metrics_endpoint` of the fleet and of its
    /// clusters. The user of the fleet's kubeconfig needs the right to reach pods through the API server:
    /// `streamfleet role --metrics`.
    #[serde(default)]
    pub federate: bool,
    /// Whether a Prometheus on the Kubernetes cluster reads the metrics of the fleet's clusters.
    #[serde(default)]
    pub prometheus: Prometheus,
    /// The Prometheus of a fleet with `prometheus: own`; required there, and not allowed otherwise.
    #[serde(default)]
    pub own: Option<OwnPrometheus>,
    /// Labels for the PodMonitors, PrometheusRules and dashboards, by which your Prometheus and Grafana select
    /// them.
    #[serde(default)]
    #[schemars(example = &serde_json::json!({"release": "kube-prometheus-stack"}))]
    pub labels: BTreeMap<String, String>,
    /// The existing namespace for the alerts and dashboards. By default `streamfleet-monitoring`, which is created.
    #[serde(default)]
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), extend("x-expected" = "the name of a namespace"), example = &"monitoring")]
    pub namespace: Option<String>,
    /// Whether Grafana gets dashboards, as ConfigMaps with the label `grafana_dashboard: "1"`.
    #[serde(default = "shown")]
    pub dashboards: bool,
    /// Whether Prometheus gets alerts.
    #[serde(default = "shown")]
    pub alerts: bool,
}

fn shown() -> bool {
    true
}

/// Whether a Prometheus on the Kubernetes cluster reads the metrics of a fleet's clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prometheus {
    /// None does.
    #[default]
    None,
    /// One of the Prometheus operator, which you run yourself. Streamfleet writes the objects that tell it what to
    /// read. The user of the fleet's kubeconfig needs more rights: `streamfleet role --monitoring`.
    Existing,
    /// One that Streamfleet runs, at `metrics--FLEET` below the fleet's domain, with TLS and a login. The settings have to
    /// name its image. The user of the fleet's kubeconfig needs more rights: `streamfleet role --prometheus`.
    Own,
}

/// The Prometheus that Streamfleet runs on a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnPrometheus {
    /// The password of its only user, `prometheus`: 12 to 72 bytes.
    pub password: SecretValue,
    /// How many days of metrics it keeps, as far as its disk has room for them.
    #[serde(default = "OwnPrometheus::default_retention")]
    #[schemars(range(min = 1, max = 1000))]
    pub retention_days: u32,
    /// The size of its disk, in GiB. It can't change.
    #[serde(default = "OwnPrometheus::default_disk")]
    #[schemars(range(min = 1, max = 16_384))]
    pub disk_gib: u32,
    /// Give it a private load balancer. Behind a Gateway, that is a setting of the Gateway.
    #[serde(default)]
    pub private: bool,
}

impl OwnPrometheus {
    fn default_retention() -> u32 {
        15
    }

    fn default_disk() -> u32 {
        50
    }
}

impl FleetAdvancedConfig {
    /// Whether the metrics of its clusters are passed on by the API.
    pub fn federates(&self) -> bool {
        self.monitoring.as_ref().is_some_and(|monitoring| monitoring.federate)
    }

    /// What a Prometheus on the Kubernetes cluster is given, if there is one.
    pub fn prometheus(&self) -> Option<&Monitoring> {
        self.monitoring.as_ref().filter(|monitoring| monitoring.prometheus == Prometheus::Existing)
    }

    /// The Prometheus that Streamfleet runs, if it runs one.
    pub fn own_prometheus(&self) -> Option<&OwnPrometheus> {
        let monitoring =
            self.monitoring.as_ref().filter(|monitoring| monitoring.prometheus == Prometheus::Own)?;
        monitoring.own.as_ref()
    }

    /// Whether any Prometheus reads the metrics of its clusters.
    pub fn is_read(&self) -> bool {
        self.monitoring.as_ref().is_some_and(|monitoring| monitoring.prometheus != Prometheus::None)
    }
}

/// The Gateway through which clients outside Kubernetes reach every cluster of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// The GatewayClass, which selects the implementation of the Gateway. Kubernetes has no default one.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"), extend("x-expected" = "the name of a GatewayClass"), example = &"envoy")]
    pub class: String,
    /// Give the Gateway a private load balancer. It must be equal to `private_access` of the fleet's
    /// clusters.
    #[serde(default)]
    pub private: bool,
}

/// Components that run on a fleet beside the clusters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Components {
    /// The Strimzi operator: the version to install, or `existing` if you run it yourself.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(existing|[0-9]+\.[0-9]+\.[0-9]+)$"), extend("x-expected" = "`existing` or a version such as 1.2.0"), example = &"existing")]
    pub strimzi: Option<String>,
}

impl Components {
    pub const EXISTING: &'static str = "existing";

    /// Returns the version of the Strimzi operator to install; `None` if Streamfleet doesn't install it.
    pub fn installs(&self) -> Option<&str> {
        self.strimzi.as_deref().filter(|version| *version != Self::EXISTING)
    }
}
