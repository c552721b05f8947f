//! What a judgement remembers for the next one.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::{Condition, ResourceStatus, Status};
use crate::names::Digest;

use super::outputs::Outputs;
use super::state::Decision;
use super::update::Update;
use super::view::{Counts, Seen};
use super::{DEADLINE, DEBOUNCE, GAP, SETTLE, Wanted};

/// What was seen of a cluster before, as far as the next judgement needs it. It can be kept as JSON; losing it costs
/// debouncing once and the last known outputs, nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The Kafka object that it is about.
    uid: Option<String>,
    /// When the operator first succeeded. Its own note of that is gone while it is paused.
    pub(super) succeeded: Option<Timestamp>,
    /// What a person was told last.
    told: Option<ResourceStatus>,
    /// When it was last judged.
    judged: Option<Timestamp>,
    /// What was wanted of it then.
    wanted: Option<Digest>,
    /// The last known outputs.
    pub(super) outputs: Outputs,
    /// Since when each sign lasts.
    signs: BTreeMap<Sign, Timestamp>,
    /// The generations of what people can change, and whether it is paused.
    asked: Option<Digest>,
    /// When that last changed.
    changed: Option<Timestamp>,
    /// Until when the operator was last known to do nothing.
    deaf_until: Option<Timestamp>,
    /// The operator's verdict, and when it was first seen.
    verdict: Option<(Digest, Timestamp)>,
    /// What moves while a change is under way, and when it last did.
    moved: Option<(Digest, Timestamp)>,
    /// What was counted of each pool.
    pub(super) pools: BTreeMap<String, PoolMemory>,
    /// Which pod each name of a pool's stood for before the change that is under way, or stands for since it was counted as
    /// restarted; none where pods were never seen.
    pub(super) pods: Option<BTreeMap<String, String>>,
    /// The change that is under way.
    pub(super) update: Option<Update>,
    /// What was applied, and what of it pods may restart for, when no change was under way last.
    pub(super) settled: Option<(Digest, Digest)>,
    /// How many controllers vote, as last known.
    pub(super) voters: Option<Voters>,
    /// Whether the present loss of pods was told to a person, so that it is no restart that passes.
    pub(super) loss_told: bool,
    /// The certificates that its listeners are to show, and whether trouble can't come from them, as far as that is known.
    certificates: Option<(Digest, Option<bool>)>,
}

/// What was counted of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PoolMemory {
    /// How many pods were ready last.
    pub ready: u32,
    /// How many were ready when all was well, and as many as became ready since.
    pub steady: u32,
    /// How many have come back since the change that is under way began.
    pub restarted: u32,
    /// What its pod set counted last.
    pub counts: Option<Counts>,
    /// Whether its pods are being replaced by those of a new revision.
    pub replacing: bool,
    /// The generation of its pod set that was last taken up.
    pub generation: Option<u64>,
}

/// How many controllers vote. The number is fixed when the quorum is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Voters {
    /// How many.
    pub count: u32,
    /// The generation that the operator had finished with when that was learnt.
    pub learnt_at: Option<u64>,
}

/// Something whose duration decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Sign {
    /// A pod that was ready isn't.
    Lost,
    /// More than one.
    LostMany,
    /// A pod can't start, and waiting won't help.
    Stuck,
    /// A pod's software fails.
    Broken,
    /// Too few controllers are ready to agree on anything.
    NoQuorum,
    /// A pod set reports an error instead of counts.
    PodSetError,
    /// Some pods are of an older revision. While a pod is made anew, that is so for a moment, too.
    OldRevision,
    /// The operator warns of something that needs a person.
    Warned,
    /// The entity operator isn't ready.
    NoEntityOperator,
    /// A pod that looks after the cluster beside Kafka can't start, and waiting won't help.
    StuckHelper,
    /// No node takes a pod.
    Unschedulable,
    /// There are disks of nodes that were removed.
    KeptDisks,
    /// The operator is down.
    NoOperator,
}

impl Memory {
    /// What is remembered of the very cluster that is seen: a new object of the same name has its own history, save
    /// for what its disks carry.
    pub(super) fn of_the_same_cluster(&self, seen: &Seen) -> Self {
        let uid = seen.kafka.as_ref().and_then(|kafka| kafka.uid.clone());
        if uid.is_none() || self.uid.is_none() || uid == self.uid {
            return Self { uid: uid.or_else(|| self.uid.clone()), ..self.clone() };
        }
        let outputs = Outputs { cluster_id: self.outputs.cluster_id.clone(), ..Outputs::default() };
        Self {
            uid,
            outputs,
            asked: self.asked.clone(),
            told: self.told.clone(),
            judged: self.judged,
            ..Self::default()
        }
    }

    /// Takes in what needs no judgement.
    pub(super) fn hear(&mut self, seen: &Seen, now: Timestamp) {
        if seen.kafka.as_ref().is_some_and(|kafka| kafka.last_success.is_some()) {
            self.succeeded.get_or_insert(now);
        }
        if seen.operator.is_down() {
            self.deaf_until = Some(now);
        }
        self.outputs.learn(seen);
        let asked = what_is_asked(seen);
        if self.asked.as_ref() != Some(&asked) {
            self.changed = Some(self.long_ago(now));
            self.asked = Some(asked);
        }
        let verdict = what_is_said(seen);
        if self.verdict.as_ref().map(|(known, _)| known) != Some(&verdict) {
            self.verdict = Some((verdict, now));
        }
        let moves = what_moves(seen);
        if self.moved.as_ref().map(|(known, _)| known) != Some(&moves) {
            self.moved = Some((moves, now));
        }
    }

    /// Notes whether a sign is there.
    pub(super) fn note(&mut self, sign: Sign, is_there: bool, now: Timestamp) {
        if !is_there {
            self.signs.remove(&sign);
        } else if !self.signs.contains_key(&sign) {
            self.signs.insert(sign, self.long_ago(now));
        }
    }

    /// When something began that is seen for the first time: now, unless nobody has looked for so long that what is new
    /// can't be told from what lasts.
    fn long_ago(&self, now: Timestamp) -> Timestamp {
        if self.is_watched(now) { now } else { now.saturating_sub(DEBOUNCE).unwrap_or(now) }
    }

    /// Where the cluster is found and what it is, as last known.
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Whether a sign lasts for long enough to be told.
    pub(super) fn lasts(&self, sign: Sign, now: Timestamp) -> bool {
        self.lasted(sign, now).is_some_and(|lasted| lasted >= DEBOUNCE)
    }

    /// How long a sign lasts; none when it isn't there.
    pub(super) fn lasted(&self, sign: Sign, now: Timestamp) -> Option<SignedDuration> {
        self.signs.get(&sign).map(|since| now.duration_since(*since))
    }

    /// Whether the operator's verdict is about what is asked for now.
    pub(super) fn verdict_is_fresh(&self) -> bool {
        matches!((&self.verdict, self.changed), (Some((_, said)), Some(asked)) if *said >= asked)
    }

    /// How long ago people last changed anything.
    pub(super) fn since_change(&self, now: Timestamp) -> SignedDuration {
        self.changed.map_or(SignedDuration::ZERO, |changed| now.duration_since(changed))
    }

    /// Whether so much time has passed since the last change that something should have come of it. The operator's
    /// absence doesn't count.
    pub(super) fn is_late(&self, now: Timestamp) -> bool {
        self.changed.max(self.deaf_until).is_some_and(|since| now.duration_since(since) >= DEADLINE)
    }

    /// Whether a change is under way in which nothing has moved for so long that nothing will.
    pub(super) fn is_stalled(&self, now: Timestamp) -> bool {
        let Some(update) = self.update else { return false };
        let moved = self.moved.as_ref().map(|(_, at)| *at);
        Some(update.began)
            .max(moved)
            .max(self.deaf_until)
            .is_some_and(|since| now.duration_since(since) >= DEADLINE)
    }

    /// When the word may become another one though nothing is seen to change; none where time alone changes nothing.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let changes = [self.changed, self.deaf_until, self.moved.as_ref().map(|(_, at)| *at)];
        let update = self.update.iter().flat_map(|update| [update.began, update.last]);
        let began = self.signs.values().copied().chain(changes.into_iter().flatten()).chain(update);
        first_after(began, now)
    }

    /// What a person was told last, and when; none where nothing was.
    pub fn last(&self) -> Option<(&ResourceStatus, Timestamp)> {
        self.told.as_ref().zip(self.judged)
    }

    /// What a person was told last, unless that is long ago, or something else was wanted of the cluster then.
    pub(super) fn told_lately(&self, wanted: &Wanted, now: Timestamp) -> Option<&ResourceStatus> {
        let is_the_same = || self.wanted == Some(digest(wanted));
        self.told.as_ref().filter(|_| self.is_watched(now) && is_the_same())
    }

    /// Whether all that was applied since no change was under way last is nothing that any pod restarts for.
    pub(super) fn restarts_nothing(&self, wanted: &Wanted) -> bool {
        let now = settled(wanted);
        let both = self.settled.as_ref().zip(now.as_ref());
        both.is_some_and(|((applied, restarts), (applies, restarted))| {
            applied != applies && restarts == restarted
        })
    }

    /// Notes that no change is under way.
    pub(super) fn settle(&mut self, wanted: &Wanted) {
        self.settled = settled(wanted);
    }

    /// Notes what is wanted of the cluster that is judged.
    pub(super) fn note_wanted(&mut self, wanted: &Wanted) {
        self.wanted = Some(digest(wanted));
    }

    /// Whether somebody has looked a short while ago.
    fn is_watched(&self, now: Timestamp) -> bool {
        self.judged.is_some_and(|judged| now.duration_since(judged) < GAP)
    }

    /// What a person was told last.
    pub(super) fn told(&self) -> Option<Decision> {
        let told = self.told.as_ref()?;
        Some(Decision { status: told.status, reason: told.reason.clone(), tells_loss: false })
    }

    /// Whether trouble of the cluster doesn't come from the certificates that its listeners are to show: it was Healthy with
    /// them, or it was in trouble when it got them. Of certificates that were never seen to come nothing is known.
    pub(super) fn clear_certificates(&mut self, wanted: &Wanted, is_well: bool) -> Option<bool> {
        let (now, told) = (digest(&wanted.certificates), self.told.as_ref());
        let was_in_trouble = told.is_some_and(|told| {
            matches!(told.status, Status::Degraded | Status::Failed | Status::Unreachable)
        });
        let clear = match &self.certificates {
            _ if is_well => Some(true),
            Some((known, clear)) if *known == now => *clear,
            // What the last ones broke proves nothing of these.
            Some((_, clear)) => Some(was_in_trouble && *clear != Some(false)),
            None => None,
        };
        self.certificates = Some((now, clear));
        clear
    }

    /// Whether trouble didn't come from the certificates that are wanted when it was last looked at. Of others that it got since,
    /// it may.
    pub(super) fn had_clear_certificates(&self, wanted: &Wanted) -> Option<bool> {
        let (known, clear) = self.certificates.as_ref()?;
        if *known == digest(&wanted.certificates) { *clear } else { Some(false) }
    }

    /// Remembers what a person is told, and since when that has been the word.
    pub(super) fn settle_on(
        &mut self,
        decision: Decision,
        conditions: Vec<Condition>,
        now: Timestamp,
    ) -> ResourceStatus {
        let since = self.told.as_ref().filter(|told| told.status == decision.status).map(|told| told.since);
        let Decision { status, reason, tells_loss } = decision;
        self.loss_told |= tells_loss;
        let told = ResourceStatus { status, reason, conditions, since: since.unwrap_or(now) };
        self.told = Some(told.clone());
        self.judged = Some(now);
        told
    }
}

fn settled(wanted: &Wanted) -> Option<(Digest, Digest)> {
    Some((digest(&wanted.applied), wanted.restarts.clone()?))
}

fn digest(of: &impl std::fmt::Debug) -> Digest {
    Digest::of(format!("{of:?}"))
}

/// The first moment after now at which something that began then has lasted for a time that decides.
pub(super) fn first_after(began: impl Iterator<Item = Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let ends = |began: Timestamp| {
        [DEBOUNCE, SETTLE, DEADLINE].into_iter().filter_map(move |lasts| began.checked_add(lasts).ok())
    };
    began.flat_map(ends).filter(|end| *end > now).min()
}

/// What people can change: when it moves, the operator has something new to do.
fn what_is_asked(seen: &Seen) -> Digest {
    let kafka = seen.kafka.as_ref().map(|kafka| (kafka.generation, kafka.paused));
    let pools: Vec<_> = seen.pools.iter().map(|(name, pool)| (name, pool.generation)).collect();
    Digest::of(format!("{kafka:?} {pools:?}"))
}

/// The operator's verdict, with the time at which it was written.
fn what_is_said(seen: &Seen) -> Digest {
    let mut said: Vec<_> =
        seen.kafka.iter().flat_map(|kafka| &kafka.conditions).filter(|c| c.kind != "Warning").collect();
    said.sort();
    Digest::of(format!("{said:?}"))
}

/// What moves while the operator works.
fn what_moves(seen: &Seen) -> Digest {
    let kafka = seen.kafka.as_ref().map(|kafka| (kafka.generation, kafka.observed_generation));
    let ready = seen.pods.iter().flatten().map(|(name, pod)| (name, pod.ready)).collect::<Vec<_>>();
    let pools: Vec<_> = seen.pools.iter().map(|(name, pool)| (name, pool.observed_generation)).collect();
    let sets: Vec<_> = seen.pod_sets.iter().map(|(name, set)| (name, set.behind, set.counts)).collect();
    let claims: Vec<_> = seen.claims.iter().map(|(name, claim)| (name, &claim.capacity)).collect();
    Digest::of(format!("{kafka:?} {ready:?} {pools:?} {sets:?} {claims:?}"))
}
