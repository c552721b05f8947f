//! The metrics of clusters, as Prometheus' text.
//!
//! A cluster's are kept for a minute, whoever asks: many scrapes cost its brokers one reading.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::pods::{NotRead, NotReadCause, PodsToRead, ReadClusters};
use crate::catalog::ResolvedCluster;
use crate::component::federation::{self, ClusterMetrics};
use crate::config::UnitCatalogue;
use crate::names::{Kind, ResourceKey};
use crate::parallel::locked;
use crate::record::Audience;
use crate::round::Round;
use crate::target::{KubeError, KubernetesTarget};

const METRICS: PodsToRead = PodsToRead {
    what: "metrics",
    right: "streamfleet role --metrics",
    in_folder: "let a Prometheus read them where the manifests are applied",
};

/// How long the metrics of a cluster are kept.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The most time for an answer. Prometheus itself waits for 10 s by default.
pub const LONGEST: Duration = Duration::from_secs(20);

/// How many clusters of a fleet are read at a time.
const AT_ONCE: usize = 16;

/// The most series of an answer, which take 30 MB.
const MOST_SERIES: usize = 200_000;

/// The most series that are kept. While there are more, others are read anew for each answer.
const MOST_KEPT: usize = 1_000_000;

/// The metrics of a cluster, with when they were read.
type Read = Option<(Instant, Arc<ClusterMetrics>)>;

/// The metrics that were read in the last minute.
#[derive(Default)]
pub struct MetricsCache {
    /// Each behind a lock of its own, so that a cluster is read once, however many ask at the same time.
    clusters: Mutex<BTreeMap<ResourceKey, Arc<AsyncMutex<Read>>>>,
}

impl MetricsCache {
    /// The metrics of a cluster, or of all clusters of a fleet.
    ///
    /// # Errors
    /// With the reason, in words for the audience.
    pub async fn text(
        &self,
        round: &Round,
        key: &ResourceKey,
        audience: Audience,
    ) -> Result<String, NotRead> {
        let ReadClusters { fleet, target, clusters } = METRICS.of(round, key)?;
        let federating = |cluster: &&ResolvedCluster| cluster.fleet_spec.advanced_config.federates();
        if !clusters.iter().any(federating) {
            let message = format!(
                "{key} has no metrics here: `advanced_config.monitoring.federate` of fleet {fleet} is not on"
            );
            return Err(NotRead::missing(message, "set it to true, and apply"));
        }
        let with_metrics = |cluster: &&ResolvedCluster| cluster.spec.advanced_config.operations.metrics;
        let clusters: Vec<&ResolvedCluster> = clusters.into_iter().filter(with_metrics).collect();
        if clusters.is_empty() {
            let of = if key.kind == Kind::Fleet { "of none of its clusters is on" } else { "is not on" };
            let message = format!("{key} has no metrics: `advanced_config.operations.metrics` {of}");
            let hint = "set it to true, and apply: brokers and controllers restart one by one";
            return Err(NotRead::missing(message, hint));
        }
        let units = &round.checked.catalog.config.units;
        let read = stream::iter(clusters).map(|cluster| self.cluster(target, cluster, units));
        let mut read = std::pin::pin!(read.buffered(AT_ONCE));
        let (mut all, mut series) = (Vec::new(), 0);
        while let Some(metrics) =
            read.try_next().await.map_err(|error| METRICS.why_not(key, &fleet, error, audience))?
        {
            series += metrics.series();
            all.push(metrics);
            if series > MOST_SERIES {
                let message =
                    format!("cannot read all metrics of {key}: they have more than {MOST_SERIES} series");
                let hint =
                    "read those of its clusters one by one, or let a Prometheus on the fleet read the pods"
                        .to_owned();
                return Err(NotRead { cause: NotReadCause::TooMany, message, hint });
            }
        }
        Ok(federation::text(all.iter().map(Arc::as_ref)))
    }

    /// The refusal when reading took too long.
    pub fn late(key: &ResourceKey) -> NotRead {
        METRICS.late(key, LONGEST.as_secs())
    }

    async fn cluster(
        &self,
        target: &KubernetesTarget,
        cluster: &ResolvedCluster,
        units: &UnitCatalogue,
    ) -> Result<Arc<ClusterMetrics>, KubeError> {
        let place = self.place(&cluster.key);
        let mut read = place.lock().await;
        if let Some((at, metrics)) = &*read
            && at.elapsed() < KEPT_FOR
        {
            return Ok(Arc::clone(metrics));
        }
        let at = Instant::now();
        let pods = target.pod_metrics(&cluster.namespace, cluster.spec.identifier.as_str()).await?;
        let metrics = Arc::new(ClusterMetrics::of(cluster, units, pods));
        let has_room = self.kept() + metrics.series() <= MOST_KEPT;
        *read = has_room.then(|| (at, Arc::clone(&metrics)));
        Ok(metrics)
    }

    /// The place of a cluster's metrics. Old ones of other clusters that aren't read any more go.
    fn place(&self, key: &ResourceKey) -> Arc<AsyncMutex<Read>> {
        let mut clusters = locked(&self.clusters);
        clusters.retain(|_, place| {
            Arc::strong_count(place) > 1
                || place
                    .try_lock()
                    .is_ok_and(|read| read.as_ref().is_some_and(|(at, _)| at.elapsed() < KEPT_FOR))
        });
        Arc::clone(clusters.entry(key.clone()).or_default())
    }

    fn kept(&self) -> usize {
        let kept = |place: &Arc<AsyncMutex<Read>>| Some(place.try_lock().ok()?.as_ref()?.1.series());
        locked(&self.clusters).values().filter_map(kept).sum()
    }
}
