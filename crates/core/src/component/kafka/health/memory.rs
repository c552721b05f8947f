//! The memory that a judgement leaves to the next one.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::applied_manifests::AppliedCluster;
use super::outputs::Outputs;
use super::view::{ClusterObservation, Counts};
use crate::catalog::{Condition, ResourceStatus, Status};
use crate::component::health::timing::{DEADLINE, DEBOUNCE, OBSERVATION_GAP, first_after};
use crate::names::Digest;

/// Earlier observations of a cluster, as far as the next judgement needs them. Stored as JSON. Losing it
/// costs one debounce and the last known outputs, nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthMemory {
    /// The UID of the Kafka object. A recreated object starts with a new memory.
    uid: Option<String>,
    /// When the operator first succeeded. The status field that says so is absent while the cluster is
    /// paused.
    pub(super) succeeded: Option<Timestamp>,
    /// The last reported status.
    told: Option<ResourceStatus>,
    judged: Option<Timestamp>,
    /// The digest of the applied cluster at that time.
    wanted: Option<Digest>,
    pub(super) outputs: Outputs,
    /// When each symptom began.
    signs: BTreeMap<TroubleSign, Timestamp>,
    /// Since when each trouble of the components beside Kafka has lasted, by the kind of its condition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    troubles: BTreeMap<String, Timestamp>,
    /// The digest of the generations of what people can change, and of the pause annotation.
    asked: Option<Digest>,
    /// When that last changed.
    changed: Option<Timestamp>,
    /// When the operator was last known to be down.
    deaf_until: Option<Timestamp>,
    /// The digest of the operator's verdict, and when it was first seen.
    verdict: Option<(Digest, Timestamp)>,
    /// The digest of everything that moves during a change, and when it last moved.
    moved: Option<(Digest, Timestamp)>,
    pub(super) pools: BTreeMap<String, PoolMemory>,
    /// The UID of each pod, by name, from before the change that is under way, or since it was counted as
    /// restarted. `None` if pods were never seen.
    pub(super) pods: Option<BTreeMap<String, String>>,
    pub(super) update: Option<OngoingChange>,
    /// The digests of what was applied, and of what pods may restart for, from the last time no change was
    /// under way.
    pub(super) settled: Option<(Digest, Digest)>,
    pub(super) voters: Option<Voters>,
    /// Whether the present loss of pods was reported. Such a loss is not taken for a rolling restart.
    pub(super) loss_told: bool,
    /// The digest of the certificates that the listeners should present, and whether they are ruled out as
    /// the cause of trouble, if known.
    certificates: Option<(Digest, Option<bool>)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PoolMemory {
    /// How many pods were ready last.
    pub ready: u32,
    /// How many were ready when all was well, raised as more become ready.
    pub steady: u32,
    /// How many pods have restarted since the change that is under way began.
    pub restarted: u32,
    pub counts: Option<Counts>,
    pub replacing: bool,
    /// The generation of the pod set that the operator last took up.
    pub generation: Option<u64>,
}

/// The number of controllers that vote. It is fixed when the quorum is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Voters {
    pub count: u32,
    /// The observed generation of the Kafka object when this was learnt.
    pub learnt_at: Option<u64>,
}

/// A change that is followed until everything is quiet again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OngoingChange {
    pub began: Timestamp,
    /// When a change was last under way.
    pub last: Timestamp,
    /// Whether the operator will announce the end: its status was behind, or not `Ready`.
    pub announced: bool,
}

/// A status and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub status: Status,
    pub reason: Option<String>,
    /// Whether the reason reports lost pods.
    pub reports_pod_loss: bool,
}

/// A symptom that counts only once it has lasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum TroubleSign {
    /// A pod that was ready isn't.
    Lost,
    /// More than one such pod.
    LostMany,
    /// A pod can't start, and waiting won't help.
    Stuck,
    /// A pod's software fails.
    Broken,
    /// Too few controllers are ready for a majority.
    NoQuorum,
    PodSetError,
    /// Some pods have an older revision. Also true for a moment while a pod is recreated.
    OldRevision,
    /// The operator reports a warning that needs a person.
    Warned,
    NoEntityOperator,
    /// A pod that isn't Kafka itself, such as the entity operator, can't start, and waiting won't help.
    StuckHelper,
    Unschedulable,
    KeptDisks,
    NoOperator,
}

impl HealthMemory {
    /// Returns the memory of the observed cluster. If the Kafka object was recreated, only what its disks
    /// carry and what was last reported is kept.
    pub(super) fn of_the_same_cluster(&self, seen: &ClusterObservation) -> Self {
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

    /// Records the observations that need no judgement.
    pub(super) fn absorb_observation(&mut self, seen: &ClusterObservation, now: Timestamp) {
        if seen.kafka.as_ref().is_some_and(|kafka| kafka.last_success.is_some()) {
            self.succeeded.get_or_insert(now);
        }
        if seen.operator.is_down() {
            self.deaf_until = Some(now);
        }
        self.outputs.learn(seen);
        let asked = requested_state_digest(seen);
        if self.asked.as_ref() != Some(&asked) {
            self.changed = Some(self.long_ago(now));
            self.asked = Some(asked);
        }
        let verdict = operator_verdict_digest(seen);
        if self.verdict.as_ref().map(|(known, _)| known) != Some(&verdict) {
            self.verdict = Some((verdict, now));
        }
        let moves = what_moves(seen);
        if self.moved.as_ref().map(|(known, _)| known) != Some(&moves) {
            self.moved = Some((moves, now));
        }
    }

    pub(super) fn note(&mut self, sign: TroubleSign, is_there: bool, now: Timestamp) {
        if !is_there {
            self.signs.remove(&sign);
        } else if !self.signs.contains_key(&sign) {
            self.signs.insert(sign, self.long_ago(now));
        }
    }

    /// As [`HealthMemory::note`], for all troubles of the components beside Kafka.
    pub(super) fn note_troubles(&mut self, troubles: &[Condition], now: Timestamp) {
        let new = self.long_ago(now);
        let since = |kind: &String| self.troubles.get(kind).copied().unwrap_or(new);
        self.troubles = troubles.iter().map(|it| (it.kind.clone(), since(&it.kind))).collect();
    }

    pub(super) fn trouble_has_lasted(&self, kind: &str, now: Timestamp) -> bool {
        self.troubles.get(kind).is_some_and(|since| now.duration_since(*since) >= DEBOUNCE)
    }

    /// When a new sign began: now, or [`DEBOUNCE`] ago if the last judgement is too old to distinguish a new
    /// sign from a lasting one.
    fn long_ago(&self, now: Timestamp) -> Timestamp {
        if self.is_watched(now) { now } else { now.saturating_sub(DEBOUNCE).unwrap_or(now) }
    }

    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// Whether a sign has lasted long enough to be reported.
    pub(super) fn has_lasted_debounce(&self, sign: TroubleSign, now: Timestamp) -> bool {
        self.lasted(sign, now).is_some_and(|lasted| lasted >= DEBOUNCE)
    }

    pub(super) fn lasted(&self, sign: TroubleSign, now: Timestamp) -> Option<SignedDuration> {
        self.signs.get(&sign).map(|since| now.duration_since(*since))
    }

    /// Whether the operator's verdict is about the current spec.
    pub(super) fn verdict_is_fresh(&self) -> bool {
        matches!((&self.verdict, self.changed), (Some((_, said)), Some(asked)) if *said >= asked)
    }

    pub(super) fn since_change(&self, now: Timestamp) -> SignedDuration {
        self.changed.map_or(SignedDuration::ZERO, |changed| now.duration_since(changed))
    }

    /// Whether the last change should have had an effect by now. Time without an operator doesn't count.
    pub(super) fn is_late(&self, now: Timestamp) -> bool {
        self.changed.max(self.deaf_until).is_some_and(|since| now.duration_since(since) >= DEADLINE)
    }

    /// Whether a change is under way and nothing has moved for [`DEADLINE`].
    pub(super) fn is_stalled(&self, now: Timestamp) -> bool {
        let Some(update) = self.update else { return false };
        let moved = self.moved.as_ref().map(|(_, at)| *at);
        Some(update.began)
            .max(moved)
            .max(self.deaf_until)
            .is_some_and(|since| now.duration_since(since) >= DEADLINE)
    }

    /// When the status may next change by the passing of time alone, if it can.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let changes = [self.changed, self.deaf_until, self.moved.as_ref().map(|(_, at)| *at)];
        let update = self.update.iter().flat_map(|update| [update.began, update.last]);
        let signs = self.signs.values().chain(self.troubles.values()).copied();
        let began = signs.chain(changes.into_iter().flatten()).chain(update);
        first_after(began, now)
    }

    /// The last reported status and its time.
    pub fn last(&self) -> Option<(&ResourceStatus, Timestamp)> {
        self.told.as_ref().zip(self.judged)
    }

    /// The last reported status, if it is recent and the same cluster was applied then.
    pub(super) fn recently_reported_status(
        &self,
        wanted: &AppliedCluster,
        now: Timestamp,
    ) -> Option<&ResourceStatus> {
        let is_the_same = || self.wanted == Some(version(wanted));
        self.told.as_ref().filter(|_| self.is_watched(now) && is_the_same())
    }

    /// Whether everything that was applied since the last quiet moment restarts no pod.
    pub(super) fn restarts_nothing(&self, wanted: &AppliedCluster) -> bool {
        let now = settled(wanted);
        let both = self.settled.as_ref().zip(now.as_ref());
        both.is_some_and(|((applied, restarts), (applies, restarted))| {
            applied != applies && restarts == restarted
        })
    }

    /// Notes that no change is under way.
    pub(super) fn settle(&mut self, wanted: &AppliedCluster) {
        self.settled = settled(wanted);
    }

    pub(super) fn note_wanted(&mut self, wanted: &AppliedCluster) {
        self.wanted = Some(version(wanted));
    }

    /// Whether the last judgement is recent.
    fn is_watched(&self, now: Timestamp) -> bool {
        self.judged.is_some_and(|judged| now.duration_since(judged) < OBSERVATION_GAP)
    }

    pub(super) fn told(&self) -> Option<Decision> {
        let told = self.told.as_ref()?;
        Some(Decision { status: told.status, reason: told.reason.clone(), reports_pod_loss: false })
    }

    /// Whether the certificates of the listeners are ruled out as the cause of trouble: the cluster was
    /// Healthy with them, or was already in trouble when it got them. `None` for certificates whose arrival
    /// wasn't observed.
    pub(super) fn clear_certificates(&mut self, wanted: &AppliedCluster, is_well: bool) -> Option<bool> {
        let (now, told) = (digest(&wanted.certificates), self.told.as_ref());
        let was_in_trouble = told.is_some_and(|told| {
            matches!(told.status, Status::Degraded | Status::Failed | Status::Unreachable)
        });
        let clear = match &self.certificates {
            _ if is_well => Some(true),
            Some((known, clear)) if *known == now => *clear,
            // Trouble that the previous certificates caused doesn't rule out these.
            Some((_, clear)) => Some(was_in_trouble && *clear != Some(false)),
            None => None,
        };
        self.certificates = Some((now, clear));
        clear
    }

    /// The same information, as of the last judgement. Certificates that were applied since then aren't ruled out.
    pub(super) fn had_clear_certificates(&self, wanted: &AppliedCluster) -> Option<bool> {
        let (known, clear) = self.certificates.as_ref()?;
        if *known == digest(&wanted.certificates) { *clear } else { Some(false) }
    }

    /// Stores the reported status. `since` is kept if the status is the same as before.
    pub(super) fn settle_on(
        &mut self,
        decision: Decision,
        conditions: Vec<Condition>,
        now: Timestamp,
    ) -> ResourceStatus {
        let since = self.told.as_ref().filter(|told| told.status == decision.status).map(|told| told.since);
        let Decision { status, reason, reports_pod_loss: tells_loss } = decision;
        self.loss_told |= tells_loss;
        let told = ResourceStatus { status, reason, conditions, since: since.unwrap_or(now) };
        self.told = Some(told.clone());
        self.judged = Some(now);
        told
    }
}

fn settled(wanted: &AppliedCluster) -> Option<(Digest, Digest)> {
    Some((digest(&wanted.applied), wanted.restarts.clone()?))
}

/// The digest of a cluster as applied, wherever that is known from.
fn version(wanted: &AppliedCluster) -> Digest {
    digest(&AppliedCluster { is_recorded: true, ..wanted.clone() })
}

fn digest(of: &impl std::fmt::Debug) -> Digest {
    Digest::of(format!("{of:?}"))
}

/// The digest of what people can change. If it changes, the operator has work to do.
fn requested_state_digest(seen: &ClusterObservation) -> Digest {
    let kafka = seen.kafka.as_ref().map(|kafka| (kafka.generation, kafka.paused));
    let pools: Vec<_> = seen.pools.iter().map(|(name, pool)| (name, pool.generation)).collect();
    Digest::of(format!("{kafka:?} {pools:?}"))
}

/// The digest of the operator's verdict, including the time at which it was written.
fn operator_verdict_digest(seen: &ClusterObservation) -> Digest {
    let mut said: Vec<_> =
        seen.kafka.iter().flat_map(|kafka| &kafka.conditions).filter(|c| c.kind != "Warning").collect();
    said.sort();
    Digest::of(format!("{said:?}"))
}

/// The digest of everything that moves while the operator works.
fn what_moves(seen: &ClusterObservation) -> Digest {
    let kafka = seen.kafka.as_ref().map(|kafka| (kafka.generation, kafka.observed_generation));
    let ready = seen.pods.iter().flatten().map(|(name, pod)| (name, pod.ready)).collect::<Vec<_>>();
    let pools: Vec<_> = seen.pools.iter().map(|(name, pool)| (name, pool.observed_generation)).collect();
    let sets: Vec<_> = seen.pod_sets.iter().map(|(name, set)| (name, set.behind, set.counts)).collect();
    let claims: Vec<_> = seen.claims.iter().map(|(name, claim)| (name, &claim.capacity)).collect();
    Digest::of(format!("{kafka:?} {ready:?} {pools:?} {sets:?} {claims:?}"))
}
