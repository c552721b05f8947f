//! The recordings once more, written into a real API server and observed there.
//!
//! At each moment at which the report changes, the server has the objects and statuses of the recording, and
//! the production code observes them. Values that only a server assigns (uids and creation times) are
//! replaced by the recorded ones; generations are raised to the recorded ones by as many changes.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::Value;
use streamfleet::component::health::{AppliedCluster, ClusterObservation, OperatorState, judge};
use streamfleet::config::AddressRange;
use streamfleet::names::ResourceKey;
use streamfleet::spec::kubeconfig::KubeAccess;
use streamfleet::target::{AccessField, KubernetesCluster as Reached, KubernetesTarget, Target};
use tokio::runtime::Runtime;

use super::{Moment, World, recordings, replay, text};
use crate::support::control_plane::{ControlPlane, Writer, until};

const LEFT_OUT: &str = "Secret";

/// The least definition of topics that stores some: Streamfleet creates none, so the tests have no real
/// definition.
const TOPICS: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "kafkatopics.kafka.strimzi.io"}, "spec": {"group": "kafka.strimzi.io", "scope": "Namespaced",
    "names": {"kind": "KafkaTopic", "plural": "kafkatopics"}, "versions": [{"name": "v1", "served": true, "storage": true,
    "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object",
    "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

type Place = (String, String, String);

/// A server with the objects of a recording at a moment.
struct Server<'a> {
    writer: &'a Writer,
    target: &'a Target,
    runtime: &'a Runtime,
    written: BTreeMap<Place, Value>,
}

impl Server<'_> {
    fn follow(&mut self, world: &World) {
        let is_written = |place: &&Place| place.0 != LEFT_OUT;
        let gone: Vec<Place> =
            self.written.keys().filter(|place| !world.objects.contains_key(*place)).cloned().collect();
        for place in gone {
            self.written.remove(&place);
            self.runtime.block_on(self.writer.remove(&place));
        }
        for place in world.objects.keys().filter(is_written) {
            let object = &world.objects[place];
            let before = self.written.get(place);
            if before == Some(object) {
                continue;
            }
            if before.is_some_and(|before| text(before, "/metadata/uid") != text(object, "/metadata/uid")) {
                self.runtime.block_on(self.writer.remove(place));
                self.written.remove(place);
            }
            let before = self.written.insert(place.clone(), object.clone());
            self.runtime.block_on(self.writer.put(object, before.as_ref()));
        }
    }

    /// The observation of a cluster through the server, with server-assigned values as recorded.
    fn see(&self, moment: &Moment) -> ClusterObservation {
        let world = moment.world;
        let (namespace, cluster) = moment.cluster;
        let key: ResourceKey = format!("Cluster/acme/{cluster}").try_into().unwrap();
        let wanted: BTreeMap<ResourceKey, AppliedCluster> =
            [(key.clone(), world.wanted[moment.cluster].clone())].into();
        let mut fleet = self.runtime.block_on(self.target.observe_health(&wanted)).unwrap().unwrap();
        assert_eq!(fleet.unobservable, []);
        let recorded = |kind: &str, name: &str| {
            let place = (kind.to_owned(), namespace.clone(), name.to_owned());
            move |pointer: &str| Some(text(world.objects.get(&place)?, pointer).to_owned())
        };
        let mut seen = fleet.clusters.remove(&key).unwrap();
        if let Some(kafka) = &mut seen.kafka {
            kafka.uid = recorded("Kafka", cluster)("/metadata/uid");
            kafka.created = recorded("Kafka", cluster)("/metadata/creationTimestamp");
        }
        for (name, claim) in &mut seen.claims {
            claim.created = recorded("PersistentVolumeClaim", name)("/metadata/creationTimestamp");
        }
        for (name, pod) in seen.pods.iter_mut().flatten() {
            pod.uid = recorded("Pod", name)("/metadata/uid");
            pod.created = recorded("Pod", name)("/metadata/creationTimestamp");
        }
        // Kinds that weren't recorded are unknown here, too.
        seen.storage_classes = None;
        if !world.kinds.contains("Pod") {
            seen.pods = None;
        }
        match world.operator() {
            OperatorState::Unknown => seen.operator = OperatorState::Unknown,
            recorded => assert_eq!((&seen.operator, &fleet.operator), (&recorded, &recorded)),
        }
        seen
    }
}

#[test]
fn every_recording_is_read_the_same_from_a_real_api_server() {
    let plane = ControlPlane::lease();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let writer = runtime.block_on(Writer::to(&plane));
    let reached = Reached {
        field: AccessField::Kubeconfig,
        access: Ok(KubeAccess::parse(&plane.kubeconfig()).unwrap()),
        described: true,
        bound: None,
        taken: BTreeMap::new().into(),
        allowed: vec![AddressRange::try_from("127.0.0.0/8".to_owned()).unwrap()],
    };
    let fleet = "acme/eu".to_owned().try_into().unwrap();
    let target = Target::Kubernetes(KubernetesTarget::new(fleet, uuid::Uuid::nil(), reached));
    plane.apply(TOPICS).expect(0);
    until("topics are served", || (plane.kubectl("get kafkatopics", "").code == 0).then_some(()));
    let mut looks = 0;
    for file in recordings() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let mut server =
            Server { writer: &writer, target: &target, runtime: &runtime, written: BTreeMap::new() };
        replay(&file, |moment| {
            if !moment.report_changed {
                return;
            }
            looks += 1;
            server.follow(moment.world);
            let seen = server.see(moment);
            let (judgement, _) =
                judge(&moment.world.wanted[moment.cluster], &seen, moment.before, moment.now);
            let at = SignedDuration::as_secs_f64(&moment.at);
            assert_eq!(&judgement, moment.judgement, "{name} at {at} s\nseen {seen:#?}");
        });
        for place in server.written.keys() {
            runtime.block_on(writer.remove(place));
        }
    }
    // As many as the snapshots have changes of a cluster's report.
    assert!(looks > 200, "{looks}");
}
