//! Facts about single objects, by kind. Anybody may have written a body, so an unreadable value counts as absent.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{COMPONENTS, Manifest, Size, Stage};
use crate::names::Json;

/// The facts of one kind. A row sets those that apply; [`ObjectFacts::NONE`] has the others.
pub struct ObjectFacts {
    pub kind: &'static str,
    pub role: ObjectRole,
    /// When it is applied, and in reverse order deleted. Records don't keep it.
    pub stage: Stage,
    /// The requests of its pods.
    pub size: fn(&Json) -> Size,
    /// The nodes that its pods need.
    pub placement: fn(&Json) -> PlacementNeeds,
    pub disks: fn(&Json) -> Vec<Disk>,
    /// Whether its disks are deleted with it, if it has some.
    pub deletes_disks: Option<fn(&Json) -> bool>,
    /// The class that its disks had before, if a change names another one: `Some(None)` is the default class.
    pub former_disk_class: fn(&Json, &Json) -> Option<Option<String>>,
    /// The place of its data outside of the Kubernetes cluster.
    pub remote_data: fn(&Json) -> Option<Map<String, Value>>,
    /// A sentence about data that stays somewhere else when it is deleted.
    pub left_behind: fn(&Json) -> Option<String>,
    /// The object as it has to be before it is deleted so that its data stays, or `None` if it is so already; for
    /// kinds whose data is deleted with them otherwise.
    pub released: Option<fn(&Json) -> Option<Json>>,
    /// The container images that nodes pull for its pods, as far as it says.
    pub images: fn(&Json) -> BTreeSet<String>,
    /// Whether its pods mount a container image as a volume.
    pub mounts_image: fn(&Json) -> bool,
    /// The version of what it runs.
    pub version: fn(&Json) -> Option<String>,
    /// The host names by which clients outside of Kubernetes find it, by listener.
    pub hosts: fn(&Json) -> BTreeMap<String, String>,
    /// Whether clients reach it through the fleet's Gateway.
    pub is_routed: fn(&Json) -> bool,
    /// Whether it asks for a load balancer that only private networks reach.
    pub is_private: fn(&Json) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectRole {
    /// The object of a cluster as a whole.
    Cluster,
    /// A group of a cluster's nodes, with their disks.
    Nodes,
    /// The way from outside of Kubernetes to all clusters of a fleet.
    Gateway,
    Other,
}

/// The nodes that pods need.
#[derive(Default)]
pub struct PlacementNeeds {
    /// The number of zones that the pods must be spread over.
    pub zones: usize,
    /// The tenant whose nodes they need; `None` for shared nodes.
    pub tenant: Option<String>,
}

#[derive(Deserialize)]
pub struct Disk {
    /// The StorageClass; `None` for the default one.
    #[serde(default)]
    pub class: Option<String>,
    #[serde(default)]
    pub size: Option<String>,
}

static NONE: ObjectFacts = ObjectFacts::NONE;

/// The kinds of Kubernetes itself that belong to no component.
static OF_KUBERNETES: [ObjectFacts; 1] =
    [ObjectFacts { kind: "Namespace", stage: Stage::Namespace, ..ObjectFacts::NONE }];

impl ObjectFacts {
    pub const NONE: ObjectFacts = ObjectFacts {
        kind: "",
        role: ObjectRole::Other,
        stage: Stage::Configuration,
        size: |_| Size::default(),
        placement: |_| PlacementNeeds::default(),
        disks: |_| Vec::new(),
        deletes_disks: None,
        former_disk_class: |_, _| None,
        remote_data: |_| None,
        left_behind: |_| None,
        released: None,
        images: |_| BTreeSet::new(),
        mounts_image: |_| false,
        version: |_| None,
        hosts: |_| BTreeMap::new(),
        is_routed: |_| false,
        is_private: |_| false,
    };

    /// Whether an operator acts on it, so that it is applied after all others.
    pub fn is_custom(&self) -> bool {
        self.stage == Stage::Custom
    }

    /// Whether data is lost with it.
    pub fn holds_data(&self) -> bool {
        matches!(self.role, ObjectRole::Cluster | ObjectRole::Nodes)
    }
}

/// The facts of a kind, whether a component knows it or not.
pub fn facts(kind: &str) -> &'static ObjectFacts {
    rows().find(|it| it.kind == kind).unwrap_or(&NONE)
}

fn rows() -> impl Iterator<Item = &'static ObjectFacts> {
    OF_KUBERNETES.iter().chain(COMPONENTS.iter().flat_map(|component| component.objects))
}

/// The images of a pod's containers, and of its volumes.
pub fn images_of_pod(pod: &Value) -> BTreeSet<String> {
    let items = |list: &str| pod.get(list).and_then(Value::as_array).into_iter().flatten();
    let of_containers = ["initContainers", "containers"].into_iter().flat_map(items).map(|it| &it["image"]);
    let of_volumes = items("volumes").map(|volume| &volume["image"]["reference"]);
    of_containers.chain(of_volumes).filter_map(|image| image.as_str().map(str::to_owned)).collect()
}

/// The images of the pods that an object has a template of.
pub fn images_of_template(object: &Json) -> BTreeSet<String> {
    object.at("/spec/template/spec").as_ref().map(images_of_pod).unwrap_or_default()
}

impl Manifest {
    pub fn facts(&self) -> &'static ObjectFacts {
        facts(&self.key.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the first row of a kind is read: a second one would be without effect.
    #[test]
    fn a_kind_has_one_row_whichever_components_use_it() {
        let mut known = BTreeSet::new();
        let twice: Vec<&str> = rows().map(|row| row.kind).filter(|kind| !known.insert(*kind)).collect();
        assert!(twice.is_empty(), "give {twice:?} one row, with what each component says of its objects");
    }
}
