//! Checks whether a fleet's Kubernetes cluster has what its Kafka clusters need, before any of it is created.
//!
//! A finding becomes a condition of the fleet. Changes wait if they would leave a cluster incomplete or
//! never working. Objects that match their specs stay unchanged in any case.

mod checks;
mod context;
mod facts;
mod monitoring;
mod name;
mod needs;
mod node;
mod nodes;
mod operator;
mod operators;
mod report;
mod requests;
mod role;

use crate::catalog::Condition;
use crate::plan::model::site::FleetInputs;
use crate::plan::world::PlanContext;
use crate::plan::{Change, Reach};
use context::PreflightContext;

pub(super) use checks::OPERATOR_MISSING;
pub use facts::{LoadBalancers, PreflightFacts, StorageClass, Version};
pub(super) use monitoring::leave_out;
pub use name::name_of;
pub use needs::{NAMESPACE_ROLE, Permission, missing, permissions};
pub use node::{NodeCapacity, NodeConstraints};
pub use operator::{Operator, Watches};
pub(super) use operators::SupportedVersions;
pub use operators::{FleetSupport, StorageSupport};
pub use report::{ClusterFact, report};
pub use requests::{PodRequest, Requests};
pub use role::{CLUSTER_NAMESPACES, RoleManifests, SYSTEM_NAMESPACE};

/// Evaluates a fleet's facts: returns conditions, and makes changes wait that would fail.
pub(super) fn judge(
    world: &PlanContext,
    site: &FleetInputs,
    facts: &PreflightFacts,
    reach: &Reach,
    changes: &mut [Change],
) -> Vec<Condition> {
    // A Kubernetes cluster that may not be the fleet's is only checked for the permissions of our own user.
    let checks = if *reach == Reach::Reached { checks::ALL } else { &checks::ALL[..1] };
    let mut conditions = Vec::new();
    for check in checks {
        // Each check sees the waits added by earlier ones.
        for finding in check(&PreflightContext { world, site, facts, changes }) {
            finding.hold_up(changes);
            conditions.push(finding.condition());
        }
    }
    conditions
}
