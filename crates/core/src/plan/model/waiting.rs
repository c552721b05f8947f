//! The reasons why a part of a plan waits.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Hold;
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::{Contest, ForeignRecord};
use crate::problem::Origin;

/// A reason why a change waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "for", rename_all = "kebab-case")]
pub enum Waiting {
    /// The resource is held because of its spec, its capacity, a suspension or a dependency.
    Held(Hold),
    /// Its spec may be in a file that can't be read, so it isn't deleted.
    UnreadableFile {
        /// The file.
        origin: Origin,
    },
    /// `deletion_protection` is on.
    Protected,
    /// The change needs approval.
    Approval {
        /// The fleet's plan id, as `streamfleet approve` takes it.
        id: String,
        /// Why approval is needed, as the end of a sentence.
        why: String,
    },
    /// Another disruptive change on the same fleet comes first.
    OneDisruption {
        /// The cluster that is disrupted first.
        after: ResourceKey,
    },
    /// Another cluster took a base domain's new certificate before and isn't Healthy with it yet.
    Renewal {
        /// That cluster.
        after: ResourceKey,
        /// The base domain.
        domain: ResourceKey,
    },
    /// Nobody asks for the disruption at this moment, so it begins in the fleet's maintenance window.
    Maintenance {
        /// The windows.
        windows: String,
        /// When it begins.
        until: Timestamp,
        /// Whether it begins before the window opens, since the certificate that it replaces ends 14 days later.
        #[serde(default)]
        is_urgent: bool,
    },
    /// The change repairs nothing, so it begins only when its cluster is Healthy.
    Unsettled,
    /// A cluster was changed, and the reachability probe hasn't reached it since.
    Unconfirmed {
        /// That cluster.
        cluster: ResourceKey,
    },
    /// The health of a cluster on the fleet is unknown, so nothing is disrupted.
    Unseen {
        /// That cluster.
        cluster: ResourceKey,
        /// Why, and what to do about it; empty if unknown.
        reason: String,
    },
    /// The target can't be reached.
    Unreachable {
        /// The attempt and why it failed.
        reason: String,
        /// A hint; empty if nothing is known to help.
        #[serde(default)]
        hint: String,
        /// Whether the target may not be used at all, so that retries won't help.
        #[serde(default)]
        refused: bool,
        /// Whether it may be gone for good.
        #[serde(default)]
        lost: bool,
        /// Whether `reason` and `hint` describe the network, and so are only for administrators.
        #[serde(default)]
        concealed: bool,
    },
    /// An earlier plan is being carried out on the fleet.
    UnderWay {
        /// Since when.
        since: Timestamp,
    },
    /// The same change was made before and had no lasting effect.
    Repeated {
        /// How often it was made.
        times: u32,
        /// When it is made again.
        until: Timestamp,
    },
    /// The settings forbid all changes (`policy.mode` is `plan-only`).
    PlanOnly,
    /// A secret can't be opened here.
    SecretUnavailable {
        /// The secret, as the spec names it.
        secret: String,
        /// The reason.
        reason: String,
    },
    /// A foreign object is in its place.
    ForeignObject {
        /// The foreign object.
        object: ObjectKey,
    },
    /// Another installation, or somebody by hand, has the DNS record that leads to the cluster.
    ForeignRecord(ForeignRecord),
    /// Its manifest can't be written: a link or something of the wrong type is in its place or on the way there.
    NotAFile {
        /// The object.
        object: ObjectKey,
        /// The path of the obstacle within the fleet's folder.
        path: String,
    },
    /// The target would refuse an object, by a dry run.
    RefusedByTarget {
        /// The object.
        object: ObjectKey,
        /// The target's reason.
        reason: String,
        /// The next thing to do.
        hint: String,
    },
    /// Another controller owns a field of an object. Everything else of the object is as its spec says.
    Contested {
        /// The object.
        object: ObjectKey,
        /// The field, and the controller that owns it.
        contest: Contest,
    },
    /// The resource is deleted only after the resources that belong to it.
    Children {
        /// How many resources are left.
        count: u32,
        /// One of them.
        example: ResourceKey,
    },
    /// The resource is deleted only when its target has no objects of ours left, and some are kept for their data.
    Leftovers {
        /// How many objects are left.
        count: u32,
        /// One of them.
        example: ObjectKey,
    },
    /// An object that is no longer in any spec is deleted only when nothing uses it.
    InUse {
        /// The object.
        object: ObjectKey,
        /// How many resources use it.
        count: u32,
        /// One of them.
        example: ResourceKey,
    },
    /// The fleet's Kubernetes cluster lacks something. The fleet's condition says what to do about it.
    Preflight {
        /// The name of the condition.
        condition: String,
        /// The part that the cluster lacks, in one sentence.
        why: String,
    },
    /// The second stage of an upgrade of Kafka, which can't be undone, waits for the first.
    Upgrade {
        /// The version that all brokers have to run.
        version: String,
        /// The cluster's current metadata version.
        from: String,
        /// Its metadata version after the upgrade.
        to: String,
    },
    /// The cluster's metadata version is in neither its object nor the object's status nor its record.
    MetadataUnknown {
        /// The metadata version that it would get.
        to: String,
    },
    /// The spec file disappeared recently. The deletion waits in case it returns.
    Absence {
        /// When the absence counts.
        until: Timestamp,
    },
    /// Another program keeps changing an object back, or deleting it.
    Flapping {
        /// The object.
        object: ObjectKey,
        /// The field manager, if known.
        by: Option<String>,
        /// One of the fields, as a JSON pointer; null if the object is deleted.
        field: Option<String>,
        /// The time until which the object is left unchanged.
        until: Timestamp,
    },
    /// A step on the fleet failed recently.
    Retry {
        /// The failure.
        failed: String,
        /// What mends it; empty if that isn't known.
        #[serde(default)]
        hint: String,
        /// The time of the next attempt.
        until: Timestamp,
    },
    /// The change is never made; a problem says what to do instead.
    Refused {
        /// The refused change, in one sentence.
        why: String,
    },
}
