use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, RecordedFleet, RecordedObject};
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::plan::model::contest::Contest;
use crate::plan::model::observed::ObservedFleet;
use crate::render::FleetManifests;

/// The inputs for planning one fleet. They aren't needed once its part of a plan is made, so memory holds one
/// fleet's manifests at a time, however large the installation is.
#[derive(Debug, Clone, Copy)]
pub struct FleetInputs<'a> {
    pub fleet: &'a FleetKey,
    /// The objects that it should have; `None` if nothing is rendered for it.
    pub desired: Option<&'a FleetManifests>,
    /// The objects when it was last applied; `None` if it never was.
    pub recorded: Option<&'a RecordedFleet>,
    /// The existing objects; `None` if it was not observed.
    pub observed: Option<&'a ObservedFleet>,
}

impl<'a> FleetInputs<'a> {
    /// Returns the resources that own objects here and that a spec or a record names.
    pub(in crate::plan) fn owners(&self, catalog: &Catalog) -> BTreeSet<&'a ResourceKey> {
        let is_named = |owner: &&ResourceKey| {
            owner.kind.is_on_fleet()
                && (catalog.resources.contains_key(owner) || catalog.absent.contains_key(*owner))
        };
        self.all_owners().into_iter().filter(is_named).collect()
    }

    /// Returns the namespaces of the fleet's own pods, whose requests are part of the sizes already.
    pub(in crate::plan) fn namespaces(&self) -> BTreeSet<&'a str> {
        let objects = self.desired.into_iter().flat_map(|objects| objects.keys());
        objects.filter_map(|key| key.namespace.as_deref()).collect()
    }

    pub(in crate::plan) fn all_owners(&self) -> BTreeSet<&'a ResourceKey> {
        let recorded = self.recorded.into_iter().flat_map(|target| target.objects.values());
        let observed = self.observed.into_iter().flat_map(|target| target.inventory.values());
        let owners = recorded.chain(observed).map(|object: &RecordedObject| &object.owner);
        owners.collect()
    }
}

/// A target's answer to the dry run of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRun {
    Accepted {
        /// Fields set by other tools that will be as the manifest says.
        overwritten: Vec<Contest>,
        /// Fields of other controllers that stay as they are.
        left: Vec<Contest>,
    },
    /// The target would accept the object only as a new one, since the step changes an immutable field.
    Immutable,
    Refused {
        reason: String,
        hint: String,
    },
    /// The step can't be checked yet.
    Unverified {
        /// The reason, as the end of a sentence: `until Namespace a exists`.
        why: String,
    },
}

pub type DryRuns = BTreeMap<ObjectKey, DryRun>;
