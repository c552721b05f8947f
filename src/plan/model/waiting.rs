//! Why something of a plan is not done now.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Hold;
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::Contest;
use crate::problem::Origin;

/// What something waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub enum Waiting {
    /// The catalog holds it.
    Held(Hold),
    /// It may be in a file that can't be read, so it isn't deleted.
    UnreadableFile {
        /// The file.
        origin: Origin,
    },
    /// `deletion_protection` is on.
    Protected,
    /// A person's approval.
    Approval {
        /// The fleet's guard, as `streamfleet approve` takes it.
        id: String,
        /// Why approval is needed, as the end of a sentence.
        why: String,
    },
    /// Another disruptive change on the same fleet comes first.
    OneDisruption {
        /// The cluster that is disrupted first.
        after: ResourceKey,
    },
    /// The cluster that took a base domain's new certificate before isn't Healthy with it yet.
    Renewal {
        /// That cluster.
        after: ResourceKey,
        /// The base domain.
        domain: ResourceKey,
    },
    /// It makes nothing better, and begins only when its cluster is Healthy.
    Unsettled,
    /// Nobody sees how a cluster of the fleet is, so that nothing is disrupted.
    Unseen {
        /// That cluster.
        cluster: ResourceKey,
        /// Why, and what to do about it; empty where it isn't known.
        reason: String,
    },
    /// The target can't be reached.
    Unreachable {
        /// What was tried and why it failed.
        reason: String,
        /// What to do next; empty where nothing is known to help.
        #[serde(default)]
        hint: String,
        /// Whether it may not be used at all, so that trying again won't help.
        #[serde(default)]
        refused: bool,
        /// Whether it may be gone for good.
        #[serde(default)]
        lost: bool,
        /// Whether `reason` and `hint` tell of the network, which is for those to know who run this.
        #[serde(default)]
        concealed: bool,
    },
    /// An earlier plan is being carried out on the fleet.
    UnderWay {
        /// Since when.
        since: Timestamp,
    },
    /// It was done just like this before, and is not as its spec says all the same.
    Repeated {
        /// How often it was done.
        times: u32,
        /// When it is done again.
        until: Timestamp,
    },
    /// The settings want nothing to be changed.
    PlanOnly,
    /// A secret can't be opened here.
    SecretUnavailable {
        /// Which, as the spec names it.
        secret: String,
        /// Why.
        reason: String,
    },
    /// It would take the place of something that isn't ours.
    ForeignObject {
        /// What is in the way.
        object: ObjectKey,
    },
    /// Its manifest can't be written, since something stands in its place that is no file.
    NotAFile {
        /// The object.
        object: ObjectKey,
        /// Where it should be written, below the fleet's folder.
        path: String,
    },
    /// The target, asked beforehand, would not take an object.
    RefusedByTarget {
        /// The object.
        object: ObjectKey,
        /// Why, in the target's words.
        reason: String,
        /// What to do next.
        hint: String,
    },
    /// A field of an object is another controller's. Everything else of the object is as its spec says.
    Contested {
        /// The object.
        object: ObjectKey,
        /// The field, and the controller that has it.
        contest: Contest,
    },
    /// It is deleted only when nothing of it is left.
    Children {
        /// How many resources are left.
        count: u32,
        /// One of them.
        example: ResourceKey,
    },
    /// It is deleted only when its target holds nothing of ours any more, and some of it is kept for its data.
    Leftovers {
        /// How many objects are left.
        count: u32,
        /// One of them.
        example: ObjectKey,
    },
    /// An object that nothing asks for any more is deleted only when nobody needs it.
    InUse {
        /// The object.
        object: ObjectKey,
        /// How many resources need it.
        count: u32,
        /// One of them.
        example: ResourceKey,
    },
    /// The fleet's Kubernetes cluster lacks something that it needs. The fleet's condition says what to do about it.
    Preflight {
        /// The name of the condition.
        condition: String,
        /// What is lacking, in one sentence.
        why: String,
    },
    /// The second stage of an upgrade of Kafka, which can't be undone, waits for the first.
    Upgrade {
        /// The version that all brokers have to run.
        version: String,
        /// The metadata that the cluster has.
        from: String,
        /// The metadata that it gets then.
        to: String,
    },
    /// Neither the cluster's object nor its record nor its status says which metadata it has.
    MetadataUnknown {
        /// The metadata that it would get.
        to: String,
    },
    /// It went missing from the specs a moment ago, which has to last before it counts.
    Absence {
        /// Until when.
        until: Timestamp,
    },
    /// Somebody else keeps changing an object back.
    Flapping {
        /// The object.
        object: ObjectKey,
        /// Who, where that is known.
        by: Option<String>,
        /// One of the fields, as a JSON pointer.
        field: String,
        /// Until when it is left as it is.
        until: Timestamp,
    },
    /// Something failed on the fleet a moment ago.
    Retry {
        /// What failed.
        failed: String,
        /// When it is tried again.
        until: Timestamp,
    },
    /// A change that is never made; a problem says what to do instead.
    Refused {
        /// What is refused, in one sentence.
        why: String,
    },
}
