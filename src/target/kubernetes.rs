//! A Kubernetes cluster, reached with the kubeconfig of its fleet.

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
mod inventory;
mod items;
mod kept;
mod leftovers;
mod live;
mod observe;
mod preflight;
mod pulse;
mod retry;
mod session;
mod tally;
#[cfg(test)]
mod tests;
mod untrusted;
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
use api::Api;
use facts::Known;
use inventory::Inventory;
use watch::View;

/// How many calls a session makes at a time: enough that a server has always something to do, and far less than the 200
/// changes that one works on at a time by default (`--max-mutating-requests-inflight`).
const AT_ONCE: usize = 32;

pub use dry_run::Trial;
pub use error::KubeError;
pub(in crate::target) use kept::Kept;
pub use session::Session;
pub use tally::calls;

/// What it takes to reach a fleet's Kubernetes cluster, and to know it again.
pub struct Cluster {
    /// What is used of the kubeconfig; otherwise why there is none, as the end of a sentence.
    pub access: Result<KubeAccess, String>,
    /// Whether a spec describes the fleet; none does where its file was removed.
    pub described: bool,
    /// The cluster that the fleet is bound to, by the uid of its `kube-system`; none before the fleet was first applied.
    pub bound: Option<String>,
    /// The clusters that other fleets are bound to.
    pub taken: Arc<BTreeMap<String, FleetKey>>,
    /// The addresses that are allowed though a kubeconfig may not lead there by default.
    pub allowed: Vec<AddressRange>,
}

impl Cluster {
    /// Whether the cluster with this uid is the fleet's to use.
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

/// A fleet, as another one is told of it: by name only within its organization.
fn whose(fleet: &FleetKey, told: &FleetKey) -> String {
    match fleet.organization == told.organization {
        true => format!("fleet {fleet}"),
        false => "a fleet of another organization".to_owned(),
    }
}

/// The Kubernetes cluster of one fleet.
#[derive(Clone)]
pub struct KubernetesTarget {
    fleet: FleetKey,
    installation: Uuid,
    cluster: Arc<Cluster>,
    api: Arc<OnceCell<Arc<Api>>>,
    /// What a running process is told of the cluster; none where it is asked each time.
    view: Option<Arc<View>>,
    /// What is known of the cluster beside our own objects.
    facts: Arc<Known>,
    /// The objects that the last look found ahead of the inventory: they were applied by a run that was killed, or that heard
    /// no answer.
    ahead: Arc<Mutex<BTreeSet<ObjectKey>>>,
}

impl KubernetesTarget {
    /// The cluster of a fleet, with the installation that writes there. Nothing is connected to yet.
    pub fn new(fleet: FleetKey, installation: Uuid, cluster: Cluster) -> Self {
        let (cluster, api, facts, ahead) =
            (Arc::new(cluster), Arc::default(), Arc::default(), Arc::default());
        Self { fleet, installation, cluster, api, view: None, facts, ahead }
    }

    /// Puts other objects in the place of those that the last look found ahead of the inventory, and gives these.
    fn swap_ahead(&self, ahead: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        std::mem::replace(&mut *locked(&self.ahead), ahead)
    }

    /// What the cluster remembers of resources.
    pub(in crate::target) async fn marks(&self) -> Result<BTreeMap<ResourceKey, ResourceMark>, KubeError> {
        self.while_planning(self.base()).await.map(|(_, inventory)| inventory.resources.all())
    }

    /// Where the cluster remembers what of it is ours, for a person to find; none where nothing is. As long as it does, a later
    /// round may take what is named there for its own.
    ///
    /// # Errors
    /// When the cluster can't be reached, or isn't the fleet's.
    pub async fn inventory(&self) -> Result<Option<String>, KubeError> {
        match self.load().await {
            Ok((_, inventory)) if inventory.is_absent() => Ok(None),
            // What can't be read is there all the same.
            Ok(_) | Err(KubeError::Damaged { .. } | KubeError::Newer { .. }) => Ok(Some(inventory::place())),
            Err(error) => Err(error),
        }
    }

    /// A number that changes with what is on the cluster; none where nobody watches it.
    pub(in crate::target) fn revision(&self) -> Option<u64> {
        self.view.as_ref()?.revision()
    }

    /// A number that changes with what clusters are judged by; none where nobody watches that.
    pub(in crate::target) fn health_revision(&self) -> Option<u64> {
        self.view.as_ref()?.health_revision()
    }

    /// The cluster's uid and what it remembers, as a running process was told of it.
    async fn base(&self) -> Result<(String, Arc<Inventory>), KubeError> {
        if let Some(view) = &self.view
            && let Some((found, inventory)) = view.base().await?
        {
            self.cluster.admit(&self.fleet, &found)?;
            // Once the fleet was made there, an empty listing is asked about by name as any that lacks something.
            if !inventory.is_absent() || self.cluster.bound.is_none() {
                return Ok((found, inventory));
            }
        }
        self.load().await.map(|(found, inventory)| (found, Arc::new(inventory)))
    }

    /// Makes sure that the cluster is the fleet's, and reads what it remembers. Gives its uid, too.
    async fn load(&self) -> Result<(String, Inventory), KubeError> {
        let api = self.api().await?;
        let found = api.cluster().await?;
        self.cluster.admit(&self.fleet, &found)?;
        Ok((found, Inventory::load(api, &self.fleet, self.installation).await?))
    }

    /// Looks at the cluster, or asks it something, for a plan. In a process that runs on, other fleets are held up by it.
    pub(in crate::target) fn while_planning<'a, T: 'a>(
        &'a self,
        does: impl Future<Output = T> + 'a,
    ) -> impl Future<Output = T> + 'a {
        // What is under way takes more room than a thread's stack has for several of it.
        let does = Box::pin(does);
        async move { if self.view.is_some() { retry::hastily(does).await } else { does.await } }
    }

    /// The connection, which is made when it is first asked for.
    async fn api(&self) -> Result<&Api, KubeError> {
        let connect = || async {
            let Cluster { access, described, allowed, .. } = &*self.cluster;
            let no_access =
                |reason: &String| KubeError::NoAccess { reason: reason.clone(), described: *described };
            let access = access.as_ref().map_err(no_access)?;
            access::client(access, allowed).map(|client| Arc::new(Api::new(client)))
        };
        self.api.get_or_try_init(connect).await.map(|api| &**api)
    }
}
