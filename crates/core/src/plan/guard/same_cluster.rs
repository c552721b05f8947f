//! Refuses fleets that share a Kubernetes cluster that none of them has yet.

use std::collections::BTreeMap;

use crate::names::FleetKey;
use crate::plan::model::part::FleetPart;
use crate::plan::{Reach, guard::waiting};

/// Refuses all fleets whose specs lead to one Kubernetes cluster, since it is unknown which of them
/// should have it. If one was applied there before, its target refuses the others itself.
pub(in crate::plan) fn refuse(parts: &mut [FleetPart]) {
    let mut fleets: BTreeMap<String, Vec<FleetKey>> = BTreeMap::new();
    for part in parts.iter() {
        if let Some(cluster) = &part.cluster {
            fleets.entry(cluster.clone()).or_default().push(part.fleet.clone());
        }
    }
    for part in parts {
        let Some(sharing) = part.cluster.as_ref().and_then(|cluster| fleets.get(cluster)) else { continue };
        let others = sharing.iter().filter(|fleet| **fleet != part.fleet);
        // Fleets of other organizations aren't named.
        let told = |fleet: &FleetKey| match fleet.organization == part.fleet.organization {
            true => format!("fleet {fleet}"),
            false => "a fleet of another organization".to_owned(),
        };
        let mut others: Vec<String> = others.map(told).collect();
        others.dedup();
        let (Some(plan), false) = (&mut part.plan, others.is_empty()) else { continue };
        let reason = format!(
            "cannot use the Kubernetes cluster: the specs of {} lead to it too",
            others.join(" and ")
        );
        let hint = "give each fleet a Kubernetes cluster of its own".to_owned();
        plan.reach = Reach::Unreachable {
            reason,
            hint,
            refused: true,
            lost: false,
            concealed: false,
            last_seen: None,
        };
        plan.void_approvals.clear();
        waiting::for_target(&plan.reach, &mut plan.changes);
    }
}
