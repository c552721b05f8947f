//! The daemon's watches of a cluster, one per kind, so that an observation takes no calls.
//!
//! Each kind has a `KindWatch`, which lists the objects once and then watches them. Before it first connects,
//! and again after a connection broke, the `IdentityCheck` asks which cluster answers. An `ObjectCache` keeps
//! just enough of each object to tell whether it is as we applied it, and the `signs` by which health is
//! judged. Objects that aren't as we applied them are read whole by the observation.
//!
//! There are two revisions: one changes with what a plan depends on, the other with what health is judged by.
//! So a crashing pod doesn't cause manifests to be compared.

pub(super) mod health_fields;
mod identity_check;
mod kind_watch;
mod notifier;
mod object_cache;
#[cfg(test)]
pub(super) mod tests;
mod topic;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::api::Api;
use super::inventory::{self, Inventory};
use super::live::Live;
use super::{KubeError, KubernetesCluster};
use crate::component::health::HealthQuery;
use crate::names::{FleetKey, Json, ObjectKey};
use crate::parallel::locked;
use crate::target::Backoff;
use identity_check::{IdentityAnswer, IdentityCheck};
use kind_watch::{FeedState, KindWatch, WatchStatus};
use notifier::ChangeNotifier;
use topic::{Purpose, Topic};
use written::AwaitedEffect;

pub(super) use object_cache::Name;
pub(super) use topic::SELECTOR;
pub(super) use written::OwnWrite;

/// How long to wait for the first list of a kind, and for our own writes to arrive. Other fleets wait
/// meanwhile. After that the fleet is unreachable until the kind is listed, and then observed at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// The wait after a wait that failed, to spare the fleets that follow.
const BRIEFLY: Duration = Duration::from_millis(100);

/// The watches of one cluster.
pub(super) struct ClusterWatch {
    fleet: FleetKey,
    installation: Uuid,
    api: Arc<Api>,
    identity_check: Arc<IdentityCheck>,
    notifier: Arc<ChangeNotifier>,
    runtime: Handle,
    feeds: Mutex<BTreeMap<Topic, RunningFeed>>,
    /// Our writes that the watches have yet to deliver.
    unseen: Mutex<Vec<OwnWrite>>,
    gave_up: AtomicBool,
    /// The parsed inventory, with the revision that it was parsed at.
    inventory: Mutex<Option<(u64, Arc<Inventory>)>>,
    /// The task that probes the server when it falls silent.
    attendant: AbortHandle,
}

impl Drop for ClusterWatch {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

struct RunningFeed {
    feed: Arc<KindWatch>,
    task: AbortHandle,
}

impl Drop for RunningFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) enum CachedState {
    /// The object exists, as the server last reported it. It is complete only if it was read before.
    There(Box<Live>, Option<Json>),
    /// No object of this key has our label. It may be gone, have lost its label, or be foreign.
    Unseen,
}

impl ClusterWatch {
    /// Starts watching a cluster. `wake` is notified of every change that a plan may depend on.
    pub(super) fn start(
        (fleet, installation): (FleetKey, Uuid),
        cluster: Arc<KubernetesCluster>,
        api: Arc<Api>,
        runtime: Handle,
        wake: Arc<Notify>,
    ) -> ClusterWatch {
        let notifier = Arc::new(ChangeNotifier::new(wake));
        let identity_check =
            Arc::new(IdentityCheck::new(fleet.clone(), cluster, Arc::clone(&api), Arc::clone(&notifier)));
        let attends = Arc::clone(&identity_check);
        let attendant = runtime.spawn(async move { attends.probe_until_back().await }).abort_handle();
        let view = ClusterWatch {
            fleet,
            installation,
            api,
            identity_check,
            notifier,
            runtime,
            feeds: Mutex::default(),
            unseen: Mutex::default(),
            gave_up: AtomicBool::new(false),
            inventory: Mutex::default(),
            attendant,
        };
        view.follow([Topic::inventory()]);
        view
    }

    /// Updates which clusters belong to which fleets.
    pub(super) fn renew(&self, cluster: Arc<KubernetesCluster>) {
        self.identity_check.renew(cluster);
    }

    /// Watches the kinds of these objects, too. Returns whether the cache is complete, as
    /// [`Self::is_complete`] does. Kinds that are watched per namespace are watched while the namespace is
    /// ours.
    ///
    /// # Errors
    /// When the server can't be reached, or is not the fleet's.
    pub(super) async fn follow_kinds<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k ObjectKey>,
    ) -> Result<bool, KubeError> {
        let topics: BTreeSet<Topic> = keys.into_iter().map(Topic::of).collect();
        let (within, everywhere): (Vec<_>, Vec<_>) =
            topics.into_iter().partition(|topic| topic.namespace.is_some());
        self.follow(everywhere);
        if !self.is_complete().await? {
            return Ok(false);
        }
        let namespaces = self.namespaces();
        let is_there = |topic: &Topic| {
            let namespace = topic.namespace.as_ref();
            namespace.is_none_or(|it| *it == inventory::NAMESPACE || namespaces.contains(it))
        };
        self.feeds().retain(|topic, _| is_there(topic));
        self.follow(within.into_iter().filter(is_there));
        self.is_complete().await
    }

    fn namespaces(&self) -> BTreeSet<String> {
        let feeds = self.feeds();
        let Some(running) = feeds.get(&Topic::of(&inventory::namespace_key(""))) else {
            return BTreeSet::new();
        };
        running.feed.state().cache.objects.keys().map(|(_, name)| name.clone()).collect()
    }

    fn follow(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut feeds = self.feeds();
        for topic in topics {
            feeds.entry(topic).or_insert_with_key(|topic| {
                let (api, identity_check, notifier) = (&self.api, &self.identity_check, &self.notifier);
                let feed = KindWatch::new(
                    topic.clone(),
                    Arc::clone(api),
                    Arc::clone(identity_check),
                    Arc::clone(notifier),
                );
                let feed = Arc::new(feed);
                let task = self.runtime.spawn(Arc::clone(&feed).run()).abort_handle();
                RunningFeed { feed, task }
            });
        }
    }

    /// A number that changes with everything that a plan may depend on. None when a change could go
    /// unnoticed.
    pub(super) fn revision(&self) -> Option<u64> {
        let revision = self.notifier.revision();
        (self.sees_all(Purpose::is_planned) && self.has_seen()).then_some(revision)
    }

    /// A number that changes with everything that health is judged by. None when a change could go unnoticed.
    pub(super) fn health_revision(&self) -> Option<u64> {
        let revision = self.notifier.health();
        self.sees_all(Purpose::is_judged).then_some(revision)
    }

    fn sees_all(&self, serves: fn(Purpose) -> bool) -> bool {
        let sees = |feed: &Arc<KindWatch>| {
            matches!(feed.state().stand, WatchStatus::Current | WatchStatus::NotServed)
        };
        matches!(self.identity_check.answer(), IdentityAnswer::Open(_))
            && self.feeds_for(serves).iter().all(sees)
    }

    /// Returns the health signs of the objects of a query, which are watched from then on. None when the caller
    /// has to ask the server.
    ///
    /// # Errors
    /// When the server can't be reached, or is not the fleet's.
    pub(super) async fn signs(&self, query: HealthQuery) -> Result<Option<Vec<Json>>, KubeError> {
        let topic = Topic::health(query);
        self.follow([topic.clone()]);
        let feed = self.feeds().get(&topic).map(|running| Arc::clone(&running.feed));
        let Some(feed) = feed else { return Ok(None) };
        self.until(|| match self.identity_check.answer() {
            IdentityAnswer::Pending => false,
            IdentityAnswer::Shut(_) => true,
            IdentityAnswer::Open(cluster) => !feed.state().is_starting(&cluster),
        })
        .await;
        let cluster = match self.identity_check.answer() {
            IdentityAnswer::Pending => return Err(KubeError::NotListed),
            IdentityAnswer::Shut(error) => return Err(error),
            IdentityAnswer::Open(cluster) => cluster,
        };
        let state = feed.state();
        match &state.stand {
            _ if state.is_starting(&cluster) => Ok(None),
            // The server's answer would contain no more.
            WatchStatus::Failing(error @ KubeError::TooMuch { .. }) => Err(error.clone()),
            // The server's answer contains the reason.
            WatchStatus::Starting | WatchStatus::Forbidden | WatchStatus::Failing(_) => Ok(None),
            WatchStatus::NotServed => Ok(Some(Vec::new())),
            WatchStatus::Current => {
                Ok(Some(state.cache.objects.values().filter_map(|seen| seen.signs.clone()).collect()))
            }
        }
    }

    /// Waits briefly for kinds that were never listed, and for our own writes to arrive. Returns whether the
    /// cache is complete; otherwise the caller has to ask the server.
    ///
    /// # Errors
    /// When the server can't be reached, or is not the fleet's.
    pub(super) async fn is_complete(&self) -> Result<bool, KubeError> {
        let settled = self.settle().await;
        self.trouble().map_or(Ok(settled), Err)
    }

    async fn settle(&self) -> bool {
        self.until(|| !self.is_starting() && (self.has_seen() || self.trouble().is_some())).await
    }

    async fn until(&self, is_so: impl Fn() -> bool) -> bool {
        let settled = async {
            loop {
                let moved = self.notifier.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if is_so() {
                    return;
                }
                moved.await;
            }
        };
        let patience = if self.gave_up.load(Ordering::Relaxed) { BRIEFLY } else { PATIENCE };
        let is_settled = timeout(patience, settled).await.is_ok();
        self.gave_up.store(!is_settled, Ordering::Relaxed);
        is_settled
    }

    /// Whether a kind that a plan depends on has yet to be listed for the first time.
    fn is_starting(&self) -> bool {
        match self.identity_check.answer() {
            IdentityAnswer::Pending => true,
            IdentityAnswer::Shut(_) => false,
            IdentityAnswer::Open(cluster) => {
                self.feeds_for(Purpose::is_planned).iter().any(|feed| feed.state().is_starting(&cluster))
            }
        }
    }

    /// Why the cache can't be trusted; none if it can.
    fn trouble(&self) -> Option<KubeError> {
        let cluster = match self.identity_check.answer() {
            IdentityAnswer::Pending => return Some(KubeError::NotListed),
            IdentityAnswer::Shut(error) => return Some(error),
            IdentityAnswer::Open(cluster) => cluster,
        };
        self.feeds_for(Purpose::is_planned).iter().find_map(|feed| feed.state().trouble(&cluster))
    }

    /// The cluster's UID and inventory. None when the caller has to read them, because watching is not
    /// permitted or our own writes haven't arrived.
    ///
    /// # Errors
    /// When the server can't be reached, or is not the fleet's.
    pub(super) async fn base(&self) -> Result<Option<(String, Arc<Inventory>)>, KubeError> {
        let complete = self.is_complete().await?;
        let IdentityAnswer::Open(cluster) = self.identity_check.answer() else {
            return Err(KubeError::NotListed);
        };
        if !complete || self.stand(&Topic::inventory()) == Some(WatchStatus::Forbidden) {
            return Ok(None);
        }
        let inventory = self.inventory()?;
        // The list may have been truncated, so the caller reads the rest by name.
        Ok(inventory.is_complete().then_some((cluster, inventory)))
    }

    fn inventory(&self) -> Result<Arc<Inventory>, KubeError> {
        let revision = self.notifier.revision();
        let mut known = locked(&self.inventory);
        if let Some((_, inventory)) = known.as_ref().filter(|(at, _)| *at == revision) {
            return Ok(Arc::clone(inventory));
        }
        let maps: Vec<Json> = match self.feeds().get(&Topic::inventory()) {
            Some(running) => {
                let state = running.feed.state();
                state.cache.objects.values().filter_map(|seen| seen.whole.clone()).collect()
            }
            None => Vec::new(),
        };
        let maps = maps.iter().map(Json::value);
        let inventory = Arc::new(Inventory::of(&self.fleet, self.installation, maps)?);
        *known = Some((revision, Arc::clone(&inventory)));
        Ok(inventory)
    }

    /// Finds an object in the cache. None when the caller has to ask the server.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<CachedState> {
        let feeds = self.feeds();
        let state = feeds.get(&Topic::of(key))?.feed.state();
        match state.stand {
            WatchStatus::Forbidden => None,
            WatchStatus::NotServed => Some(CachedState::Unseen),
            _ => {
                let seen = state.cache.objects.get(&name(key));
                let there =
                    seen.and_then(|seen| Some(CachedState::There(seen.live.clone()?, seen.whole.clone())));
                Some(there.unwrap_or(CachedState::Unseen))
            }
        }
    }

    pub(super) fn keep(&self, key: &ObjectKey, version: &str, whole: &Json) {
        let feeds = self.feeds();
        let Some(running) = feeds.get(&Topic::of(key)) else { return };
        running.feed.state().cache.keep(&name(key), version, whole);
    }

    /// Whether all our writes arrived. Writes that no watch will deliver don't count.
    fn has_seen(&self) -> bool {
        let mut unseen = locked(&self.unseen);
        unseen.extend(self.api.take_written());
        unseen.retain(|written| self.awaits(written));
        unseen.is_empty()
    }

    fn awaits(&self, OwnWrite { key, effect }: &OwnWrite) -> bool {
        let topic = match key.namespace.as_deref() {
            Some(inventory::NAMESPACE) if key.kind == "ConfigMap" => Topic::inventory(),
            _ => Topic::of(key),
        };
        let feeds = self.feeds();
        let Some(running) = feeds.get(&topic) else { return false };
        let state = running.feed.state();
        match (&state.stand, effect) {
            (WatchStatus::Forbidden, _) => false,
            (WatchStatus::NotServed, _) => {
                running.feed.again.notify_one();
                true
            }
            (_, AwaitedEffect::At(version)) => state.cache.version < *version,
            (_, AwaitedEffect::Gone(uid)) => {
                let there = state.cache.objects.get(&name(key)).and_then(|seen| seen.live.as_ref());
                there.is_some_and(|live| live.uid == *uid && !live.is_leaving)
            }
        }
    }

    fn stand(&self, topic: &Topic) -> Option<WatchStatus> {
        self.feeds().get(topic).map(|running| running.feed.state().stand.clone())
    }

    fn feeds_for(&self, serves: fn(Purpose) -> bool) -> Vec<Arc<KindWatch>> {
        let feeds = self.feeds();
        let feeds = feeds.values().map(|running| &running.feed).filter(|feed| serves(feed.purpose()));
        feeds.map(Arc::clone).collect()
    }

    fn feeds(&self) -> MutexGuard<'_, BTreeMap<Topic, RunningFeed>> {
        // Only whole watches are stored, so a panic can't have left it inconsistent.
        locked(&self.feeds)
    }
}

impl FeedState {
    fn is_starting(&self, cluster: &str) -> bool {
        self.stand == WatchStatus::Starting || self.cluster != cluster
    }

    fn trouble(&self, cluster: &str) -> Option<KubeError> {
        match &self.stand {
            _ if self.is_starting(cluster) => Some(KubeError::NotListed),
            WatchStatus::Failing(error) => Some(error.clone()),
            _ => None,
        }
    }
}

/// The backoff for connecting. A server that is back is noticed within the longest pause.
fn pause() -> Backoff {
    Backoff::new(Duration::from_millis(250), Duration::from_secs(30))
}

fn name(key: &ObjectKey) -> Name {
    (key.namespace.clone(), key.name.clone())
}
