//! Where the trouble of clusters comes from, as far as it matters for a base domain's new certificate.

use std::collections::BTreeSet;

use crate::catalog::Status;
use crate::health::{FleetHealth, Judgement};
use crate::names::ResourceKey;

/// What is known of where the trouble of a fleet's clusters comes from.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// Those that are in trouble, and not by their certificates.
    pub otherwise: BTreeSet<ResourceKey>,
    /// Those that are in trouble of which nobody knows whether it is from their certificates, as after the state was lost.
    pub doubtful: BTreeSet<ResourceKey>,
    /// Those that are Healthy, with the certificates that they have.
    pub healthy: BTreeSet<ResourceKey>,
}

impl Troubles {
    /// Tells clusters apart. One that changes is in no trouble, and may be on its way to take its certificates.
    pub fn of(health: &FleetHealth) -> Self {
        let is_troubled = |it: &Judgement| matches!(it.status.status, Status::Degraded | Status::Unreachable);
        let all = |is_it: &dyn Fn(&Judgement) -> bool| {
            let found = health.clusters.iter().filter(|(_, judgement)| is_it(judgement));
            found.map(|(key, _)| key.clone()).collect()
        };
        Self {
            otherwise: all(&|it| is_troubled(it) && it.clear_certificates == Some(true)),
            doubtful: all(&|it| is_troubled(it) && it.clear_certificates.is_none()),
            healthy: all(&|it| it.status.status == Status::Healthy),
        }
    }

    /// Whether a cluster's trouble isn't known to come from its certificates.
    pub fn may_be_otherwise(&self, cluster: &ResourceKey) -> bool {
        self.otherwise.contains(cluster) || self.doubtful.contains(cluster)
    }
}
