//! The causes of clusters' trouble, as far as they matter for a base domain's new certificate.

use std::collections::BTreeSet;

use crate::catalog::Status;
use crate::component::health::Judgement;
use crate::health::FleetHealth;
use crate::names::ResourceKey;

#[derive(Debug, Clone, Default)]
pub(in crate::plan) struct TroubleCauses {
    /// Clusters in trouble that their certificates didn't cause.
    pub other_cause: BTreeSet<ResourceKey>,
    /// Clusters whose certificates may have caused their trouble, for example because the state was lost.
    pub unknown_cause: BTreeSet<ResourceKey>,
    pub healthy: BTreeSet<ResourceKey>,
    /// Clusters that are Healthy, and that no probe has reached since they were changed.
    pub unconfirmed: BTreeSet<ResourceKey>,
}

impl TroubleCauses {
    /// A cluster that is being changed is in no trouble, and may be about to take its certificates.
    pub fn of(health: &FleetHealth) -> Self {
        let is_troubled = |it: &Judgement| matches!(it.status.status, Status::Degraded | Status::Unreachable);
        let all = |is_it: &dyn Fn(&Judgement) -> bool| {
            let found = health.clusters.iter().filter(|(_, judgement)| is_it(judgement));
            found.map(|(key, _)| key.clone()).collect()
        };
        let healthy: BTreeSet<_> = all(&|it| it.status.status == Status::Healthy);
        Self {
            other_cause: all(&|it| is_troubled(it) && it.clear_certificates == Some(true)),
            unknown_cause: all(&|it| is_troubled(it) && it.clear_certificates.is_none()),
            healthy: healthy.difference(&health.unconfirmed).cloned().collect(),
            unconfirmed: healthy.intersection(&health.unconfirmed).cloned().collect(),
        }
    }

    /// Whether a cluster's certificates aren't known to have caused its trouble.
    pub fn may_be_otherwise(&self, cluster: &ResourceKey) -> bool {
        self.other_cause.contains(cluster) || self.unknown_cause.contains(cluster)
    }
}
