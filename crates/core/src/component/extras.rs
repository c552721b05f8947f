//! The components that only some fleets have.

use super::Component;
use super::http_workload::kinds::DEPLOYMENT as WORKLOAD;
use super::prometheus::kinds::STATEFUL_SET as PROMETHEUS;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::spec::{Exposure, Fleet};

/// Streamfleet's objects on a fleet beside Kafka clusters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extras {
    pub operator: bool,
    pub gateway: bool,
    pub topics: bool,
    /// The objects for a Prometheus that is there already.
    pub monitoring: bool,
    /// Programs beside brokers: schema registries and consoles.
    pub workloads: bool,
    /// A Prometheus of Streamfleet's own.
    pub prometheus: bool,
}

impl Extras {
    const ALL: Extras = Extras {
        operator: true,
        gateway: true,
        topics: true,
        monitoring: true,
        workloads: true,
        prometheus: true,
    };

    pub fn of(fleet: &Fleet) -> Extras {
        let config = &fleet.advanced_config;
        Extras {
            operator: config.components.installs().is_some(),
            gateway: config.exposure == Exposure::TlsRoute,
            topics: false,
            monitoring: config.prometheus().is_some(),
            workloads: false,
            prometheus: config.own_prometheus().is_some(),
        }
    }

    /// Whether a fleet with these has a component.
    pub fn have(self, component: &Component) -> bool {
        let is_optional = (component.is_installed)(Extras::ALL);
        !is_optional || (component.is_installed)(self)
    }

    /// Adds the components to which these objects belong. Each comes with its owner.
    pub fn with<'a>(self, objects: impl Iterator<Item = (&'a ObjectKey, &'a ResourceKey)>) -> Extras {
        let mut all = self;
        for (object, owner) in objects {
            all.topics |= owner.kind == Kind::Topic;
            all.workloads |= owner.kind == Kind::Cluster && object.kind == WORKLOAD.kind;
            all.prometheus |= owner.kind == Kind::Fleet && object.kind == PROMETHEUS.kind;
        }
        all
    }
}
