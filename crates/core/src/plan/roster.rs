//! Facts that follow from the resources and the records of one organization alone. They are kept until one of these is another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::catalog::{Catalog, Recorded, Resource, SharedRecord};
use crate::names::{Digest, FleetKey, Identifier, Kind, OrganizationPart, ResourceKey, is_same};
use crate::plan::compare::origins;

#[derive(Debug, Default)]
pub(super) struct Roster {
    pub resources: Option<OrganizationPart<Arc<Resource>>>,
    pub records: Option<OrganizationPart<Arc<SharedRecord>>>,
    absent: Vec<ResourceKey>,
    /// The resources that are on each fleet by their spec, or were by their record if no spec names them any more.
    pub owners: BTreeMap<FleetKey, Arc<BTreeSet<ResourceKey>>>,
    /// The first topic of each cluster that has some, in the tree or recorded.
    pub first_topics: BTreeMap<ResourceKey, ResourceKey>,
    /// The digests of all resources that objects may be made from. Clusters and what is on them aren't among them: no
    /// object of others is made from their specs alone.
    pub origins: Arc<BTreeMap<ResourceKey, Digest>>,
    /// The digest of its records, made when it is first asked for.
    pub records_digest: OnceLock<Digest>,
}

/// Whether all resources of an organization may depend on one of its resources.
pub(super) fn is_common(key: &ResourceKey) -> bool {
    !key.kind.is_of_cluster()
}

impl Roster {
    /// The roster of an organization, and whether what all of it may depend on is as it was in an earlier one.
    pub fn of(
        (catalog, recorded): (&Catalog, &Recorded),
        organization: &Identifier,
        before: Option<&Arc<Self>>,
    ) -> (Arc<Self>, bool) {
        let (resources, records) = (catalog.resources.of(organization), recorded.resources.of(organization));
        let first = ResourceKey::new(Kind::Organization, organization, "");
        let absent = catalog.absent.range(first..).map(|(key, _)| key);
        let absent = absent.take_while(|key| key.organization == *organization).cloned().collect();
        let fresh = Self {
            resources: resources.map(Arc::clone),
            records: records.map(Arc::clone),
            absent,
            ..Self::default()
        };
        if let Some(before) = before
            && is_same(before.resources.as_ref(), resources)
            && is_same(before.records.as_ref(), records)
            && before.absent == fresh.absent
        {
            return (Arc::clone(before), true);
        }
        let before = before.map(|before| &**before);
        let is_alike = before.is_some_and(|before| before.common().eq(fresh.common()));
        let origins = before.filter(|_| is_alike).map(|before| Arc::clone(&before.origins));
        let origins = origins.unwrap_or_else(|| Arc::new(origins::of(fresh.resources())));
        let (owners, first_topics) = (fresh.owners(before), fresh.first_topics());
        (Arc::new(Self { owners, first_topics, origins, ..fresh }), is_alike)
    }

    fn resources(&self) -> impl Iterator<Item = (&ResourceKey, &Arc<Resource>)> {
        self.resources.iter().flat_map(|part| part.iter())
    }

    /// The resources that all of the organization may depend on, by the addresses of their specs and records.
    fn common(&self) -> impl Iterator<Item = (*const Resource, Option<*const SharedRecord>)> {
        let common = self.resources().filter(|(key, _)| is_common(key));
        common.map(|(key, resource)| {
            let record = self.records.as_ref().and_then(|records| records.get(key));
            (Arc::as_ptr(resource), record.map(Arc::as_ptr))
        })
    }

    fn owners(&self, before: Option<&Self>) -> BTreeMap<FleetKey, Arc<BTreeSet<ResourceKey>>> {
        let mut owners: BTreeMap<FleetKey, BTreeSet<ResourceKey>> = BTreeMap::new();
        let on_fleets = self.resources().filter_map(|(key, resource)| Some((resource.fleet()?, key)));
        // Those of a fleet mostly follow each other.
        for group in on_fleets.collect::<Vec<_>>().chunk_by(|(one, _), (other, _)| one == other) {
            let Some((fleet, _)) = group.first() else { continue };
            owners.entry(fleet.clone()).or_default().extend(group.iter().map(|(_, key)| (*key).clone()));
        }
        for key in &self.absent {
            let record = self.records.as_ref().and_then(|records| records.get(key));
            if let Some(fleet) = record.and_then(|record| record.record().fleet(key)) {
                owners.entry(fleet).or_default().insert(key.clone());
            }
        }
        let share = |(fleet, owners)| {
            let before = before.and_then(|before| before.owners.get(&fleet));
            let same = before.filter(|before| ***before == owners).map(Arc::clone);
            (fleet, same.unwrap_or_else(|| Arc::new(owners)))
        };
        owners.into_iter().map(share).collect()
    }

    fn first_topics(&self) -> BTreeMap<ResourceKey, ResourceKey> {
        let mut first: BTreeMap<ResourceKey, ResourceKey> = BTreeMap::new();
        let recorded = self.records.iter().flat_map(|records| records.keys());
        let topics = self.resources().map(|(key, _)| key).chain(recorded);
        for topic in topics.filter(|key| key.kind == Kind::Topic) {
            let Some((cluster, _)) = topic.within_cluster() else { continue };
            let first = first.entry(cluster).or_insert_with(|| topic.clone());
            if topic < first {
                *first = topic.clone();
            }
        }
        first
    }
}
