//! At most one disruptive change a fleet at a time.

use std::collections::BTreeSet;

use crate::names::{Kind, ResourceKey};
use crate::plan::{Cause, Change, Verb, Verdict, Waiting};

/// Lets only the first of the disruptive changes that this software itself causes ask for approval, so that what is
/// approved is what runs.
pub(super) fn queue_software(changes: &mut [Change]) {
    let caused = |change: &Change| disrupts(change) && matches!(change.cause, Cause::Software { .. });
    let first = changes.iter().find(|change| caused(change)).map(|change| change.resource.clone());
    if let Some(first) = first {
        let later = changes.iter_mut().filter(|change| caused(change) && change.resource != first);
        later.for_each(|change| change.waiting.push(Waiting::OneDisruption { after: first.clone() }));
    }
}

/// Lets one disruptive change run: that of a cluster that doesn't work, since it can only get better, or else the
/// first by name. A cluster that doesn't work and isn't changed holds up all others.
pub(super) fn one_at_a_time(changes: &mut [Change], unhealthy: &BTreeSet<ResourceKey>) {
    let candidates = || changes.iter().filter(|change| disrupts(change)).map(|change| &change.resource);
    let going = |key: &ResourceKey| changes.iter().any(|c| c.resource == *key && c.verb == Verb::Delete);
    let broken = || unhealthy.iter().filter(|key| key.kind == Kind::Cluster && !going(key));
    let repaired = candidates().find(|key| unhealthy.contains(*key));
    let Some(first) = repaired.or_else(|| broken().next()).or_else(|| candidates().next()).cloned() else {
        return;
    };
    for change in changes.iter_mut().filter(|change| disrupts(change) && change.resource != first) {
        change.waiting.push(Waiting::OneDisruption { after: first.clone() });
    }
}

/// Whether a change would disrupt a cluster if nothing held it back. Disks that grow count: Strimzi restarts a broker
/// whose file system has to be resized.
fn disrupts(change: &Change) -> bool {
    change.waiting.is_empty() && matches!(change.verdict, Verdict::StorageGrowth | Verdict::RollingRestart)
}
