//! What a person should know of a plan's steps, in words.

use crate::plan::effects;
use crate::plan::{Cause, Change, Contest, Remark};

/// What a person should know of a step, as a sentence.
pub(super) fn remark(change: &Change, remark: &Remark) -> String {
    match remark {
        // The spec may say something else by now than what was there before.
        Remark::Overwrites { contest: Contest { manager, field }, .. } if change.cause == Cause::Spec => {
            format!("{manager} changed `{field}`: it becomes what the spec says")
        }
        Remark::Overwrites { contest: Contest { manager, field }, .. } => {
            format!("{manager} changed `{field}`: it is changed back")
        }
        Remark::Leaves { contest: Contest { manager, field }, .. } => {
            format!("{manager} manages `{field}`: it is left as it is")
        }
        Remark::Unreadable { known: true, .. } => {
            "can't be read: it is judged by what was applied last, and written anew".to_owned()
        }
        Remark::Unreadable { known: false, .. } => {
            "can't be read, and what was applied last isn't known: it is written anew".to_owned()
        }
        Remark::KeptDisks { disks, example } => {
            let disks = effects::count((*disks).into(), "disk");
            format!(
                "{disks} of an earlier cluster of its name are there, {example} among them: their data comes back, and brokers \
                 crash until the cluster has the id that the data has: pause it with the annotation \
                 `strimzi.io/pause-reconciliation: \"true\"`, write the id into `status.clusterId`, and take the annotation away"
            )
        }
        Remark::Unverified { objects, why } => {
            let objects = effects::count((*objects).into(), "object");
            format!("{objects} unverified {why}")
        }
    }
}

/// A remark that stands with no step, and so names its object.
pub(super) fn remark_alone(change: &Change, alone: &Remark) -> String {
    match alone.object() {
        Some(object) => format!("{object}: {}", remark(change, alone)),
        None => remark(change, alone),
    }
}
