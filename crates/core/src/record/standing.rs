//! The status of a resource, with its reason and conditions. `status`, `get`, `why`, the metrics and the API take it from
//! here, so that they never differ.

use jiff::Timestamp;

use crate::catalog::{Absence, Catalog, Condition, Hold, Recorded, ResourceStatus, Status};
use crate::names::{Kind, ResourceKey};
use crate::plan::{Change, FleetPlan, Index, Plan, Verb, Waiting};

/// The reason of a cluster on a folder, of which no more is known.
pub const WRITTEN: &str = "manifests written; health unknown for directory fleets";

/// The reason of a topic or user on a Kubernetes cluster whose object wasn't read.
const UNREAD: &str = "manifest written; what the operator says of it has not been read yet";

#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub status: Status,
    /// Set where the status alone raises a question.
    pub reason: Option<String>,
    pub conditions: Vec<Condition>,
    /// `None` if unknown.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The operators of this installation.
    Host,
    /// The members of organizations, from whom network details are hidden.
    Tenants,
}

impl Audience {
    pub fn waiting_reason(self, waiting: &Waiting) -> String {
        match self {
            Audience::Host => waiting.to_string(),
            Audience::Tenants => waiting.redacted_for_tenants().to_string(),
        }
    }

    pub fn labelled_waiting(self, waiting: &Waiting) -> String {
        match self {
            Audience::Host => waiting.labelled(),
            Audience::Tenants => waiting.redacted_for_tenants().labelled(),
        }
    }
}

/// A write that the plan doesn't include yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnplannedWrite {
    Changed,
    Removed,
}

/// The message for a resource without a document.
const UNNAMED: &str = "spec file missing";

/// The reason of a deletion that waits for nothing.
const DELETED_SOON: &str = "deletion scheduled";

/// The reason while a resource is applied and its health isn't known yet.
const UNSEEN: &str = "applied; its health has not been observed yet";

const UNAPPLIED: &str = "the current spec is not applied yet";

/// The inputs of a standing.
#[derive(Clone, Copy)]
pub struct StandingInputs<'a> {
    pub catalog: &'a Catalog,
    pub recorded: &'a Recorded,
    pub plan: &'a Plan,
    pub index: &'a Index,
    /// `None` if the resource's health is unknown or nothing runs.
    pub judged: Option<&'a ResourceStatus>,
    pub unplanned: Option<UnplannedWrite>,
    pub audience: Audience,
}

impl StandingInputs<'_> {
    pub fn standing(&self, key: &ResourceKey) -> Standing {
        let host = self.host(key);
        let change = self.index.change(self.plan, key);
        let waits = change.and_then(|change| self.waiting_deletion(change));
        let mut conditions = self.conditions(key, host);
        let (status, reason) = match self.unplanned {
            Some(UnplannedWrite::Removed) => (Status::Deleting, Some(DELETED_SOON.to_owned())),
            unplanned => match self.planned(key, host, change, &conditions, waits.as_deref()) {
                (Status::Healthy | Status::Written, _) if unplanned.is_some() => {
                    (Status::Updating, Some(UNAPPLIED.to_owned()))
                }
                planned => planned,
            },
        };
        conditions.extend(waits.map(|message| Condition {
            kind: "DeletionWaits".to_owned(),
            degraded: false,
            message,
        }));
        let since = self.judged.filter(|judged| judged.status == status).map(|judged| judged.since);
        Standing { status, reason, conditions, since }
    }

    /// The plan of a fleet, or of the fleet that a resource's spec names.
    fn host(&self, key: &ResourceKey) -> Option<&FleetPlan> {
        let fleet = key.as_fleet().or_else(|| self.catalog.resources.get(key)?.fleet())?;
        self.index.fleet(self.plan, &fleet)
    }

    fn planned(
        &self,
        key: &ResourceKey,
        host: Option<&FleetPlan>,
        change: Option<&Change>,
        conditions: &[Condition],
        waits: Option<&str>,
    ) -> (Status, Option<String>) {
        let record = self.recorded.resources.get(key);
        let unreached = self.unreached(key, host);
        if let Some(record) = record.filter(|record| record.durable.deleting || self.is_leaving(key, change))
        {
            let deleting = self.judged.filter(|judged| judged.status == Status::Deleting);
            let reason = deleting.and_then(|judged| judged.reason.clone());
            let reason = match record.durable.deleting {
                true => reason,
                false => waits
                    .map(str::to_owned)
                    .or(unreached.map(|(_, reason)| reason))
                    .or(Some(DELETED_SOON.to_owned())),
            };
            return (Status::Deleting, reason);
        }
        let (status, reason) = self.staying(key, change, conditions, unreached, waits);
        // Manifests in a folder are applied by others, so their health is unknown.
        let on = host.or_else(|| self.index.fleet(self.plan, &record?.fleet(key)?));
        let is_unseen = on.and_then(|on| on.observes()) == Some(false);
        match status {
            Status::Healthy if key.kind.is_on_cluster() && self.judged.is_none() => {
                let unread = || if is_unseen { WRITTEN } else { UNREAD }.to_owned();
                (Status::Written, Some(reason.unwrap_or_else(unread)))
            }
            Status::Healthy if key.kind == Kind::Cluster && is_unseen => {
                let unseen = || WRITTEN.to_owned();
                (Status::Written, Some(reason.unwrap_or_else(unseen)))
            }
            status => (status, reason),
        }
    }

    /// The status of a resource that isn't being deleted.
    fn staying(
        &self,
        key: &ResourceKey,
        change: Option<&Change>,
        conditions: &[Condition],
        unreached: Option<(Status, String)>,
        waits: Option<&str>,
    ) -> (Status, Option<String>) {
        let record = self.recorded.resources.get(key);
        let hold = self.catalog.resources.get(key).and_then(|resource| resource.hold.as_ref());
        let ailing = self.judged.filter(|judged| judged.status != Status::Healthy);
        match (record, change, hold, unreached) {
            (_, _, _, Some((Status::Failed, reason))) => (Status::Failed, Some(reason)),
            (Some(record), _, _, Some((status, reason))) if !record.durable.creating => {
                (status, Some(reason))
            }
            (_, _, Some(hold @ Hold::Suspended { .. }), _) => (Status::Suspended, Some(hold.to_string())),
            (None, Some(change), _, _) => (Status::Pending, self.first_waiting(change)),
            (Some(record), Some(change), _, _) if record.durable.creating && change.verb == Verb::Create => {
                (Status::Provisioning, self.first_waiting(change))
            }
            (None, None, _, _) => (Status::Pending, None),
            (Some(_), Some(change), _, _) if change.verb == Verb::Delete => {
                self.undeletable(key, change, ailing, conditions, waits)
            }
            // A running cluster is reported by its health, whatever the spec says.
            (Some(_), _, _, _) if let Some(ailing) = ailing => (ailing.status, ailing.reason.clone()),
            // A blocked or refused change: the cluster keeps running as it was last applied.
            (
                Some(_),
                _,
                Some(hold @ (Hold::Invalid { .. } | Hold::Dependency { .. } | Hold::Certificate { .. })),
                _,
            ) => {
                let (status, ails) = self.as_applied(key, conditions);
                (status, Some(ails.unwrap_or_else(|| hold.to_string())))
            }
            (Some(_), Some(change), _, _) => self.changing(key, change, conditions),
            (Some(_), None, _, _) => self.as_applied(key, conditions),
        }
    }

    /// Whether a recorded resource has no document any more and is going to be deleted: its deletion waits
    /// for nothing but time, its turn or an approval. One that is protected or suspended, or whose absence
    /// may be a mistake, stays.
    fn is_leaving(&self, key: &ResourceKey, change: Option<&Change>) -> bool {
        let is_removed = match self.catalog.absent.get(key) {
            Some(absence) => *absence == Absence::Removed,
            None => !self.catalog.resources.contains_key(key),
        };
        let keeps = |waiting: &Waiting| {
            matches!(
                waiting,
                Waiting::Protected
                    | Waiting::UnreadableFile { .. }
                    | Waiting::Refused { .. }
                    | Waiting::Held(_)
            )
        };
        let is_deleted = |change: &Change| change.verb == Verb::Delete && !change.waiting.iter().any(keeps);
        // A write that isn't planned yet may have recreated it.
        self.unplanned.is_none() && is_removed && change.is_none_or(is_deleted)
    }

    fn changing(
        &self,
        key: &ResourceKey,
        change: &Change,
        conditions: &[Condition],
    ) -> (Status, Option<String>) {
        let mut waiting = change.waiting.iter();
        if change.verb == Verb::Keep {
            let is_foreign = |waiting: &Waiting| {
                use Waiting::{ForeignObject, ForeignRecord, NotAFile};
                matches!(waiting, ForeignObject { .. } | ForeignRecord(_) | NotAFile { .. })
            };
            let is_foreign = waiting.any(is_foreign);
            let status = if is_foreign { Status::Degraded } else { self.as_applied(key, conditions).0 };
            return (status, self.first_waiting(change));
        }
        if let Some(waiting) = waiting.find(|waiting| !goes_on(waiting)) {
            let waits = format!("change {}", self.audience.labelled_waiting(waiting));
            let (status, ails) = self.as_applied(key, conditions);
            return (status, Some(ails.unwrap_or(waits)));
        }
        let reason = self.first_waiting(change).unwrap_or_else(|| UNAPPLIED.to_owned());
        (Status::Updating, Some(reason))
    }

    /// The status and reason of a resource whose fleet can't be reached; `None` if it can. A fleet whose
    /// target refuses access has failed.
    fn unreached(&self, key: &ResourceKey, host: Option<&FleetPlan>) -> Option<(Status, String)> {
        let waiting = host?.reach.waiting().filter(|it| matches!(it, Waiting::Unreachable { .. }))?;
        let refused = matches!(waiting, Waiting::Unreachable { refused: true, .. });
        let status = if refused && key.kind == Kind::Fleet { Status::Failed } else { Status::Unreachable };
        Some((status, self.audience.waiting_reason(&waiting)))
    }

    fn first_waiting(&self, change: &Change) -> Option<String> {
        change.waiting.first().map(|waiting| self.audience.waiting_reason(waiting))
    }

    /// Everything that a deletion waits for, with the id of a missing approval; `None` if it waits for nothing.
    fn waiting_deletion(&self, change: &Change) -> Option<String> {
        let told = |waiting: &Waiting| match waiting {
            Waiting::Approval { id, why } => format!("needs approval {id}: {why}"),
            waiting => self.audience.waiting_reason(waiting),
        };
        // The deletion itself may be what is under way.
        let waits = change.waiting.iter().filter(|waiting| !matches!(waiting, Waiting::UnderWay { .. }));
        let waits: Vec<String> = waits.map(told).collect();
        let is_waiting = change.verb == Verb::Delete && !waits.is_empty();
        is_waiting.then(|| format!("{UNNAMED}: {}", waits.join("; ")))
    }

    /// The status of what runs on without a document, since it is kept: both what ails it and what keeps it.
    fn undeletable(
        &self,
        key: &ResourceKey,
        change: &Change,
        ailing: Option<&ResourceStatus>,
        conditions: &[Condition],
        waits: Option<&str>,
    ) -> (Status, Option<String>) {
        let is_suspended = |waiting: &Waiting| matches!(waiting, Waiting::Held(Hold::Suspended { .. }));
        let (status, ails) = match ailing {
            Some(ailing) => (ailing.status, ailing.reason.clone()),
            None if change.waiting.iter().any(is_suspended) => (Status::Suspended, None),
            None => self.as_applied(key, conditions),
        };
        let reasons: Vec<&str> = ails.as_deref().into_iter().chain(waits).collect();
        (status, (!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    /// The status of what was applied, if nothing else is wrong.
    fn as_applied(&self, key: &ResourceKey, conditions: &[Condition]) -> (Status, Option<String>) {
        match conditions.iter().find(|condition| condition.degraded) {
            Some(condition) => (Status::Degraded, Some(condition.message.clone())),
            None if self.is_unseen(key) => (Status::Pending, Some(UNSEEN.to_owned())),
            None => (Status::Healthy, None),
        }
    }

    /// Whether the health of a fleet or a cluster could be observed, and wasn't yet: as while the fleet's first plan is
    /// carried out.
    fn is_unseen(&self, key: &ResourceKey) -> bool {
        let record = self.recorded.resources.get(key);
        let of_record = || self.index.fleet(self.plan, &record?.fleet(key)?);
        let observes = self.host(key).or_else(of_record).and_then(FleetPlan::observes);
        self.judged.is_none() && matches!(key.kind, Kind::Fleet | Kind::Cluster) && observes == Some(true)
    }

    fn conditions(&self, key: &ResourceKey, host: Option<&FleetPlan>) -> Vec<Condition> {
        let fleet = host.filter(|_| key.kind == Kind::Fleet);
        let of_fleet = fleet.into_iter().flat_map(|fleet| &fleet.conditions);
        let judged = self.judged.into_iter().flat_map(|judged| &judged.conditions);
        of_fleet.chain(judged).cloned().collect()
    }
}

/// Whether the wait is a part of work in progress that continues by itself.
fn goes_on(waiting: &Waiting) -> bool {
    use Waiting::{OneDisruption, Renewal, Retry, Unconfirmed, UnderWay, Unsettled, Upgrade};
    matches!(
        waiting,
        OneDisruption { .. }
            | Renewal { .. }
            | Retry { .. }
            | Unconfirmed { .. }
            | UnderWay { .. }
            | Unsettled
            | Upgrade { .. }
    )
}
