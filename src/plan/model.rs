//! The plan as a value: printed, served, saved and executed as it stands here.

mod waiting;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::{Condition, Gauge, OrganizationCapacity, RecordedResource, ResourceStatus};
use crate::config::Mode;
use crate::names::{Digest, FleetKey, Identifier, Json, ObjectKey, ResourceKey};
use crate::plan::{Pauses, Reach, Remark, Sizes};
use crate::problem::{Origin, Problem};
use crate::render::{Manifest, Stage};
use crate::spec::{Commit, InfraType, SourceId};

pub use waiting::Waiting;

/// The version of the plan's JSON form.
pub const FORMAT: u32 = 1;

/// What may be done without asking, and what time it is.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The time of planning.
    pub now: Timestamp,
    /// What is done without anybody saying so.
    pub mode: Mode,
    /// How many Kafka clusters a fleet may lose in an hour without approval.
    pub cluster_deletions_per_hour: u32,
    /// How long an approval holds.
    pub approval_lifetime: SignedDuration,
    /// The version of this software, as it marks what it renders.
    pub software: String,
    /// What a running process puts off.
    pub pauses: Pauses,
    /// The resources that somebody was told are made or changed though that isn't recorded yet.
    pub announced: BTreeMap<ResourceKey, Announced>,
}

/// When somebody was told that a resource is made, or changed to what its document says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced {
    /// When it was made; none where nobody was told that, or it is recorded.
    pub made: Option<Timestamp>,
    /// When it was changed; none where nobody was told that, its document says something else by now, or it is recorded.
    pub changed: Option<Timestamp>,
}

/// Everything that will be done, and everything that waits and for what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of this form.
    pub format: u32,
    /// The hash of everything below but the time, the problems' texts and how things are, shortened for people.
    pub id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it was made from; a plan whose inputs have changed is refused.
    pub inputs: Inputs,
    /// What happens to resources that live on no fleet, organization by organization.
    pub organizations: Vec<OrganizationPlan>,
    /// What happens on each fleet.
    pub fleets: Vec<FleetPlan>,
    /// Resources whose record is out of date though nothing changes: a lost cache is filled again from here.
    pub remember: BTreeMap<ResourceKey, RecordedResource>,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// How many resources change.
    pub summary: Summary,
}

/// What a plan was made from, each by its hash, so that a stale plan can say what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The spec tree.
    pub source: SourceId,
    /// Its content.
    pub revision: String,
    /// The commit that it is, where it comes from a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// This software's version.
    pub software: String,
    /// The record, without status: resources, protection, approvals.
    pub recorded: Digest,
    /// The size catalogue and the policy.
    pub settings: Digest,
    /// What each target held, by fleet: the inventory and the fields that we own.
    pub observed: BTreeMap<FleetKey, Digest>,
}

/// How many resources change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Resources that are made.
    pub create: u32,
    /// Resources that change.
    pub change: u32,
    /// Resources that are deleted.
    pub delete: u32,
    /// Resources that wait.
    pub waiting: u32,
    /// Resources that are as their specs say.
    pub unchanged: u32,
    /// Problems that stop something.
    pub errors: u32,
    /// Problems that stop nothing.
    pub warnings: u32,
}

/// What happens to an organization and to its resources that live on no fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationPlan {
    /// The organization.
    pub organization: Identifier,
    /// Its limits and use.
    pub capacity: OrganizationCapacity,
    /// The resources, those that others refer to first. Unchanged ones are left out.
    pub changes: Vec<Change>,
}

/// What happens on one fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetPlan {
    /// The fleet.
    pub fleet: FleetKey,
    /// What kind of target it is; none where no such fleet is described or was ever applied.
    pub infra_type: Option<InfraType>,
    /// Whether the target could be looked at.
    pub reach: Reach,
    /// Its clusters against its limit.
    pub clusters: Gauge,
    /// Its units against its limit.
    pub kafka_units: Gauge,
    /// What a person should know about the fleet as a whole.
    pub conditions: Vec<Condition>,
    /// How it is; none where that was not judged. Plans that differ in nothing else are the same plan.
    #[serde(default)]
    pub status: Option<ResourceStatus>,
    /// How those of its clusters are that are not Healthy.
    #[serde(default)]
    pub unwell: BTreeMap<ResourceKey, ResourceStatus>,
    /// How large its clusters become; none where no size changes.
    #[serde(default)]
    pub sizes: Option<Sizes>,
    /// The fleet itself, then its clusters by name. Unchanged ones are left out. A repair stands after the change that waits.
    pub changes: Vec<Change>,
    /// The approval that its guarded steps need or have; none when nothing is guarded.
    pub guard: Option<Guard>,
    /// Approvals that were given for something else than what would be done now. They are taken away.
    #[serde(default)]
    pub void_approvals: Vec<String>,
    /// Objects that stand where ours should be and are not ours: left alone and reported.
    pub foreign: Vec<ObjectKey>,
}

/// The approval that a fleet's guarded steps need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The hash of the guarded steps: verb, uid, digests before and after. This is what a person approves.
    pub id: String,
    /// Who approved it; none while nobody has.
    pub approved_by: Option<String>,
    /// What the approval becomes when it is used: the hash of those steps of it that have to wait for their turn. None
    /// where none has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

/// What happens to one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The resource.
    pub resource: ResourceKey,
    /// What is done to it.
    pub verb: Verb,
    /// Where its spec stands; for a deletion, where it stood.
    pub origin: Option<Origin>,
    /// Why.
    pub cause: Cause,
    /// The fields of the spec that changed.
    pub fields: Vec<FieldChange>,
    /// The worst that the change does to the cluster's clients and data.
    pub verdict: Verdict,
    /// What follows from it, one sentence each: `adds 3 brokers and rebalances`.
    pub effects: Vec<String>,
    /// What it waits for. Nothing of it is done while this is not empty.
    pub waiting: Vec<Waiting>,
    /// Whether it destroys or disrupts so much that a person has to approve it, or would have if it were not within
    /// what the policy allows.
    pub guarded: bool,
    /// What is done on the target, in order.
    pub steps: Vec<Step>,
    /// What the target says of the steps, and of fields that it was asked to change and does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// What is remembered of the resource when all steps are done; none when it is forgotten then.
    pub record: Option<RecordedResource>,
    /// Whether it only puts objects back as they were applied last, while another change of the resource waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
}

impl Change {
    /// Whether it is done now: it does something, and waits for nothing.
    pub fn is_ready(&self) -> bool {
        self.waiting.is_empty() && self.verb != Verb::Keep
    }
}

/// What is done to a resource or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It is made.
    Create,
    /// It changes.
    Update,
    /// It is deleted.
    Delete,
    /// It stays: it is only mentioned because it waits.
    Keep,
    /// An object is deleted and made again, since some of its fields never change.
    Recreate,
}

/// Why something is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// The spec says something else than what was applied.
    Spec,
    /// Something it refers to changed: a base domain's certificate, a fleet's setting.
    Reference {
        /// What changed.
        to: ResourceKey,
    },
    /// The settings of the installation changed: what a Kafka unit is, which Secrets are written. Whoever runs the
    /// installation did that on purpose, so like an edit of a spec it needs no approval.
    Settings,
    /// An upgrade of Kafka that its spec asked for goes on: its second stage, or a patch release that it follows by itself.
    Upgrade {
        /// The version of Kafka.
        version: String,
        /// Whether the second stage begins without anybody seeing from here what brokers run.
        unseen: bool,
    },
    /// The target is no longer as it was applied.
    Drift {
        /// Who changed it, where that is known.
        by: Option<String>,
    },
    /// This version of the software renders it differently.
    Software {
        /// This version.
        version: String,
    },
}

/// A field of a spec that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldChange {
    /// The field, as a path: `advanced_config.version`.
    pub field: String,
    /// What it was; null when it was absent. Secrets are fingerprints.
    pub before: Value,
    /// What it is; null when it is absent.
    pub after: Value,
}

/// What a change does to a cluster's clients and data, from harmless to never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing that anybody notices.
    NoOp,
    /// It changes while it runs.
    InPlace,
    /// Disks grow; brokers may restart one by one.
    StorageGrowth,
    /// Brokers restart one by one; clients reconnect and go on.
    RollingRestart,
    /// Brokers are emptied and then removed; clients go on with the others.
    BrokerRemoval,
    /// Brokers restart one by one, and some clients have to connect otherwise than before: with another address, port or
    /// way to log in.
    ClientsReconnect,
    /// The cluster goes; its data stays.
    ServiceLoss,
    /// Data goes.
    DataLoss,
    /// Not done at all.
    Refused,
}

/// One thing that is done on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is done.
    pub verb: Verb,
    /// To what.
    pub object: ObjectKey,
    /// When, relative to others.
    pub stage: Stage,
    /// The target's own name for the object that is meant; the step is refused when it is another one by then.
    pub uid: Option<String>,
    /// The object as it is, secrets reduced to a trace, or as it was applied last where it has gone missing; none when it
    /// was never there.
    pub before: Option<Json>,
    /// The object as it will be, whole, secrets as slots; none when it is deleted.
    pub after: Option<Manifest>,
}
