//! The sentences that all forms of a plan share.

use super::words;
use crate::catalog::{Condition, Gauge, OrganizationCapacity, ResourceStatus, Status};
use crate::component::health;
use crate::names::ResourceKey;
use crate::plan::preflight::OPERATOR_MISSING;
use crate::plan::{Change, FleetPlan, Reach, Summary};
use crate::spec::InfraType;

pub fn summary_sentence(summary: Summary) -> String {
    let Summary { create, change, delete, waiting, unchanged, errors, warnings: _ } = summary;
    match (create + change + delete + waiting, unchanged) {
        (0, _) if errors == 1 => "Nothing to apply. 1 problem has to be fixed.".to_owned(),
        (0, _) if errors > 1 => format!("Nothing to apply. {errors} problems have to be fixed."),
        (0, 0) => "Nothing to do: there are no resources.".to_owned(),
        (0, 1) => "Nothing to do: 1 resource matches its spec.".to_owned(),
        (0, unchanged) => format!("Nothing to do: {unchanged} resources match their specs."),
        _ => format!("{change} to change, {create} to create, {delete} to delete, {waiting} waiting."),
    }
}

pub fn has_news(plan: &FleetPlan) -> bool {
    let unwell = plan.status.as_ref().is_some_and(|status| status.status != Status::Healthy);
    !plan.changes.is_empty() || !plan.conditions.is_empty() || unwell || in_trouble(plan).next().is_some()
}

/// Whether the fleet's status already says what a condition says.
pub fn is_told(plan: &FleetPlan, condition: &Condition) -> bool {
    condition.kind == OPERATOR_MISSING && plan.status.as_ref().is_some_and(health::lacks_operator)
}

/// `byok, Healthy`.
pub fn kind_and_status(plan: &FleetPlan, infra_type: InfraType) -> String {
    let kind = infra_type.word();
    match &plan.reach {
        Reach::Unreachable { refused: true, .. } => format!("{kind}, Failed"),
        Reach::Unreachable { .. } => format!("{kind}, Unreachable"),
        Reach::Reached | Reach::UnderWay { .. } => match status_word(plan) {
            Some(status) => format!("{kind}, {status}"),
            None => kind.to_owned(),
        },
    }
}

fn status_word(plan: &FleetPlan) -> Option<Status> {
    let judged = plan.status.as_ref().map(|status| status.status);
    let degraded = plan.conditions.iter().any(|condition| condition.degraded);
    if degraded && judged.is_none_or(|status| status == Status::Healthy) {
        Some(Status::Degraded)
    } else {
        judged
    }
}

/// Returns the clusters that need attention, or that will lose brokers without a further change.
pub fn in_trouble(plan: &FleetPlan) -> impl Iterator<Item = (&ResourceKey, &ResourceStatus)> {
    let is_bad = |status: &ResourceStatus| [Status::Degraded, Status::Failed].contains(&status.status);
    plan.unwell.iter().filter(move |(_, status)| is_bad(status) || armed(status).next().is_some())
}

pub fn armed(status: &ResourceStatus) -> impl Iterator<Item = &String> {
    let conditions =
        status.conditions.iter().filter(|condition| condition.kind == health::SCALE_DOWN_PREVENTION);
    conditions.map(|condition| &condition.message)
}

pub fn ways_out(change: &Change, tree: &str) -> Vec<String> {
    let mut ways_out: Vec<String> = Vec::new();
    for way_out in change.waiting.iter().filter_map(|waiting| words::wait_remedy(change, waiting, tree)) {
        if !ways_out.contains(&way_out) {
            ways_out.push(way_out);
        }
    }
    ways_out
}

/// Formats an organization's use of its limits. Plain counts of documents are shown only if they are limited.
pub fn gauges(capacity: &OrganizationCapacity) -> Vec<String> {
    let OrganizationCapacity {
        fleets,
        clusters,
        kafka_units,
        base_domains,
        identity_providers,
        cloud_accounts,
    } = capacity;
    let always = [("units", kafka_units), ("clusters", clusters), ("fleets", fleets)];
    let documents = [
        ("base domains", base_domains),
        ("identity providers", identity_providers),
        ("cloud accounts", cloud_accounts),
    ];
    let limited = documents.into_iter().filter(|(_, gauge)| gauge.limit.is_some());
    always.into_iter().chain(limited).map(|(what, of)| gauge(what, of)).collect()
}

/// `units 6 → 7 of 40`, `clusters 3 of 10`.
pub fn gauge(what: &str, gauge: &Gauge) -> String {
    let limit = gauge.limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
    match gauge.before == gauge.after {
        true => format!("{what} {}{limit}", gauge.after),
        false => format!("{what} {} → {}{limit}", gauge.before, gauge.after),
    }
}
