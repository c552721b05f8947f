//! Records as the interface specification defines them: what `get` and the API show of a resource. A record is
//! the resource's redacted spec with its output fields. The answer, its schema and the fields that no client may
//! set all follow from the types of the output fields.

mod addresses;
mod client;
mod outputs;
mod schema;
mod standing;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::catalog::{Hold, Recorded, ResolvedCluster, Resource};
use crate::component;
use crate::component::health::Outputs;
use crate::config::Config;
use crate::names::Kind;
use crate::spec::Spec;
use addresses::{AddressInputs, noted};
use outputs::{BaseDomainOutputs, ClusterOutputs, FleetOutputs, ResourceOutputs, StandingOutputs};

pub use client::{ClientProperties, client_properties, registry_properties};
pub use schema::{describe, output_fields, schema};
pub use standing::{Audience, Standing, StandingInputs, UnplannedWrite, WRITTEN};

/// A timestamp as the interface specification writes it: UTC, microseconds, `Z`.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Values of a record from outside of its spec.
#[derive(Debug, Default)]
pub struct RecordSources<'a> {
    /// The folder with a cluster's rendered manifests.
    pub manifests: Option<String>,
    /// The resolved cluster, and what was last observed of it; `None` if it was never applied.
    pub cluster: Option<(&'a ResolvedCluster, Option<&'a Outputs>)>,
    /// The address at which clients reach a fleet.
    pub loadbalancer_dns: Option<String>,
    /// The host name of a fleet's own Prometheus.
    pub prometheus: Option<String>,
    /// The settings. `None` if they are unknown.
    pub config: Option<&'a Config>,
    /// The newest Kafka version available to a cluster, if newer than its own.
    pub new_version: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct Record {
    /// The spec, redacted.
    spec: Value,
    pub outputs: ResourceOutputs,
    pub of_kind: KindOutputs,
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum KindOutputs {
    Fleet(Box<FleetOutputs>),
    Cluster(Box<ClusterOutputs>),
    BaseDomain(BaseDomainOutputs),
    /// Of a topic or a user.
    OnCluster(StandingOutputs),
    None {},
}

impl Record {
    pub fn new(
        resource: &Resource,
        standing: &Standing,
        recorded: &Recorded,
        sources: RecordSources,
    ) -> Record {
        let mut record = Record::of_spec(&resource.spec);
        let known = recorded.resources.get(&resource.key);
        // Ids derive from the installation's id, which exists only after the first apply.
        record.outputs.id = (!recorded.installation.is_nil()).then_some(resource.id);
        record.outputs.created_at = known.map(|known| known.durable.created_at);
        record.outputs.updated_at = known.map(|known| known.cached.updated_at);
        let is_applied = known.is_some_and(|known| !known.durable.creating);
        match &mut record.of_kind {
            KindOutputs::Fleet(fleet) => {
                fleet.standing = standing.into();
                fleet.loadbalancer_dns = sources.loadbalancer_dns;
                if let (Some(config), Spec::Fleet(spec)) = (sources.config, &resource.spec) {
                    let inputs = AddressInputs { config, resource: &resource.key, is_applied };
                    let reasons = &mut fleet.null_reasons;
                    fleet.cost_endpoint = noted("cost_endpoint", inputs.cost(), reasons);
                    fleet.logs_endpoint = noted("logs_endpoint", inputs.logs(spec), reasons);
                    fleet.metrics_endpoint =
                        noted("metrics_endpoint", inputs.metrics(spec, sources.prometheus), reasons);
                }
            }
            KindOutputs::Cluster(cluster) => {
                cluster.standing = standing.into();
                cluster.storage_manifests_file_path = sources.manifests;
                cluster.new_version = sources.new_version.map(str::to_owned);
                if let (Some(config), Spec::Cluster(spec)) = (sources.config, &resource.spec) {
                    let inputs = AddressInputs { config, resource: &resource.key, is_applied };
                    let own = sources.cluster.and_then(|(cluster, _)| component::console_url(cluster));
                    let console = inputs.console(&spec.infrastructure, own);
                    let fleet = sources.cluster.map(|(cluster, _)| &*cluster.fleet_spec);
                    let metrics = inputs.cluster_metrics(spec, fleet, resource.id);
                    let reasons = &mut cluster.null_reasons;
                    cluster.console_url = noted("console_url", console, reasons);
                    cluster.metrics_endpoint = noted("metrics_endpoint", metrics, reasons);
                }
                cluster.client_properties =
                    sources.cluster.map(|(cluster, known)| client::field(cluster, known));
            }
            KindOutputs::OnCluster(outputs) => *outputs = standing.into(),
            KindOutputs::BaseDomain(_) | KindOutputs::None {} => {}
        }
        // A suspended resource shows its other fields as last applied; `suspend` itself takes effect at once.
        if matches!(&resource.hold, Some(Hold::Suspended { by }) if *by == resource.key) {
            record.spec["suspend"] = json!(true);
        }
        record
    }

    /// A record that says no more than a spec does.
    pub fn of_spec(spec: &Spec) -> Record {
        let of_kind = match spec {
            Spec::Fleet(fleet) => KindOutputs::Fleet(Box::new(FleetOutputs::of(fleet))),
            Spec::Cluster(cluster) => KindOutputs::Cluster(Box::new(ClusterOutputs::of(cluster))),
            Spec::BaseDomain(domain) => KindOutputs::BaseDomain(BaseDomainOutputs::of(domain)),
            Spec::Topic(_) | Spec::User(_) => KindOutputs::OnCluster(StandingOutputs::pending()),
            Spec::Organization(_) | Spec::IdentityProvider(_) | Spec::CloudAccount(_) => KindOutputs::None {},
        };
        let mut redacted = spec.redacted();
        if let (KindOutputs::BaseDomain(_), Some(fields)) = (&of_kind, redacted.as_object_mut()) {
            fields.remove("cloud_account");
        }
        Record { spec: redacted, outputs: ResourceOutputs::default(), of_kind }
    }

    pub fn to_json(&self) -> Value {
        let mut record = self.spec.clone();
        // Can't fail: all keys are strings, and every value serializes.
        overlay(&mut record, serde_json::to_value(&self.outputs).unwrap_or_default());
        overlay(&mut record, serde_json::to_value(&self.of_kind).unwrap_or_default());
        record
    }
}

/// Puts the fields of an object over those of another, at every depth.
fn overlay(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                overlay(under.entry(name).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Whether records of a kind have a status.
pub fn has_status(kind: Kind) -> bool {
    kind.is_on_fleet()
}

#[cfg(test)]
mod tests;
