//! What is on a cluster as a running process sees it: told by the server, one watch a kind, so that looking at it takes no
//! call.
//!
//! Each kind is a [`feed`], which lists once and follows from then on. Before a feed connects, and again after a
//! connection broke, the [`gate`] asks which cluster answers. What is kept of an object is on a [`shelf`]: enough to tell
//! whether it is as we applied it, and the [`signs`] by which clusters are judged. Objects that aren't as we applied them are
//! read whole when somebody looks at them.
//!
//! There are two revisions: one moves with what a plan depends on, the other with what clusters are judged by. A pod that
//! crashes makes nobody compare manifests.

mod bell;
mod feed;
mod gate;
mod shelf;
pub(super) mod signs;
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
use super::health::Kind;
use super::inventory::{self, Inventory};
use super::live::Live;
use super::{Cluster, KubeError};
use crate::names::{FleetKey, Json, ObjectKey};
use crate::parallel::locked;
use crate::target::Pace;
use bell::Bell;
use feed::{Feed, Stand, State};
use gate::{Answer, Gate};
use topic::{Purpose, Topic};
use written::Effect;

pub(super) use shelf::Name;
pub(super) use topic::SELECTOR;
pub(super) use written::Written;

/// How long the first list of a kind is waited for, and that what we wrote is seen. Other fleets wait for it, too. What takes
/// longer is Unreachable until it is listed, and then looked at at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// The same where it was waited for in vain before: other fleets are looked at after this one.
const BRIEFLY: Duration = Duration::from_millis(100);

/// What is on one cluster, as it is told.
pub(super) struct View {
    fleet: FleetKey,
    installation: Uuid,
    api: Arc<Api>,
    gate: Arc<Gate>,
    bell: Arc<Bell>,
    runtime: Handle,
    feeds: Mutex<BTreeMap<Topic, Running>>,
    /// What we wrote and have not seen yet.
    unseen: Mutex<Vec<Written>>,
    /// Whether something was waited for in vain the last time.
    gave_up: AtomicBool,
    /// The inventory, and the revision that it was read at.
    inventory: Mutex<Option<(u64, Arc<Inventory>)>>,
    /// Who asks the server when it falls silent.
    attendant: AbortHandle,
}

impl Drop for View {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

/// A feed that runs until this is dropped.
struct Running {
    feed: Arc<Feed>,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a view knows of an object.
pub(super) enum Sight {
    /// It is there, as it was last told of. All of it is known where somebody read it.
    There(Box<Live>, Option<Json>),
    /// It is not among what we labelled: it may be gone, have lost its label, or be somebody else's.
    Unseen,
}

impl View {
    /// Begins to view a cluster. `wake` is told whenever something happens that a plan may depend on.
    pub(super) fn start(
        (fleet, installation): (FleetKey, Uuid),
        cluster: Arc<Cluster>,
        api: Arc<Api>,
        runtime: Handle,
        wake: Arc<Notify>,
    ) -> View {
        let bell = Arc::new(Bell::new(wake));
        let gate = Arc::new(Gate::new(fleet.clone(), cluster, Arc::clone(&api), Arc::clone(&bell)));
        let attends = Arc::clone(&gate);
        let attendant = runtime.spawn(async move { attends.attend().await }).abort_handle();
        let view = View {
            fleet,
            installation,
            api,
            gate,
            bell,
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

    /// Takes over what is known now of whose clusters are whose.
    pub(super) fn renew(&self, cluster: Arc<Cluster>) {
        self.gate.renew(cluster);
    }

    /// Views these objects' kinds too, and says whether all of that was told, as [`View::is_complete`] does. What is viewed
    /// namespace by namespace is so while we have the namespace.
    ///
    /// # Errors
    /// When the server is away, or is not the fleet's.
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

    /// The namespaces of ours, as far as they were told of.
    fn namespaces(&self) -> BTreeSet<String> {
        let feeds = self.feeds();
        let Some(running) = feeds.get(&Topic::of(&inventory::namespace_key(""))) else {
            return BTreeSet::new();
        };
        running.feed.state().shelf.objects.keys().map(|(_, name)| name.clone()).collect()
    }

    fn follow(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut feeds = self.feeds();
        for topic in topics {
            feeds.entry(topic).or_insert_with_key(|topic| {
                let (api, gate, bell) = (&self.api, &self.gate, &self.bell);
                let feed = Feed::new(topic.clone(), Arc::clone(api), Arc::clone(gate), Arc::clone(bell));
                let feed = Arc::new(feed);
                let task = self.runtime.spawn(Arc::clone(&feed).run()).abort_handle();
                Running { feed, task }
            });
        }
    }

    /// A number that is another one whenever something happened since that a plan may depend on; none where a change could go
    /// unseen.
    pub(super) fn revision(&self) -> Option<u64> {
        let revision = self.bell.revision();
        (self.sees_all(Purpose::is_planned) && self.has_seen()).then_some(revision)
    }

    /// A number that is another one whenever something happened since by which clusters are judged; none where that could go
    /// unseen.
    pub(super) fn health_revision(&self) -> Option<u64> {
        let revision = self.bell.health();
        self.sees_all(Purpose::is_judged).then_some(revision)
    }

    fn sees_all(&self, serves: fn(Purpose) -> bool) -> bool {
        let sees = |feed: &Arc<Feed>| matches!(feed.state().stand, Stand::Current | Stand::NotServed);
        matches!(self.gate.answer(), Answer::Open(_)) && self.feeds_for(serves).iter().all(sees)
    }

    /// What all objects of a kind say of how clusters are; none where the server has to be asked. The kind is watched from
    /// then on.
    ///
    /// # Errors
    /// When the server is away, or is not the fleet's.
    pub(super) async fn signs(&self, kind: &Kind) -> Result<Option<Vec<Json>>, KubeError> {
        let topic = Topic::health(kind);
        self.follow([topic.clone()]);
        let feed = self.feeds().get(&topic).map(|running| Arc::clone(&running.feed));
        let Some(feed) = feed else { return Ok(None) };
        self.until(|| match self.gate.answer() {
            Answer::Pending => false,
            Answer::Shut(_) => true,
            Answer::Open(cluster) => !feed.state().is_starting(&cluster),
        })
        .await;
        let cluster = match self.gate.answer() {
            Answer::Pending => return Err(KubeError::NotListed),
            Answer::Shut(error) => return Err(error),
            Answer::Open(cluster) => cluster,
        };
        let state = feed.state();
        match &state.stand {
            _ if state.is_starting(&cluster) => Ok(None),
            // Asked for, it would be as much.
            Stand::Failing(error @ KubeError::TooMuch { .. }) => Err(error.clone()),
            // Asked for, it says why it can't be had.
            Stand::Starting | Stand::Forbidden | Stand::Failing(_) => Ok(None),
            Stand::NotServed => Ok(Some(Vec::new())),
            Stand::Current => {
                Ok(Some(state.shelf.objects.values().filter_map(|seen| seen.signs.clone()).collect()))
            }
        }
    }

    /// Waits a moment for what was never listed yet, and for what we wrote ourselves to be seen. Says whether all of that was
    /// told: otherwise the server has to be asked.
    ///
    /// # Errors
    /// When the server is away, or is not the fleet's.
    pub(super) async fn is_complete(&self) -> Result<bool, KubeError> {
        let settled = self.settle().await;
        self.trouble().map_or(Ok(settled), Err)
    }

    async fn settle(&self) -> bool {
        self.until(|| !self.is_starting() && (self.has_seen() || self.trouble().is_some())).await
    }

    /// Waits for a moment until something is so, and says whether it is.
    async fn until(&self, is_so: impl Fn() -> bool) -> bool {
        let settled = async {
            loop {
                let moved = self.bell.moved.notified();
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

    /// Whether something that a plan depends on is still to be listed for the first time.
    fn is_starting(&self) -> bool {
        match self.gate.answer() {
            Answer::Pending => true,
            Answer::Shut(_) => false,
            Answer::Open(cluster) => {
                self.feeds_for(Purpose::is_planned).iter().any(|feed| feed.state().is_starting(&cluster))
            }
        }
    }

    /// Why what is known can't be believed; none where it can.
    fn trouble(&self) -> Option<KubeError> {
        let cluster = match self.gate.answer() {
            Answer::Pending => return Some(KubeError::NotListed),
            Answer::Shut(error) => return Some(error),
            Answer::Open(cluster) => cluster,
        };
        self.feeds_for(Purpose::is_planned).iter().find_map(|feed| feed.state().trouble(&cluster))
    }

    /// The cluster's uid and what it remembers; none where that has to be asked for, since it may not be watched or has not
    /// told yet of what we wrote.
    ///
    /// # Errors
    /// When the server is away, or is not the fleet's.
    pub(super) async fn base(&self) -> Result<Option<(String, Arc<Inventory>)>, KubeError> {
        let complete = self.is_complete().await?;
        let Answer::Open(cluster) = self.gate.answer() else { return Err(KubeError::NotListed) };
        if !complete || self.stand(&Topic::inventory()) == Some(Stand::Forbidden) {
            return Ok(None);
        }
        let inventory = self.inventory()?;
        // What a listing lacks was perhaps cut off, and is asked for.
        Ok(inventory.is_complete().then_some((cluster, inventory)))
    }

    fn inventory(&self) -> Result<Arc<Inventory>, KubeError> {
        let revision = self.bell.revision();
        let mut known = locked(&self.inventory);
        if let Some((_, inventory)) = known.as_ref().filter(|(at, _)| *at == revision) {
            return Ok(Arc::clone(inventory));
        }
        let maps: Vec<Json> = match self.feeds().get(&Topic::inventory()) {
            Some(running) => {
                let state = running.feed.state();
                state.shelf.objects.values().filter_map(|seen| seen.whole.clone()).collect()
            }
            None => Vec::new(),
        };
        let maps = maps.iter().map(Json::value);
        let inventory = Arc::new(Inventory::of(&self.fleet, self.installation, maps)?);
        *known = Some((revision, Arc::clone(&inventory)));
        Ok(inventory)
    }

    /// What is known of an object; none where its kind has to be asked for.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<Sight> {
        let feeds = self.feeds();
        let state = feeds.get(&Topic::of(key))?.feed.state();
        match state.stand {
            Stand::Forbidden => None,
            Stand::NotServed => Some(Sight::Unseen),
            _ => {
                let seen = state.shelf.objects.get(&name(key));
                let there = seen.and_then(|seen| Some(Sight::There(seen.live.clone()?, seen.whole.clone())));
                Some(there.unwrap_or(Sight::Unseen))
            }
        }
    }

    /// Keeps an object that was read whole until it changes.
    pub(super) fn keep(&self, key: &ObjectKey, version: &str, whole: &Json) {
        let feeds = self.feeds();
        let Some(running) = feeds.get(&Topic::of(key)) else { return };
        running.feed.state().shelf.keep(&name(key), version, whole);
    }

    /// Whether everything that we wrote was seen. What nothing will tell of is not waited for.
    fn has_seen(&self) -> bool {
        let mut unseen = locked(&self.unseen);
        unseen.extend(self.api.take_written());
        unseen.retain(|written| self.awaits(written));
        unseen.is_empty()
    }

    fn awaits(&self, Written { key, effect }: &Written) -> bool {
        let topic = match key.namespace.as_deref() {
            Some(inventory::NAMESPACE) if key.kind == "ConfigMap" => Topic::inventory(),
            _ => Topic::of(key),
        };
        let feeds = self.feeds();
        let Some(running) = feeds.get(&topic) else { return false };
        let state = running.feed.state();
        match (&state.stand, effect) {
            (Stand::Forbidden, _) => false,
            (Stand::NotServed, _) => {
                running.feed.again.notify_one();
                true
            }
            (_, Effect::At(version)) => state.shelf.version < *version,
            (_, Effect::Gone(uid)) => {
                let there = state.shelf.objects.get(&name(key)).and_then(|seen| seen.live.as_ref());
                there.is_some_and(|live| live.uid == *uid && !live.is_leaving)
            }
        }
    }

    fn stand(&self, topic: &Topic) -> Option<Stand> {
        self.feeds().get(topic).map(|running| running.feed.state().stand.clone())
    }

    fn feeds_for(&self, serves: fn(Purpose) -> bool) -> Vec<Arc<Feed>> {
        let feeds = self.feeds();
        let feeds = feeds.values().map(|running| &running.feed).filter(|feed| serves(feed.purpose()));
        feeds.map(Arc::clone).collect()
    }

    fn feeds(&self) -> MutexGuard<'_, BTreeMap<Topic, Running>> {
        // Feeds are put in whole.
        locked(&self.feeds)
    }
}

impl State {
    fn is_starting(&self, cluster: &str) -> bool {
        self.stand == Stand::Starting || self.cluster != cluster
    }

    fn trouble(&self, cluster: &str) -> Option<KubeError> {
        match &self.stand {
            _ if self.is_starting(cluster) => Some(KubeError::NotListed),
            Stand::Failing(error) => Some(error.clone()),
            _ => None,
        }
    }
}

/// The pauses between attempts to reach a server: one that is back is noticed within the longest.
fn pause() -> Pace {
    Pace::new(Duration::from_millis(250), Duration::from_secs(30))
}

fn name(key: &ObjectKey) -> Name {
    (key.namespace.clone(), key.name.clone())
}
