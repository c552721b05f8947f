//! Predicts the refusals of plans for a tree that isn't planned yet.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Health, Installation};
use crate::catalog::{Catalog, Recorded, RecordedFleet};
use crate::names::{self, FleetKey, ResourceKey};
use crate::plan::foresee::{self, PossibleRefusal};
use crate::plan::{FleetInputs, ObservedFleet, Pauses, Reach};
use crate::problem::Problem;
use crate::render::{self, FleetManifests, Renderer};
use crate::state::{State, StateError};

impl Installation {
    /// Returns the refusals of a plan, by the last applied state and its health. No target is contacted.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn foresee(
        &self,
        (catalog, recorded): (&Catalog, &Recorded),
        PossibleRefusal { fleets, only, .. }: &PossibleRefusal,
        health: &BTreeMap<FleetKey, Health>,
        now: Timestamp,
    ) -> Result<Vec<Problem>, StateError> {
        // Without a state nothing was ever applied.
        let Some(state) = self.state.as_deref() else { return Ok(Vec::new()) };
        let policy = self.policy(now, Pauses::default());
        let mut refused = Vec::new();
        for fleet in fleets {
            let (held, desired) = match only {
                Some(only) => of_one(state, catalog, fleet, only)?,
                None => (state.recorded_fleet(fleet)?, Renderer::new(catalog).fleet(fleet)),
            };
            // A fleet that isn't rendered is left as it is.
            if desired.is_none() {
                continue;
            }
            let judged = health.get(fleet).and_then(|health| health.judged.clone());
            let observed =
                ObservedFleet { health: judged, ..ObservedFleet::unknown(Reach::UnderWay { since: now }) };
            let site = FleetInputs {
                fleet,
                desired: desired.as_ref(),
                recorded: Some(&held),
                observed: Some(&observed),
                dry_runs: None,
            };
            refused.extend(foresee::refused(catalog, recorded, &policy, (&site, only.as_ref())));
        }
        Ok(refused)
    }
}

/// The record of the objects of a cluster, topic or user, and the objects that it should have.
fn of_one(
    state: &State,
    catalog: &Catalog,
    fleet: &FleetKey,
    only: &ResourceKey,
) -> Result<(RecordedFleet, Option<FleetManifests>), StateError> {
    let cluster = only.within_cluster().map_or_else(|| only.clone(), |(cluster, _)| cluster);
    let mut desired = render::cluster(catalog, &cluster);
    desired.iter_mut().for_each(|desired| desired.retain(|_, object| object.owner == *only));
    let Ok(name) = cluster.name.parse() else { return Ok((RecordedFleet::default(), desired)) };
    let mut held = state.recorded_namespace(fleet, &names::namespace(&cluster.organization, &name))?;
    held.objects.retain(|_, object| object.owner == *only);
    Ok((held, desired))
}
