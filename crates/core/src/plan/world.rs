use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::catalog::{
    Absence, Catalog, Hold, INFRASTRUCTURE, Recorded, RecordedResource, RecordedSpec, Resource,
};
use crate::names::{Digest, FleetKey, Identifier, ResourceKey};
use crate::parallel;
use crate::plan::compare::{fields, origins};
use crate::plan::memory::{Settled, Unchanged};
use crate::plan::roster::{Roster, is_common};
use crate::plan::{FieldChange, Policy};
use crate::spec::{InfraType, Spec};

/// The inputs of planning that all fleets share, and what follows from them for every resource.
pub(super) struct PlanContext<'a> {
    pub catalog: &'a Catalog,
    pub recorded: &'a Recorded,
    pub policy: &'a Policy,
    /// The targets' own memory of protection. The record may be older, as after restoring a backup.
    pub protected: BTreeSet<ResourceKey>,
    organizations: BTreeMap<&'a Identifier, OrganizationContext<'a>>,
    /// The digest of the settings that objects are made from.
    pub settings: Digest,
}

struct OrganizationContext<'a> {
    roster: Arc<Roster>,
    unchanged: Unchanged<'a>,
    /// Its resources, each compared when it is first asked for. A borrowed key in here would make the context invariant.
    current: OnceLock<BTreeMap<ResourceKey, OnceLock<SpecDiff>>>,
}

/// A resource that should exist, compared with its record.
pub(super) struct SpecDiff {
    /// The fields that changed since it was created; empty while its creation is incomplete.
    pub fields: Vec<FieldChange>,
    /// Its spec as it would be recorded.
    pub now: RecordedSpec,
}

impl<'a> PlanContext<'a> {
    pub fn new(
        catalog: &'a Catalog,
        recorded: &'a Recorded,
        protected: BTreeSet<ResourceKey>,
        policy: &'a Policy,
        before: &Settled,
    ) -> Self {
        let settings = before.settings(catalog, &policy.software);
        let is_steady = settings.is_some();
        let organizations = catalog.resources.organizations().map(|(organization, _)| organization);
        let organizations = organizations.chain(recorded.resources.organizations().map(|(it, _)| it));
        let organizations = organizations.collect::<BTreeSet<_>>().into_iter().map(|organization| {
            let (roster, unchanged) = before.organization((catalog, recorded), organization, is_steady);
            (organization, OrganizationContext { roster, unchanged, current: OnceLock::new() })
        });
        let organizations = organizations.collect();
        let settings = settings.unwrap_or_else(|| origins::settings(&catalog.config));
        Self { catalog, recorded, policy, protected, organizations, settings }
    }

    /// Compares all resources that may have changed, on all processors.
    pub fn compare_all(&self) {
        parallel::map(&self.unsettled().collect::<Vec<_>>(), |(key, _)| self.current(key).is_some());
    }

    /// A resource that should exist, compared with its record.
    pub fn current(&self, key: &ResourceKey) -> Option<&SpecDiff> {
        let organization = self.organizations.get(&key.organization)?;
        let all = || {
            let resources =
                self.catalog.resources.of(&key.organization).into_iter().flat_map(|all| all.keys());
            resources.map(|key| (key.clone(), OnceLock::new())).collect()
        };
        let known = organization.current.get_or_init(all).get(key)?;
        let resource = self.catalog.resources.get(key)?;
        Some(known.get_or_init(|| compare(resource, self.recorded)))
    }

    /// Whether the last plan left a cluster, topic or user as it is, and nothing changed since that it depends on.
    pub fn is_settled(&self, key: &ResourceKey) -> bool {
        self.organizations.get(&key.organization).is_some_and(|organization| organization.unchanged.has(key))
    }

    /// The resources that aren't settled, by their keys.
    pub fn unsettled(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Arc<Resource>)> {
        self.catalog.resources.organizations().flat_map(|(organization, part)| {
            let (known, unknown) = match self.unchanged(organization) {
                Some(Unchanged::All(before)) => (before.others.as_slice(), None),
                _ => (Default::default(), Some(part.iter())),
            };
            let of_known = known.iter().filter_map(|key| part.get_key_value(key));
            of_known.chain(unknown.into_iter().flatten().filter(|(key, _)| !self.is_settled(key)))
        })
    }

    /// The resources on a fleet that aren't settled.
    pub fn unsettled_of<'o>(
        &self,
        fleet: &FleetKey,
        owners: &'o Arc<BTreeSet<ResourceKey>>,
    ) -> impl Iterator<Item = &'o ResourceKey> {
        let unchanged = self.unchanged(&fleet.organization);
        let is_all = unchanged.is_some_and(|unchanged| unchanged.has_all(fleet, owners));
        owners.iter().filter(move |owner| is_common(owner) || !is_all && !self.is_settled(owner))
    }

    /// The part of an organization that is as it was.
    pub fn unchanged(&self, organization: &Identifier) -> Option<&Unchanged<'a>> {
        Some(&self.organizations.get(organization)?.unchanged)
    }

    pub fn roster(&self, organization: &Identifier) -> Option<&Arc<Roster>> {
        Some(&self.organizations.get(organization)?.roster)
    }

    pub fn rosters(&self) -> impl Iterator<Item = &Roster> {
        self.organizations.values().map(|organization| &*organization.roster)
    }

    pub fn organizations(&self) -> impl Iterator<Item = &'a Identifier> {
        self.organizations.keys().copied()
    }

    /// The resources that are on a fleet by their spec, or were by their record.
    pub fn owners(&self, fleet: &FleetKey) -> Option<&Arc<BTreeSet<ResourceKey>>> {
        self.roster(&fleet.organization)?.owners.get(fleet)
    }

    /// The fleets that resources are on, or were.
    pub fn fleets_with_owners(&self) -> impl Iterator<Item = &FleetKey> {
        self.organizations.values().flat_map(|organization| organization.roster.owners.keys())
    }

    /// The first topic of a cluster, in the tree or recorded.
    pub fn first_topic(&self, cluster: &ResourceKey) -> Option<&ResourceKey> {
        self.roster(&cluster.organization)?.first_topics.get(cluster)
    }

    /// The digest of a resource that objects may be made from.
    pub fn origin(&self, key: &ResourceKey) -> Option<&Digest> {
        self.roster(&key.organization)?.origins.get(key)
    }

    pub fn recorded(&self, key: &ResourceKey) -> Option<&'a RecordedResource> {
        self.recorded.resources.get(key)
    }

    /// Whether a resource's creation was ever completed.
    pub fn is_made(&self, key: &ResourceKey) -> bool {
        self.recorded(key).is_some_and(|record| !record.durable.creating)
    }

    /// Returns the resource's current spec, or the one applied last if no document names it any more.
    pub fn spec(&self, key: &ResourceKey) -> Option<&'a Spec> {
        match self.catalog.resources.get(key) {
            Some(resource) => Some(&resource.spec),
            None => self.recorded(key)?.applied_spec(key.kind),
        }
    }

    /// Returns the recorded resources that no spec names any more, each with the known reason.
    pub fn absent(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Absence)> {
        self.catalog.absent.keys().filter_map(|key| Some((key, self.absence(key)?)))
    }

    /// Returns why no spec names a resource any more; `None` if one does. A resource that may be missing by
    /// mistake is in the catalog, too, so that references to it still resolve, but its own change follows
    /// from its absence.
    pub fn absence(&self, key: &ResourceKey) -> Option<&'a Absence> {
        let named =
            |resource: &Resource| !matches!(resource.hold, Some(Hold::Absent | Hold::Unreadable { .. }));
        let absence = self.catalog.absent.get(key)?;
        (!self.catalog.resources.get(key).is_some_and(|it| named(it))).then_some(absence)
    }

    /// Whether pods, disks and health of a fleet are observed; `None` if its target isn't known.
    pub fn observes(&self, fleet: &FleetKey) -> Option<bool> {
        self.infra_type(fleet).map(|target| target.capabilities().observes)
    }

    pub fn infra_type(&self, key: &FleetKey) -> Option<InfraType> {
        let resource = key.resource();
        let resolved = self.catalog.fleets.get(key).map(|fleet| fleet.spec.infra_type);
        let recorded = || self.recorded(&resource);
        let applied = || match recorded()?.applied_spec(resource.kind)? {
            Spec::Fleet(fleet) => Some(fleet.infra_type),
            _ => None,
        };
        let immutable =
            || serde_json::from_value(recorded()?.durable.immutable.get("/infra_type")?.clone()).ok();
        resolved.or_else(applied).or_else(immutable)
    }
}

/// Returns the fields that changed since a resource was created; empty while its creation is incomplete.
pub fn changed_fields(resource: &Resource, recorded: &Recorded) -> Vec<FieldChange> {
    compare(resource, recorded).fields
}

fn compare(resource: &Resource, recorded: &Recorded) -> SpecDiff {
    let before = recorded.resources.get(&resource.key);
    let mut now = RecordedSpec::of(&resource.key, &resource.spec, before);
    if let Some(on) = &resource.cluster_fleet {
        let fields = Arc::make_mut(&mut now.immutable);
        fields.insert(INFRASTRUCTURE.to_owned(), on.fleet.as_str().into());
    }
    let made = before.filter(|before| !before.durable.creating);
    let fields = made.map(|made| fields::changes(made, &now.spec, resource)).unwrap_or_default();
    SpecDiff { fields, now }
}
