//! Which cluster answers: asked before anything is believed, and again before anything is after a connection broke.

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

/// How long a server may take to say which cluster it is before the fleet counts as out of reach. It is asked on.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same where it has just been silent.
const GRACE: Duration = Duration::from_secs(2);

/// Lets through who finds the fleet's cluster there.
pub(super) struct Gate {
    fleet: FleetKey,
    api: Arc<Api>,
    bell: Arc<Bell>,
    /// What is known of whose clusters are whose.
    cluster: Mutex<Arc<Cluster>>,
    /// When the cluster was last asked, and its uid. Who holds it is asking.
    asked: tokio::sync::Mutex<Option<(Instant, String)>>,
    answer: Mutex<Answer>,
    /// Something is known now that was not when the cluster was refused.
    again: Notify,
}

/// What came of asking.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Nothing yet.
    Pending,
    /// The cluster's uid.
    Open(String),
    /// Why it can't be used.
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

    /// Waits until the cluster has been asked after `since` and is the fleet's, and gives its uid. However many wait, one
    /// asks.
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
            // Either is a reason to ask again.
            let _ = timeout(pace.next_pause(), self.again.notified()).await;
        }
    }

    /// Asks a server that falls silent until it answers, beside whoever plans: meanwhile its fleet is out of reach, and nobody
    /// waits for it. One that answers this at once is only slow, or has something in it that hangs.
    pub(super) async fn attend(&self) {
        loop {
            let error = self.api.falls_silent().await;
            if !matches!(timeout(GRACE, self.api.probe()).await, Ok(Ok(_))) {
                self.say(Answer::Shut(error));
                self.pass(Instant::now()).await;
            }
        }
    }

    /// What came of asking last.
    pub(super) fn answer(&self) -> Answer {
        locked(&self.answer).clone()
    }

    /// Takes over what is known now of whose clusters are whose.
    pub(super) fn renew(&self, cluster: Arc<Cluster>) {
        let mut known = locked(&self.cluster);
        let news = known.bound != cluster.bound || known.taken != cluster.taken;
        *known = cluster;
        drop(known);
        if news {
            self.again.notify_one();
        }
    }

    /// Asks, and says so when that takes long.
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
