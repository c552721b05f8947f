//! The public side of a cluster: the names and ports that clients outside of Kubernetes connect to.

use std::collections::BTreeMap;

use super::applied_manifests::{AppliedCluster, ProbeUser, PublicListener};
use super::view::ClusterObservation;
use crate::component::kafka::endpoints::BROKERS;
use crate::component::kafka::probe::{ProbeLogin, ProbeOrder, ProbeTrust, PublicName};
use crate::names::{Digest, ResourceKey};

/// The public side of a cluster that works, as it was last applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicSide {
    pub namespace: String,
    pub listener: PublicListener,
    /// Whether the KafkaUser as which Streamfleet connects is ready; false if there is none.
    pub user_is_ready: bool,
    /// The digests of all applied objects: others mean that the cluster was changed.
    pub applied: Vec<Digest>,
    /// The brokers by id, and whether each is ready. One that isn't is reported by its pod.
    pub brokers: BTreeMap<u32, bool>,
}

impl PublicSide {
    /// `None` while no client could connect anyway: before the cluster has worked, while it is being deleted, and if it
    /// isn't reached from outside.
    pub fn of(wanted: &AppliedCluster, seen: &ClusterObservation) -> Option<Self> {
        let kafka = seen.kafka.as_ref().filter(|kafka| kafka.last_success.is_some() && !kafka.deleting)?;
        let listener = wanted.public.as_ref().filter(|_| !wanted.deleting && !kafka.paused)?;
        // The ids that the operator gave to the brokers of the plan's pools, whoever is alive.
        let pools = seen.pools.iter().filter(|(pool, _)| wanted.pools.contains_key(*pool));
        let ids = pools.flat_map(|(pool, view)| view.node_ids.iter().map(move |id| (pool, *id)));
        let is_ready = |pool: &str, id: u32| {
            let name = format!("{}-{pool}-{id}", wanted.cluster);
            seen.pods.as_ref().is_none_or(|pods| pods.get(&name).is_some_and(|pod| pod.ready))
        };
        let brokers = ids.filter(|(_, id)| *id <= BROKERS.last);
        let brokers = brokers.map(|(pool, id)| (id, is_ready(pool, id)));
        let is_ready = |user: &ProbeUser| seen.users.get(&user.name).is_some_and(|it| it.ready);
        Some(Self {
            namespace: wanted.namespace.clone(),
            listener: listener.clone(),
            user_is_ready: listener.user.as_ref().is_some_and(is_ready),
            applied: wanted.applied.clone(),
            brokers: brokers.collect(),
        })
    }

    /// The order for a probe of it, with this login.
    pub fn order(&self, cluster: ResourceKey, login: Option<ProbeLogin>) -> ProbeOrder {
        let PublicListener { bootstrap, port, chain, .. } = &self.listener;
        let name = |host: String| PublicName { host, port: *port };
        let brokers = self.brokers.keys().map(|id| (*id, name(self.listener.of_broker(*id))));
        ProbeOrder {
            cluster,
            bootstrap: name(bootstrap.clone()),
            brokers: brokers.collect(),
            trust: chain.as_deref().map_or(ProbeTrust::System, ProbeTrust::of_chain),
            certificate: chain.clone(),
            login,
        }
    }
}
