//! The targets of a round.

use std::collections::BTreeMap;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::join_all;
use uuid::Uuid;

use super::acme::Authority;
use super::dns::DnsZones;
use super::{DirectoryTarget, KubernetesCluster, KubernetesTarget, ResourceMark, Target, TargetError};
use crate::catalog::{Recorded, RecordedFleet};
use crate::config::AddressRange;
use crate::names::{FleetKey, Identifier, ResourceKey};
use crate::plan::Observed;
use crate::render::Desired;

pub enum TargetLocation {
    /// A folder, `<output>/<organization>/<fleet>/<path>`, with the `path` of the fleet's spec.
    Folder(Option<String>),
    Kubernetes(KubernetesCluster),
}

#[derive(Default)]
pub struct Targets {
    pub(super) targets: BTreeMap<FleetKey, Target>,
    /// `targets.allow_addresses` of the settings, for the services in which buckets are made.
    allowed: Vec<AddressRange>,
    zones: BTreeMap<Identifier, DnsZones>,
    authority: Option<Authority>,
}

impl Targets {
    pub fn new(targets: BTreeMap<FleetKey, Target>) -> Self {
        Self { targets, ..Self::default() }
    }

    /// With the addresses that the settings allow.
    pub fn with_allowed(self, allowed: Vec<AddressRange>) -> Self {
        Self { allowed, ..self }
    }

    /// With the DNS servers of each organization's base domains.
    pub fn with_zones(mut self, zones: BTreeMap<Identifier, DnsZones>) -> Self {
        for (fleet, target) in &mut self.targets {
            if let (Target::Kubernetes(cluster), Some(zones)) = (target, zones.get(&fleet.organization)) {
                cluster.set_zones(zones.clone());
            }
        }
        self.zones = zones;
        self
    }

    /// With the authority that issues the certificates of managed base domains.
    pub fn with_authority(self, authority: Option<Authority>) -> Self {
        Self { authority, ..self }
    }

    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// The DNS servers of an organization's base domains.
    pub fn zones(&self, organization: &Identifier) -> DnsZones {
        self.zones.get(organization).cloned().unwrap_or_default()
    }

    pub fn allowed(&self) -> &[AddressRange] {
        &self.allowed
    }

    pub fn for_fleets(
        output_dir: &Utf8Path,
        installation: Uuid,
        fleets: impl IntoIterator<Item = (FleetKey, TargetLocation)>,
    ) -> Self {
        let target = |fleet: FleetKey, place| match place {
            TargetLocation::Folder(path) => {
                let path = Utf8PathBuf::from(path.unwrap_or_default());
                Target::Directory(DirectoryTarget::new(output_dir.to_owned(), fleet, path, installation))
            }
            TargetLocation::Kubernetes(cluster) => {
                Target::Kubernetes(KubernetesTarget::new(fleet, installation, cluster))
            }
        };
        Self::new(fleets.into_iter().map(|(fleet, place)| (fleet.clone(), target(fleet, place))).collect())
    }

    pub fn get(&self, fleet: &FleetKey) -> Option<&Target> {
        self.targets.get(fleet)
    }

    /// Observes all targets, one after the other. `desired` says where foreign objects could be in the way.
    /// `recorded` spares reading objects that are still as they were applied.
    pub async fn observe(&self, recorded: &Recorded, desired: &Desired) -> Observed {
        let mut observed = Observed::default();
        let nothing = RecordedFleet::default();
        for (fleet, target) in &self.targets {
            let held = recorded.fleets.get(fleet).unwrap_or(&nothing);
            let look = target.look(None, SystemTime::UNIX_EPOCH);
            let (seen, _) = look.observe(held, desired.fleets.get(fleet), &recorded.resources).await;
            observed.fleets.insert(fleet.clone(), seen);
        }
        observed
    }

    pub fn fleets(&self) -> impl Iterator<Item = &FleetKey> {
        self.targets.keys()
    }

    pub async fn marks(&self, chosen: impl Fn(&FleetKey) -> bool) -> TargetMarks {
        let chosen = self.targets.iter().filter(|(fleet, _)| chosen(fleet));
        let read = chosen.map(|(fleet, target)| async move { (fleet, target.marks().await) });
        let mut marks = TargetMarks::default();
        for (fleet, read) in join_all(read).await {
            match read {
                Ok(remembered) => marks.remembered.extend(remembered),
                Err(error) => drop(marks.unread.insert(fleet.clone(), error)),
            }
        }
        marks
    }
}

#[derive(Debug, Default)]
pub struct TargetMarks {
    pub remembered: BTreeMap<ResourceKey, ResourceMark>,
    /// The fleets whose targets couldn't be read, with the reason. Their marks are unknown, which is not the
    /// same as none.
    pub unread: BTreeMap<FleetKey, TargetError>,
}
