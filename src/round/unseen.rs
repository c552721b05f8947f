//! Plans fleets without a look at their targets: by their records and their last health.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::{Health, Installation};
use crate::catalog::{Catalog, ResolvedTree};
use crate::health::FleetHealth;
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{FleetInputs, FleetPart, ObservedFleet, Pauses, Planner, Reach};
use crate::problem::Problem;
use crate::render::{Manifest, Renderer};
use crate::state::{State, StateError};

impl Installation {
    /// Returns what a plan would refuse on fleets, for a tree that isn't planned yet. The objects of `applied` count as
    /// they are in that catalog.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn refusals(
        &self,
        (ResolvedTree { catalog, recorded, .. }, applied): (&ResolvedTree, Option<(&Catalog, &ResourceKey)>),
        fleets: &[FleetKey],
        health: &BTreeMap<FleetKey, Health>,
        now: Timestamp,
    ) -> Result<Vec<Problem>, StateError> {
        let policy = self.policy(now, Pauses::default());
        // Protection matters to deletions alone, and a deletion is never refused.
        let planner = Planner::new(catalog, recorded, BTreeSet::new(), &policy, None);
        let by = (&planner, &Renderer::new(catalog), self.state.as_deref());
        let mut refused = Vec::new();
        for fleet in fleets {
            let judged = health.get(fleet).and_then(|health| health.judged.clone());
            let applied = applied.map(|(catalog, owner)| {
                let objects = Renderer::new(catalog).fleet(fleet).map(Arc::unwrap_or_clone);
                let objects = objects.unwrap_or_default().into_values();
                objects.filter(|manifest| manifest.owner == *owner).collect()
            });
            let part = plan_unseen(by, (fleet, now), judged, applied.unwrap_or_default())?;
            refused.extend(part.into_problems());
        }
        Ok(refused)
    }
}

/// Plans a fleet as if an earlier plan were being carried out there. `applied` are objects that count as applied.
pub(super) fn plan_unseen(
    (planner, renderer, state): (&Planner, &Renderer, Option<&State>),
    (fleet, since): (&FleetKey, Timestamp),
    health: Option<FleetHealth>,
    applied: Vec<Manifest>,
) -> Result<FleetPart, StateError> {
    let mut held = state.map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
    for manifest in applied {
        if let Some(object) = held.objects.get_mut(&manifest.key) {
            (object.applied, object.manifest) = (manifest.digest(), Some(manifest.body));
        }
    }
    let observed = &ObservedFleet { health, ..ObservedFleet::unknown(Reach::UnderWay { since }) };
    let desired = renderer.fleet(fleet);
    let (desired, recorded, observed) = (desired.as_deref(), Some(&held), Some(observed));
    Ok(planner.fleet(&FleetInputs { fleet, desired, recorded, observed }))
}
