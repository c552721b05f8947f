use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Catalog, ResolvedSecret, Resource};
use crate::names::FleetKey;
use crate::render::{RenderInputs, Renderer};
use crate::spec::Spec;

/// A fleet's desired state: its spec, its clusters and its connection.
#[derive(Debug, Clone)]
pub(super) struct WantedFleet {
    pub(super) own: Option<Arc<Resource>>,
    pub(super) inputs: RenderInputs,
}

impl WantedFleet {
    pub(super) fn of(catalog: &Catalog, fleet: &FleetKey) -> Self {
        let own = catalog.resources.get(&fleet.resource()).map(Arc::clone);
        Self { own, inputs: Renderer::new(catalog).inputs(fleet) }
    }
}

impl PartialEq for WantedFleet {
    fn eq(&self, other: &Self) -> bool {
        fn own(it: &WantedFleet) -> Option<(&Spec, &BTreeMap<String, ResolvedSecret>)> {
            it.own.as_ref().map(|own| (&own.spec, &own.secrets))
        }
        own(self) == own(other) && self.inputs == other.inputs
    }
}
