//! Turns the catalog into Kubernetes manifests. The same catalog gives the same bytes.
//!
//! Here is what every cluster has: a namespace with its limits and network policies. Everything else comes
//! from the components. No body contains a null, a status, or the value of a secret.

mod namespace;
mod network_policy;
mod quota;
pub mod yaml;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::catalog::{Catalog, ResolvedCluster, ResolvedFleet};
use crate::component::dns_records::NamedResource;
use crate::component::{COMPONENTS, ClusterPart, FleetScope};
pub use crate::component::{Manifest, SecretEncoding, SecretSlot, Stage};
use crate::config::{Config, SecretsConfig};
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::parallel::Memo;
use crate::spec::Fleet;

/// Renders every cluster of the catalog. Every fleet is a key of the result, even without clusters.
///
/// Rendering can't fail: resolving the catalog refuses everything that can't be rendered faithfully.
pub fn render(catalog: &Catalog) -> Desired {
    let renderer = Renderer::new(catalog);
    let objects = |key| renderer.fleet(key).map(Arc::unwrap_or_clone);
    let fleets = renderer.clusters.keys().filter_map(|key| Some(((*key).clone(), objects(key)?)));
    Desired { fleets: fleets.collect() }
}

pub struct Renderer<'a> {
    config: &'a Arc<Config>,
    fleets: &'a BTreeMap<FleetKey, Arc<ResolvedFleet>>,
    clusters: BTreeMap<&'a FleetKey, Vec<&'a Arc<ResolvedCluster>>>,
    before: Option<&'a Renderings>,
}

impl<'a> Renderer<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        Self::after(catalog, None)
    }

    /// Takes over what was rendered before of clusters that are still the same, and adds what it renders.
    pub fn after(catalog: &'a Catalog, before: Option<&'a Renderings>) -> Self {
        let mut clusters: BTreeMap<&FleetKey, Vec<_>> =
            catalog.fleets.keys().map(|key| (key, Vec::new())).collect();
        // The clusters of a fleet mostly follow each other.
        let all: Vec<_> = catalog.clusters.values().collect();
        for group in all.chunk_by(|one, other| one.fleet == other.fleet) {
            let Some(first) = group.first() else { continue };
            clusters.entry(&first.fleet).or_default().extend(group);
        }
        Self { config: &catalog.config, fleets: &catalog.fleets, clusters, before }
    }

    /// Everything that [`Renderer::fleet`] reads for a fleet.
    pub fn inputs(&self, fleet: &FleetKey) -> RenderInputs {
        RenderInputs {
            config: Arc::clone(self.config),
            fleet: self.fleets.get(fleet).map(Arc::clone),
            clusters: self.clusters.get(fleet).into_iter().flatten().map(|it| Arc::clone(it)).collect(),
        }
    }

    /// The resources of a fleet whose DNS records Streamfleet keeps.
    pub fn named_resources(&self, fleet: &FleetKey) -> Vec<NamedResource<'a>> {
        let clusters = self.clusters.get(fleet).into_iter().flatten();
        let own = self.fleets.get(fleet).and_then(|fleet| NamedResource::of_fleet(fleet));
        clusters.filter_map(|cluster| NamedResource::of_cluster(cluster)).chain(own).collect()
    }

    /// Every object of a fleet but its DNS records, for which the target has to be asked; `None` for a fleet that should not exist.
    pub fn fleet(&self, fleet: &FleetKey) -> Option<Arc<FleetManifests>> {
        let clusters = self.clusters.get(fleet)?;
        let Some(before) = self.before else { return Some(self.rendered(fleet, clusters, None).into()) };
        let (inputs, last) = (self.inputs(fleet), before.get(fleet));
        if let Some(last) = last.as_ref().filter(|last| last.inputs == inputs) {
            return Some(Arc::clone(&last.objects));
        }
        let objects = Arc::new(self.rendered(fleet, clusters, last.as_deref()));
        before.put(fleet, Some(Rendering { inputs, objects: Arc::clone(&objects) }));
        Some(objects)
    }

    fn rendered(
        &self,
        fleet: &FleetKey,
        clusters: &[&Arc<ResolvedCluster>],
        last: Option<&Rendering>,
    ) -> FleetManifests {
        let last = last.filter(|last| last.inputs.config == *self.config);
        let was: HashMap<&ResourceKey, _> =
            last.iter().flat_map(|last| &last.inputs.clusters).map(|was| (&was.key, was)).collect();
        let is_same = |cluster: &&Arc<ResolvedCluster>| {
            was.get(&cluster.key).is_some_and(|was| Arc::ptr_eq(was, cluster))
        };
        let (same, changed): (Vec<&Arc<ResolvedCluster>>, Vec<_>) =
            clusters.iter().copied().partition(is_same);
        let same: HashSet<&ResourceKey> = same.into_iter().map(|cluster| &cluster.key).collect();
        let is_kept = |manifest: &&Manifest| match manifest.owner.within_cluster() {
            Some((cluster, _)) => same.contains(&cluster),
            None => same.contains(&manifest.owner),
        };
        let kept = last.iter().flat_map(|last| last.objects.values()).filter(is_kept).cloned();
        let scope = self.fleets.get(fleet).map(|fleet| FleetScope { fleet, clusters, config: self.config });
        let own = scope.iter().flat_map(|scope| {
            let objects = COMPONENTS.iter().flat_map(|it| (it.in_fleet)(scope));
            objects.filter(|manifest| is_written(manifest, &scope.fleet.spec, &scope.config.secrets))
        });
        let changed = changed.into_iter().flat_map(|cluster| objects(cluster, self.config));
        kept.chain(own).chain(changed).map(|manifest| (manifest.key.clone(), manifest)).collect()
    }
}

/// The objects of fleets as they were rendered last.
pub type Renderings = Memo<FleetKey, Rendering>;

pub struct Rendering {
    inputs: RenderInputs,
    objects: Arc<FleetManifests>,
}

/// The inputs that a fleet is rendered from. The same inputs give the same objects.
#[derive(Debug, Clone)]
pub struct RenderInputs {
    pub config: Arc<Config>,
    pub fleet: Option<Arc<ResolvedFleet>>,
    pub clusters: Vec<Arc<ResolvedCluster>>,
}

impl PartialEq for RenderInputs {
    fn eq(&self, other: &Self) -> bool {
        // Values that didn't change are usually shared, and then needn't be compared.
        fn is_same<T: PartialEq>(one: &Arc<T>, other: &Arc<T>) -> bool {
            Arc::ptr_eq(one, other) || one == other
        }
        let is_same_fleet = match (&self.fleet, &other.fleet) {
            (Some(one), Some(other)) => {
                Arc::ptr_eq(one, other)
                    || (one.spec.advanced_config == other.spec.advanced_config
                        && one.domain == other.domain
                        && one.spec.max_kafka_units == other.spec.max_kafka_units
                        && one.own_prometheus == other.own_prometheus)
            }
            (None, None) => true,
            _ => false,
        };
        let mut clusters = self.clusters.iter().zip(&other.clusters);
        is_same(&self.config, &other.config)
            && is_same_fleet
            && self.clusters.len() == other.clusters.len()
            && clusters.all(|(one, other)| is_same(one, other))
    }
}

fn objects<'a>(cluster: &'a ResolvedCluster, config: &'a Config) -> impl Iterator<Item = Manifest> + 'a {
    let objects = render_cluster(cluster, config).into_iter();
    objects.filter(|manifest| is_written(manifest, &cluster.fleet_spec, &config.secrets))
}

fn render_cluster(cluster: &ResolvedCluster, config: &Config) -> Vec<Manifest> {
    let parts: Vec<ClusterPart> =
        COMPONENTS.iter().filter_map(|it| (it.in_cluster)(cluster, config)).collect();
    let mut objects = vec![
        namespace::namespace(cluster, &parts),
        quota::resource_quota(cluster, &parts),
        quota::limit_range(cluster),
    ];
    objects.extend(network_policy::network_policies(cluster, &parts));
    objects.extend(parts.into_iter().flat_map(|part| part.objects));
    objects.extend(COMPONENTS.iter().flat_map(|it| (it.beside_cluster)(cluster)));
    objects
}

/// Whether an object is written to a fleet's target. The settings may keep secrets out of folders.
fn is_written(manifest: &Manifest, fleet: &Fleet, secrets: &SecretsConfig) -> bool {
    let may_hold = fleet.infra_type.capabilities().holds_secrets || secrets.write_to_output;
    may_hold || SecretSlot::all_in(&manifest.body).next().is_none()
}

pub type FleetManifests = BTreeMap<ObjectKey, Manifest>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// Fleets without objects are included.
    pub fleets: BTreeMap<FleetKey, FleetManifests>,
}
