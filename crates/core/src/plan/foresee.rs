//! Predicts the refusals of a plan before specs are edited, by all of its rules and the records alone.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, Recorded};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::compare::field_effects::effect_of;
use crate::plan::world::{PlanContext, fields};
use crate::plan::{FieldChange, FleetInputs, Policy, Verdict, fleet};
use crate::problem::Problem;

/// The refusals that a resource's current spec may cause.
#[derive(Debug, Default)]
pub struct PossibleRefusal {
    pub fleets: BTreeSet<FleetKey>,
    pub only: Option<ResourceKey>,
    /// The field that would be refused, as a JSON pointer; `None` if there could be several.
    pub pointer: Option<String>,
}

/// Returns the refusals that a plan may add for a resource's current spec, beside those of any tree. While
/// `is_changing`, some of its objects may already differ from its record.
pub fn possible_refusal(
    catalog: &Catalog,
    recorded: &Recorded,
    key: &ResourceKey,
    is_changing: bool,
) -> PossibleRefusal {
    let (Some(resource), Some(record)) = (catalog.resources.get(key), recorded.resources.get(key)) else {
        return PossibleRefusal::default();
    };
    let changes = fields(resource, recorded);
    let changes: Vec<&FieldChange> = changes.iter().filter(|it| may_be_refused(key.kind, it)).collect();
    // The spec with which its creation began is recorded only in its objects.
    if changes.is_empty() && !record.durable.creating && !is_changing {
        return PossibleRefusal::default();
    }
    let refused = |change: &&&FieldChange| is_refused(key.kind, change);
    let fields: Vec<&str> = changes.iter().filter(refused).map(|change| change.field.as_str()).collect();
    let pointer = match fields.as_slice() {
        [field] => Some(format!("/{}", field.replace('.', "/"))),
        _ => None,
    };
    let fleets = match key.kind {
        Kind::BaseDomain => {
            let on_it = catalog.fleets.values().filter(|fleet| fleet.domain.as_ref() == Some(key));
            on_it.map(|fleet| fleet.key.clone()).collect()
        }
        _ => resource.fleet().into_iter().collect(),
    };
    let only = key.kind.is_of_cluster().then(|| key.clone());
    PossibleRefusal { fleets, only, pointer }
}

fn may_be_refused(kind: Kind, change: &FieldChange) -> bool {
    match kind {
        Kind::Cluster | Kind::Fleet | Kind::Topic | Kind::User => {
            effect_of(kind, change).is_none_or(|row| row.verdict != Verdict::NoOp)
        }
        Kind::BaseDomain => is_refused(kind, change),
        Kind::Organization | Kind::IdentityProvider | Kind::CloudAccount => false,
    }
}

fn is_refused(kind: Kind, change: &FieldChange) -> bool {
    let is_refused = |verdict| matches!(verdict, Verdict::Refused | Verdict::BrokerRemoval);
    effect_of(kind, change).is_some_and(|row| is_refused(row.verdict))
}

/// Returns the refusals in a plan of one fleet, or of one resource if `site` has only that resource's objects.
pub fn refused(
    catalog: &Catalog,
    recorded: &Recorded,
    policy: &Policy,
    (site, only): (&FleetInputs, Option<&ResourceKey>),
) -> Vec<Problem> {
    let world = PlanContext::of_fleet(catalog, recorded, policy, (site.fleet, only));
    fleet::plan_one_fleet(&world, site, None).problems
}
