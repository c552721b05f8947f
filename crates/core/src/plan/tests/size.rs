use super::*;
use crate::component::Resources;
use crate::plan::preflight::{NodeCapacity, PreflightFacts, Requests};
use crate::plan::{Audience, Planner, display};

/// Formats the plan of the fleet on a Kubernetes cluster with these nodes.
fn look(lab: &Lab, room: Option<NodeCapacity>) -> String {
    look_at(lab, &PreflightFacts { room, ..PreflightFacts::default() })
}

fn look_at(lab: &Lab, facts: &PreflightFacts) -> String {
    let (catalog, desired, fleet) = (lab.catalog(), lab.desired(), fleet_key());
    let site = lab.site(&fleet, &desired);
    let planner = Planner::new(&catalog, &lab.recorded, Default::default(), &lab.policy, None);
    let part = planner.index(site).compare(Some(facts)).part(None);
    let plan = planner.finish(vec![part]);
    let page = display(&plan, Audience { color: false, width: 100, tree: "specs" });
    let told = |line: &&str| line.contains("CPUs") || line.contains(" cluster ");
    let lines: Vec<&str> = page.lines().filter(told).map(str::trim_end).collect();
    lines.join("\n")
}

fn room(nodes: u32, cpus: u64, gib: u64) -> Option<NodeCapacity> {
    Some(NodeCapacity { nodes, cpu_millis: cpus * 1000, memory_mib: gib * 1024 })
}

#[test]
fn the_plan_tells_the_sizes_and_their_sum_against_the_nodes() {
    let mut lab = Lab::with(&["kept", "more", "less", "gone"]);
    lab.unprotected("gone");
    lab.cluster("less", json!({"kafka_units": 2}));
    lab.settle();
    lab.cluster("more", json!({"kafka_units": 2}));
    lab.cluster("less", json!({"kafka_units": 1, "advanced_config.scale_down_to": 1}));
    lab.cluster("made", json!({"kafka_units": 2}));
    lab.remove("Cluster/acme/gone");
    insta::assert_snapshot!(look(&lab, room(6, 1000, 4000)), @r"
    15 → 18 brokers and 12 controllers take 40.5 → 45 CPUs, 216 → 240 GiB of memory, 2700 → 3000 GiB of disk; its nodes have 1000 CPUs, 4000 GiB of memory for them; they take 27 → 30 IP addresses of its network, where 128 free ones are recommended
    - cluster gone                                                       was acme/clusters/gone.yaml:1
        the cluster is deleted; its namespace and disks are kept: kafka-acme--gone
    ~ cluster less                                                           acme/clusters/less.yaml:8
        6 → 3 brokers and 3 controllers: 13.5 → 9 CPUs, 72 → 48 GiB of memory, 900 → 600 GiB of disk
    + cluster made                                                           acme/clusters/made.yaml:1
        creates a cluster of 6 brokers and 3 controllers
        takes 13.5 CPUs, 72 GiB of memory, 900 GiB of disk
    ~ cluster more       kafka_units 1 → 2                                   acme/clusters/more.yaml:8
        3 → 6 brokers and 3 controllers: 9 → 13.5 CPUs, 48 → 72 GiB of memory, 600 → 900 GiB of disk
    ");
}

#[test]
fn something_in_the_place_of_an_object_hides_nothing_of_what_would_change() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.cluster("new", json!({}));
    let pool = |cluster: &str| object("KafkaNodePool", cluster, "broker");
    let there = lab.target().objects.get_mut(&pool("orders")).unwrap();
    (there.ours, there.unchanged) = (false, false);
    let foreign = there.clone();
    lab.target().objects.insert(pool("new"), foreign);
    insta::assert_snapshot!(look(&lab, None), @r"
    ! cluster new        blocked: KafkaNodePool kafka-acme--new/broker exists and isn't managed by streamfleet  acme/clusters/new.yaml:1
        creates a cluster of 3 controllers
        takes 9 CPUs, 48 GiB of memory, 600 GiB of disk
    ! cluster orders     blocked: KafkaNodePool kafka-acme--orders/broker exists and isn't managed by streamfleet  acme/clusters/orders.yaml:8
        3 → 6 brokers and 3 controllers: 9 → 13.5 CPUs, 48 → 72 GiB of memory, 600 → 900 GiB of disk
    ");
}

#[test]
fn clusters_that_have_no_room_on_the_nodes_are_told() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("new", json!({}));
    insta::assert_snapshot!(look(&lab, room(2, 12, 400)), @r"
    ! CapacityShort: the fleet's clusters need 18 CPUs and 96 GiB of memory, and its nodes have 12 CPUs and 400 GiB of memory for them; add nodes, unless the cluster does so by itself, or make clusters smaller
    3 → 6 brokers and 3 → 6 controllers take 9 → 18 CPUs, 48 → 96 GiB of memory, 600 → 1200 GiB of disk; its nodes have 12 CPUs, 400 GiB of memory for them; they take 6 → 12 IP addresses of its network, where 128 free ones are recommended
    + cluster new                                                             acme/clusters/new.yaml:1
        creates a cluster of 3 brokers and 3 controllers
        takes 9 CPUs, 48 GiB of memory, 600 GiB of disk
    ");
    assert!(look(&lab, room(0, 0, 0)).contains("600 → 1200 GiB of disk; no node accepts pods; they take 6"));
}

#[test]
fn what_waits_for_a_person_takes_no_room_yet() {
    let mut lab = Lab::with(&["orders", "kept"]);
    // It is protected, so it stays.
    lab.remove("Cluster/acme/kept");
    lab.cluster("orders", json!({"kafka_units": 2}));
    insta::assert_snapshot!(look(&lab, None), @r"
    6 → 9 brokers and 6 controllers take 18 → 22.5 CPUs, 96 → 120 GiB of memory, 1200 → 1500 GiB of disk; they take 12 → 15 IP addresses of its network, where 128 free ones are recommended
    ! cluster kept       blocked: deletion protection is on              was acme/clusters/kept.yaml:1
        the cluster is deleted; its namespace and disks are kept: kafka-acme--kept
    ~ cluster orders     kafka_units 1 → 2                                 acme/clusters/orders.yaml:8
        3 → 6 brokers and 3 controllers: 9 → 13.5 CPUs, 48 → 72 GiB of memory, 600 → 900 GiB of disk
    ");
}

/// A node with ten processors and other pods: brokers and controllers fit, but not the user operator.
#[test]
fn what_other_pods_request_and_what_the_operators_of_a_cluster_take_count_as_well() {
    let mut lab = Lab::with(&[]);
    lab.cluster("new", json!({}));
    let container = json!({"resources": {"requests": {"cpu": "100m", "memory": "512Mi"}}});
    let requests = |cpu_millis, memory_mib| Resources { cpu_millis, memory_mib };
    let kafka = [
        ("kafka-acme--new".to_owned(), requests(9000, 9000)),
        ("strimzi".to_owned(), requests(200, 384)),
        ("theirs".to_owned(), requests(700, 100)),
    ];
    let requests = Requests { kafka: kafka.into(), others: requests(60, 200) };
    let facts =
        PreflightFacts { room: room(1, 10, 52), requests: Some(requests), ..PreflightFacts::default() };
    let with_operators = |key: &ObjectKey, body: &mut Value| {
        if key.kind == "Kafka" {
            body["spec"]["entityOperator"] = json!({"userOperator": container, "topicOperator": container});
            body["spec"]["cruiseControl"] =
                json!({"resources": {"requests": {"cpu": "200m", "memory": "1120Mi"}}});
        }
    };
    let told = |edit: &dyn Fn(&ObjectKey, &mut Value)| {
        let plan = super::preflight::planned(&lab, &facts, edit);
        let conditions: Vec<String> = plan.conditions.iter().map(|it| it.message.clone()).collect();
        (conditions, plan.sizes.unwrap().fleet.after)
    };
    let (conditions, without) = told(&|_, _| {});
    assert!(conditions[0].starts_with("the fleet's `max_kafka_units`, "), "{conditions:?}");
    let (conditions, with) = told(&with_operators);
    let (cpus, memory) = (with.cpu_millis - without.cpu_millis, with.memory_mib - without.memory_mib);
    assert_eq!((cpus, memory), (400, 2144));
    assert_eq!(
        conditions,
        [
            "the fleet's clusters need 9.4 CPUs and 50.1 GiB of memory, and its nodes have 9 CPUs and 51.3 GiB of memory \
             for them; add nodes, unless the cluster does so by itself, or make clusters smaller"
        ]
    );
}
