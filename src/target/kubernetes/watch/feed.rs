//! One kind of object, listed once and followed from then on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::bell::{Bell, Happened};
use super::gate::Gate;
use super::pause;
use super::shelf::{Name, Seen, Shelf, position, weight};
use super::topic::{Purpose, Topic};
use crate::parallel::locked;
use crate::target::kubernetes::KubeError;
use crate::target::kubernetes::api::{Api, Listed};
use crate::target::kubernetes::budget::OverBudget;
use crate::target::pace::jitter;

/// How long the server is asked to keep a watch going, in seconds. client-go asks for five to ten minutes.
const LASTS: f64 = 300.0;

/// How long a watch may be silent. A server sends a bookmark about once a minute, but only where its etcd has told it of
/// something newer: with etcd's own defaults that takes ten minutes in a quiet cluster. So silence is no fault, and a reason
/// to look whether somebody is still there.
pub(super) const SILENCE: Duration = Duration::from_secs(100);

/// How far apart kinds that were listed together may notice that nothing comes, and still count one answer for all.
const TOGETHER: Duration = Duration::from_secs(10);

/// How long before its time a watch may end without being taken for broken.
const EARLY: Duration = Duration::from_secs(5);

/// How often it is looked whether a kind that is not served, or may not be listed, is by now.
const AGAIN: Duration = Duration::from_secs(30);

/// How long a kind of which there is too much is left alone.
const TOO_MUCH: Duration = Duration::from_secs(60);

/// One kind of object, as it is followed.
pub(super) struct Feed {
    topic: Topic,
    api: Arc<Api>,
    gate: Arc<Gate>,
    bell: Arc<Bell>,
    state: Mutex<State>,
    /// Somebody has a reason to think that it is worth another try.
    pub(super) again: Notify,
}

/// What is known of it.
pub(super) struct State {
    pub(super) stand: Stand,
    /// The uid of the cluster that the objects are of.
    pub(super) cluster: String,
    pub(super) shelf: Shelf,
}

/// Whether what is known is all that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stand {
    /// It was not listed yet.
    Starting,
    /// It is as the server last told.
    Current,
    /// The server doesn't know the kind, so that there is nothing.
    NotServed,
    /// Whoever we are may not list or watch it.
    Forbidden,
    /// It could not be listed or followed.
    Failing(KubeError),
}

/// How following a kind ended.
enum End {
    /// In time, and it can go on where it was.
    Time,
    /// Nothing came for a while: perhaps there is nothing to tell, perhaps nobody is there any more.
    Silence,
    /// What the server has does not reach back to where it was.
    Expired,
    /// The kind is not served.
    NotServed,
    /// It went wrong.
    Broken(KubeError),
}

impl From<KubeError> for End {
    fn from(error: KubeError) -> Self {
        match error {
            error if error.is_code(410) => End::Expired,
            error if error.is_code(404) => End::NotServed,
            error => End::Broken(error),
        }
    }
}

impl Feed {
    pub(super) fn new(topic: Topic, api: Arc<Api>, gate: Arc<Gate>, bell: Arc<Bell>) -> Self {
        let shelf = Shelf::new(&topic, api.budget());
        let state = State { stand: Stand::Starting, cluster: String::new(), shelf };
        Self { topic, api, gate, bell, state: Mutex::new(state), again: Notify::new() }
    }

    /// What the kind is watched for.
    pub(super) fn purpose(&self) -> Purpose {
        self.topic.purpose
    }

    /// What is known.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Each event is taken in whole or not at all.
        locked(&self.state)
    }

    /// Follows the kind for as long as somebody runs this.
    pub(super) async fn run(self: Arc<Self>) {
        let (mut pace, mut ask_after) = (pause(), Some(Instant::now()));
        loop {
            if let Some(since) = ask_after {
                self.belong_to(self.gate.pass(since).await);
            }
            let mut connected = false;
            let end = self.follow(&mut connected).await;
            if connected {
                pace.reset();
            }
            ask_after = Some(Instant::now());
            let pause = match end {
                End::Time => {
                    ask_after = None;
                    Duration::ZERO
                }
                End::Silence => {
                    tracing::trace!(kind = self.topic.kind, "silent");
                    // All kinds are silent together where nothing happens, and one of them asks.
                    let now = Instant::now();
                    ask_after = Some(now.checked_sub(TOGETHER).unwrap_or(now));
                    Duration::ZERO
                }
                End::Expired => {
                    self.state().shelf.position.clear();
                    pace.next_pause()
                }
                End::NotServed => {
                    self.stands(Stand::NotServed);
                    AGAIN.mul_f64(jitter(0.5))
                }
                End::Broken(error) if error.is_code(403) => {
                    self.stands(Stand::Forbidden);
                    AGAIN.mul_f64(jitter(0.5))
                }
                // Nothing of it is kept, and what else is there has room again.
                End::Broken(error @ KubeError::TooMuch { .. }) => {
                    let mut state = self.state();
                    state.shelf = Shelf::new(&self.topic, self.api.budget());
                    self.changes(state, Stand::Failing(error));
                    TOO_MUCH.mul_f64(jitter(0.5))
                }
                // What was told still holds until it is known that the server is away: that is asked next.
                End::Broken(error) if connected => {
                    tracing::debug!(kind = self.topic.kind, %error, "a watch broke");
                    pace.next_pause()
                }
                End::Broken(error) => {
                    self.stands(Stand::Failing(error));
                    pace.next_pause()
                }
            };
            if !pause.is_zero() {
                let _ = timeout(pause, self.again.notified()).await;
            }
        }
    }

    /// Lists what is not known yet, and follows what happens until that ends.
    async fn follow(&self, connected: &mut bool) -> End {
        match self.listen(connected).await {
            Ok(end) => end,
            Err(error) => error.into(),
        }
    }

    async fn listen(&self, connected: &mut bool) -> Result<End, KubeError> {
        let Topic { api_version, kind, namespace, query, .. } = &self.topic;
        let Some(path) = self.api.selected((api_version, kind), namespace.as_deref(), query).await? else {
            return Ok(End::NotServed);
        };
        if self.state().shelf.position.is_empty() {
            self.list(&path).await?;
        }
        let position = self.state().shelf.position.clone();
        let lasts = Duration::from_secs_f64(LASTS * jitter(0.8));
        let mut events = self.api.watch(kind, &path, &position, lasts.as_secs()).await?;
        *connected = true;
        self.stands(Stand::Current);
        let began = Instant::now();
        loop {
            let Ok(event) = timeout(SILENCE, events.next()).await else {
                return Ok(End::Silence);
            };
            match event {
                Some(event) => {
                    let (kind, object) = event?;
                    if let ControlFlow::Break(end) = self.take(&kind, object) {
                        return Ok(end);
                    }
                }
                // A server that goes ends its watches politely, too.
                None if began.elapsed() + EARLY < lasts => {
                    return Err(self.broken("the server ended it before its time"));
                }
                None => return Ok(End::Time),
            }
        }
    }

    async fn list(&self, path: &str) -> Result<(), KubeError> {
        let keep = |object: Value| -> Option<((Name, Seen), usize)> {
            let (name, seen) = self.state().shelf.take(object).filter(|(_, seen)| seen.is_of_use())?;
            let weight = weight(&name, &seen);
            Some(((name, seen), weight))
        };
        let Listed { kept, version, charge } =
            self.api.pages(&self.topic.kind, path, keep, || self.make_room()).await?;
        let listed: BTreeMap<Name, Seen> = kept.into_iter().collect();
        let happened = self.state().shelf.replace(listed, version, charge);
        self.bell.rings(happened);
        Ok(())
    }

    /// Gives up what was told before, where there is no room for that and for what is listed anew. False where nothing was.
    fn make_room(&self) -> bool {
        let mut state = self.state();
        let had = state.shelf.clear();
        if had {
            self.changes(state, Stand::Starting);
        }
        had
    }

    /// Takes one event in.
    fn take(&self, kind: &str, object: Value) -> ControlFlow<End> {
        if kind == "ERROR" {
            return ControlFlow::Break(self.refused(&object));
        }
        let Some(position) = position(&object).map(str::to_owned) else {
            return ControlFlow::Break(End::Broken(self.broken("an event has no resourceVersion")));
        };
        let mut state = self.state();
        let shelf = &mut state.shelf;
        let happened = match (kind, shelf.take(object)) {
            ("ADDED" | "MODIFIED", Some(seen)) => match shelf.put(seen, position) {
                Ok(happened) => happened,
                Err(OverBudget(reason)) => {
                    let attempted = format!("watch objects of kind {}", self.topic.kind);
                    let error = KubeError::too_much(&attempted, reason);
                    // The object that there is no room for isn't there any more as it was before either.
                    state.shelf = Shelf::new(&self.topic, self.api.budget());
                    self.changes(state, Stand::Failing(error.clone()));
                    return ControlFlow::Break(error.into());
                }
            },
            ("DELETED", Some((name, _))) => shelf.remove(&name, position),
            _ => {
                shelf.moved(position);
                Happened::NOTHING
            }
        };
        drop(state);
        self.bell.rings(happened);
        ControlFlow::Continue(())
    }

    /// The server ends a watch with an error in it.
    fn refused(&self, status: &Value) -> End {
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

    /// What was told of another cluster is not believed of this one.
    fn belong_to(&self, cluster: String) {
        let mut state = self.state();
        if state.cluster != cluster {
            let shelf = Shelf::new(&self.topic, self.api.budget());
            *state = State { stand: Stand::Starting, cluster, shelf };
        }
    }

    fn stands(&self, stand: Stand) {
        self.changes(self.state(), stand);
    }

    /// The same under the lock under which something of what is known was given up: nobody may meet what is left of it while
    /// it still counts as all that there is.
    fn changes(&self, mut state: MutexGuard<'_, State>, stand: Stand) {
        let before = std::mem::replace(&mut state.stand, stand);
        let (news, stand) = (before != state.stand, state.stand.clone());
        drop(state);
        if !news {
            return;
        }
        let (kind, api_version) = (&self.topic.kind, &self.topic.api_version);
        match stand {
            Stand::Failing(error) => tracing::warn!(kind, %error, hint = error.hint(), "not watched"),
            Stand::Forbidden => tracing::warn!(
                kind,
                "may not be listed or watched in all namespaces: each round asks for its objects instead"
            ),
            stand => tracing::debug!(kind, api_version, ?stand, "watched"),
        }
        let purpose = self.topic.purpose;
        self.bell.rings(Happened { plan: purpose.is_planned(), health: purpose.is_judged() });
    }
}
