//! The components that only some fleets have.

use crate::spec::{Exposure, Fleet};

/// Streamfleet's objects on a fleet beside Kafka clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    pub operator: bool,
    pub gateway: bool,
    pub topics: bool,
    /// The objects for a Prometheus that is there already.
    pub monitoring: bool,
}

impl Extras {
    pub fn of(fleet: &Fleet) -> Extras {
        let config = &fleet.advanced_config;
        Extras {
            operator: config.components.installs().is_some(),
            gateway: config.exposure == Exposure::TlsRoute,
            topics: false,
            monitoring: config.prometheus().is_some(),
        }
    }
}
