//! Replays recordings of a real Strimzi operator and checks the reported status at each moment.
//!
//! `tests/recordings/README.md` describes them. Each is fed, change by change, into a world of objects, which
//! is judged after each change and at each full second in between, until a minute after the last change. What
//! is wanted is taken from the specs of the recorded objects, as if Streamfleet had applied them.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use streamfleet::catalog::{Condition, Status};
use streamfleet::component::health::timing::DEBOUNCE;
use streamfleet::component::health::{
    AppliedCluster, ClusterObservation, HealthMemory, Judgement, OperatorState, Outputs,
    SCALE_DOWN_PREVENTION, WantedPool, judge,
};
use streamfleet::health::{self, FleetMemory};

const START: &str = "2026-11-21T11:00:00Z";
const AFTERMATH: i64 = 60;

struct Change {
    at: SignedDuration,
    kind: String,
    gone: bool,
    object: Value,
}

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

fn read(file: &Path) -> Vec<Change> {
    let change = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        let seconds = value["t"].as_f64().unwrap();
        let kind = value["kind"].as_str().unwrap().to_owned();
        let mut object = value["object"].take();
        object["kind"] = kind.clone().into();
        let gone = value["event"] == "DELETED";
        Change { at: SignedDuration::from_secs_f64(seconds), kind, gone, object }
    };
    fs::read_to_string(file).unwrap().lines().map(change).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

type Cluster = (String, String);

fn cluster_of(object: &Value) -> Option<Cluster> {
    let label = text(object, "/metadata/labels/strimzi.io~1cluster");
    let is_it = text(object, "/kind") == "Kafka";
    let name = if is_it { text(object, "/metadata/name") } else { label };
    (!name.is_empty()).then(|| (text(object, "/metadata/namespace").to_owned(), name.to_owned()))
}

/// The objects at one moment, and the wanted state.
struct World {
    kinds: BTreeSet<String>,
    objects: BTreeMap<(String, String, String), Value>,
    wanted: BTreeMap<Cluster, AppliedCluster>,
    /// Clusters whose Kafka object is deleted by hand: it is still wanted, and recreated.
    made_again: BTreeSet<Cluster>,
}

impl World {
    fn of(changes: &[Change]) -> Self {
        let has_kafka = changes.iter().any(|change| change.kind == "Kafka");
        let wanted = |(namespace, cluster): Cluster| AppliedCluster {
            namespace,
            cluster,
            ..AppliedCluster::default()
        };
        let (mut gone, mut made_again) = (BTreeSet::new(), BTreeSet::new());
        for change in changes.iter().filter(|change| change.kind == "Kafka") {
            let cluster = cluster_of(&change.object).unwrap();
            if change.gone {
                gone.insert(cluster);
            } else if gone.contains(&cluster) {
                made_again.insert(cluster);
            }
        }
        Self {
            made_again,
            kinds: changes.iter().map(|change| change.kind.clone()).collect(),
            objects: BTreeMap::new(),
            wanted: changes
                .iter()
                .filter(|change| !has_kafka || change.kind == "Kafka")
                .filter_map(|change| cluster_of(&change.object))
                .map(|cluster| (cluster.clone(), wanted(cluster)))
                .collect(),
        }
    }

    fn take(&mut self, change: &Change) {
        let object = &change.object;
        self.want(change);
        let place = |pointer| text(object, pointer).to_owned();
        let key = (change.kind.clone(), place("/metadata/namespace"), place("/metadata/name"));
        if change.gone {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, object.clone());
        }
    }

    /// A node pool deleted by hand is still wanted if its cluster is.
    fn want(&mut self, change: &Change) {
        let object = &change.object;
        let Some(cluster) = cluster_of(object) else { return };
        let Some(wanted) = self.wanted.get_mut(&cluster) else { return };
        match change.kind.as_str() {
            "Kafka" => {
                wanted.deleting = change.gone && !self.made_again.contains(&cluster);
                wanted.paused =
                    text(object, "/metadata/annotations/strimzi.io~1pause-reconciliation") == "true";
                wanted.version = Some(text(object, "/spec/kafka/version").to_owned());
                wanted.metadata_version = Some(text(object, "/spec/kafka/metadataVersion").to_owned());
            }
            "KafkaNodePool" => {
                let roles = object.pointer("/spec/roles").and_then(Value::as_array).unwrap();
                let pool = WantedPool {
                    replicas: u32::try_from(object.pointer("/spec/replicas").unwrap().as_u64().unwrap())
                        .unwrap(),
                    controller: roles.contains(&"controller".into()),
                };
                wanted.pools.insert(text(object, "/metadata/name").to_owned(), pool);
            }
            _ => {}
        }
    }

    fn operator(&self) -> OperatorState {
        let mut deployments = self.objects.iter().filter(|((kind, ..), _)| kind == "Deployment");
        match deployments.find(|(_, object)| OperatorState::is_one(object)) {
            Some((_, object)) => OperatorState::of(Some(object)),
            None => OperatorState::Unknown,
        }
    }

    /// The observation of a cluster. Pods that were not recorded are unknown.
    fn seen(&self, (namespace, cluster): &Cluster) -> ClusterObservation {
        let seen = ClusterObservation::of(namespace, cluster, self.operator(), self.objects.values());
        if self.kinds.contains("Pod") { seen.watching_pods() } else { seen }
    }
}

/// The report about a cluster or a fleet at a moment.
#[derive(PartialEq, Eq)]
struct Page(String);

impl Page {
    fn of(status: Status, reason: Option<&str>, conditions: &[Condition]) -> Self {
        let mut page = status.to_string();
        if let Some(reason) = reason {
            write!(page, ": {reason}").unwrap();
        }
        // A condition equal to the reason isn't printed twice.
        for condition in conditions.iter().filter(|condition| Some(condition.message.as_str()) != reason) {
            write!(page, "\n           ({}) {}", condition.kind, condition.message).unwrap();
        }
        Self(page)
    }

    fn of_cluster(judgement: &Judgement) -> Self {
        let status = &judgement.status;
        Self::of(status.status, status.reason.as_deref(), &status.conditions)
    }
}

struct Moment<'a> {
    at: SignedDuration,
    now: Timestamp,
    world: &'a World,
    cluster: &'a Cluster,
    before: &'a HealthMemory,
    judgement: &'a Judgement,
    report_changed: bool,
}

/// Judges a recording at each of its moments; `look` gets every judgement.
fn replay(file: &Path, mut look: impl FnMut(&Moment)) -> Vec<String> {
    let changes = read(file);
    let mut world = World::of(&changes);
    let start: Timestamp = START.parse().unwrap();
    let last = changes.last().map(|change| change.at.as_secs()).unwrap_or_default() + 1 + AFTERMATH;
    let mut moments: BTreeSet<SignedDuration> = (0..=last).map(SignedDuration::from_secs).collect();
    moments.extend(changes.iter().map(|change| change.at));
    let (mut memories, mut fleet) = (BTreeMap::<Cluster, HealthMemory>::new(), FleetMemory::default());
    let (mut pages, mut lines) = (BTreeMap::<String, Page>::new(), Vec::new());
    let mut changes = changes.iter().peekable();
    for moment in moments {
        let now = start + moment;
        // Initial lists are read before the first judgement; after that, each change is judged by itself.
        loop {
            let mut took = false;
            while let Some(change) = changes.next_if(|change| change.at <= moment) {
                world.take(change);
                took = true;
                if !moment.is_zero() {
                    break;
                }
            }
            let mut statuses = Vec::new();
            for (cluster, wanted) in &world.wanted {
                let memory = memories.entry(cluster.clone()).or_default();
                let (judgement, next) = judge(wanted, &world.seen(cluster), memory, now);
                let page = Page::of_cluster(&judgement);
                look(&Moment {
                    at: moment,
                    now,
                    world: &world,
                    cluster,
                    before: memory,
                    judgement: &judgement,
                    report_changed: pages.get(&cluster.1) != Some(&page),
                });
                // The health memory is stored as JSON between two runs.
                *memory = serde_json::from_value(serde_json::to_value(next).unwrap()).unwrap();
                statuses.push(judgement.status.status);
                turn(&mut pages, &mut lines, moment, &cluster.1, page);
            }
            if world.kinds.contains("Deployment") {
                let (told, next) = health::judge(&world.operator(), &statuses, &fleet, now);
                fleet = next;
                let page = Page::of(told.status, told.reason.as_deref(), &told.conditions);
                turn(&mut pages, &mut lines, moment, "(fleet)", page);
            }
            if !took || moment.is_zero() {
                break;
            }
        }
    }
    lines
}

fn turn(
    pages: &mut BTreeMap<String, Page>,
    lines: &mut Vec<String>,
    moment: SignedDuration,
    name: &str,
    page: Page,
) {
    if pages.get(name) != Some(&page) {
        lines.push(format!("{:>8.2}  {name}  {}", moment.as_secs_f64(), page.0));
        pages.insert(name.to_owned(), page);
    }
}

/// Judging only after changes and at the times that a judgement asked for misses nothing.
#[test]
fn what_time_alone_changes_is_due_when_it_does() {
    let mut turns = 0;
    for file in recordings() {
        let mut last: BTreeMap<Cluster, (ClusterObservation, AppliedCluster, Timestamp)> = BTreeMap::new();
        replay(&file, |moment| {
            let (seen, wanted) = (moment.world.seen(moment.cluster), &moment.world.wanted[moment.cluster]);
            let before = last.insert(moment.cluster.clone(), (seen.clone(), wanted.clone(), moment.now));
            let Some((_, _, judged)) =
                before.filter(|(s, w, _)| moment.report_changed && *s == seen && w == wanted)
            else {
                return;
            };
            turns += 1;
            let due = moment.before.due(judged);
            assert!(due.is_some_and(|due| due <= moment.now), "{} at {:?}", file.display(), moment.at);
        });
    }
    assert!(turns > 10, "{turns}");
}

#[test]
fn a_person_reads_the_truth_at_every_moment_of_every_recording() {
    let files = recordings();
    assert_eq!(files.len(), 30);
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let lines = replay(&file, |_| {});
        insta::assert_snapshot!(name, lines.join("\n"));
    }
}

fn statuses(name: &str) -> Vec<Status> {
    let mut said = Vec::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{name}.jsonl"));
    replay(&file, |moment| said.push(moment.judgement.status.status));
    said.dedup();
    said
}

#[test]
fn a_change_that_goes_well_is_never_called_trouble() {
    for name in [
        "certificate-change-rolling",
        "config-change-rolling",
        "controllers-1-to-3",
        "connection-limits",
        "entity-operator-restart",
        "scale-up",
        "storage-grow",
        "storage-grow-cruise-control",
    ] {
        assert_eq!(statuses(name), [Status::Healthy, Status::Updating, Status::Healthy], "{name}");
    }
}

/// The ready pods by the last statuses of pods and pod sets, and the pods that the pools ask for: counted
/// independently here.
fn count(world: &World) -> (u64, u64) {
    let sum = |kind: &str, of: &dyn Fn(&Value) -> u64| -> u64 {
        world.objects.iter().filter(|((is, ..), _)| is == kind).map(|(_, object)| of(object)).sum()
    };
    let number =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let is_ready = |object: &Value| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let ready = conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
        u64::from(ready && !text(object, "/metadata/labels/strimzi.io~1pool-name").is_empty())
    };
    let ready = if world.kinds.contains("Pod") {
        sum("Pod", &is_ready)
    } else {
        sum("StrimziPodSet", &|set| number(set, "/status/readyPods"))
    };
    (ready, sum("KafkaNodePool", &|pool| number(pool, "/spec/replicas")))
}

#[test]
fn what_is_called_healthy_has_every_pod_but_for_a_moment() {
    for file in recordings() {
        let changes = read(&file);
        let start: Timestamp = START.parse().unwrap();
        let (mut world, mut short) = (World::of(&changes), None);
        let (mut memory, Some(cluster)) = (HealthMemory::default(), world.wanted.keys().next().cloned())
        else {
            continue;
        };
        let mut changes = changes.iter().peekable();
        for second in 0..700 {
            let moment = SignedDuration::from_secs(second);
            while let Some(change) = changes.next_if(|change| change.at <= moment) {
                world.take(change);
            }
            let (judgement, next) =
                judge(&world.wanted[&cluster], &world.seen(&cluster), &memory, start + moment);
            memory = next;
            let (ready, wanted) = count(&world);
            short = if ready < wanted { short.or(Some(moment)) } else { None };
            let long = short.is_some_and(|since| moment - since > DEBOUNCE);
            let healthy = judgement.status.status == Status::Healthy;
            assert!(!(healthy && long), "{}: {second} s: {ready} of {wanted}", file.display());
        }
    }
}

#[test]
fn what_is_handed_on_outlives_refusals_pauses_and_deletions() {
    for name in ["invalid-config", "pause-and-resume", "bad-certificate-key", "delete-keep-data"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{name}.jsonl"));
        let mut first = None;
        replay(&file, |&Moment { at: moment, judgement, .. }| {
            // One recording is about a changed certificate.
            assert!(judgement.outputs.certificates.contains_key("tls"));
            let outputs = Outputs { certificates: BTreeMap::new(), ..judgement.outputs.clone() };
            let first = first.get_or_insert_with(|| outputs.clone());
            assert!(first.cluster_id.is_some() && first.bootstrap.contains_key("tls"));
            assert_eq!(&outputs, first, "{name} at {moment:?}");
        });
    }
}

#[test]
fn an_armed_scale_down_is_a_pending_destruction_until_it_begins() {
    let mut armed = Vec::new();
    for name in ["scale-down-refused", "scale-down-allowed"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{name}.jsonl"));
        replay(&file, |&Moment { judgement, .. }| {
            let conditions = judgement.status.conditions.iter();
            let pending = conditions.filter(|condition| condition.kind == SCALE_DOWN_PREVENTION);
            armed.push(pending.map(|condition| condition.message.clone()).collect::<Vec<_>>());
        });
    }
    armed.dedup();
    let broker_3 = "the operator will shrink pool `broker` from 4 to 3 nodes as soon as node 3 has no partition; set the \
                    number back to 4 to keep it";
    assert_eq!(armed, [vec![], vec![broker_3.to_owned()], vec![]]);
}

#[test]
fn a_certificate_that_the_operator_has_not_noticed_is_told_when_it_is_known_which_one_is_wanted() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/certificate-change-rolling.jsonl");
    let changes = read(&file);
    let (mut early, mut late) = (World::of(&changes), World::of(&changes));
    changes
        .iter()
        .filter(|change| change.at < SignedDuration::from_secs(5))
        .for_each(|change| early.take(change));
    changes.iter().for_each(|change| late.take(change));
    let cluster = early.wanted.keys().next().unwrap().clone();
    let shown = late.seen(&cluster).kafka.unwrap().listeners;
    let certificates =
        shown.into_iter().map(|listener| (listener.name, listener.certificate.unwrap())).collect();
    let mut wanted = early.wanted[&cluster].clone();
    let now: Timestamp = START.parse().unwrap();
    let status = |wanted: &AppliedCluster, world: &World| {
        judge(wanted, &world.seen(&cluster), &HealthMemory::default(), now).0.status.status
    };
    assert_eq!(status(&wanted, &early), Status::Healthy);
    wanted.certificates = certificates;
    assert_eq!(status(&wanted, &early), Status::Updating);
    assert_eq!(status(&wanted, &late), Status::Healthy);
}
