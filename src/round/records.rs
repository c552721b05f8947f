//! DNS records in a round: the ones that a fleet should have, once it is known where they lead.

use std::collections::BTreeMap;

use crate::catalog::{RecordedFleet, ResolvedCluster};
use crate::component::dns_records::{self, FoundHosts};
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::ObservedFleet;
use crate::render::FleetManifests;

pub(super) fn add(
    desired: &mut Option<FleetManifests>,
    clusters: &[&ResolvedCluster],
    hosts: &BTreeMap<ResourceKey, FoundHosts>,
) {
    let Some(desired) = desired else { return };
    let found = clusters.iter().filter_map(|cluster| Some((cluster, hosts.get(&cluster.key)?)));
    let records = found.flat_map(|(cluster, found)| dns_records::records(cluster, found));
    desired.extend(records.map(|record| (record.key.clone(), record)));
}

pub(super) fn keep_undecided(
    observed: Option<&mut ObservedFleet>,
    held: &RecordedFleet,
    clusters: &[&ResolvedCluster],
    hosts: &BTreeMap<ResourceKey, FoundHosts>,
) {
    let Some(ObservedFleet { inventory, undecided, .. }) = observed else { return };
    let mut known: BTreeMap<&ResourceKey, Vec<&ObjectKey>> = BTreeMap::new();
    for (key, object) in held.objects.iter().chain(&*inventory).filter(|(key, _)| dns_records::is_record(key))
    {
        known.entry(&object.owner).or_default().push(key);
    }
    for cluster in clusters {
        let own = known.get(&cluster.key).into_iter().flatten().copied();
        undecided.extend(dns_records::undecided(cluster, hosts.get(&cluster.key), own));
    }
}
