//! A Kubernetes cluster, reached with the kubeconfig of its fleet, or as the service account of our own pod.

mod access;
mod answer;
mod api;
mod budget;
mod definition;
mod dry_run;
mod error;
mod facts;
mod fields;
mod health;
mod in_cluster;
mod inventory;
mod items;
mod kept_connection;
mod leftovers;
mod live;
mod logs;
mod observe;
mod pod_metrics;
mod preflight;
mod records;
mod retry;
mod server_liveness;
mod session;
mod tally;
#[cfg(test)]
mod tests;
mod untrusted;
mod user_secret;
mod watch;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::config::AddressRange;
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::parallel::locked;
use crate::plan::ResourceMark;
use crate::spec::kubeconfig::KubeAccess;
use crate::target::dns::DnsZones;
pub(super) use access::resolve;
use api::Api;
use facts::FactsCache;
use inventory::Inventory;
use watch::ClusterWatch;

/// How many calls a session makes concurrently: enough to keep a server busy, and far below the 200
/// concurrent changes that an API server allows by default (`--max-mutating-requests-inflight`).
const AT_ONCE: usize = 32;

pub use error::KubeError;
pub use in_cluster::service_account;
pub(in crate::target) use kept_connection::KeptConnection;
pub use logs::{GOES_ON as LOG_GOES_ON, LogEntry, LogError, LogReader, LogRequest, OVERLAP as LOG_OVERLAP};
pub use session::ClusterSession;
pub use tally::calls;
pub use user_secret::SecretValues;

/// The field of a fleet that says how to reach its Kubernetes cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessField {
    Kubeconfig,
    /// Streamfleet's own Kubernetes cluster, as its pod's service account.
    InCluster,
}

/// How to reach a fleet's Kubernetes cluster, and how to recognize it.
pub struct KubernetesCluster {
    pub field: AccessField,
    /// The used part of that field, or why it can't be used, as the end of a sentence.
    pub access: Result<KubeAccess, String>,
    pub described: bool,
    /// The cluster that the fleet is bound to, as the UID of its `kube-system`. None before the fleet was
    /// first applied.
    pub bound: Option<String>,
    pub taken: Arc<BTreeMap<String, FleetKey>>,
    /// Exceptions to the addresses that a kubeconfig may not lead to by default.
    pub allowed: Vec<AddressRange>,
}

impl AccessField {
    /// The name of the field in `advanced_config`.
    pub fn name(self) -> &'static str {
        match self {
            AccessField::Kubeconfig => "kubeconfig",
            AccessField::InCluster => "in_cluster",
        }
    }
}

impl KubernetesCluster {
    /// Refuses a cluster that the fleet may not use. `found` is its UID.
    fn admit(&self, fleet: &FleetKey, found: &str) -> Result<(), KubeError> {
        if let Some(bound) = self.bound.clone().filter(|bound| bound != found) {
            return Err(KubeError::AnotherCluster { bound, found: found.to_owned() });
        }
        match self.taken.get(found).filter(|other| *other != fleet) {
            Some(other) => Err(KubeError::AnotherFleet { whose: whose(other, fleet) }),
            None => Ok(()),
        }
    }
}

/// Names a fleet to another one: by its name only within the same organization.
fn whose(fleet: &FleetKey, told: &FleetKey) -> String {
    match fleet.organization == told.organization {
        true => format!("fleet {fleet}"),
        false => "a fleet of another organization".to_owned(),
    }
}

#[derive(Clone)]
pub struct KubernetesTarget {
    fleet: FleetKey,
    installation: Uuid,
    cluster: Arc<KubernetesCluster>,
    api: Arc<OnceCell<Arc<Api>>>,
    /// The watches of a daemon; none where the cluster is read each time.
    view: Option<Arc<ClusterWatch>>,
    facts: Arc<FactsCache>,
    /// The DNS servers of the base domains that its clusters may use.
    zones: DnsZones,
    /// The objects that the last observation found newer than the inventory: a run applied them, then was
    /// killed or got no answer.
    ahead: Arc<Mutex<BTreeSet<ObjectKey>>>,
}

impl KubernetesTarget {
    /// Connects to nothing yet.
    pub fn new(fleet: FleetKey, installation: Uuid, cluster: KubernetesCluster) -> Self {
        let (cluster, api, facts, ahead) =
            (Arc::new(cluster), Arc::default(), Arc::default(), Arc::default());
        Self { fleet, installation, cluster, api, view: None, facts, zones: DnsZones::default(), ahead }
    }

    pub(in crate::target) fn set_zones(&mut self, zones: DnsZones) {
        self.zones = zones;
    }

    /// Whether its clusters may have DNS records that are kept here.
    pub(in crate::target) fn keeps_records(&self) -> bool {
        !self.zones.is_empty()
    }

    fn swap_ahead(&self, ahead: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        std::mem::replace(&mut *locked(&self.ahead), ahead)
    }

    pub(in crate::target) async fn marks(&self) -> Result<BTreeMap<ResourceKey, ResourceMark>, KubeError> {
        self.while_planning(self.base()).await.map(|(_, inventory)| inventory.resources.all())
    }

    /// The location of the cluster's inventory, for a person. None when there is no inventory. While it
    /// exists, a later round may treat the objects that it lists as ours.
    ///
    /// # Errors
    /// When the cluster can't be reached, or isn't the fleet's.
    pub(in crate::target) async fn inventory(&self) -> Result<Option<String>, KubeError> {
        match self.load().await {
            Ok((_, inventory)) if inventory.is_absent() => Ok(None),
            // An inventory that can't be read still exists.
            Ok(_) | Err(KubeError::Damaged { .. } | KubeError::Newer { .. }) => Ok(Some(inventory::place())),
            Err(error) => Err(error),
        }
    }

    pub(in crate::target) fn revision(&self) -> Option<u64> {
        self.view.as_ref()?.revision()
    }

    pub(in crate::target) fn health_revision(&self) -> Option<u64> {
        self.view.as_ref()?.health_revision()
    }

    /// The cluster's UID and inventory, from the watches where there are any.
    async fn base(&self) -> Result<(String, Arc<Inventory>), KubeError> {
        if let Some(view) = &self.view
            && let Some((found, inventory)) = view.base().await?
        {
            self.cluster.admit(&self.fleet, &found)?;
            // Once the fleet is bound, an empty list is not trusted: the inventory is read by name.
            if !inventory.is_absent() || self.cluster.bound.is_none() {
                return Ok((found, inventory));
            }
        }
        self.load().await.map(|(found, inventory)| (found, Arc::new(inventory)))
    }

    async fn load(&self) -> Result<(String, Inventory), KubeError> {
        let api = self.api().await?;
        let found = api.cluster().await?;
        self.cluster.admit(&self.fleet, &found)?;
        Ok((found, Inventory::load(api, &self.fleet, self.installation).await?))
    }

    /// The inventory that the server has now, for a run that writes. In the daemon, it is the one of the watches as
    /// long as its ConfigMaps have the same versions: with all of their content, a change of one object would cost
    /// as much as the fleet is large.
    async fn current_inventory(&self) -> Result<Inventory, KubeError> {
        let known = match &self.view {
            Some(view) => view.base().await.ok().flatten(),
            None => None,
        };
        let Some((_, known)) = known.filter(|(_, known)| !known.is_absent()) else {
            return self.load().await.map(|(_, inventory)| inventory);
        };
        let api = self.api().await?;
        self.cluster.admit(&self.fleet, &api.cluster().await?)?;
        match known.is_current(api).await? {
            true => Ok(Inventory::clone(&known)),
            false => Inventory::load(api, &self.fleet, self.installation).await,
        }
    }

    /// Runs a read for a plan. In the daemon it gets less time, because other fleets wait for it.
    pub(in crate::target) fn while_planning<'a, T: 'a>(
        &'a self,
        does: impl Future<Output = T> + 'a,
    ) -> impl Future<Output = T> + 'a {
        // Boxed: several of these futures would overflow a thread's stack.
        let does = Box::pin(does);
        async move { if self.view.is_some() { retry::with_planning_timeout(does).await } else { does.await } }
    }

    async fn api(&self) -> Result<&Api, KubeError> {
        let connect = || async {
            let KubernetesCluster { field, access, described, allowed, .. } = &*self.cluster;
            let no_access = |reason: &String| KubeError::NoAccess {
                field: *field,
                reason: reason.clone(),
                described: *described,
            };
            let access = access.as_ref().map_err(no_access)?;
            access::client(access, allowed).map(|client| Arc::new(Api::new(client)))
        };
        self.api.get_or_try_init(connect).await.map(|api| &**api)
    }
}
