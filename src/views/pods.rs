//! Which clusters something is read of, pod by pod, and why it can't be read.

use crate::catalog::ResolvedCluster;
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::record::Audience;
use crate::round::Round;
use crate::target::{KubeError, KubernetesTarget, Target, TargetError};

/// Something that the pods of brokers have, with the words for it.
#[derive(Debug, Clone, Copy)]
pub struct PodsToRead {
    /// A noun in the plural.
    pub what: &'static str,
    /// The command that prints the right to read it.
    pub right: &'static str,
    /// The advice for a fleet that is a folder.
    pub in_folder: &'static str,
}

/// The clusters of a request, and where they are.
pub struct ReadClusters<'r> {
    pub fleet: FleetKey,
    pub target: &'r KubernetesTarget,
    /// At least one.
    pub clusters: Vec<&'r ResolvedCluster>,
}

/// Why something is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRead {
    pub cause: NotReadCause,
    /// A sentence without a full stop.
    pub message: String,
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReadCause {
    /// There is nothing to read.
    Missing,
    /// The Kubernetes cluster refuses it.
    Refused,
    /// Too much was asked for.
    TooMany,
    /// The Kubernetes cluster can't be read now.
    Unreadable,
}

impl NotRead {
    pub fn missing(message: String, hint: &str) -> NotRead {
        NotRead { cause: NotReadCause::Missing, message, hint: hint.to_owned() }
    }
}

impl PodsToRead {
    /// Finds the clusters: the one, or all that are applied on the fleet.
    ///
    /// # Errors
    /// When nothing of it runs, or not where it could be read.
    pub fn of<'r>(&self, round: &'r Round, key: &ResourceKey) -> Result<ReadClusters<'r>, NotRead> {
        let what = self.what;
        let not_applied =
            || NotRead::missing(format!("{key} has no {what}: it was not applied yet"), "apply it first");
        let fleet = match key.kind {
            Kind::Fleet => key.as_fleet(),
            _ => round.applied_cluster(key).map(|(cluster, _)| cluster.fleet.clone()),
        };
        let fleet = fleet.ok_or_else(not_applied)?;
        let Target::Kubernetes(target) = round.targets.get(&fleet).ok_or_else(not_applied)? else {
            let message = format!(
                "{key} has no {what}: fleet {fleet} is a folder, so streamfleet can't read those of its pods"
            );
            return Err(NotRead::missing(message, self.in_folder));
        };
        let is_applied = |key: &ResourceKey| round.checked.recorded.resources.contains_key(key);
        let clusters = round.checked.catalog.clusters.values();
        let clusters = clusters.filter(|it| it.fleet == fleet && is_applied(&it.key));
        let clusters = clusters.filter(|it| key.kind == Kind::Fleet || it.key == *key);
        let clusters: Vec<&ResolvedCluster> = clusters.map(|it| &**it).collect();
        if clusters.is_empty() {
            return Err(not_applied());
        }
        Ok(ReadClusters { fleet, target, clusters })
    }

    /// Why the Kubernetes cluster doesn't give it, in words for the audience.
    pub fn why_not(
        &self,
        key: &ResourceKey,
        fleet: &FleetKey,
        error: KubeError,
        audience: Audience,
    ) -> NotRead {
        let what = self.what;
        if error.is_code(401) || error.is_code(403) {
            let message = format!(
                "cannot read the {what} of {key}: the Kubernetes cluster of fleet {fleet} refuses them to streamfleet's \
                 user"
            );
            let right = self.right;
            let hint = format!("an administrator of the Kubernetes cluster gives the right with: {right}");
            return NotRead { cause: NotReadCause::Refused, message, hint };
        }
        let error = TargetError::from(error);
        tracing::debug!(%fleet, %error, "cannot read {what} of fleet {fleet}");
        let words = match audience {
            Audience::Host => error.to_string(),
            Audience::Tenants => "its Kubernetes cluster can't be read now".to_owned(),
        };
        let message = format!("cannot read the {what} of {key}: {words}");
        NotRead { cause: NotReadCause::Unreadable, message, hint: "try again in a moment".to_owned() }
    }

    /// The refusal when the Kubernetes cluster took too long.
    pub fn late(&self, key: &ResourceKey, seconds: u64) -> NotRead {
        NotRead {
            cause: NotReadCause::Unreadable,
            message: format!(
                "cannot read the {} of {key}: its Kubernetes cluster did not answer within {seconds} s",
                self.what
            ),
            hint: "try again in a moment".to_owned(),
        }
    }
}
