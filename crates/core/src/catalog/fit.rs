//! Whether a new cluster fits on a fleet, by the rules that its document would be checked by.

use crate::catalog::capacity::CapacityRequest;
use crate::catalog::draft::CatalogFinding;
use crate::catalog::{CapacityNeed, Catalog, Hold, Resource, references};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Fleet, Quotas, Spec};

/// The obstacles to a new cluster on a fleet. It fits if there are neither problems nor holds.
#[derive(Debug)]
pub struct ClusterFit {
    /// The limits that concern it: the fleet's, then the organization's.
    pub needs: [CapacityNeed; 4],
    /// Why its document would be refused.
    pub problems: Vec<Problem>,
    /// Why it would wait.
    pub holds: Vec<Hold>,
}

impl Catalog {
    /// Judges a new cluster on a fleet, which may be newer than this catalog. Its name and its references aren't
    /// judged.
    pub fn fit(&self, cluster: &Cluster, fleet: &Fleet) -> ClusterFit {
        let place = FleetKey { organization: fleet.organization.clone(), fleet: fleet.identifier.clone() };
        let quotas = self.quotas(&place);
        let request = CapacityRequest {
            fleet: &place,
            spec: Some(fleet),
            quotas: &quotas,
            is_new: true,
            units: cluster.units(),
        };
        let needs = self.granted.needs(&request);
        let unknown = self.granted.unknown_neighbour(&request);
        let mut holds: Vec<Hold> = self.unusable(&place).into_iter().collect();
        holds.extend(self.missing_domain(cluster, &place));
        holds.extend(unknown.map(|other| Hold::Dependency { on: other.clone() }));
        holds.extend(needs.iter().filter(|need| need.missing() > 0).cloned().map(CapacityNeed::hold));
        let findings = references::disagreements(cluster, fleet, None).into_iter();
        let findings = findings.chain(references::unfit(cluster, None, &self.config.units));
        let problems = findings.map(|CatalogFinding { problem, .. }| problem).collect();
        ClusterFit { needs, problems, holds }
    }

    fn quotas(&self, fleet: &FleetKey) -> Quotas {
        let organization = self.resources.get(&ResourceKey::organization(&fleet.organization));
        match organization.filter(|it| is_usable(it)).map(|it| &it.spec) {
            Some(Spec::Organization(organization)) => organization.quotas.clone(),
            _ => Quotas::default(),
        }
    }

    /// Returns why clusters would wait for a fleet. One that isn't known yet is about to be.
    fn unusable(&self, fleet: &FleetKey) -> Option<Hold> {
        let on = fleet.resource();
        match self.resources.get(&on).map(|it| &**it) {
            Some(Resource { hold: Some(hold @ Hold::Suspended { .. }), .. }) => Some(hold.clone()),
            Some(resource) if !is_usable(resource) => Some(Hold::Dependency { on }),
            None if self.absent.contains_key(&on) => Some(Hold::Dependency { on }),
            _ => None,
        }
    }

    /// A fleet kept as it was applied may name a domain that is gone.
    fn missing_domain(&self, cluster: &Cluster, fleet: &FleetKey) -> Option<Hold> {
        let known = self.fleets.get(fleet).filter(|known| known.domain.is_none())?;
        let domain = known.spec.domain.as_ref()?;
        let on = ResourceKey::new(Kind::BaseDomain, &fleet.organization, domain.as_str());
        cluster.advanced_config.cluster_access.is_external().then_some(Hold::Dependency { on })
    }
}

/// Whether others may build on a resource: it isn't held, or it stays as it was applied, without field positions.
fn is_usable(resource: &Resource) -> bool {
    resource.hold.is_none() || resource.fields.is_empty()
}
