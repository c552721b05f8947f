//! The records of the interface specification: every field of its tables, null or empty where nothing is known yet.
//!
//! `get` prints them and the API will answer with them, so that both show the same thing.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, Condition, Hold, Recorded, Resource, Status};
use crate::names::{Kind, ResourceKey};
use crate::plan::{Change, Plan, Reach, Verb, Waiting};
use crate::spec::{DnsProvider, Spec};

/// What is known of a resource beside its spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The one word.
    pub status: Status,
    /// Why, where the word alone leaves a question.
    pub reason: Option<String>,
    /// What a person should know.
    pub conditions: Vec<Condition>,
}

/// A timestamp as the interface specification writes it: UTC, microseconds, `Z`.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// How a resource stands, judged from what is recorded of it and what the plan says of it.
pub fn standing(key: &ResourceKey, catalog: &Catalog, recorded: &Recorded, plan: &Plan) -> Standing {
    let record = recorded.resources.get(key);
    let change = plan.change(key);
    let conditions = conditions(key, catalog);
    let hold = catalog.resources.get(key).and_then(|resource| resource.hold.as_ref());
    let (status, reason) = match (record, change, hold) {
        (Some(record), _, _) if record.deleting => (Status::Deleting, None),
        (Some(record), _, _)
            if !record.creating
                && let Some(reason) = unreachable(key, catalog, plan) =>
        {
            (Status::Unreachable, Some(reason))
        }
        (_, _, Some(hold @ Hold::Suspended { .. })) => (Status::Suspended, Some(hold.to_string())),
        (None, Some(change), _) => (Status::Pending, first_waiting(change)),
        (Some(record), Some(change), _) if record.creating && change.verb == Verb::Create => {
            (Status::Provisioning, first_waiting(change))
        }
        (None, None, _) => (Status::Pending, None),
        (Some(_), _, Some(hold @ (Hold::Invalid { .. } | Hold::Dependency { .. }))) => {
            (Status::Degraded, Some(hold.to_string()))
        }
        (Some(_), Some(change), _) => changing(change),
        (Some(_), None, _) => match conditions.iter().find(|condition| condition.degraded) {
            Some(condition) => (Status::Degraded, Some(condition.message.clone())),
            None => (Status::Healthy, None),
        },
    };
    Standing { status, reason, conditions }
}

fn changing(change: &Change) -> (Status, Option<String>) {
    match change.verb {
        Verb::Keep => (Status::Healthy, first_waiting(change)),
        Verb::Delete => {
            let waiting = first_waiting(change).map(|waiting| format!(": {waiting}")).unwrap_or_default();
            (Status::Healthy, Some(format!("no document names it any more{waiting}")))
        }
        Verb::Create | Verb::Update => {
            let unapplied = || "what its spec says now is not applied yet".to_owned();
            (Status::Updating, Some(first_waiting(change).unwrap_or_else(unapplied)))
        }
    }
}

/// Why the fleet that a resource is, or is on, can't be reached; none where it can.
fn unreachable(key: &ResourceKey, catalog: &Catalog, plan: &Plan) -> Option<String> {
    let resource = catalog.resources.get(key);
    let fleet = resource.and_then(Resource::fleet).map_or_else(|| key.clone(), |fleet| fleet.resource());
    let plan = plan.fleets.iter().find(|plan| plan.fleet.resource() == fleet)?;
    match &plan.reach {
        Reach::Unreachable { reason, .. } => {
            Some(Waiting::Unreachable { reason: reason.clone() }.to_string())
        }
        Reach::Reached => None,
    }
}

fn first_waiting(change: &Change) -> Option<String> {
    change.waiting.first().map(ToString::to_string)
}

fn conditions(key: &ResourceKey, catalog: &Catalog) -> Vec<Condition> {
    let fleet = catalog.fleets.values().find(|fleet| fleet.key.resource() == *key);
    fleet.map(|fleet| fleet.conditions.clone()).unwrap_or_default()
}

/// The complete record of a resource.
///
/// `manifests` is where the rendered manifests of a cluster are, for people: a folder of the output.
pub fn record(
    resource: &Resource,
    standing: &Standing,
    recorded: &Recorded,
    manifests: Option<String>,
) -> Value {
    let known = recorded.resources.get(&resource.key);
    let mut record = spec_fields(&resource.spec);
    // Before anything was applied there is no installation, from which ids derive: one would be another by then.
    let id = (!recorded.installation.is_nil()).then_some(resource.id);
    record.insert("id".into(), json!(id));
    record.insert("created_at".into(), json!(known.map(|known| timestamp(known.created_at))));
    record.insert("updated_at".into(), json!(known.map(|known| timestamp(known.updated_at))));
    match &resource.spec {
        Spec::Fleet(_) => extend(&mut record, &FLEET_OUTPUTS),
        Spec::Cluster(_) => {
            extend(&mut record, &CLUSTER_OUTPUTS);
            record.insert("storage_manifests_file_path".into(), json!(manifests));
        }
        _ => {}
    }
    if matches!(resource.key.kind, Kind::Fleet | Kind::Cluster) {
        record.insert("status".into(), json!(standing.status));
        record.insert("status_reason".into(), json!(standing.reason));
        record.insert("conditions".into(), json!(standing.conditions));
    }
    Value::Object(record)
}

/// What a fleet's record has beside its spec, as it is before anything is known.
const FLEET_OUTPUTS: [(&str, Output); 10] = [
    ("advanced_properties", Output::Object),
    ("metadata", Output::Object),
    ("provisioner_name", Output::Null),
    ("destroyer_name", Output::Null),
    ("kubeconfig", Output::Null),
    ("kubeconfig_str", Output::Null),
    ("metrics_endpoint", Output::Null),
    ("cost_endpoint", Output::Null),
    ("logs_endpoint", Output::Null),
    ("loadbalancer_dns", Output::Null),
];

/// What a cluster's record has beside its spec, as it is before anything is known.
const CLUSTER_OUTPUTS: [(&str, Output); 5] = [
    ("destroyer_name", Output::Null),
    ("version_updater_name", Output::Null),
    ("console_url", Output::Null),
    ("client_properties", Output::Null),
    ("new_version", Output::Null),
];

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

/// The spec as the interface returns it: secrets reduced to a trace, and what the interface derives filled in.
fn spec_fields(spec: &Spec) -> Map<String, Value> {
    let Value::Object(mut fields) = spec.redacted() else { return Map::new() };
    match spec {
        Spec::Fleet(_) => {
            fields.insert("network".into(), Value::Null);
        }
        Spec::Cluster(cluster) => {
            // Sent as an empty string on creation and returned as sent.
            fields.insert(
                "provisioner_name".into(),
                json!(cluster.provisioner_name.clone().unwrap_or_default()),
            );
            fields.insert("region".into(), json!(cluster.region.clone().unwrap_or_default()));
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
