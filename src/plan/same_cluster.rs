//! Fleets that lead to one and the same Kubernetes cluster, and none of which has it yet.

use std::collections::BTreeMap;

use crate::names::FleetKey;
use crate::plan::fleet::FleetPart;
use crate::plan::{Reach, waiting};

/// Refuses all fleets that lead to one Kubernetes cluster: which of them it belongs to, nobody has said. Where one was
/// applied there before, its target refuses the others by itself.
pub(super) fn refuse(parts: &mut [FleetPart]) {
    let mut fleets: BTreeMap<String, Vec<FleetKey>> = BTreeMap::new();
    for part in parts.iter() {
        if let Some(cluster) = &part.cluster {
            fleets.entry(cluster.clone()).or_default().push(part.fleet.clone());
        }
    }
    for part in parts {
        let Some(sharing) = part.cluster.as_ref().and_then(|cluster| fleets.get(cluster)) else { continue };
        let others = sharing.iter().filter(|fleet| **fleet != part.fleet);
        // By name only within its organization: others are none of its business.
        let told = |fleet: &FleetKey| match fleet.organization == part.fleet.organization {
            true => format!("fleet {fleet}"),
            false => "a fleet of another organization".to_owned(),
        };
        let mut others: Vec<String> = others.map(told).collect();
        others.dedup();
        let (Some(plan), false) = (&mut part.plan, others.is_empty()) else { continue };
        let reason = format!(
            "cannot use the Kubernetes cluster: the kubeconfig of {} leads to it, too",
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
