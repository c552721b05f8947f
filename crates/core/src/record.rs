//! Records as the interface specification defines them, with all fields of its tables; unknown ones are null
//! or empty. `get` and the API both print them.

mod client;
mod standing;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::catalog::{Hold, Recorded, ResolvedCluster, Resource};
use crate::component::health::Outputs;
use crate::names::Kind;
use crate::spec::{DnsProvider, Spec};

pub use client::{ClientProperties, client_properties};
pub use standing::{Audience, Standing, StandingInputs, UnplannedWrite};

/// Output values of a record, from outside of the spec.
#[derive(Debug, Default)]
pub struct RecordOutputs<'a> {
    /// The folder with a cluster's rendered manifests.
    pub manifests: Option<String>,
    /// The resolved cluster, and what was last observed of it; `None` if it was never applied.
    pub cluster: Option<(&'a ResolvedCluster, Option<&'a Outputs>)>,
    /// The address at which clients reach a fleet.
    pub loadbalancer_dns: Option<String>,
    /// The newest Kafka version available to a cluster, if newer than its own.
    pub new_version: Option<&'a str>,
}

/// A timestamp as the interface specification writes it: UTC, microseconds, `Z`.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

pub fn record(
    resource: &Resource,
    standing: &Standing,
    recorded: &Recorded,
    outputs: &RecordOutputs,
) -> Value {
    let known = recorded.resources.get(&resource.key);
    let mut record = spec_fields(&resource.spec);
    // Ids derive from the installation's id, which exists only after the first apply.
    let id = (!recorded.installation.is_nil()).then_some(resource.id);
    record.insert("id".into(), json!(id));
    record.insert("created_at".into(), json!(known.map(|known| timestamp(known.durable.created_at))));
    record.insert("updated_at".into(), json!(known.map(|known| timestamp(known.cached.updated_at))));
    match &resource.spec {
        Spec::Fleet(_) => {
            extend(&mut record, &FLEET_OUTPUTS);
            record.insert("loadbalancer_dns".into(), json!(outputs.loadbalancer_dns));
        }
        Spec::Cluster(_) => {
            extend(&mut record, &CLUSTER_OUTPUTS);
            record.insert("storage_manifests_file_path".into(), json!(outputs.manifests));
            record.insert("new_version".into(), json!(outputs.new_version));
            let properties = outputs.cluster.map(|(cluster, known)| client::field(cluster, known));
            record.insert("client_properties".into(), properties.unwrap_or_default());
        }
        _ => {}
    }
    // A suspended resource shows its other fields as last applied; `suspend` itself takes effect at once.
    if matches!(&resource.hold, Some(Hold::Suspended { by }) if *by == resource.key) {
        record.insert("suspend".into(), json!(true));
    }
    if matches!(resource.key.kind, Kind::Fleet | Kind::Cluster) {
        record.insert("status".into(), json!(standing.status));
        record.insert("status_reason".into(), json!(standing.reason));
        record.insert("conditions".into(), json!(standing.conditions));
    }
    Value::Object(record)
}

/// A fleet's output fields, with their initial values.
const FLEET_OUTPUTS: [(&str, Output); 9] = [
    ("advanced_properties", Output::Object),
    ("metadata", Output::Object),
    ("provisioner_name", Output::Null),
    ("destroyer_name", Output::Null),
    ("kubeconfig", Output::Null),
    ("kubeconfig_str", Output::Null),
    ("metrics_endpoint", Output::Null),
    ("cost_endpoint", Output::Null),
    ("logs_endpoint", Output::Null),
];

/// A cluster's output fields, with their initial values.
const CLUSTER_OUTPUTS: [(&str, Output); 3] =
    [("destroyer_name", Output::Null), ("version_updater_name", Output::Null), ("console_url", Output::Null)];

#[derive(Clone, Copy)]
enum Output {
    Null,
    Object,
}

fn extend(record: &mut Map<String, Value>, outputs: &[(&str, Output)]) {
    for (field, output) in outputs {
        let value = match output {
            Output::Null => Value::Null,
            Output::Object => json!({}),
        };
        record.insert((*field).to_owned(), value);
    }
}

/// The fields of a kind's records that no spec can set.
pub fn output_fields(kind: Kind) -> Vec<&'static str> {
    const OF_ALL: [&str; 3] = ["id", "created_at", "updated_at"];
    const STATUS: [&str; 3] = ["status", "status_reason", "conditions"];
    let names =
        |outputs: &[(&'static str, Output)]| outputs.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let own = match kind {
        Kind::Fleet => [names(&FLEET_OUTPUTS), STATUS.to_vec(), vec!["loadbalancer_dns", "network"]].concat(),
        Kind::Cluster => {
            let others = vec!["storage_manifests_file_path", "new_version", "client_properties"];
            [names(&CLUSTER_OUTPUTS), STATUS.to_vec(), others].concat()
        }
        _ => Vec::new(),
    };
    [OF_ALL.to_vec(), own].concat()
}

/// Sets fields that the interface specification defines as never null to the empty string.
fn give_empty(fields: &mut Map<String, Value>, names: &[&str]) {
    for (_, value) in
        fields.iter_mut().filter(|(name, value)| names.contains(&name.as_str()) && value.is_null())
    {
        *value = json!("");
    }
}

/// The spec as the interface returns it, with secrets redacted and derived fields filled in.
pub fn spec_fields(spec: &Spec) -> Map<String, Value> {
    let Value::Object(mut fields) = spec.redacted() else { return Map::new() };
    match spec {
        Spec::Fleet(_) => {
            fields.insert("network".into(), Value::Null);
            give_empty(&mut fields, &["domain"]);
        }
        Spec::Cluster(_) => {
            give_empty(&mut fields, &["provisioner_name", "region", "cloud_provider"]);
            if let Some(Value::Object(config)) = fields.get_mut("advanced_config") {
                give_empty(config, &["oauth", "tiered_storage_bucket_name"]);
                match config.get_mut("tiered_storage_provider") {
                    Some(Value::Object(provider)) => give_empty(provider, &["cloud_region"]),
                    Some(provider) => *provider = json!({}),
                    None => {}
                }
            }
        }
        Spec::BaseDomain(domain) => {
            let derived = domain.derived_domain().unwrap_or_else(|| domain.domain.clone());
            fields.insert("domain".into(), json!(derived));
            let dns_base = domain.dns_base_domain.as_ref().unwrap_or(&domain.domain);
            fields.insert("dns_base_domain".into(), json!(dns_base));
            if domain.dns_provider == DnsProvider::None {
                fields.remove("cloud_account");
            }
        }
        Spec::Organization(_) | Spec::IdentityProvider(_) | Spec::CloudAccount(_) => {}
    }
    fields
}
