//! Allows at most one disruptive change per fleet at a time, and at most one cluster at a time per base
//! domain for the disruption by its new certificate, across all fleets.

pub(super) mod certificate;
mod effect;

use std::collections::BTreeMap;

use crate::catalog::{ResourceStatus, Status};
use crate::names::{Kind, ResourceKey};
use crate::plan::model::troubles::TroubleCauses;
use crate::plan::{Cause, Change, FleetPlan, Verb, Verdict, Waiting};
pub(super) use effect::disrupts;
use effect::{NOT_HEALTHY, disruption};

pub(in crate::plan) use certificate::{announce_renewals, serialize_renewals};

/// Lets only the first disruption by the software itself ask for approval, so that what is approved runs.
pub(in crate::plan) fn serialize_software_disruptions(changes: &mut [Change]) {
    let caused = |change: &Change| disrupts(change) && matches!(change.cause, Cause::Software { .. });
    let first = changes.iter().find(|change| caused(change)).map(|change| change.resource.clone());
    if let Some(first) = first {
        let later = changes.iter_mut().filter(|change| caused(change) && change.resource != first);
        later.for_each(|change| change.waiting.push(Waiting::OneDisruption { after: first.clone() }));
    }
}

/// Lets one disruptive change run: that of a Degraded cluster, since it can only improve, or else the first
/// by name.
///
/// Removing brokers, or an upgrade that continues by itself, improves nothing: these wait until their own
/// cluster is Healthy. A cluster that is being changed, doesn't work or can't be seen holds up all others
/// until it is Healthy and, where clusters are probed, reached. A cluster that is being changed may be changed
/// further if no other is unhealthy. A change of a cluster that can't be seen waits, too, since it may not
/// repair anything. A cluster that never worked or is being created has nothing to disrupt: it neither holds up
/// others nor waits for them.
///
/// A cluster whose trouble has another cause than its certificate doesn't hold up a renewed certificate,
/// without which the clients of all other clusters would be cut off eventually. Nor does one whose cause of
/// trouble is unknown: the order of renewals (`disruption/certificate.rs`) decides about it.
pub(in crate::plan) fn serialize_disruptions(
    changes: &mut [Change],
    unwell: &BTreeMap<ResourceKey, ResourceStatus>,
    troubles: &TroubleCauses,
) {
    let is =
        |key: &ResourceKey, words: &[Status]| unwell.get(key).is_some_and(|it| words.contains(&it.status));
    let disturbed = |key: &ResourceKey| is(key, &NOT_HEALTHY) || troubles.unconfirmed.contains(key);
    let matters = |change: &&Change| disrupts(change) && !is(&change.resource, &[Status::Failed]);
    let candidates = || changes.iter().filter(matters).map(|change| &change.resource);
    let going = |key: &ResourceKey| changes.iter().any(|c| c.resource == *key && c.verb == Verb::Delete);
    let holding = || {
        let all = unwell.keys().chain(&troubles.unconfirmed);
        all.filter(|key| key.kind == Kind::Cluster && disturbed(key) && !going(key))
    };
    let repairs = |change: &&Change| {
        disruption(change) != Verdict::BrokerRemoval && !matches!(change.cause, Cause::Upgrade { .. })
    };
    let hidden = |key: &ResourceKey| is(key, &[Status::Unreachable]);
    let repairing = || changes.iter().filter(matters).filter(repairs).map(|change| &change.resource);
    let changing = |key: &&ResourceKey| {
        !hidden(key) && holding().all(|other| other == *key) && holding().next().is_some()
    };
    let repaired =
        repairing().find(|key| is(key, &[Status::Degraded])).or_else(|| repairing().find(changing));
    let of_this = || holding().find(|key| !troubles.may_be_otherwise(key));
    let renewed = || {
        changes
            .iter()
            .filter(matters)
            .find(|change| certificate::is_renewal(change) && !hidden(&change.resource))
    };
    let first = repaired.or_else(of_this).or_else(|| renewed().map(|change| &change.resource));
    let first = first.or_else(|| holding().next()).or_else(|| candidates().next()).cloned();
    let Some(first) = first else { return };
    let is_repair = repaired.is_some();
    for change in changes.iter_mut().filter(|change| matters(&&**change)) {
        let unseen = [&change.resource, &first].into_iter().find(|key| hidden(key));
        if let Some(cluster) = unseen {
            let reason = unwell.get(cluster).and_then(|status| status.reason.clone()).unwrap_or_default();
            change.waiting.push(Waiting::Unseen { cluster: cluster.clone(), reason });
        } else if change.resource != first || !is_repair && disturbed(&first) {
            let waiting = match troubles.unconfirmed.contains(&first) {
                true => Waiting::Unconfirmed { cluster: first.clone() },
                false if change.resource != first => Waiting::OneDisruption { after: first.clone() },
                false => Waiting::Unsettled,
            };
            change.waiting.push(waiting);
        }
    }
}

/// Whether a repair may begin beside everything else on its fleet: it disrupts nothing, or it is its turn.
/// One with another certificate would take turns with other fleets, so the waiting change keeps it.
pub(in crate::plan) fn may_begin(repair: &Change, plan: &FleetPlan, troubles: &TroubleCauses) -> bool {
    if !disrupts(repair) {
        return true;
    }
    if certificate::is_renewal(repair) || plan.changes.iter().any(disrupts) {
        return false;
    }
    let mut alone = [repair.clone()];
    serialize_disruptions(&mut alone, &plan.unwell, troubles);
    alone.iter().all(|repair| repair.waiting.is_empty())
}
