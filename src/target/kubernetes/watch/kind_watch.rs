//! The watch of one kind: listed once, then followed by events.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::identity_check::IdentityCheck;
use super::notifier::{ChangeNotifier, ChangeScope};
use super::object_cache::{Name, ObjectCache, WatchedObject, position, weight};
use super::pause;
use super::topic::{Purpose, Topic};
use crate::parallel::locked;
use crate::target::kubernetes::KubeError;
use crate::target::kubernetes::api::{Api, KindRef, ListResult};
use crate::target::kubernetes::budget::OverBudget;
use crate::target::pace::jitter;

/// The duration that is requested for a watch, in seconds. client-go requests five to ten minutes.
const LASTS: f64 = 300.0;

/// How long a watch may be silent before the connection is checked. A server sends a bookmark about once a
/// minute, but only if etcd has reported something newer; with etcd's defaults that takes ten minutes in a
/// quiet cluster. So silence alone is no error.
pub(super) const SILENCE: Duration = Duration::from_secs(100);

/// Kinds that fall silent within this time share one identity check.
const TOGETHER: Duration = Duration::from_secs(10);

/// How much earlier than requested a watch may end without counting as broken.
const EARLY: Duration = Duration::from_secs(5);

/// The interval of checks whether a kind is served and permitted by now.
const AGAIN: Duration = Duration::from_secs(30);

/// The pause after a kind exceeded the budget.
const TOO_MUCH: Duration = Duration::from_secs(60);

pub(super) struct KindWatch {
    topic: Topic,
    api: Arc<Api>,
    identity_check: Arc<IdentityCheck>,
    notifier: Arc<ChangeNotifier>,
    state: Mutex<FeedState>,
    /// Ends the current pause, because another try is likely to succeed.
    pub(super) again: Notify,
}

pub(super) struct FeedState {
    pub(super) stand: WatchStatus,
    /// The UID of the cluster that the objects came from.
    pub(super) cluster: String,
    pub(super) cache: ObjectCache,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchStatus {
    Starting,
    Current,
    NotServed,
    Forbidden,
    Failing(KubeError),
}

enum WatchEnd {
    /// The requested time is over. The watch can resume.
    Time,
    /// No event came for a while: either nothing happened, or the connection is dead.
    Silence,
    /// The server's history doesn't reach back to our position.
    Expired,
    NotServed,
    Broken(KubeError),
}

impl From<KubeError> for WatchEnd {
    fn from(error: KubeError) -> Self {
        match error {
            error if error.is_code(410) => WatchEnd::Expired,
            error if error.is_code(404) => WatchEnd::NotServed,
            error => WatchEnd::Broken(error),
        }
    }
}

impl KindWatch {
    pub(super) fn new(
        topic: Topic,
        api: Arc<Api>,
        identity_check: Arc<IdentityCheck>,
        notifier: Arc<ChangeNotifier>,
    ) -> Self {
        let cache = ObjectCache::new(&topic, api.budget());
        let state = FeedState { stand: WatchStatus::Starting, cluster: String::new(), cache };
        Self { topic, api, identity_check, notifier, state: Mutex::new(state), again: Notify::new() }
    }

    pub(super) fn purpose(&self) -> Purpose {
        self.topic.purpose
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FeedState> {
        // Each event is applied as a whole, so a panic can't have left it inconsistent.
        locked(&self.state)
    }

    pub(super) async fn run(self: Arc<Self>) {
        let (mut pace, mut ask_after) = (pause(), Some(Instant::now()));
        loop {
            if let Some(since) = ask_after {
                self.drop_other_cluster(self.identity_check.wait_for_identity(since).await);
            }
            let mut connected = false;
            let end = self.follow(&mut connected).await;
            if connected {
                pace.reset();
            }
            ask_after = Some(Instant::now());
            let pause = match end {
                WatchEnd::Time => {
                    ask_after = None;
                    Duration::ZERO
                }
                WatchEnd::Silence => {
                    tracing::trace!(kind = self.topic.kind, "silent");
                    // In a quiet cluster all kinds fall silent together, and one check serves them all.
                    let now = Instant::now();
                    ask_after = Some(now.checked_sub(TOGETHER).unwrap_or(now));
                    Duration::ZERO
                }
                WatchEnd::Expired => {
                    self.state().cache.position.clear();
                    pace.next_pause()
                }
                WatchEnd::NotServed => {
                    self.set_status(WatchStatus::NotServed);
                    AGAIN.mul_f64(jitter(0.5))
                }
                WatchEnd::Broken(error) if error.is_code(403) => {
                    self.set_status(WatchStatus::Forbidden);
                    AGAIN.mul_f64(jitter(0.5))
                }
                // Dropping the kind's objects leaves the budget to the other kinds.
                WatchEnd::Broken(error @ KubeError::TooMuch { .. }) => {
                    let mut state = self.state();
                    state.cache = ObjectCache::new(&self.topic, self.api.budget());
                    self.changes(state, WatchStatus::Failing(error));
                    TOO_MUCH.mul_f64(jitter(0.5))
                }
                // The cached objects stay valid until the server is known to be unreachable, which is checked
                // next.
                WatchEnd::Broken(error) if connected => {
                    tracing::debug!(kind = self.topic.kind, %error, "the watch of {} objects failed", self.topic.kind);
                    pace.next_pause()
                }
                WatchEnd::Broken(error) => {
                    self.set_status(WatchStatus::Failing(error));
                    pace.next_pause()
                }
            };
            if !pause.is_zero() {
                let _ = timeout(pause, self.again.notified()).await;
            }
        }
    }

    /// Lists the kind if necessary, then follows events until the watch ends.
    async fn follow(&self, connected: &mut bool) -> WatchEnd {
        match self.listen(connected).await {
            Ok(end) => end,
            Err(error) => error.into(),
        }
    }

    async fn listen(&self, connected: &mut bool) -> Result<WatchEnd, KubeError> {
        let Topic { api_version, kind, namespace, query, .. } = &self.topic;
        let kind_ref = KindRef { api_version, kind };
        let Some(path) = self.api.selected(kind_ref, namespace.as_deref(), query).await? else {
            return Ok(WatchEnd::NotServed);
        };
        if self.state().cache.position.is_empty() {
            self.list(&path).await?;
        }
        let position = self.state().cache.position.clone();
        let lasts = Duration::from_secs_f64(LASTS * jitter(0.8));
        let mut events = self.api.watch(kind, &path, &position, lasts.as_secs()).await?;
        *connected = true;
        self.set_status(WatchStatus::Current);
        let began = Instant::now();
        loop {
            let Ok(event) = timeout(SILENCE, events.next()).await else {
                return Ok(WatchEnd::Silence);
            };
            match event {
                Some(event) => {
                    let (kind, object) = event?;
                    if let ControlFlow::Break(end) = self.take(&kind, object) {
                        return Ok(end);
                    }
                }
                // A server that shuts down also ends its watches properly.
                None if began.elapsed() + EARLY < lasts => {
                    return Err(self.broken("the server closed it early"));
                }
                None => return Ok(WatchEnd::Time),
            }
        }
    }

    async fn list(&self, path: &str) -> Result<(), KubeError> {
        let keep = |object: Value| -> Option<((Name, WatchedObject), usize)> {
            let (name, seen) = self.state().cache.take(object).filter(|(_, seen)| seen.is_of_use())?;
            let weight = weight(&name, &seen);
            Some(((name, seen), weight))
        };
        let ListResult { kept, version, charge } =
            self.api.pages(&self.topic.kind, path, keep, || self.make_room()).await?;
        let listed: BTreeMap<Name, WatchedObject> = kept.into_iter().collect();
        let happened = self.state().cache.replace(listed, version, charge);
        self.notifier.record_change(happened);
        Ok(())
    }

    /// Drops the cached objects to free budget for the new list. Returns false when there were none.
    fn make_room(&self) -> bool {
        let mut state = self.state();
        let had = state.cache.clear();
        if had {
            self.changes(state, WatchStatus::Starting);
        }
        had
    }

    fn take(&self, kind: &str, object: Value) -> ControlFlow<WatchEnd> {
        if kind == "ERROR" {
            return ControlFlow::Break(self.refused(&object));
        }
        let Some(position) = position(&object).map(str::to_owned) else {
            return ControlFlow::Break(WatchEnd::Broken(self.broken("an event has no resourceVersion")));
        };
        let mut state = self.state();
        let cache = &mut state.cache;
        let happened = match (kind, cache.take(object)) {
            ("ADDED" | "MODIFIED", Some(seen)) => match cache.put(seen, position) {
                Ok(happened) => happened,
                Err(OverBudget(reason)) => {
                    let attempted = format!("watch objects of kind {}", self.topic.kind);
                    let error = KubeError::too_much(&attempted, reason);
                    // The cached state of the object is outdated as well, so everything is dropped.
                    state.cache = ObjectCache::new(&self.topic, self.api.budget());
                    self.changes(state, WatchStatus::Failing(error.clone()));
                    return ControlFlow::Break(error.into());
                }
            },
            ("DELETED", Some((name, _))) => cache.remove(&name, position),
            _ => {
                cache.moved(position);
                ChangeScope::NOTHING
            }
        };
        drop(state);
        self.notifier.record_change(happened);
        ControlFlow::Continue(())
    }

    fn refused(&self, status: &Value) -> WatchEnd {
        let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let reason = status.get("message").and_then(Value::as_str).unwrap_or_default();
        KubeError::Refused {
            attempted: format!("watch objects of kind {}", self.topic.kind),
            code: code.unwrap_or_default(),
            reason: KubeError::line(reason),
        }
        .into()
    }

    fn broken(&self, reason: &str) -> KubeError {
        KubeError::connection(&format!("watch objects of kind {}", self.topic.kind), reason)
    }

    /// Drops objects that came from another cluster.
    fn drop_other_cluster(&self, cluster: String) {
        let mut state = self.state();
        if state.cluster != cluster {
            let cache = ObjectCache::new(&self.topic, self.api.budget());
            *state = FeedState { stand: WatchStatus::Starting, cluster, cache };
        }
    }

    fn set_status(&self, stand: WatchStatus) {
        self.changes(self.state(), stand);
    }

    /// Changes the state under the lock under which cached objects were dropped, so that no reader takes the
    /// rest for complete.
    fn changes(&self, mut state: MutexGuard<'_, FeedState>, stand: WatchStatus) {
        let before = std::mem::replace(&mut state.stand, stand);
        let (news, stand) = (before != state.stand, state.stand.clone());
        drop(state);
        if !news {
            return;
        }
        let (kind, api_version) = (&self.topic.kind, &self.topic.api_version);
        match stand {
            WatchStatus::Failing(error) => {
                tracing::warn!(kind, %error, hint = error.hint(), "cannot watch {kind} objects")
            }
            WatchStatus::Forbidden => tracing::warn!(
                kind,
                "cannot list or watch {kind} objects in all namespaces; each round reads them instead"
            ),
            stand => tracing::debug!(kind, api_version, ?stand, "watched"),
        }
        let purpose = self.topic.purpose;
        self.notifier.record_change(ChangeScope { plan: purpose.is_planned(), health: purpose.is_judged() });
    }
}
