//! What a running process remembers of fleets that were found as they should be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::{Footprint, Target};
use crate::names::{Digest, FleetKey};
use crate::plan::{FleetPart, Planner, Quiet};

/// Which fleets were found as they should be, and what would have to change for that to change. It spares rendering,
/// reading and comparing, and changes no plan: without it, each fleet is looked at.
#[derive(Default)]
pub struct Memory {
    fleets: Mutex<BTreeMap<FleetKey, Arc<Remembered>>>,
}

/// What a fleet should hold, by [`crate::render::Renderer::inputs`], and what is recorded of it, by the number that
/// `State::version_of` gives. Both are to be asked for before the fleet is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// What it should hold.
    pub desired: Digest,
    /// What is recorded of it.
    pub recorded: u64,
}

struct Remembered {
    basis: Basis,
    footprint: Footprint,
    quiet: Quiet,
}

impl Memory {
    /// Plans a fleet by looking at it, where something of it may be other than it was when it was last found as it should be.
    ///
    /// # Errors
    /// When looking fails.
    pub fn part<E>(
        &self,
        planner: &Planner,
        fleet: &FleetKey,
        target: Option<&Target>,
        basis: Basis,
        now: SystemTime,
        look: impl FnOnce() -> Result<FleetPart, E>,
    ) -> Result<FleetPart, E> {
        let Some(target) = target else { return look() };
        if let Some(part) = self.recall(planner, fleet, target, &basis) {
            return Ok(part);
        }
        let footprint = target.footprint(now);
        let part = look()?;
        let remembered = footprint.zip(part.quiet().cloned());
        let remembered = remembered.map(|(footprint, quiet)| Remembered { basis, footprint, quiet });
        let mut fleets = self.fleets.lock().unwrap_or_else(PoisonError::into_inner);
        match remembered {
            Some(remembered) => drop(fleets.insert(fleet.clone(), Arc::new(remembered))),
            None => drop(fleets.remove(fleet)),
        }
        Ok(part)
    }

    fn recall(
        &self,
        planner: &Planner,
        fleet: &FleetKey,
        target: &Target,
        basis: &Basis,
    ) -> Option<FleetPart> {
        let fleets = self.fleets.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = fleets.get(fleet).map(Arc::clone)?;
        // Other fleets are looked at meanwhile.
        drop(fleets);
        let holds = remembered.basis == *basis && target.has(&remembered.footprint);
        if holds { planner.quiet_fleet(fleet, &remembered.quiet) } else { None }
    }
}
