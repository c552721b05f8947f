//! Records as the interface specification defines them, with all fields of its tables; unknown ones are null
//! or empty. `get` and the API both print them.

mod client;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::catalog::{Catalog, Condition, Hold, Recorded, ResolvedCluster, Resource, ResourceStatus, Status};
use crate::health;
use crate::names::{Kind, ResourceKey};
use crate::plan::{Change, FleetPlan, Index, Plan, Verb, Waiting};
use crate::spec::{DnsProvider, InfraType, Spec};

pub use client::{ClientProperties, client_properties};

#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub status: Status,
    /// Set where the status alone raises a question.
    pub reason: Option<String>,
    pub conditions: Vec<Condition>,
    /// `None` if unknown.
    pub since: Option<Timestamp>,
}

impl Standing {
    /// The status of a resource of which nothing exists yet.
    pub fn pending() -> Standing {
        Standing { status: Status::Pending, reason: None, conditions: Vec::new(), since: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The operators of this installation.
    Host,
    /// The members of organizations, from whom network details are hidden.
    Tenants,
}

impl Audience {
    pub fn waiting_reason(self, waiting: &Waiting) -> String {
        match self {
            Audience::Host => waiting.to_string(),
            Audience::Tenants => waiting.redacted_for_tenants().to_string(),
        }
    }
}

/// Output values of a record, from outside of the spec.
#[derive(Debug, Default)]
pub struct RecordOutputs<'a> {
    /// The folder with a cluster's rendered manifests.
    pub manifests: Option<String>,
    /// The resolved cluster, and what was last observed of it; `None` if it was never applied.
    pub cluster: Option<(&'a ResolvedCluster, Option<&'a health::Outputs>)>,
    /// The address at which clients reach a fleet.
    pub loadbalancer_dns: Option<String>,
    /// The newest Kafka version available to a cluster, if newer than its own.
    pub new_version: Option<&'a str>,
}

/// A timestamp as the interface specification writes it: UTC, microseconds, `Z`.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Computes the status of a resource from its record, its health and the plan. `judged` is `None` if its
/// health is unknown or nothing runs.
pub fn standing(
    key: &ResourceKey,
    (catalog, recorded): (&Catalog, &Recorded),
    (plan, index): (&Plan, &Index),
    judged: Option<&ResourceStatus>,
    audience: Audience,
) -> Standing {
    let fleet = key.as_fleet().or_else(|| catalog.resources.get(key)?.fleet());
    let host = fleet.and_then(|fleet| index.fleet(plan, &fleet));
    let change = index.change(plan, key);
    let record = recorded.resources.get(key);
    let conditions = conditions(key, host, judged, change, audience);
    let hold = catalog.resources.get(key).and_then(|resource| resource.hold.as_ref());
    let ailing = judged.filter(|judged| judged.status != Status::Healthy);
    let unreached = unreached(key, host, audience);
    let (status, reason) = match (record, change, hold) {
        (Some(record), _, _) if record.deleting => {
            let going = judged.filter(|judged| judged.status == Status::Deleting);
            (Status::Deleting, going.and_then(|judged| judged.reason.clone()))
        }
        _ if let Some((Status::Failed, reason)) = &unreached => (Status::Failed, Some(reason.clone())),
        (Some(record), _, _)
            if !record.creating
                && let Some((status, reason)) = &unreached =>
        {
            (*status, Some(reason.clone()))
        }
        (_, _, Some(hold @ Hold::Suspended { .. })) => (Status::Suspended, Some(hold.to_string())),
        (None, Some(change), _) => (Status::Pending, first_waiting(change, audience)),
        (Some(record), Some(change), _) if record.creating && change.verb == Verb::Create => {
            (Status::Provisioning, first_waiting(change, audience))
        }
        (None, None, _) => (Status::Pending, None),
        // What runs is reported by its health, whatever the spec says.
        (Some(_), _, _) if let Some(ailing) = ailing => (ailing.status, ailing.reason.clone()),
        // A blocked or refused change: the cluster runs on as it was applied.
        (Some(_), _, Some(hold @ (Hold::Invalid { .. } | Hold::Dependency { .. }))) => {
            let (status, ails) = as_applied(&conditions);
            (status, Some(ails.unwrap_or_else(|| hold.to_string())))
        }
        (Some(_), Some(change), _) => changing(change, &conditions, audience),
        (Some(_), None, _) => as_applied(&conditions),
    };
    // Manifests in a folder are applied by others, so their health is unknown.
    let on = host.or_else(|| index.fleet(plan, &record?.fleet(key)?));
    let is_folder = on.is_some_and(|on| on.infra_type == Some(InfraType::Directory));
    let (status, reason) = match status {
        Status::Healthy if key.kind == Kind::Cluster && is_folder => {
            let unseen = || "its manifests are written; how it runs isn't seen from here".to_owned();
            (Status::Written, Some(reason.unwrap_or_else(unseen)))
        }
        status => (status, reason),
    };
    let since = judged.filter(|judged| judged.status == status).map(|judged| judged.since);
    Standing { status, reason, conditions, since }
}

/// The status of what was applied, if nothing else is wrong.
fn as_applied(conditions: &[Condition]) -> (Status, Option<String>) {
    match conditions.iter().find(|condition| condition.degraded) {
        Some(condition) => (Status::Degraded, Some(condition.message.clone())),
        None => (Status::Healthy, None),
    }
}

fn changing(change: &Change, conditions: &[Condition], audience: Audience) -> (Status, Option<String>) {
    match change.verb {
        Verb::Keep => {
            let is_foreign = |waiting: &Waiting| {
                matches!(waiting, Waiting::ForeignObject { .. } | Waiting::NotAFile { .. })
            };
            let status =
                if change.waiting.iter().any(is_foreign) { Status::Degraded } else { Status::Healthy };
            (status, first_waiting(change, audience))
        }
        Verb::Delete => {
            let waits = waiting_deletion(change, audience).map(|condition| condition.message);
            (Status::Healthy, Some(waits.unwrap_or_else(|| UNNAMED.to_owned())))
        }
        Verb::Create | Verb::Update | Verb::Recreate
            if let Some(waiting) = change.waiting.iter().find(|waiting| !goes_on(waiting)) =>
        {
            let waits = match waiting {
                Waiting::Approval { why, .. } => format!("a change waits for approval: {why}"),
                waiting => format!("a change waits: {}", audience.waiting_reason(waiting)),
            };
            let (status, ails) = as_applied(conditions);
            (status, Some(ails.unwrap_or(waits)))
        }
        Verb::Create | Verb::Update | Verb::Recreate => {
            let unapplied = || "what its spec says now is not applied yet".to_owned();
            (Status::Updating, Some(first_waiting(change, audience).unwrap_or_else(unapplied)))
        }
    }
}

/// Whether the wait is a part of work in progress that continues by itself.
fn goes_on(waiting: &Waiting) -> bool {
    use Waiting::{OneDisruption, Renewal, Retry, UnderWay, Unsettled, Upgrade};
    matches!(
        waiting,
        OneDisruption { .. } | Renewal { .. } | Retry { .. } | UnderWay { .. } | Unsettled | Upgrade { .. }
    )
}

/// The status and reason of a resource whose fleet can't be reached; `None` if it can. A fleet whose target
/// refuses access has failed.
fn unreached(key: &ResourceKey, host: Option<&FleetPlan>, audience: Audience) -> Option<(Status, String)> {
    let waiting = host?.reach.waiting().filter(|it| matches!(it, Waiting::Unreachable { .. }))?;
    let refused = matches!(waiting, Waiting::Unreachable { refused: true, .. });
    let status = if refused && key.kind == Kind::Fleet { Status::Failed } else { Status::Unreachable };
    Some((status, audience.waiting_reason(&waiting)))
}

fn first_waiting(change: &Change, audience: Audience) -> Option<String> {
    change.waiting.first().map(|waiting| audience.waiting_reason(waiting))
}

/// The message for a resource without a document.
const UNNAMED: &str = "no document names it any more";

/// The condition that lists what a deletion waits for, with the id of a missing approval; `None` if it waits
/// for nothing.
pub fn waiting_deletion(change: &Change, audience: Audience) -> Option<Condition> {
    let told = |waiting: &Waiting| match waiting {
        Waiting::Approval { id, why } => format!("approval {id}, since {why}"),
        waiting => audience.waiting_reason(waiting),
    };
    // The deletion itself may be what is under way.
    let waits = change.waiting.iter().filter(|waiting| !matches!(waiting, Waiting::UnderWay { .. }));
    let waits: Vec<String> = waits.map(told).collect();
    (change.verb == Verb::Delete && !waits.is_empty()).then(|| Condition {
        kind: "DeletionWaits".to_owned(),
        degraded: false,
        message: format!("{UNNAMED}: {}", waits.join("; ")),
    })
}

fn conditions(
    key: &ResourceKey,
    host: Option<&FleetPlan>,
    judged: Option<&ResourceStatus>,
    change: Option<&Change>,
    audience: Audience,
) -> Vec<Condition> {
    let fleet = host.filter(|_| key.kind == Kind::Fleet);
    let of_fleet = fleet.into_iter().flat_map(|fleet| &fleet.conditions);
    let told = of_fleet.chain(judged.into_iter().flat_map(|judged| &judged.conditions)).cloned();
    told.chain(change.and_then(|change| waiting_deletion(change, audience))).collect()
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
    record.insert("created_at".into(), json!(known.map(|known| timestamp(known.created_at))));
    record.insert("updated_at".into(), json!(known.map(|known| timestamp(known.updated_at))));
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
