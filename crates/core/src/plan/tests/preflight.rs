use std::collections::BTreeSet;

use super::*;
use crate::component::Extras;
use crate::names::ResourceKey;
use crate::plan::preflight::{
    LoadBalancers, NodeCapacity, NodeConstraints, Operator, PreflightFacts, Requests, StorageClass, Version,
    Watches, permissions,
};
use crate::plan::{FleetInputs, FleetPlan, Planner};

impl Lab {
    pub(super) fn site<'a>(&'a self, fleet: &'a FleetKey, desired: &'a Desired) -> FleetInputs<'a> {
        FleetInputs {
            fleet,
            desired: desired.fleets.get(fleet),
            recorded: self.recorded.fleets.get(fleet),
            observed: self.observed.fleets.get(fleet),
        }
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) fn complete() -> PreflightFacts {
    let class = StorageClass { default: true, expands: true };
    PreflightFacts {
        version: Some(Version { major: 1, minor: 34 }),
        denied: Some(BTreeSet::new()),
        groups: Some([("kafka.strimzi.io".to_owned(), vec!["v1".to_owned()])].into()),
        kinds: [("kafka.strimzi.io/v1".to_owned(), set(&["Kafka", "KafkaNodePool", "KafkaUser"]))].into(),
        storage_classes: Some([("gp3".to_owned(), class)].into()),
        gateway_classes: Some(BTreeSet::new()),
        operators: Some(vec![operator("1.2.0")]),
        room: Some(NodeCapacity { nodes: 100, cpu_millis: 1_000_000, memory_mib: 10_000_000 }),
        requests: Some(Requests::default()),
        places: Some(["a", "b", "c"].map(in_zone).into()),
        load_balancers: Some(LoadBalancers::default()),
        prometheuses: None,
        namespaces: None,
    }
}

fn in_zone(zone: &str) -> NodeConstraints {
    NodeConstraints { zone: Some(zone.to_owned()), ..NodeConstraints::default() }
}

fn operator(version: &str) -> Operator {
    Operator {
        namespace: "strimzi".to_owned(),
        name: "strimzi-cluster-operator".to_owned(),
        version: Some(version.to_owned()),
        kafka_versions: set(&["4.3.0", "4.3.1"]),
        watches: Watches::All,
    }
}

/// Two clusters: `orders` is as it should be, `new` is to be created.
fn lab() -> Lab {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("new", json!({}));
    lab
}

/// Plans the fleet with facts, after editing every object that it should have.
pub(super) fn planned(lab: &Lab, facts: &PreflightFacts, edit: impl Fn(&ObjectKey, &mut Value)) -> FleetPlan {
    let (catalog, mut desired, fleet) = (lab.catalog(), lab.desired(), fleet_key());
    for (key, manifest) in desired.fleets.get_mut(&fleet).unwrap() {
        manifest.body.edit(|body| edit(key, body));
    }
    let site = lab.site(&fleet, &desired);
    let planner = Planner::new(&catalog, &lab.recorded, BTreeSet::new(), &lab.policy, None);
    let part = planner.index(site).compare(Some(facts)).part(None);
    planner.finish(vec![part]).fleets.remove(0)
}

pub(super) fn told(plan: &FleetPlan) -> String {
    let line = |condition: &crate::catalog::Condition| {
        let waits = |change: &&Change| {
            change.waiting.iter().any(|it| {
                matches!(it, crate::plan::Waiting::Preflight { condition: kind, .. } if *kind == condition.kind)
            })
        };
        let waiting: Vec<&ResourceKey> =
            plan.changes.iter().filter(waits).map(|change| &change.resource).collect();
        let waiting: Vec<&str> = waiting.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!(condition.degraded, !waiting.is_empty());
        let holds =
            if waiting.is_empty() { "warning".to_owned() } else { format!("holds {}", waiting.join(", ")) };
        format!("[{holds}] {}: {}\n", condition.kind, condition.message)
    };
    plan.conditions.iter().map(line).collect()
}

#[test]
fn a_cluster_that_has_everything_is_not_spoken_of() {
    let plan = planned(&lab(), &complete(), |_, _| {});
    assert_eq!(told(&plan), "");
    assert!(plan.changes.iter().all(|change| change.waiting.is_empty()));
    // Nor does one about which nothing could be read.
    assert_eq!(told(&planned(&lab(), &PreflightFacts::default(), |_, _| {})), "");
}

#[test]
fn what_is_lacking_is_told_with_what_to_do_and_holds_up_only_what_would_go_wrong() {
    let class = |default, expands| StorageClass { default, expands };
    let mut all = String::new();
    let mut tell = |change: &dyn Fn(&mut PreflightFacts), edit: &dyn Fn(&ObjectKey, &mut Value)| {
        let mut facts = complete();
        change(&mut facts);
        let told = told(&planned(&lab(), &facts, edit));
        assert_ne!(told, "");
        all += &told;
    };
    let as_it_is: &dyn Fn(&ObjectKey, &mut Value) = &|_, _| {};
    let named: &dyn Fn(&ObjectKey, &mut Value) = &|key, body| {
        if key.kind == "KafkaNodePool" && key.namespace.as_deref() == Some("kafka-acme--new") {
            body["spec"]["storage"]["volumes"][0]["class"] = "fast".into();
        }
    };

    tell(&|facts| facts.version = Some(Version { major: 1, minor: 29 }), as_it_is);
    let lacks = |resource: &str, verbs: &[&str]| {
        let lacks = permissions(Extras::default()).into_iter();
        lacks.filter(|it| it.resource == resource && verbs.contains(&it.verb)).collect::<BTreeSet<_>>()
    };
    tell(&|facts| facts.denied = Some(lacks("kafkas", &["create", "patch"])), as_it_is);
    tell(&|facts| facts.denied = Some(lacks("nodes", &["list"])), as_it_is);
    tell(&|facts| facts.denied = Some(permissions(Extras::default()).into_iter().collect()), as_it_is);
    tell(&|facts| drop(facts.kinds.insert("kafka.strimzi.io/v1".to_owned(), set(&[]))), as_it_is);
    let old = |facts: &mut PreflightFacts| {
        facts.kinds.insert("kafka.strimzi.io/v1".to_owned(), set(&[]));
        facts.groups = Some([("kafka.strimzi.io".to_owned(), vec!["v1beta2".to_owned()])].into());
    };
    tell(&old, as_it_is);
    tell(&|facts| facts.operators = Some(Vec::new()), as_it_is);
    let narrow = |facts: &mut PreflightFacts| {
        facts.operators.as_mut().unwrap()[0].watches = Watches::These(set(&["a"]))
    };
    tell(&narrow, as_it_is);
    let older = |facts: &mut PreflightFacts| {
        facts.operators.as_mut().unwrap()[0].kafka_versions = set(&["4.2.0", "4.2.1"])
    };
    tell(&older, as_it_is);
    tell(&|_| {}, named);
    tell(&|facts| facts.storage_classes = Some(BTreeMap::new()), named);
    let two = [("a".to_owned(), class(true, true)), ("b".to_owned(), class(true, false))];
    tell(&|facts| facts.storage_classes = Some(two.clone().into()), as_it_is);
    let waits = |facts: &mut PreflightFacts| {
        let waiting = Some((at(11), "kafka-acme--orders/orders-kafka-external-bootstrap".to_owned()));
        facts.load_balancers = Some(LoadBalancers { served: 0, waiting });
    };
    tell(&waits, as_it_is);
    tell(
        &|facts| facts.room = Some(NodeCapacity { nodes: 3, cpu_millis: 11_760, memory_mib: 45_000 }),
        as_it_is,
    );
    tell(&|facts| facts.room = Some(NodeCapacity::default()), as_it_is);
    insta::assert_snapshot!(all);
}

/// In one cluster, the 40 units of the fleet need 349.8 CPUs. Of ten clusters, each has controllers and operators.
#[test]
fn nodes_have_to_fit_as_many_clusters_as_the_fleet_may_have() {
    let with = |cpus: u64| {
        let room = NodeCapacity { nodes: 9, cpu_millis: cpus * 1000, memory_mib: 10_000_000 };
        told(&planned(&lab(), &PreflightFacts { room: Some(room), ..complete() }, |_, _| {}))
    };
    assert_eq!(with(400), "");
    assert_eq!(
        with(360),
        "[warning] CapacityShort: the fleet's `max_tenants`, 10, need 366 CPUs and 2118.8 GiB of memory in clusters that \
         share `max_kafka_units`, 40, and its nodes have 360 CPUs and 9765.6 GiB of memory for them; add nodes, unless the \
         cluster does so by itself, or lower `max_tenants`\n"
    );
    assert!(with(340).contains("the fleet's `max_kafka_units`, 40, need 349.8 CPUs"), "{}", with(340));
}

#[test]
fn a_fleet_with_a_gateway_needs_the_gateway_api_and_the_class_that_it_names() {
    let mut lab = lab();
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    let mut facts = complete();
    let mut all = told(&planned(&lab, &facts, |_, _| {}));
    let groups = facts.groups.as_mut().unwrap();
    groups.insert("gateway.networking.k8s.io".to_owned(), vec!["v1".to_owned()]);
    facts.kinds.insert("gateway.networking.k8s.io/v1".to_owned(), set(&["Gateway"]));
    all += &told(&planned(&lab, &facts, |_, _| {}));
    facts.kinds.insert("gateway.networking.k8s.io/v1".to_owned(), set(&["Gateway", "TLSRoute"]));
    all += &told(&planned(&lab, &facts, |_, _| {}));
    facts.gateway_classes = Some(set(&["cilium", "istio"]));
    all += &told(&planned(&lab, &facts, |_, _| {}));
    insta::assert_snapshot!("gateway", all);
    facts.gateway_classes = Some(set(&["envoy"]));
    assert_eq!(told(&planned(&lab, &facts, |_, _| {})), "");
    (facts.groups, facts.gateway_classes) = (None, None);
    facts.kinds.clear();
    assert_eq!(told(&planned(&lab, &facts, |_, _| {})), "");
}

#[test]
fn disks_of_a_class_that_cannot_grow_do_not() {
    let mut lab = Lab::with(&["orders", "other"]);
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": 200}}));
    lab.cluster("other", json!({"kafka_units": 2}));
    let class = StorageClass { default: true, expands: false };
    let facts = PreflightFacts { storage_classes: Some([("fixed".to_owned(), class)].into()), ..complete() };
    insta::assert_snapshot!(told(&planned(&lab, &facts, |_, _| {})), @"
    [holds orders] StorageCannotGrow: disks of StorageClass fixed can't grow; set `allowVolumeExpansion: true` on it if its driver supports that, or choose another one before there is data: a full disk can't be enlarged
    ");
    let facts = PreflightFacts {
        storage_classes: Some([("fixed".to_owned(), StorageClass { expands: true, ..class })].into()),
        ..complete()
    };
    assert_eq!(told(&planned(&lab, &facts, |_, _| {})), "");
}

#[test]
fn what_acts_on_nothing_that_was_made_is_told_though_nothing_changes() {
    let lab = Lab::with(&["orders"]);
    let mut facts = complete();
    facts.operators.as_mut().unwrap()[0].watches = Watches::These(set(&["a"]));
    assert!(told(&planned(&lab, &facts, |_, _| {})).starts_with(
        "[warning] OperatorNotWatching: Strimzi 1.2.0 in strimzi/strimzi-cluster-operator doesn't watch the namespace \
         kafka-acme--orders; "
    ));
    facts.operators = Some(vec![operator("1.2.0")]);
    facts.operators.as_mut().unwrap()[0].kafka_versions = set(&["4.2.0"]);
    assert!(told(&planned(&lab, &facts, |_, _| {})).starts_with(
        "[warning] KafkaVersionUnsupported: Kafka 4.3.1 is not supported by Strimzi 1.2.0 in \
         strimzi/strimzi-cluster-operator, which supports 4.2.0; "
    ));
}

#[test]
fn the_role_that_is_proposed_has_the_rights_that_are_missing() {
    let mut facts = complete();
    for (operator, gateway, command) in [
        (false, false, "`streamfleet role`"),
        (true, false, "`streamfleet role --operator`"),
        (false, true, "`streamfleet role --gateway`"),
        (true, true, "`streamfleet role --operator --gateway`"),
    ] {
        let extras = Extras { operator, gateway, ..Extras::default() };
        facts.denied = Some(permissions(extras).into_iter().collect());
        assert!(
            told(&planned(&lab(), &facts, |_, _| {})).contains(&format!("{command} prints the whole role"))
        );
    }
}

#[test]
fn what_is_no_evidence_says_nothing() {
    let mut facts = complete();
    // One load balancer has an address, so something serves them; another one may take longer.
    let waiting = Some((at(1), "n/s".to_owned()));
    facts.load_balancers = Some(LoadBalancers { served: 1, waiting });
    // If two operators share the work, one of them is enough.
    let mut narrow = operator("1.1.0");
    (narrow.watches, narrow.kafka_versions) = (Watches::These(set(&["a"])), set(&["4.2.0"]));
    facts.operators = Some(vec![narrow, operator("1.2.0")]);
    assert_eq!(told(&planned(&lab(), &facts, |_, _| {})), "");
    let lately = Some((at(12), "n/s".to_owned()));
    facts.load_balancers = Some(LoadBalancers { served: 0, waiting: lately });
    let mut lab = lab();
    lab.policy.now = at(12) + SignedDuration::from_mins(9);
    assert_eq!(told(&planned(&lab, &facts, |_, _| {})), "");
}

#[test]
fn of_a_cluster_that_is_not_reached_only_the_permissions_are_told() {
    let mut lab = lab();
    lab.target().reach = Reach::Unreachable {
        reason: "refused".to_owned(),
        hint: String::new(),
        refused: false,
        lost: true,
        concealed: false,
        last_seen: None,
    };
    let mut facts = complete();
    facts.version = Some(Version { major: 1, minor: 20 });
    assert_eq!(told(&planned(&lab, &facts, |_, _| {})), "");
    let denied = permissions(Extras::default())
        .into_iter()
        .filter(|it| it.resource == "configmaps" && it.verb == "list");
    facts.denied = Some(denied.collect());
    assert!(told(&planned(&lab, &facts, |_, _| {})).contains("may not list configmaps"));
}

#[test]
fn conditions_are_remembered_with_a_fleet_that_is_as_it_should_be() {
    let lab = Lab::with(&["orders"]);
    let (catalog, desired, fleet) = (lab.catalog(), lab.desired(), fleet_key());
    let site = lab.site(&fleet, &desired);
    let facts = PreflightFacts { room: Some(NodeCapacity::default()), ..complete() };
    let planner = || Planner::new(&catalog, &lab.recorded, BTreeSet::new(), &lab.policy, None);
    let part = planner().index(site).compare(Some(&facts)).part(None);
    let quiet = part.quiet().unwrap().clone();
    let remembered = planner().unchanged_fleet(&fleet, &quiet, None).unwrap();
    let plan = planner().finish(vec![part]);
    assert_eq!(plan.fleets[0].conditions.len(), 1);
    assert_eq!(plan, planner().finish(vec![remembered]));
}

#[test]
fn nodes_in_too_few_zones_and_nodes_that_nobody_reserved_are_told() {
    let zone = "topology.kubernetes.io/zone";
    let spread = json!([{"topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}]);
    let spreads = |key: &ObjectKey, body: &mut Value| {
        if key.kind == "KafkaNodePool" {
            body["spec"]["template"]["pod"]["topologySpreadConstraints"] = spread.clone();
        }
    };
    let dedicated = json!([{"key": "streamfleet.io/dedicated", "value": "kafka-acme--new"}]);
    let reserves = |key: &ObjectKey, body: &mut Value| {
        spreads(key, body);
        if key.kind == "KafkaNodePool" && key.namespace.as_deref() == Some("kafka-acme--new") {
            body["spec"]["template"]["pod"]["tolerations"] = dedicated.clone();
        }
    };
    let reserved = |zone: &str, tainted: bool| {
        let tenant = Some("kafka-acme--new".to_owned());
        NodeConstraints { labelled: tenant.clone(), tainted: tenant.filter(|_| tainted), ..in_zone(zone) }
    };
    let told = |places: &[NodeConstraints], edit: &dyn Fn(&ObjectKey, &mut Value)| {
        let facts = PreflightFacts { places: Some(places.iter().cloned().collect()), ..complete() };
        told(&planned(&lab(), &facts, edit))
    };
    let three = ["a", "b", "c"].map(in_zone);
    assert_eq!(told(&three, &spreads), "");
    let mut all = told(&three[..2], &spreads);
    all += &told(&[NodeConstraints::default()], &spreads);
    all += &told(&three, &reserves);
    // Nodes reserved for one cluster accept no other pods.
    all += &told(&[&three[..], &[reserved("a", true)]].concat(), &reserves);
    all += &told(&[&three[..2], &["a", "b", "c"].map(|zone| reserved(zone, true))].concat(), &reserves);
    all += &told(&[&three[..], &["a", "b", "c"].map(|zone| reserved(zone, zone != "c"))].concat(), &reserves);
    insta::assert_snapshot!(all, @"\n    [holds orders] ZonesMissing: cluster acme/new and cluster acme/orders spread \
                                   their pods over 3 zones, and the nodes that accept them are in 2 zones: a and b; the \
                                   remaining pods never start; add nodes in more zones, with the label \
                                   `topology.kubernetes.io/zone`, or lower `number_of_zones`\n    [holds orders] \
                                   ZonesMissing: cluster acme/new and cluster acme/orders spread their pods over 3 zones, \
                                   and the nodes that accept them are in no zone by the label \
                                   `topology.kubernetes.io/zone`; the remaining pods never start; add nodes in more zones, \
                                   with the label `topology.kubernetes.io/zone`, or lower `number_of_zones`\n    [warning] \
                                   ReservedNodesMissing: no node that accepts pods is reserved for cluster acme/new, so \
                                   none of its pods starts; reserve nodes for it: `kubectl label node NODE \
                                   streamfleet.io/dedicated=kafka-acme--new` and `kubectl taint node NODE \
                                   streamfleet.io/dedicated=kafka-acme--new:NoSchedule`\n    [warning] ZonesMissing: \
                                   cluster acme/new spreads its pods over 3 zones, and the nodes that accept them are in 1 \
                                   zone: a; the remaining pods never start; add nodes in more zones, with the label \
                                   `topology.kubernetes.io/zone`, or lower `number_of_zones`\n    [holds orders] \
                                   ZonesMissing: cluster acme/orders spreads its pods over 3 zones, and the nodes that \
                                   accept them are in 2 zones: a and b; the remaining pods never start; add nodes in more \
                                   zones, with the label `topology.kubernetes.io/zone`, or lower `number_of_zones`\n    \
                                   [warning] ReservedNodesShared: other pods may run on nodes that are reserved for \
                                   cluster acme/new: they lack the taint; keep other pods off: `kubectl taint node NODE \
                                   streamfleet.io/dedicated=kafka-acme--new:NoSchedule`\n    ");
    let whole = ["a", "b", "c"].map(|zone| reserved(zone, true));
    assert_eq!(told(&[&three[..], &whole].concat(), &reserves), "");
    let facts = PreflightFacts { places: None, ..complete() };
    assert_eq!(super::preflight::told(&planned(&lab(), &facts, reserves)), "");
}
