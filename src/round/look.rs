//! Looks at the Kubernetes cluster that a kubeconfig leads to, before any fleet uses it.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::timeout;

use super::Installation;
use super::targets::{bound, bound_kubernetes_clusters, parsed};
use crate::catalog::ResolvedTree;
use crate::component::Extras;
use crate::names::FleetKey;
use crate::plan::preflight::PreflightFacts;
use crate::target::{AccessField, KubernetesCluster, TargetError, TargetLocation, Targets};

/// How long the whole look may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a Kubernetes cluster can't be looked at.
#[derive(Debug)]
pub enum LookError {
    Target(TargetError),
    /// It took too long.
    Late,
}

impl Installation {
    /// Finds out what the Kubernetes cluster has that a kubeconfig leads to. A fleet that is bound to another one is
    /// refused, and so is a cluster of another fleet. The server gets reads and questions about the user's rights, with
    /// the user's own credentials: nothing of ours, since its author may be anybody's server.
    ///
    /// # Errors
    /// When the cluster may not or can't be reached, or isn't one for this fleet.
    pub async fn look(
        &self,
        checked: &ResolvedTree,
        fleet: &FleetKey,
        kubeconfig: &SecretString,
        extras: Extras,
    ) -> Result<Arc<PreflightFacts>, LookError> {
        let recorded = checked.recorded.resources.get(&fleet.resource());
        let place = TargetLocation::Kubernetes(KubernetesCluster {
            field: AccessField::Kubeconfig,
            access: parsed(kubeconfig),
            described: true,
            bound: recorded.and_then(bound).map(str::to_owned),
            taken: Arc::new(bound_kubernetes_clusters(checked)),
            allowed: self.config.targets.allow_addresses.clone(),
        });
        let installation = checked.recorded.installation;
        let targets = Targets::for_fleets(&self.output_dir, installation, [(fleet.clone(), place)]);
        let Some(target) = targets.get(fleet) else { return Err(LookError::Late) };
        let look = async {
            target.inventory().await.map_err(LookError::Target)?;
            Ok(target.preflight_again(extras).await.unwrap_or_default())
        };
        timeout(PATIENCE, look).await.unwrap_or(Err(LookError::Late))
    }
}
