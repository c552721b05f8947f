//! The causes of clusters' trouble, as far as they matter for a base domain's new certificate.

use std::collections::BTreeSet;

use crate::catalog::Status;
use crate::health::{FleetHealth, Judgement};
use crate::names::ResourceKey;

#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// Clusters in trouble that isn't from their certificates.
    pub otherwise: BTreeSet<ResourceKey>,
    /// Clusters whose trouble may be from their certificates, for example because the state was lost.
    pub doubtful: BTreeSet<ResourceKey>,
    pub healthy: BTreeSet<ResourceKey>,
}

impl Troubles {
    /// A cluster that is being changed is in no trouble, and may be about to take its certificates.
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

    /// Whether a cluster's trouble isn't known to be from its certificates.
    pub fn may_be_otherwise(&self, cluster: &ResourceKey) -> bool {
        self.otherwise.contains(cluster) || self.doubtful.contains(cluster)
    }
}
