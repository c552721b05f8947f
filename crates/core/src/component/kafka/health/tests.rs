//! Single situations. Whole stories are in `tests/replay.rs`.

mod authorities;
mod deadlines;
mod own_changes;
mod property;
mod reasons;
mod unobserved;

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::memory::Decision;
use super::*;
use crate::catalog::Condition;
use crate::component::health::timing::{DEADLINE, DEBOUNCE, OBSERVATION_GAP, QUIET_PERIOD};
use crate::component::strimzi::health::OperatorState;
use crate::names::{Digest, ResourceKey};

/// One cluster, `orders`, with the memory of earlier judgements.
struct Lab {
    wanted: AppliedCluster,
    objects: BTreeMap<String, Value>,
    operator: OperatorState,
    classes: Option<Vec<String>>,
    /// Of other components.
    troubles: Vec<Condition>,
    memory: HealthMemory,
    now: Timestamp,
}

const NAMESPACE: &str = "kafka-acme--orders";

impl Lab {
    /// Three controllers and three brokers that have always been well.
    fn healthy() -> Self {
        let pool = |controller| WantedPool { replicas: 3, controller };
        let mut lab = Self {
            wanted: AppliedCluster {
                namespace: NAMESPACE.into(),
                cluster: "orders".into(),
                version: Some("4.3.1".into()),
                pools: BTreeMap::from([("broker".into(), pool(false)), ("controller".into(), pool(true))]),
                ..AppliedCluster::default()
            },
            objects: BTreeMap::new(),
            operator: OperatorState::Unknown,
            classes: None,
            troubles: Vec::new(),
            memory: HealthMemory::default(),
            now: "2026-11-21T11:00:00Z".parse().unwrap(),
        };
        lab.put(json!({"kind": "Kafka", "metadata": {"name": "orders", "uid": "u1", "generation": 1},
            "status": {"observedGeneration": 1, "kafkaVersion": "4.3.1", "operatorLastSuccessfulVersion": "1.2.0",
                "clusterId": "abc", "listeners": [{"name": "tls", "bootstrapServers": "orders:9093"}],
                "conditions": [{"type": "Ready", "status": "True"}]}}));
        for (pool, first) in [("broker", 0), ("controller", 1000)] {
            let ids: Vec<u32> = (first..first + 3).collect();
            lab.put(json!({"kind": "KafkaNodePool", "metadata": {"name": pool, "generation": 1},
                "spec": {"replicas": 3}, "status": {"observedGeneration": 1, "replicas": 3, "nodeIds": ids}}));
            for id in ids {
                lab.pod(pool, id, json!({"conditions": [{"type": "Ready", "status": "True"}]}));
            }
        }
        assert_eq!(lab.status(), Status::Healthy);
        lab
    }

    fn new_cluster() -> Self {
        let mut lab = Self::healthy();
        lab.memory = HealthMemory::default();
        lab.objects.retain(|_, object| object["kind"] != "Pod");
        lab.edit(
            "Kafka/orders",
            "/status",
            json!({"observedGeneration": 0,
            "conditions": [{"type": "NotReady", "status": "True", "reason": "Creating"}]}),
        );
        assert_eq!(lab.status(), Status::Provisioning);
        lab
    }

    fn put(&mut self, mut object: Value) {
        object["metadata"]["namespace"] = NAMESPACE.into();
        if object["kind"] != "Kafka" {
            object["metadata"]["labels"]["strimzi.io/cluster"] = "orders".into();
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let key = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
        self.objects.insert(key, object);
    }

    fn pod(&mut self, pool: &str, id: u32, status: Value) {
        let name = format!("orders-{pool}-{id}");
        let labels = json!({"strimzi.io/pool-name": pool});
        self.put(json!({"kind": "Pod", "metadata": {"name": name, "labels": labels}, "status": status}));
    }

    /// Sets the status of the container of pod `orders-broker-0`.
    fn broker(&mut self, container: Value) {
        let mut container = container;
        container["name"] = "kafka".into();
        self.pod("broker", 0, json!({"containerStatuses": [container]}));
    }

    fn edit(&mut self, key: &str, pointer: &str, value: Value) {
        *self.objects.get_mut(key).unwrap().pointer_mut(pointer).unwrap() = value;
    }

    fn say(&mut self, condition: Value) {
        self.edit("Kafka/orders", "/status/conditions", json!([condition]));
    }

    fn seen(&self) -> ClusterObservation {
        let seen = ClusterObservation::of(NAMESPACE, "orders", self.operator.clone(), self.objects.values())
            .watching_pods();
        let seen = ClusterObservation { troubles: self.troubles.clone(), ..seen };
        match &self.classes {
            Some(classes) => seen.knowing_storage_classes(classes.clone()),
            None => seen,
        }
    }

    fn judge(&mut self) -> Judgement {
        let (judgement, memory) = judge(&self.wanted, &self.seen(), &self.memory, self.now);
        self.memory = memory;
        judgement
    }

    fn status(&mut self) -> Status {
        self.judge().status.status
    }

    fn after(&mut self, time: SignedDuration) -> Judgement {
        self.judge();
        self.now = self.now.checked_add(time).unwrap();
        self.judge()
    }

    /// The status and reason once trouble has lasted.
    fn told(&mut self) -> String {
        let status = self.after(DEBOUNCE).status;
        format!("{}: {}", status.status, status.reason.unwrap_or_default())
    }
}

#[test]
fn the_public_brokers_are_those_of_the_plan_whoever_is_alive() {
    let mut lab = Lab::healthy();
    lab.wanted.public = Some(PublicListener {
        bootstrap: "orders.k.example.com".to_owned(),
        broker: "broker-{nodeId}--orders.k.example.com".to_owned(),
        port: 9094,
        chain: None,
        user: None,
    });
    let brokers = |lab: &Lab| PublicSide::of(&lab.wanted, &lab.seen()).unwrap().brokers;
    assert_eq!(brokers(&lab), [(0, true), (1, true), (2, true)].into());
    lab.objects.remove("Pod/orders-broker-1");
    let without_one = BTreeMap::from([(0, true), (1, false), (2, true)]);
    assert_eq!(brokers(&lab), without_one);
    // Somebody else's pool isn't the plan's.
    lab.put(json!({"kind": "KafkaNodePool", "metadata": {"name": "extra", "generation": 1}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "nodeIds": [7]}}));
    assert_eq!(brokers(&lab), without_one);
}

#[test]
fn what_is_handed_on_survives_a_look_that_fails() {
    let mut lab = Lab::healthy();
    let before = lab.judge().outputs;
    assert_eq!(before.bootstrap["tls"], "orders:9093");
    assert_eq!(before.cluster_id.as_deref(), Some("abc"));
    lab.edit(
        "Kafka/orders",
        "/status",
        json!({"observedGeneration": 1,
        "conditions": [{"type": "NotReady", "status": "True", "reason": "InvalidResourceException"}]}),
    );
    let judgement = lab.judge();
    assert_eq!(judgement.outputs, before);
}

#[test]
fn trouble_of_another_component_degrades_once_it_has_lasted_and_the_cluster_works() {
    let trouble = |kind: &str, degraded| {
        let message = format!("{kind} is down");
        Condition { kind: kind.to_owned(), degraded, message }
    };
    let mut lab = Lab::healthy();
    let since = lab.judge().status.since;
    lab.troubles = vec![trouble("Console", true), trouble("News", false)];
    let new = lab.judge().status;
    assert_eq!((new.status, new.since), (Status::Healthy, since));
    assert_eq!(new.conditions, [trouble("Console", false), trouble("News", false)]);
    assert_eq!(lab.memory.due(lab.now), lab.now.checked_add(DEBOUNCE).ok());
    assert_eq!(lab.told(), "Degraded: Console is down");
    let began = lab.now;
    let lasts = lab.after(DEBOUNCE).status;
    assert_eq!((lasts.conditions, lasts.since), (lab.troubles.clone(), began));
    lab.troubles.clear();
    assert_eq!(lab.status(), Status::Healthy);
    lab.troubles = vec![trouble("Console", true)];
    assert_eq!(lab.status(), Status::Healthy, "it begins anew");
    let mut lab = Lab { troubles: lab.troubles, ..Lab::new_cluster() };
    assert_eq!(lab.after(DEBOUNCE).status.conditions, [trouble("Console", false)]);
}

#[test]
fn a_cluster_that_runs_does_not_fail_by_its_spec() {
    let mut lab = Lab::healthy();
    lab.say(
        json!({"type": "NotReady", "status": "True", "reason": "InvalidResourceException", "message": "No."}),
    );
    let refuses = "the operator refuses the spec (InvalidResourceException): No";
    let told = lab.told();
    assert_eq!(
        told,
        format!("Degraded: {refuses}; what was running before keeps running (6 of 6 pods are ready)")
    );
    lab.broker(json!({"state": {"waiting": {"reason": "ContainerCreating"}}}));
    let told = lab.told();
    let part = "what was running before runs in part (5 of 6 pods are ready: `orders-broker-0` is starting)";
    assert_eq!(told, format!("Degraded: {refuses}; {part}"));
    lab.objects.retain(|_, object| object["kind"] != "Pod");
    assert_eq!(lab.told(), format!("Failed: {refuses}"));
}

#[test]
fn whoever_looks_after_a_long_time_is_told_what_is_so() {
    let mut lab = Lab::healthy();
    lab.broker(json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}}));
    assert_eq!(lab.status(), Status::Healthy, "who watches waits for what lasts");
    let mut lab = Lab::healthy();
    lab.now += OBSERVATION_GAP;
    lab.broker(json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}}));
    assert_eq!(lab.status(), Status::Degraded);
}

#[test]
fn a_new_object_of_the_same_name_keeps_nothing_but_what_the_disks_carry() {
    let mut lab = Lab::healthy();
    lab.put(json!({"kind": "Kafka", "metadata": {"name": "orders", "uid": "u2", "generation": 1},
        "status": {"conditions": [{"type": "NotReady", "status": "True", "reason": "Creating"}]}}));
    let judgement = lab.judge();
    assert_eq!(judgement.status.status, Status::Provisioning);
    let kept = Outputs { cluster_id: Some("abc".into()), ..Outputs::default() };
    assert_eq!(judgement.outputs, kept);
}

#[test]
fn memory_is_kept_as_json() {
    let mut lab = Lab::healthy();
    lab.broker(json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}));
    lab.told();
    let text = serde_json::to_string(&lab.memory).unwrap();
    assert_eq!(serde_json::from_str::<HealthMemory>(&text).unwrap(), lab.memory);
    assert_eq!(serde_json::from_str::<HealthMemory>("{}").unwrap(), HealthMemory::default());
}

#[test]
fn the_time_of_a_status_is_when_it_began() {
    let mut lab = Lab::healthy();
    let began = lab.now;
    assert_eq!(lab.after(DEADLINE).status.since, began);
}

#[test]
fn another_version_is_an_upgrade() {
    let mut lab = Lab::healthy();
    lab.wanted.version = Some("4.4.0".into());
    assert_eq!(lab.told(), "Upgrading: Kafka 4.3.1 → 4.4.0");
}

#[test]
fn a_deletion_waits_for_what_goes_and_not_for_kept_disks() {
    let mut lab = Lab::healthy();
    lab.objects.clear();
    let claim = |delete| {
        json!({"kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-0-orders-broker-0", "annotations": {"strimzi.io/delete-claim": delete}}})
    };
    lab.wanted.deleting = true;
    lab.put(claim("true"));
    let waits = lab.judge().status.reason.unwrap();
    assert!(waits.starts_with("still there: PersistentVolumeClaim"), "{waits}");
    lab.put(claim("false"));
    assert_eq!(lab.judge().status.reason.as_deref(), Some("all objects are deleted"));
}

#[test]
fn a_status_keeps_its_beginning_while_its_word_stays() {
    let mut memory = HealthMemory::default();
    let at = |seconds| Lab::healthy().now + SignedDuration::from_secs(seconds);
    let condition = Condition { kind: "OverCommitted".into(), degraded: true, message: "m".into() };
    for (status, seconds, since) in
        [(Status::Pending, 1, 1), (Status::Pending, 2, 1), (Status::Healthy, 3, 3), (Status::Pending, 4, 4)]
    {
        let reason = Some(format!("looked at {seconds}"));
        let decision = Decision { status, reason: reason.clone(), reports_pod_loss: false };
        let conditions = vec![condition.clone()];
        let told = memory.settle_on(decision, conditions.clone(), at(seconds));
        assert_eq!(told, ResourceStatus { status, reason, conditions, since: at(since) });
        // As in the state, between two judgements.
        memory = serde_json::from_value(serde_json::to_value(&memory).unwrap()).unwrap();
    }
}

#[test]
fn a_pause_that_nobody_asked_for_is_told() {
    let mut lab = Lab::healthy();
    lab.objects.get_mut("Kafka/orders").unwrap()["metadata"]["annotations"] =
        json!({"strimzi.io/pause-reconciliation": "true"});
    assert_eq!(
        lab.told(),
        "Suspended: the cluster is paused (`strimzi.io/pause-reconciliation`, which the spec doesn't request): changes wait"
    );
}
