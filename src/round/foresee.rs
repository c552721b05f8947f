//! What plans would refuse of a tree that nobody planned yet.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Health, Installation};
use crate::catalog::{Catalog, Recorded};
use crate::names::FleetKey;
use crate::plan::{ObservedFleet, Pauses, Reach, Site, foresee};
use crate::problem::Problem;
use crate::render::Renderer;
use crate::state::StateError;

impl Installation {
    /// What a plan of these fleets would refuse, by what was applied there last and how they were found to be. No target
    /// is looked at.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn foresee<'f>(
        &self,
        (catalog, recorded): (&Catalog, &Recorded),
        fleets: impl IntoIterator<Item = &'f FleetKey>,
        health: &BTreeMap<FleetKey, Health>,
        now: Timestamp,
    ) -> Result<Vec<Problem>, StateError> {
        // Where nothing is kept, nothing was ever applied.
        let Some(state) = self.state.as_deref() else { return Ok(Vec::new()) };
        let (renderer, policy) = (Renderer::new(catalog), self.policy(now, Pauses::default()));
        let mut refused = Vec::new();
        for fleet in fleets {
            let held = state.recorded_fleet(fleet)?;
            let judged = health.get(fleet).and_then(|health| health.judged.clone());
            let observed =
                ObservedFleet { health: judged, ..ObservedFleet::unknown(Reach::UnderWay { since: now }) };
            let desired = renderer.fleet(fleet);
            let (recorded_fleet, observed) = (Some(&held), Some(&observed));
            let site =
                Site { fleet, desired: desired.as_ref(), recorded: recorded_fleet, observed, dry_runs: None };
            refused.extend(foresee::refused(catalog, recorded, &policy, &site));
        }
        Ok(refused)
    }
}
