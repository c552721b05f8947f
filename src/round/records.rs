//! DNS records in a round: the ones that a fleet should have, once it is known where they lead.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::RecordedFleet;
use crate::component::dns_records::{self, FoundHosts, NamedResource};
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::ObservedFleet;
use crate::render::FleetManifests;

pub(super) fn add(
    desired: &mut Option<Arc<FleetManifests>>,
    named: &[NamedResource<'_>],
    hosts: &BTreeMap<ResourceKey, FoundHosts>,
) {
    let Some(desired) = desired else { return };
    let found = named.iter().filter_map(|named| Some((named, hosts.get(&named.key)?)));
    let mut records = found.flat_map(|(named, found)| named.records(found)).peekable();
    // Shared objects are copied only if there is something to add.
    if records.peek().is_some() {
        Arc::make_mut(desired).extend(records.map(|record| (record.key.clone(), record)));
    }
}

pub(super) fn keep_undecided(
    observed: Option<&mut ObservedFleet>,
    held: &RecordedFleet,
    named: &[NamedResource<'_>],
    hosts: &BTreeMap<ResourceKey, FoundHosts>,
) {
    let Some(ObservedFleet { inventory, undecided, .. }) = observed else { return };
    let mut known: BTreeMap<&ResourceKey, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, object) in held.objects.iter().chain(&*inventory).filter(|(key, _)| dns_records::is_record(key))
    {
        known.entry(&object.owner).or_default().push(key);
    }
    for named in named {
        let own = known.get(&named.key).into_iter().flatten().copied();
        undecided.extend(named.undecided(hosts.get(&named.key), own));
    }
}
