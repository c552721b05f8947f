//! Upgrades of Kafka in two stages: first the version of the brokers, which can be taken back, and then the
//! version of their metadata, which can't. Rendering sets the final versions. This module decides how far a
//! cluster goes now, by the versions last set in its Kafka object and by the brokers' versions that the
//! operator reports.
//!
//! If the brokers' versions can't be observed, as on a directory fleet, the second stage needs approval.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::catalog::{Status, versions};
use crate::component::consequence::PUT_VERSION_BACK;
use crate::component::health::Judgement;
use crate::component::{Manifest, ObjectRole};
use crate::names::{Json, ResourceKey};
use crate::plan::compare::diff::ObjectDiff;
use crate::plan::compare::verdict::{RefusedChange, differences};
use crate::plan::model::part::NewerVersions;
use crate::plan::model::site::FleetInputs;
use crate::plan::preflight::{PreflightFacts, SupportedVersions};
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Reach, Waiting};
use crate::render::FleetManifests;
use crate::spec::{Cluster, Spec};

const VERSION: &str = "/spec/kafka/version";
const METADATA: &str = "/spec/kafka/metadataVersion";

#[derive(Default)]
pub(in crate::plan) struct Upgrades {
    /// The objects that the fleet should have now, if they differ from the rendered ones.
    objects: Option<FleetManifests>,
    /// Clusters whose upgrade isn't complete, or whose versions are newer than in their specs.
    stages: BTreeMap<ResourceKey, UpgradeStage>,
    /// The newest version that each cluster could have, if newer than its final one.
    pub newer: NewerVersions,
    /// Whether a cluster would follow a newer patch release if the fleet's operator supported it.
    pub awaits_operator: bool,
}

/// How far one cluster goes now.
pub(in crate::plan) struct UpgradeStage {
    version: String,
    /// The current and the final metadata version.
    metadata: (String, String),
    ready: MetadataReadiness,
    raises: bool,
}

/// Whether all brokers run the version that the metadata is to be raised to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetadataReadiness {
    Nothing,
    /// The brokers don't run it, or haven't been observed yet.
    NotYet,
    Seen,
    /// It can't be observed.
    Unseen,
    /// The metadata version is unknown, so any write might raise it.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PinnedVersions {
    version: String,
    metadata: String,
}

/// The versions in a Kafka object, either of which a person may have removed.
#[derive(Debug, Clone, Default, Deserialize)]
struct Said {
    version: Option<String>,
    #[serde(rename = "metadataVersion")]
    metadata: Option<String>,
}

/// The versions that the operator was last asked to run.
enum OperatorTarget {
    /// The cluster doesn't exist yet.
    Nothing,
    /// The cluster exists, but its metadata version is unknown.
    Unknown,
    Pins(PinnedVersions),
}

impl Said {
    fn of(body: &Json) -> Said {
        #[derive(Deserialize)]
        struct KafkaVersions {
            spec: Spec,
        }
        #[derive(Deserialize)]
        struct Spec {
            kafka: Said,
        }
        body.read::<KafkaVersions>().map(|kafka| kafka.spec.kafka).unwrap_or_default()
    }

    /// Fills in missing versions from another source.
    fn or(self, other: Said) -> Said {
        Said { version: self.version.or(other.version), metadata: self.metadata.or(other.metadata) }
    }
}

impl PinnedVersions {
    /// Returns the versions of an object; `None` unless it has both.
    fn of(body: &Json) -> Option<PinnedVersions> {
        let Said { version, metadata } = Said::of(body);
        Some(PinnedVersions { version: version?, metadata: metadata? })
    }

    fn write(&self, body: &mut Json) {
        let mut value = body.value();
        for (pointer, pin) in [(VERSION, &self.version), (METADATA, &self.metadata)] {
            if let Some(field) = value.pointer_mut(pointer) {
                *field = Value::String(pin.clone());
            }
        }
        *body = Json::from(&value);
    }
}

struct UpgradeContext<'a> {
    world: &'a PlanContext<'a>,
    site: &'a FleetInputs<'a>,
    running: SupportedVersions,
}

impl Upgrades {
    /// Decides how far each cluster is upgraded, without raising any metadata yet.
    pub fn of(world: &PlanContext, site: &FleetInputs, facts: Option<&PreflightFacts>) -> Self {
        let scene = UpgradeContext { world, site, running: SupportedVersions::on(site, facts) };
        let mut upgrades = Self::default();
        for kafka in kafkas(site) {
            if let (Some(cluster), Some(rendered)) =
                (scene.cluster(&kafka.owner), PinnedVersions::of(&kafka.body))
            {
                upgrades.decide(&scene, kafka, cluster, &rendered);
            }
        }
        upgrades
    }

    fn decide(
        &mut self,
        scene: &UpgradeContext,
        kafka: &Manifest,
        cluster: &Cluster,
        rendered: &PinnedVersions,
    ) {
        let told = scene.told(kafka, rendered);
        let pins = match &told {
            OperatorTarget::Pins(pins) => Some(pins),
            OperatorTarget::Nothing | OperatorTarget::Unknown => None,
        };
        let end = scene.end(kafka, cluster, rendered, pins);
        let namespace = kafka.key.namespace.as_deref().unwrap_or_default();
        let newer = versions::newer(&end.version, |version| scene.running.is_run(namespace, version));
        self.newer.extend(newer.map(|version| (kafka.owner.clone(), version)));
        self.awaits_operator |= cluster.advanced_config.auto_upgrade && !is_newest(&end.version);
        let told = match told {
            OperatorTarget::Pins(told) => told,
            // A new cluster is created with its final versions.
            OperatorTarget::Nothing => return self.hold(scene.site, kafka, &end),
            OperatorTarget::Unknown => {
                self.hold(scene.site, kafka, &end);
                let metadata = (String::new(), end.metadata);
                let stage = UpgradeStage {
                    version: end.version,
                    metadata,
                    ready: MetadataReadiness::Unknown,
                    raises: false,
                };
                return drop(self.stages.insert(kafka.owner.clone(), stage));
            }
        };
        let has = scene.metadata(&kafka.owner, &told);
        let order = versions::compare(&has, &end.metadata);
        if order == Ordering::Equal && end == *rendered {
            return;
        }
        let ready = match order {
            Ordering::Less => scene.ready(&kafka.owner, &told, &end),
            Ordering::Equal | Ordering::Greater => MetadataReadiness::Nothing,
        };
        let metadata = if order == Ordering::Less { has.clone() } else { end.metadata.clone() };
        self.hold(scene.site, kafka, &PinnedVersions { version: end.version.clone(), metadata });
        let stage =
            UpgradeStage { version: end.version, metadata: (has, end.metadata), ready, raises: false };
        self.stages.insert(kafka.owner.clone(), stage);
    }

    /// Replaces the rendered versions of an object by these.
    fn hold(&mut self, site: &FleetInputs, kafka: &Manifest, pins: &PinnedVersions) {
        if PinnedVersions::of(&kafka.body).as_ref() == Some(pins) {
            return;
        }
        let objects = self.objects.get_or_insert_with(|| site.desired.cloned().unwrap_or_default());
        if let Some(held) = objects.get_mut(&kafka.key) {
            pins.write(&mut held.body);
        }
    }

    /// Raises the metadata of clusters that are ready and don't differ otherwise. Returns whether any are.
    pub fn raise(&mut self, site: &FleetInputs, differs: impl Fn(&ResourceKey) -> bool) -> bool {
        let mut any = false;
        for kafka in kafkas(site) {
            let Some(stage) = self.stages.get_mut(&kafka.owner) else { continue };
            if !matches!(stage.ready, MetadataReadiness::Seen | MetadataReadiness::Unseen)
                || differs(&kafka.owner)
            {
                continue;
            }
            (stage.raises, any) = (true, true);
            let end = PinnedVersions { version: stage.version.clone(), metadata: stage.metadata.1.clone() };
            if let Some(held) = self.objects.as_mut().and_then(|objects| objects.get_mut(&kafka.key)) {
                end.write(&mut held.body);
            }
        }
        any
    }

    /// Returns a fleet's inputs with the objects that it should have now.
    pub fn site<'a>(&'a self, rendered: &FleetInputs<'a>) -> FleetInputs<'a> {
        FleetInputs { desired: self.objects.as_ref().or(rendered.desired), ..*rendered }
    }

    /// Returns how far a cluster is upgraded now; `None` if it matches its spec.
    pub fn stage(&self, cluster: &ResourceKey) -> Option<&UpgradeStage> {
        self.stages.get(cluster)
    }

    /// Whether all upgrades are complete, so that the fleet isn't observed until it changes.
    pub fn are_over(&self) -> bool {
        self.stages.values().all(|stage| stage.ready == MetadataReadiness::Nothing)
    }
}

impl UpgradeStage {
    pub fn foresees(&self) -> Option<String> {
        let waits =
            !matches!(self.ready, MetadataReadiness::Nothing | MetadataReadiness::Unknown) && !self.raises;
        let UpgradeStage { version, metadata: (from, to), .. } = self;
        waits.then(|| {
            format!("then metadata {from} → {to}, which can't be undone, once all brokers run {version}")
        })
    }

    /// Returns the wait of a cluster without other changes.
    pub fn waiting(&self) -> Option<Waiting> {
        let UpgradeStage { version, metadata: (from, to), .. } = self;
        (self.ready == MetadataReadiness::NotYet).then(|| Waiting::Upgrade {
            version: version.clone(),
            from: from.clone(),
            to: to.clone(),
        })
    }

    /// Returns the wait of every change of the cluster that might raise an unknown metadata version.
    pub fn unknown(&self) -> Option<Waiting> {
        let to = self.metadata.1.clone();
        (self.ready == MetadataReadiness::Unknown).then_some(Waiting::MetadataUnknown { to })
    }

    /// Returns the cause of a change that consists only of the upgrade.
    pub fn cause(&self, found: &[ObjectDiff]) -> Option<Cause> {
        let [ObjectDiff { step, drift: None, .. }] = found else { return None };
        let (before, after) = (step.before.as_ref()?.value(), step.after.as_ref()?.body.value());
        let differences = differences(&before, &after);
        let alone = differences.iter().all(|it| [VERSION, METADATA].contains(&it.pointer.as_str()));
        let unseen = self.raises && self.ready == MetadataReadiness::Unseen;
        alone.then(|| Cause::Upgrade { version: self.version.clone(), unseen })
    }

    pub fn refusal(&self) -> Option<RefusedChange> {
        let UpgradeStage { version, metadata: (has, end), .. } = self;
        (versions::compare(has, end) == Ordering::Greater).then(|| RefusedChange {
            code: "metadata-downgrade",
            why: format!(
                "Kafka's metadata version is {has}, which only goes forward, and Kafka {version} reads up to {end}"
            ),
            hint: PUT_VERSION_BACK,
        })
    }
}

impl UpgradeContext<'_> {
    /// Returns the spec of a cluster that is to be as its document says.
    fn cluster(&self, key: &ResourceKey) -> Option<&Cluster> {
        let resource = self.world.catalog.resources.get(key).filter(|resource| resource.hold.is_none())?;
        match &resource.spec {
            Spec::Cluster(cluster) if self.world.absence(key).is_none() => Some(cluster),
            _ => None,
        }
    }

    /// Returns the versions in the existing object, or else in its record, or else in the operator's report.
    fn told(&self, kafka: &Manifest, rendered: &PinnedVersions) -> OperatorTarget {
        let reached = self.site.observed.filter(|observed| observed.reach == Reach::Reached);
        let there = reached.and_then(|it| it.objects.get(&kafka.key)).filter(|object| object.ours);
        let says = there.and_then(|there| there.manifest.as_ref()).map(Said::of).unwrap_or_default();
        let said = says.or(self.applied(kafka, rendered)).or(self.seen(&kafka.owner));
        match said {
            // A version can be taken back, so an unknown one may be overwritten.
            Said { version, metadata: Some(metadata) } => {
                OperatorTarget::Pins(PinnedVersions { version: version.unwrap_or_default(), metadata })
            }
            Said { metadata: None, .. } => {
                let known = reached.and_then(|it| it.inventory.get(&kafka.key));
                let was_made = there.is_some() || known.is_some_and(|known| known.uid.is_some());
                if was_made { OperatorTarget::Unknown } else { OperatorTarget::Nothing }
            }
        }
    }

    fn applied(&self, kafka: &Manifest, rendered: &PinnedVersions) -> Said {
        let reached = self.site.observed.filter(|observed| observed.reach == Reach::Reached);
        let recorded = self.site.recorded.and_then(|recorded| recorded.objects.get(&kafka.key));
        let Some(known) = reached.and_then(|it| it.inventory.get(&kafka.key)).or(recorded) else {
            return Said::default();
        };
        let remembered = recorded.filter(|recorded| recorded.applied == known.applied);
        match known.manifest.as_ref().or(remembered.and_then(|recorded| recorded.manifest.as_ref())) {
            Some(manifest) => Said::of(manifest),
            None if known.applied == kafka.digest() => {
                let PinnedVersions { version, metadata } = rendered.clone();
                Said { version: Some(version), metadata: Some(metadata) }
            }
            None => Said::default(),
        }
    }

    fn seen(&self, cluster: &ResourceKey) -> Said {
        let outputs = self.judgement(cluster).map(|seen| &seen.outputs);
        outputs.map_or_else(Said::default, |seen| Said {
            version: seen.version.clone(),
            metadata: seen.metadata_version.clone(),
        })
    }

    /// Returns a cluster's final versions: those of its spec, or the newest patch release that Streamfleet
    /// and the operators support. Requested versions are never taken back because of missing knowledge.
    fn end(
        &self,
        kafka: &Manifest,
        cluster: &Cluster,
        rendered: &PinnedVersions,
        told: Option<&PinnedVersions>,
    ) -> PinnedVersions {
        if !cluster.advanced_config.auto_upgrade {
            return rendered.clone();
        }
        let namespace = kafka.key.namespace.as_deref().unwrap_or_default();
        let is_run = |version: &&str| self.running.is_run(namespace, version);
        let newest = versions::patches_from(&rendered.version).filter(is_run).last();
        let version = newest.unwrap_or(&rendered.version);
        // A later version of Streamfleet may have gone further than this one knows.
        let kept = told.filter(|told| versions::is_patch_from(&told.version, version));
        let version = kept.map_or(version, |told| &told.version);
        let metadata = versions::metadata_version(version);
        let further = kept.filter(|told| versions::compare(&told.metadata, metadata) == Ordering::Greater);
        let metadata = further.map_or(metadata, |told| &told.metadata);
        PinnedVersions { version: version.to_owned(), metadata: metadata.to_owned() }
    }

    /// Returns a cluster's metadata version: the requested one, or the reported one if that is newer.
    fn metadata(&self, cluster: &ResourceKey, told: &PinnedVersions) -> String {
        let runs = self.judgement(cluster).and_then(|seen| seen.outputs.metadata_version.as_ref());
        let newer = runs.filter(|runs| versions::compare(runs, &told.metadata) == Ordering::Greater);
        newer.unwrap_or(&told.metadata).clone()
    }

    fn ready(&self, cluster: &ResourceKey, told: &PinnedVersions, end: &PinnedVersions) -> MetadataReadiness {
        let fleet = self.world.catalog.fleets.get(self.site.fleet);
        let runs_it = |seen: &Judgement| {
            seen.status.status == Status::Healthy && seen.outputs.version.as_ref() == Some(&end.version)
        };
        if told.version != end.version {
            MetadataReadiness::NotYet
        } else if fleet.is_some_and(|fleet| !fleet.spec.infra_type.capabilities().observes) {
            MetadataReadiness::Unseen
        } else if self.judgement(cluster).is_some_and(runs_it) {
            MetadataReadiness::Seen
        } else {
            MetadataReadiness::NotYet
        }
    }

    fn judgement(&self, cluster: &ResourceKey) -> Option<&Judgement> {
        self.site.observed?.health.as_ref()?.clusters.get(cluster)
    }
}

fn kafkas<'a>(site: &FleetInputs<'a>) -> impl Iterator<Item = &'a Manifest> {
    let objects = site.desired.into_iter().flat_map(|objects| objects.values());
    objects.filter(|object| object.facts().role == ObjectRole::Cluster)
}

fn is_newest(version: &str) -> bool {
    versions::patches_from(version).all(|patch| patch == version)
}
