//! Our own changes while they are made, and pods and disks that don't fit.

use super::*;
use crate::health::{FleetMemories, FleetObservation, judge_all};

const LATER: SignedDuration = SignedDuration::from_secs(15);

impl Lab {
    fn entity_operator(&mut self, status: Value) {
        let labels = json!({"strimzi.io/name": "orders-entity-operator"});
        let metadata = json!({"name": "orders-entity-operator-1", "labels": labels});
        self.put(json!({"kind": "Pod", "metadata": metadata, "status": status}));
    }

    fn with_entity_operator() -> Self {
        let mut lab = Self::healthy();
        lab.objects.get_mut("Kafka/orders").unwrap()["spec"] = json!({"entityOperator": {}});
        lab.entity_operator(ready());
        assert_eq!(lab.status(), Status::Healthy);
        lab
    }

    fn changes(&mut self) {
        self.edit("Kafka/orders", "/metadata/generation", json!(2));
    }

    fn changed(&mut self) {
        self.edit("Kafka/orders", "/status/observedGeneration", json!(2));
    }

    /// Replaces a pod of the pool if the UID is new, or else sets its status.
    fn replaced(&mut self, id: u32, uid: &str, status: Value) {
        self.pod("broker", id, status);
        let pod = self.objects.get_mut(&format!("Pod/orders-broker-{id}")).unwrap();
        pod["metadata"]["uid"] = uid.into();
        pod["metadata"]["creationTimestamp"] = "2026-11-21T11:30:00Z".into();
    }

    fn under_way(&mut self) -> String {
        let all: Vec<String> = self.judge().in_progress.iter().map(ToString::to_string).collect();
        all.join("; ")
    }
}

fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

fn no_node(message: &str) -> Value {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]})
}

#[test]
fn the_entity_operator_restarts_in_a_change_of_our_own_without_trouble() {
    let mut lab = Lab::with_entity_operator();
    lab.changes();
    lab.entity_operator(json!({}));
    let status = lab.after(LATER).status;
    assert_eq!((status.status, status.conditions[0].degraded), (Status::Updating, false));
    assert_eq!(status.conditions[0].kind, "EntityOperatorNotReady");
    // One that can't start, or never returns, still needs a person.
    let mut stuck = Lab { memory: lab.memory.clone(), objects: lab.objects.clone(), ..Lab::healthy() };
    stuck.now = lab.now;
    stuck.entity_operator(no_node("0/1 nodes are available: 1 Insufficient cpu."));
    assert_eq!(
        stuck.told(),
        "Degraded: users and topics aren't synchronized: pod `orders-entity-operator-1` can't be scheduled: 0/1 nodes are \
         available: 1 Insufficient cpu"
    );
    assert_eq!(lab.after(DEADLINE).status.status, Status::Degraded);
    // Without a change, it has no reason to restart.
    let mut lab = Lab::with_entity_operator();
    lab.entity_operator(json!({}));
    assert_eq!(lab.after(DEBOUNCE).status.status, Status::Degraded);
}

#[test]
fn a_pod_beside_kafka_that_has_no_room_is_named_and_the_fleet_is_not_healthy() {
    let mut lab = Lab::healthy();
    lab.memory = HealthMemory::default();
    lab.edit(
        "Kafka/orders",
        "/status",
        json!({"observedGeneration": 0,
            "conditions": [{"type": "NotReady", "status": "True", "reason": "Creating"}]}),
    );
    lab.entity_operator(no_node("0/1 nodes are available: 1 Insufficient cpu."));
    let what = "`orders-entity-operator-1` can't be scheduled: 0/1 nodes are available: 1 Insufficient cpu";
    assert_eq!(
        lab.told(),
        format!("Provisioning: 6 of 6 pods are ready; {what}; the operator hasn't finished")
    );
    let next =
        objects::of(&lab.wanted, &lab.seen(), &[]).amiss.into_iter().find(|it| it.kind == "Pod").unwrap();
    assert_eq!(format!("`{}` {}", next.name, next.how), what, "`why` names it in the same words");

    let key: crate::names::ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let wanted = BTreeMap::from([(key.clone(), lab.wanted.clone())]);
    let operator = OperatorState::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let seen = FleetObservation {
        operator,
        clusters: [(key.clone(), lab.seen())].into(),
        ..FleetObservation::default()
    };
    let mut memories = FleetMemories::default();
    let mut fleet = |after: SignedDuration| {
        lab.now += after;
        let (health, next) = judge_all(&wanted, &seen, &memories, lab.now);
        memories = next;
        (health.status.status, health.status.reason, health.clusters[&key].status.status)
    };
    let told = Some(format!("no node accepts a pod of cluster acme/orders: {what}"));
    let waits = (Status::Updating, told.clone(), Status::Provisioning);
    assert_eq!(fleet(SignedDuration::ZERO), waits, "a node may be on its way");
    assert_eq!(fleet(DEADLINE), (Status::Degraded, told, Status::Failed));
}

#[test]
fn a_pod_that_starts_needs_no_operator() {
    let mut lab = Lab::healthy();
    lab.operator = OperatorState::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 0 };
    lab.broker(json!({}));
    let starts =
        "Degraded: 5 of 6 pods are ready: `orders-broker-0` is starting; the Strimzi operator is down";
    assert_eq!(lab.told(), starts);
    lab.objects.remove("Pod/orders-broker-0");
    assert!(lab.told().ends_with("is missing; the Strimzi operator is down, so nothing restores them"));
}

#[test]
fn a_pod_without_a_volume_is_not_told_to_ask_for_a_larger_node() {
    let mut lab = Lab::healthy();
    lab.put(json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data-0-orders-broker-0"},
        "spec": {"storageClassName": "none"}, "status": {"phase": "Pending"}}));
    let mut next = |message: &str| {
        lab.pod("broker", 0, no_node(message));
        let amiss = objects::of(&lab.wanted, &lab.seen(), &[]).amiss;
        amiss.into_iter().find(|it| it.kind == "Pod").unwrap().next.unwrap()
    };
    assert_eq!(
        next("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
        "find out why it gets no volume: kubectl describe pvc -n kafka-acme--orders data-0-orders-broker-0"
    );
    assert_eq!(
        next("0/1 nodes are available: 1 Insufficient memory."),
        "add a node with enough room and its disks, or request less in the cluster's spec: kubectl describe pod -n \
         kafka-acme--orders orders-broker-0"
    );
}

#[test]
fn whoever_looks_now_and_then_counts_the_same_restarts_as_who_watches() {
    let mut watches = Lab::healthy();
    for id in 0..3 {
        watches.replaced(id, &format!("old-{id}"), ready());
        watches.objects.get_mut(&format!("Pod/orders-broker-{id}")).unwrap()["metadata"]["creationTimestamp"] =
            "2026-11-21T10:00:00Z".into();
    }
    let said = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T11:00:00.5Z"});
    watches.say(said);
    watches.judge();
    let (before, never) = (watches.memory.clone(), HealthMemory::default());
    watches.changes();
    watches.judge();
    for id in 0..2 {
        for status in [json!({}), ready()] {
            watches.replaced(id, &format!("new-{id}"), status);
            watches.now += MOMENT;
            watches.judge();
        }
    }
    let told = "rolling restart: 2 of up to 6 pods restarted; the operator is applying the last change";
    assert_eq!(watches.under_way(), told);
    for memory in [before, never] {
        let mut looks = Lab { memory, objects: watches.objects.clone(), ..Lab::healthy() };
        looks.now = watches.now + OBSERVATION_GAP;
        assert_eq!(looks.under_way(), told);
    }
    // A pod that returns with its node wasn't restarted.
    watches.changed();
    assert_eq!(watches.status(), Status::Healthy);
    watches.replaced(2, "old-2", json!({}));
    assert_eq!(watches.after(DEBOUNCE).status.status, Status::Degraded);
    watches.edit("Kafka/orders", "/metadata/generation", json!(3));
    watches.replaced(2, "old-2", ready());
    assert_eq!(watches.under_way(), "the operator is applying the last change");
    // Nor was one that returned after its loss was reported.
    watches.edit("Kafka/orders", "/status/observedGeneration", json!(3));
    watches.judge();
    watches.objects.remove("Pod/orders-broker-2");
    assert_eq!(watches.after(DEBOUNCE).status.status, Status::Degraded);
    watches.edit("Kafka/orders", "/metadata/generation", json!(4));
    watches.replaced(2, "another-2", ready());
    assert_eq!(watches.under_way(), "the operator is applying the last change");
}

const MOMENT: SignedDuration = SignedDuration::from_secs(1);

#[test]
fn pods_that_are_removed_are_not_said_to_be_replaced() {
    let mut lab = Lab::healthy();
    let labels = json!({"strimzi.io/pool-name": "broker"});
    let set = |generation: u64, observed: u64, pods: u32, current: u32| {
        json!({"kind": "StrimziPodSet", "metadata": {"name": "orders-broker", "labels": labels, "generation": generation},
            "status": {"observedGeneration": observed, "pods": pods, "readyPods": pods, "currentPods": current}})
    };
    lab.put(set(1, 1, 3, 3));
    lab.judge();
    // Until the operator has taken up the new spec, its counts say nothing of what that replaces.
    for current in [3, 0] {
        lab.put(set(2, 1, 3, current));
        assert_eq!(lab.under_way(), "the operator is applying the last change");
    }
    lab.put(set(2, 2, 3, 3));
    assert_eq!(lab.under_way(), "");
    // Without the moment of the change itself, the pod set's generation shows it.
    lab.put(set(3, 3, 3, 0));
    assert_eq!(lab.under_way(), "the pods of pool `broker` are replaced: 0 of 3 done");
}

#[test]
fn disks_of_removed_nodes_are_summed_up() {
    let mut lab = Lab::healthy();
    let claim = |id: u32, goes: &str| {
        let annotations = json!({"strimzi.io/delete-claim": goes});
        json!({"kind": "PersistentVolumeClaim", "metadata": {"name": format!("data-0-orders-broker-{id}"),
            "annotations": annotations}, "status": {"phase": "Bound", "capacity": {"storage": "17Gi"}}})
    };
    lab.put(claim(0, "false"));
    lab.put(claim(3, "false"));
    lab.put(claim(9, "true"));
    let status = lab.after(DEBOUNCE).status;
    assert_eq!(status.status, Status::Healthy);
    let told = |status: &crate::catalog::ResourceStatus| status.conditions[0].message.clone();
    let end = "a node that is added again reuses its disk; delete unneeded disks by hand in namespace kafka-acme--orders";
    assert_eq!(
        told(&status),
        format!("disk `data-0-orders-broker-3` of a removed node is kept, with 17 GiB; {end}")
    );
    lab.put(claim(4, "false"));
    assert_eq!(
        told(&lab.judge().status),
        format!(
            "2 disks of removed nodes are kept, such as `data-0-orders-broker-3`, with 34 GiB in all; {end}"
        )
    );
}

#[test]
fn a_change_that_restarts_nothing_is_done_when_it_has_been_taken_up() {
    let digest = |of: &str| Some(crate::names::Digest::of(of));
    for (restarts, then) in [("as before", Status::Healthy), ("otherwise", Status::Updating)] {
        let mut lab = Lab::healthy();
        lab.wanted.applied = vec![digest("keeps disks").unwrap()];
        lab.wanted.restarts = digest("as before");
        assert_eq!(lab.status(), Status::Healthy);
        lab.wanted.applied = vec![digest("deletes disks").unwrap()];
        lab.wanted.restarts = digest(restarts);
        lab.edit("KafkaNodePool/broker", "/metadata/generation", json!(2));
        assert_eq!(lab.status(), Status::Updating);
        lab.edit("KafkaNodePool/broker", "/status/observedGeneration", json!(2));
        assert_eq!(lab.status(), then);
    }
}
