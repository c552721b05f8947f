//! The components that only some fleets have.

use crate::spec::{Exposure, Fleet};

/// The components that Streamfleet installs on a fleet beside Kafka clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    pub operator: bool,
    pub gateway: bool,
}

impl Extras {
    pub fn of(fleet: &Fleet) -> Extras {
        let config = &fleet.advanced_config;
        Extras {
            operator: config.components.installs().is_some(),
            gateway: config.exposure == Exposure::TlsRoute,
        }
    }
}
