//! One fleet, with everything that planning it looks at.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, RecordedFleet, RecordedObject};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::{DryRuns, ObservedFleet};
use crate::render::Objects;

/// One fleet, with everything that planning it looks at. Nothing of it is needed when its part of a plan is made, so
/// however large an installation is, one fleet's manifests are in memory at a time.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Which fleet.
    pub fleet: &'a FleetKey,
    /// What it should hold; none where nothing is rendered for it.
    pub desired: Option<&'a Objects>,
    /// What it held when it was last applied; none where it never was.
    pub recorded: Option<&'a RecordedFleet>,
    /// What it holds; none where it was not looked at.
    pub observed: Option<&'a ObservedFleet>,
    /// What the target says of the steps that a first part of the plan had; none where it was not asked.
    pub dry_runs: Option<&'a DryRuns>,
}

impl<'a> Site<'a> {
    /// The fleets and clusters that own something here as far as the target or its record know, and that a spec or the
    /// record of one still names.
    pub(super) fn owners(&self, catalog: &Catalog) -> BTreeSet<&'a ResourceKey> {
        let is_named = |owner: &&ResourceKey| {
            matches!(owner.kind, Kind::Fleet | Kind::Cluster)
                && (catalog.resources.contains_key(*owner) || catalog.absent.contains_key(*owner))
        };
        self.all_owners().into_iter().filter(is_named).collect()
    }

    /// Everyone that owns something here as far as the target or its record know.
    pub(super) fn all_owners(&self) -> BTreeSet<&'a ResourceKey> {
        let recorded = self.recorded.into_iter().flat_map(|target| target.objects.values());
        let observed = self.observed.into_iter().flat_map(|target| target.inventory.values());
        let owners = recorded.chain(observed).map(|object: &RecordedObject| &object.owner);
        owners.collect()
    }
}
