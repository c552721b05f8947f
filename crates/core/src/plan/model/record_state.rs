//! How the DNS records of a fleet stand.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::dns_records;
use crate::names::ObjectKey;
use crate::plan::Reach;
use crate::plan::model::site::FleetInputs;

/// How a DNS record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordState {
    /// It is as it should be.
    Kept,
    /// It is to be made, changed or deleted, or stays as it is until an address is known.
    Waiting,
    /// Somebody else has its name.
    Foreign,
    /// It can't be read.
    Unknown,
}

/// The number of DNS records by state.
pub type RecordCounts = BTreeMap<RecordState, u64>;

impl RecordState {
    pub const ALL: [RecordState; 4] =
        [RecordState::Kept, RecordState::Waiting, RecordState::Foreign, RecordState::Unknown];

    pub fn word(self) -> &'static str {
        match self {
            RecordState::Kept => "kept",
            RecordState::Waiting => "waiting",
            RecordState::Foreign => "foreign",
            RecordState::Unknown => "unknown",
        }
    }
}

/// Counts the DNS records of a fleet; none while a plan is being carried out there or it isn't reached, and none of a folder,
/// which has no load balancers. `differing` are the objects that aren't as they should be.
pub(in crate::plan) fn count<'k>(
    site: &FleetInputs,
    reach: &Reach,
    differing: impl Iterator<Item = &'k ObjectKey>,
) -> RecordCounts {
    let mut counts = RecordCounts::new();
    let Some(observed) = site.observed.filter(|fleet| fleet.cluster.is_some()) else { return counts };
    if *reach != Reach::Reached {
        return counts;
    }
    let is_failing = observed.conditions.iter().any(|condition| condition.kind == dns_records::FAILING);
    let is_record = |key: &&ObjectKey| dns_records::is_record(key);
    let differing: BTreeSet<&ObjectKey> = differing.filter(is_record).collect();
    let desired = site.desired.into_iter().flat_map(|manifests| manifests.keys());
    let recorded = site.recorded.into_iter().flat_map(|fleet| fleet.objects.keys());
    let listed = observed.inventory.keys();
    let known: BTreeSet<&ObjectKey> = desired.chain(recorded).chain(listed).filter(is_record).collect();
    let undecided: BTreeSet<&ObjectKey> = observed.undecided.iter().filter(is_record).collect();
    for record in known.union(&undecided) {
        let state = match observed.objects.get(*record) {
            Some(there) if !there.ours => RecordState::Foreign,
            // One that isn't known has never been made: it has no address yet.
            None if is_failing && undecided.contains(record) && known.contains(record) => {
                RecordState::Unknown
            }
            _ if undecided.contains(record) || differing.contains(record) => RecordState::Waiting,
            _ => RecordState::Kept,
        };
        *counts.entry(state).or_default() += 1;
    }
    counts
}
