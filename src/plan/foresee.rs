//! What a plan would refuse, asked before an edit of the specs is made: by the rules of every plan, and by what was applied
//! last. No target is looked at.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, Recorded};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::field_effects::effect_of;
use crate::plan::world::{World, fields};
use crate::plan::{FieldChange, Policy, Site, Verdict, fleet};
use crate::problem::Problem;

/// What a plan may refuse of what a resource says now.
#[derive(Debug, Default)]
pub struct Suspect {
    /// The fleets on which it would do so.
    pub fleets: BTreeSet<FleetKey>,
    /// The only resource there that changes; none where all of a fleet's may.
    pub only: Option<ResourceKey>,
    /// The field that it would be about, as a JSON pointer; none where that could be several.
    pub pointer: Option<String>,
}

/// Whether a plan may refuse anything of what a resource says now, beside what is refused of every tree. Nothing is for one
/// that was never made. While one `is_changing`, some of its objects may be others already than its record says.
pub fn suspect(catalog: &Catalog, recorded: &Recorded, key: &ResourceKey, is_changing: bool) -> Suspect {
    let (Some(resource), Some(record)) = (catalog.resources.get(key), recorded.resources.get(key)) else {
        return Suspect::default();
    };
    let changes = fields(resource, recorded);
    let changes: Vec<&FieldChange> = changes.iter().filter(|it| may_be_refused(key.kind, it)).collect();
    // What it said when it was begun to be made is nowhere recorded but in its objects.
    if changes.is_empty() && !record.creating && !is_changing {
        return Suspect::default();
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
    let only = (key.kind == Kind::Cluster).then(|| key.clone());
    Suspect { fleets, only, pointer }
}

/// Whether the objects of a fleet that change with a field may be such that a plan refuses it.
fn may_be_refused(kind: Kind, change: &FieldChange) -> bool {
    match kind {
        Kind::Cluster | Kind::Fleet => effect_of(kind, change).is_none_or(|row| row.verdict != Verdict::NoOp),
        Kind::BaseDomain => is_refused(kind, change),
        Kind::Organization | Kind::IdentityProvider | Kind::CloudAccount => false,
    }
}

fn is_refused(kind: Kind, change: &FieldChange) -> bool {
    let is_refused = |verdict| matches!(verdict, Verdict::Refused | Verdict::BrokerRemoval);
    effect_of(kind, change).is_some_and(|row| is_refused(row.verdict))
}

/// What a plan of one fleet refuses, or what it refuses of one resource there, where the site has no other's objects.
pub fn refused(
    catalog: &Catalog,
    recorded: &Recorded,
    policy: &Policy,
    (site, only): (&Site, Option<&ResourceKey>),
) -> Vec<Problem> {
    let world = World::of_fleet(catalog, recorded, policy, (site.fleet, only));
    fleet::part(&world, site, None).problems
}
