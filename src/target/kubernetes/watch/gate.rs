//! Checks which cluster answers, before anything is believed and again after a connection broke.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::bell::{Bell, Happened};
use super::pause;
use crate::names::FleetKey;
use crate::parallel::locked;
use crate::target::kubernetes::api::Api;
use crate::target::kubernetes::{Cluster, KubeError};

/// How long a server may take to identify its cluster before the fleet counts as unreachable. The check goes
/// on nevertheless.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time limit right after the server fell silent.
const GRACE: Duration = Duration::from_secs(2);

pub(super) struct Gate {
    fleet: FleetKey,
    api: Arc<Api>,
    bell: Arc<Bell>,
    cluster: Mutex<Arc<Cluster>>,
    /// When the last check was made, and the UID that it found. The lock is held during a check.
    asked: tokio::sync::Mutex<Option<(Instant, String)>>,
    answer: Mutex<Answer>,
    /// Notified when a refused cluster might be accepted by now.
    again: Notify,
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Pending,
    /// The cluster's UID.
    Open(String),
    Shut(KubeError),
}

impl Gate {
    pub(super) fn new(fleet: FleetKey, cluster: Arc<Cluster>, api: Arc<Api>, bell: Arc<Bell>) -> Self {
        Self {
            fleet,
            api,
            bell,
            cluster: Mutex::new(cluster),
            asked: tokio::sync::Mutex::default(),
            answer: Mutex::new(Answer::Pending),
            again: Notify::new(),
        }
    }

    /// Waits for a check that began after `since` and found the fleet's cluster, and returns its UID.
    /// Concurrent callers share one check.
    pub(super) async fn pass(&self, since: Instant) -> String {
        let mut asked = self.asked.lock().await;
        if let Some((at, uid)) = asked.as_ref().filter(|(at, _)| *at > since) {
            tracing::trace!(fleet = %self.fleet, age = ?at.elapsed(), "the cluster was asked already");
            return uid.clone();
        }
        let mut pace = pause();
        loop {
            let at = Instant::now();
            match self.ask().await {
                Ok(uid) => {
                    *asked = Some((at, uid.clone()));
                    self.say(Answer::Open(uid.clone()));
                    return uid;
                }
                Err(error) => self.say(Answer::Shut(error)),
            }
            // Both the timeout and the notification lead to another check.
            let _ = timeout(pace.next_pause(), self.again.notified()).await;
        }
    }

    /// When the server falls silent, probes it until it responds. Meanwhile the fleet is unreachable and no
    /// plan waits for it. A server that responds to the probe at once is only slow, or has a hanging
    /// component.
    pub(super) async fn attend(&self) {
        loop {
            let error = self.api.falls_silent().await;
            if !matches!(timeout(GRACE, self.api.probe()).await, Ok(Ok(_))) {
                self.say(Answer::Shut(error));
                self.pass(Instant::now()).await;
            }
        }
    }

    pub(super) fn answer(&self) -> Answer {
        locked(&self.answer).clone()
    }

    pub(super) fn renew(&self, cluster: Arc<Cluster>) {
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
                let reason = format!("no answer came within {} s", PATIENCE.as_secs());
                self.say(Answer::Shut(KubeError::connection("read the namespace kube-system", reason)));
                answer.await
            }
        }?;
        let cluster = Arc::clone(&locked(&self.cluster));
        cluster.admit(&self.fleet, &uid).map(|()| uid)
    }

    fn say(&self, new: Answer) {
        let mut answer = locked(&self.answer);
        let same = match (&*answer, &new) {
            (Answer::Open(before), Answer::Open(after)) => before == after,
            (Answer::Shut(before), Answer::Shut(after)) => before == after,
            _ => false,
        };
        if !same {
            let fleet = &self.fleet;
            match &new {
                Answer::Shut(error) => tracing::warn!(%fleet, %error, hint = error.hint(), "out of reach"),
                Answer::Open(cluster) => tracing::info!(%fleet, cluster, "reached"),
                Answer::Pending => {}
            }
        }
        *answer = new;
        drop(answer);
        if !same {
            self.bell.rings(Happened::ANYTHING);
        }
    }
}
