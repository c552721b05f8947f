//! The plan as a value. It is printed, served, saved and executed in this form.

pub(super) mod contest;
pub(super) mod foreign_record;
pub(super) mod index;
pub(super) mod json;
pub(super) mod observed;
pub(super) mod only;
pub(super) mod order;
pub(super) mod part;
mod pauses;
pub(super) mod record_state;
pub(super) mod remark;
pub(super) mod site;
mod sizes;
pub(super) mod troubles;
mod waiting;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::{Condition, Gauge, OrganizationCapacity, RecordedResource, ResourceStatus};
pub use crate::component::Verdict;
use crate::component::consequence::ObjectChange;
use crate::component::{Manifest, Stage};
use crate::config::{CertificateRenewal, Mode};
use crate::names::{Digest, FleetKey, Identifier, Json, ObjectKey, ResourceKey};
use crate::plan::{BucketOrder, CertificateOrder, Reach, Remark};
use crate::problem::{Origin, Problem};
use crate::spec::{Commit, InfraType, MaintenanceWindow, SourceId};

pub use pauses::{Flapping, Pauses, Repeated, Retry};
pub use sizes::{AddressChange, SizeChange, Sizes};
pub use waiting::Waiting;

/// The version of the plan's JSON form.
pub const FORMAT: u32 = 1;

/// The policy of approvals, and the current time.
#[derive(Debug, Clone)]
pub struct Policy {
    pub now: Timestamp,
    pub mode: Mode,
    /// How many Kafka clusters a fleet may lose in an hour without approval.
    pub cluster_deletions_per_hour: u32,
    /// How many topics a fleet may lose in an hour without approval.
    pub topic_deletions_per_hour: u32,
    /// How long an approval is valid.
    pub approval_lifetime: SignedDuration,
    /// When disruptions may begin that nobody asks for at that moment, where a fleet has no windows of its own.
    pub maintenance: Vec<MaintenanceWindow>,
    pub certificate_renewal: CertificateRenewal,
    /// The version of Streamfleet, as recorded with what it renders.
    pub software: String,
    /// Postponements of a running process.
    pub pauses: Pauses,
    /// Resources whose creation or change was reported to a user before it was recorded.
    pub announced: BTreeMap<ResourceKey, Announced>,
}

/// When a user was told that a resource is created, or changed to what its document says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Announced {
    /// When it was created; `None` if that was not reported, or is recorded.
    pub made: Option<Timestamp>,
    /// When it was changed; `None` if that was not reported, is recorded, or the document has changed since.
    pub changed: Option<Timestamp>,
}

/// Everything that will be done, and everything that waits, with the reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of this form.
    pub format: u32,
    /// The shortened hash of everything below except times, texts of problems, and health.
    pub id: String,
    /// The time of planning.
    pub created_at: Timestamp,
    /// The inputs of the plan. A plan whose inputs have changed is refused.
    pub inputs: Inputs,
    /// Changes of resources without a fleet, by organization.
    pub organizations: Vec<OrganizationPlan>,
    /// The plan of each fleet.
    pub fleets: Vec<FleetPlan>,
    /// Resources whose record is out of date though nothing changes. A lost cache is refilled from here.
    pub remember: BTreeMap<ResourceKey, RecordedResource>,
    /// All problems found in the specs.
    pub problems: Vec<Problem>,
    /// The number of resources by what happens to them.
    pub summary: Summary,
}

/// The inputs of a plan, each by its hash, so that a stale plan can say what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The spec tree.
    pub source: SourceId,
    /// The hash of the spec tree's content.
    pub revision: String,
    /// The commit, if the specs come from a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The version of Streamfleet.
    pub software: String,
    /// The hash of the records without status: resources, protection, approvals.
    pub recorded: Digest,
    /// The hash of the sizes of a Kafka unit, the other settings that plans depend on, and the policy.
    pub settings: Digest,
    /// The hash of each target's inventory and of the fields that Streamfleet manages, by fleet.
    pub observed: BTreeMap<FleetKey, Digest>,
}

/// The number of resources by what happens to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Resources to create.
    pub create: u32,
    /// Resources to change.
    pub change: u32,
    /// Resources to delete.
    pub delete: u32,
    /// Resources that wait.
    pub waiting: u32,
    /// Resources that are as their specs say.
    pub unchanged: u32,
    /// Problems that block a resource.
    pub errors: u32,
    /// Problems that block nothing.
    pub warnings: u32,
}

/// The plan of an organization and of its resources without a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrganizationPlan {
    /// The organization.
    pub organization: Identifier,
    /// Its limits and usage.
    pub capacity: OrganizationCapacity,
    /// The changed resources by kind and name, the organization first. Unchanged ones are left out.
    pub changes: Vec<Change>,
}

/// The plan of one fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetPlan {
    /// The fleet.
    pub fleet: FleetKey,
    /// The kind of target; null if no such fleet is described or was ever applied.
    pub infra_type: Option<InfraType>,
    /// Whether the target could be observed.
    pub reach: Reach,
    /// Its number of clusters and the limit.
    pub clusters: Gauge,
    /// Its Kafka units and the limit.
    pub kafka_units: Gauge,
    /// Lasting facts about the fleet as a whole.
    pub conditions: Vec<Condition>,
    /// The health of the fleet; null if it was not judged. It doesn't affect the plan's id.
    #[serde(default)]
    pub status: Option<ResourceStatus>,
    /// The status of its clusters that aren't Healthy.
    #[serde(default)]
    pub unwell: BTreeMap<ResourceKey, ResourceStatus>,
    /// How the size of its clusters changes; null if it doesn't.
    #[serde(default)]
    pub sizes: Option<Sizes>,
    /// The changes of the fleet itself, then of its clusters by name. Unchanged ones are left out. A repair
    /// follows the change that waits.
    pub changes: Vec<Change>,
    /// The approval that its guarded steps need or have; null if nothing is guarded.
    pub guard: Option<Guard>,
    /// Ids of approvals whose steps are no longer planned. They are revoked.
    #[serde(default)]
    pub void_approvals: Vec<String>,
    /// Foreign objects in the place of ours. They are left alone and reported.
    pub foreign: Vec<ObjectKey>,
}

impl FleetPlan {
    /// Whether its pods, disks and health are observed; `None` if its target isn't known.
    pub fn observes(&self) -> Option<bool> {
        self.infra_type.map(|target| target.capabilities().observes)
    }
}

/// The approval that a fleet's guarded steps need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The hash of the guarded steps: verb, UID, digests before and after. This is what is approved.
    pub id: String,
    /// The person who approved it; null if it isn't approved.
    pub approved_by: Option<String>,
    /// The id that stays approved after use, for steps that still wait for their turn. Null if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

/// The change of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The resource.
    pub resource: ResourceKey,
    /// The kind of change.
    pub verb: Verb,
    /// The position of its spec; for a deletion, the last known one.
    pub origin: Option<Origin>,
    /// The cause of the change.
    pub cause: Cause,
    /// The fields of the spec that changed.
    pub fields: Vec<FieldChange>,
    /// The worst effect on the cluster's clients and data.
    pub verdict: Verdict,
    /// The consequences, one sentence each: `adds 3 brokers and rebalances`.
    pub effects: Vec<String>,
    /// The reasons why the change waits. No step runs until this is empty.
    pub waiting: Vec<Waiting>,
    /// Whether it destroys or disrupts enough to need approval, unless the policy allows it.
    pub guarded: bool,
    /// The bucket that is made before its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<BucketOrder>,
    /// The certificate that it gets from an authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateOrder>,
    /// The steps on the target, in order.
    pub steps: Vec<Step>,
    /// The target's answers to dry runs of the steps, and fields that are left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// The record to keep when all steps are done; null if the record is then deleted.
    pub record: Option<RecordedResource>,
    /// Whether it only restores what was applied last while another change of the resource waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
}

impl Change {
    /// Whether the change runs now: it changes something and has no reason to wait.
    pub fn is_ready(&self) -> bool {
        self.waiting.is_empty() && self.verb != Verb::Keep
    }

    /// Whether the change of a resource without a fleet only has to be recorded.
    pub fn is_bookkeeping(&self) -> bool {
        self.is_ready() && self.certificate.is_none()
    }
}

/// The kind of change of a resource or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// It stays unchanged, and is listed only because a change of it waits.
    Keep,
    /// An object is deleted and created again, since an immutable field changes.
    Recreate,
    /// An object that Streamfleet didn't make is taken over and changed, since its spec has `adopt: true`.
    Adopt,
}

impl Verb {
    pub const ALL: [Verb; 6] =
        [Verb::Create, Verb::Update, Verb::Delete, Verb::Keep, Verb::Recreate, Verb::Adopt];
}

/// The cause of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Cause {
    /// The spec differs from what was applied.
    Spec,
    /// A resource that it refers to changed, such as a base domain's certificate or a fleet's setting.
    Reference {
        /// The resource that changed.
        to: ResourceKey,
    },
    /// The settings of the installation changed: the size of a Kafka unit, or which Secrets are written. The
    /// operator of the installation did that on purpose, so like an edit of a spec it needs no approval.
    Settings,
    /// An upgrade of Kafka continues: with its second stage, or a patch release that it follows by itself.
    Upgrade {
        /// The version of Kafka.
        version: String,
        /// Whether the second stage begins although the version that brokers run can't be observed.
        unseen: bool,
    },
    /// The target differs from what was applied.
    Drift {
        /// The field manager that changed it, if known.
        by: Option<String>,
    },
    /// Its load balancers or its Gateway have other addresses, so its DNS records change.
    Addresses,
    /// Clusters of the fleet changed.
    Clusters,
    /// Its certificate is due.
    Certificate,
    /// This version of Streamfleet renders it differently.
    Software {
        /// This version.
        version: String,
    },
}

/// A field of a spec that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldChange {
    /// The field's path: `advanced_config.version`.
    pub field: String,
    /// The old value; null if absent. Secrets are shown as fingerprints.
    pub before: Value,
    /// The new value; null if absent.
    pub after: Value,
}

/// One object to create, update or delete on a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The kind of change.
    pub verb: Verb,
    /// The object.
    pub object: ObjectKey,
    /// The stage in which it runs, relative to other steps.
    pub stage: Stage,
    /// The target's UID of the object. The step is refused if the object has another one by then.
    pub uid: Option<String>,
    /// The existing object or, if it is missing, the one applied last, with secrets reduced to fingerprints;
    /// null if it never existed.
    pub before: Option<Json>,
    /// The complete object afterwards, with secrets as slots; null if it is deleted.
    pub after: Option<Manifest>,
}

impl Step {
    pub(super) fn as_change(&self) -> ObjectChange<'_> {
        ObjectChange { object: &self.object, before: self.before.as_ref(), after: self.after.as_ref() }
    }
}
