//! Checks which cluster answers, before anything is believed and again after a connection broke.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::notifier::{ChangeNotifier, ChangeScope};
use super::pause;
use crate::names::FleetKey;
use crate::parallel::locked;
use crate::target::kubernetes::api::Api;
use crate::target::kubernetes::{KubeError, KubernetesCluster};

/// How long a server may take to identify its cluster before the fleet counts as unreachable. The check goes
/// on nevertheless.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time limit right after the server fell silent.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct IdentityCheck {
    fleet: FleetKey,
    api: Arc<Api>,
    notifier: Arc<ChangeNotifier>,
    cluster: Mutex<Arc<KubernetesCluster>>,
    /// When the last check was made, and the UID that it found. The lock is held during a check.
    asked: tokio::sync::Mutex<Option<(Instant, String)>>,
    answer: Mutex<IdentityAnswer>,
    /// Notified when a refused cluster might be accepted by now.
    again: Notify,
}

#[derive(Debug, Clone)]
pub(super) enum IdentityAnswer {
    Pending,
    /// The cluster's UID.
    Open(String),
    Shut(KubeError),
}

impl IdentityCheck {
    pub(super) fn new(
        fleet: FleetKey,
        cluster: Arc<KubernetesCluster>,
        api: Arc<Api>,
        notifier: Arc<ChangeNotifier>,
    ) -> Self {
        Self {
            fleet,
            api,
            notifier,
            cluster: Mutex::new(cluster),
            asked: tokio::sync::Mutex::default(),
            answer: Mutex::new(IdentityAnswer::Pending),
            again: Notify::new(),
        }
    }

    /// Waits for a check that began after `since` and found the fleet's cluster, and returns its UID.
    /// Concurrent callers share one check.
    pub(super) async fn wait_for_identity(&self, since: Instant) -> String {
        let mut asked = self.asked.lock().await;
        if let Some((at, uid)) = asked.as_ref().filter(|(at, _)| *at > since) {
            tracing::trace!(fleet = %self.fleet, age = ?at.elapsed(), "the cluster was asked a moment ago");
            return uid.clone();
        }
        let mut pace = pause();
        loop {
            let at = Instant::now();
            match self.ask().await {
                Ok(uid) => {
                    *asked = Some((at, uid.clone()));
                    self.say(IdentityAnswer::Open(uid.clone()));
                    return uid;
                }
                Err(error) => self.say(IdentityAnswer::Shut(error)),
            }
            // Both the timeout and the notification lead to another check.
            let _ = timeout(pace.next_pause(), self.again.notified()).await;
        }
    }

    /// When the server falls silent, probes it until it responds. Meanwhile the fleet is unreachable and no
    /// plan waits for it. A server that responds to the probe at once is only slow, or has a hanging
    /// component.
    pub(super) async fn probe_until_back(&self) {
        loop {
            let error = self.api.falls_silent().await;
            if !matches!(timeout(GRACE, self.api.probe()).await, Ok(Ok(_))) {
                self.say(IdentityAnswer::Shut(error));
                self.wait_for_identity(Instant::now()).await;
            }
        }
    }

    pub(super) fn answer(&self) -> IdentityAnswer {
        locked(&self.answer).clone()
    }

    pub(super) fn renew(&self, cluster: Arc<KubernetesCluster>) {
        let mut known = locked(&self.cluster);
        let news = known.bound != cluster.bound || known.taken != cluster.taken;
        *known = cluster;
        drop(known);
        if news {
            self.again.notify_one();
        }
    }

    /// Makes one check. Reports the fleet as unreachable when the check takes long.
    async fn ask(&self) -> Result<String, KubeError> {
        let mut answer = std::pin::pin!(self.api.probe());
        let uid = tokio::select! {
            answer = &mut answer => answer,
            () = sleep(PATIENCE) => {
                let reason = format!("no answer within {} s", PATIENCE.as_secs());
                self.say(IdentityAnswer::Shut(KubeError::connection("read the namespace kube-system", reason)));
                answer.await
            }
        }?;
        let cluster = Arc::clone(&locked(&self.cluster));
        cluster.admit(&self.fleet, &uid).map(|()| uid)
    }

    fn say(&self, new: IdentityAnswer) {
        let mut answer = locked(&self.answer);
        let same = match (&*answer, &new) {
            (IdentityAnswer::Open(before), IdentityAnswer::Open(after)) => before == after,
            (IdentityAnswer::Shut(before), IdentityAnswer::Shut(after)) => before == after,
            _ => false,
        };
        if !same {
            let fleet = &self.fleet;
            match &new {
                IdentityAnswer::Shut(error) => {
                    tracing::warn!(%fleet, %error, hint = error.hint(), "fleet {fleet} is unreachable")
                }
                IdentityAnswer::Open(cluster) => {
                    tracing::info!(%fleet, cluster, "fleet {fleet} is reachable")
                }
                IdentityAnswer::Pending => {}
            }
        }
        *answer = new;
        drop(answer);
        if !same {
            self.notifier.record_change(ChangeScope::ANYTHING);
        }
    }
}
