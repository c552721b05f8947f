use super::*;
use crate::plan::Waiting;
use crate::plan::preflight::PreflightFacts;

#[test]
fn a_gateway_goes_to_another_class_only_when_a_person_says_so() {
    let mut lab = Lab::with(&["orders"]);
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.settle();
    lab.exposed("tlsroute".into(), json!({"class": "istio"}));
    let plan = lab.plan();
    let fleet = change(&plan, "Fleet/acme/eu");
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    let why = "clients outside of Kubernetes are cut off from every cluster of the fleet until the Gateway of the other class \
               has an address";
    assert_eq!(fleet.waiting, [Waiting::Approval { id: id.clone(), why: why.to_owned() }]);
    assert_eq!(
        fleet.effects,
        [
            "Gateway streamfleet-gateway/kafka changes from class envoy to istio: clients outside of Kubernetes are cut \
             off from every cluster of the fleet until it has a new address and their host names lead to it"
        ]
    );
    lab.approve(&id);
    assert_eq!(running(&lab.plan()), ["acme/eu"]);
    lab.settle();

    // Drift is restored without approval.
    let gateway: ObjectKey = GATEWAY.to_owned().try_into().unwrap();
    let there = lab.target().objects.get_mut(&gateway).unwrap();
    there.unchanged = false;
    there.manifest.as_mut().unwrap().edit(|body| body["spec"]["gatewayClassName"] = "other".into());
    assert_eq!(running(&lab.plan()), ["acme/eu"]);
}

/// Edits an object on the target as if an earlier version of the specs had been applied that way.
fn edit_target(lab: &mut Lab, key: &ObjectKey, edit: impl Fn(&mut Value)) {
    let target = lab.target();
    let there = target.objects.get_mut(key).unwrap();
    there.manifest.as_mut().unwrap().edit(edit);
    let body = there.manifest.clone().unwrap();
    let known = target.inventory.get_mut(key).unwrap();
    (known.applied, known.manifest) = (body.digest(), None);
    lab.recorded.fleets.clear();
}

#[test]
fn a_host_that_clients_use_stays_though_no_record_of_it_is_left() {
    let mut lab = Lab::new();
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.cluster("orders", json!({}));
    lab.hosts = Some("k.example.com");
    lab.settle();
    let kafka = object("Kafka", "orders", "orders");
    edit_target(&mut lab, &kafka, |body| {
        body["spec"]["kafka"]["listeners"][0]["configuration"]["bootstrap"]["host"] =
            "orders.old.example.com".into();
    });
    let plan = lab.plan();
    let why =
        "clients outside find the cluster at orders.old.example.com, which would become orders.k.example.com";
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [Waiting::Refused { why: why.to_owned() }]);
    assert_eq!(plan.problems[0].code, "host-in-use");

    // Drift is restored.
    let applied = lab.desired().fleets[&fleet_key()][&kafka].digest();
    lab.target().inventory.get_mut(&kafka).unwrap().applied = applied;
    lab.target().objects.get_mut(&kafka).unwrap().unchanged = false;
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

#[test]
fn a_gateway_keeps_the_domain_under_which_clients_find_clusters() {
    let mut lab = Lab::new();
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.cluster("billing", json!({}));
    lab.cluster("orders", json!({}));
    lab.hosts = Some("old.example.com");
    lab.settle();
    lab.hosts = Some("new.example.com");
    // The fleet's spec has changed, too, since drift alone would be restored.
    lab.exposed("tlsroute".into(), json!({"class": "envoy", "private": true}));
    let plan = lab.plan();
    let why = "clients outside find cluster acme/billing under *.old.example.com, which would become *.new.example.com";
    assert_eq!(change(&plan, "Fleet/acme/eu").waiting, [Waiting::Refused { why: why.to_owned() }]);
    assert_eq!(change(&plan, "Fleet/acme/eu").verdict, crate::plan::Verdict::Refused);
    let refused = plan.problems.iter().find(|it| it.message.contains("*.old")).unwrap();
    assert_eq!(refused.code, "host-in-use");
    assert_eq!(
        refused.hint.as_deref(),
        Some(
            "restore the fleet's `domain` and its base domain, or first set `cluster_access: Internal` on its clusters and \
             apply, which closes them to clients outside"
        )
    );
    assert_eq!(running(&plan), [""; 0], "the clusters keep their hosts as well");

    // While no cluster is reached through it, it may have any domain.
    for name in ["billing", "orders"] {
        edit_target(&mut lab, &object("Kafka", name, name), |body| {
            body["spec"]["kafka"]["listeners"] = json!([]);
        });
    }
    assert!(running(&lab.plan()).contains(&"acme/eu".to_owned()));
}

#[test]
fn a_gateway_opens_over_no_cluster_of_which_nobody_knows_what_it_said() {
    let mut lab = Lab::with(&["orders"]);
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.settle();
    let gateway: ObjectKey = GATEWAY.to_owned().try_into().unwrap();
    edit_target(&mut lab, &gateway, |body| {
        body["spec"]["infrastructure"] =
            json!({"annotations": {"networking.gke.io/load-balancer-type": "Internal"}});
    });
    let refuses = |plan: &Plan| {
        let waiting = &change(plan, "Fleet/acme/eu").waiting;
        waiting.iter().any(|waiting| matches!(waiting, Waiting::Refused { .. }))
    };
    assert!(!refuses(&lab.plan()), "its clusters say that they are public");
    lab.remove("Cluster/acme/orders");
    lab.recorded.resources.get_mut(&key("Cluster/acme/orders")).unwrap().cached.last_good = None;
    let why = "it would open cluster acme/orders to the public, and no valid spec says whether that cluster is private";
    assert_eq!(change(&lab.plan(), "Fleet/acme/eu").waiting, [Waiting::Refused { why: why.to_owned() }]);
}

const RESUME: &str = "their data comes back, and brokers crash until the cluster has the same id as the data. Once they \
                      crash, read that id: kubectl logs -n kafka-acme--orders -l strimzi.io/name=orders-kafka --tail=-1 | \
                      grep 'Invalid cluster.id' (the one after `but read`). Pause the cluster: kubectl annotate kafka -n \
                      kafka-acme--orders orders strimzi.io/pause-reconciliation=true; wait until it is paused: kubectl \
                      wait kafka -n kafka-acme--orders orders --for=condition=ReconciliationPaused --timeout=15m; write \
                      the id: kubectl patch kafka -n kafka-acme--orders orders --subresource=status --type=merge -p \
                      '{\"status\":{\"clusterId\":\"ID\"}}'; resume it: kubectl annotate kafka -n kafka-acme--orders \
                      orders strimzi.io/pause-reconciliation-; restart the crashed pods: kubectl delete pod -n \
                      kafka-acme--orders -l strimzi.io/name=orders-kafka";

#[test]
fn a_cluster_is_made_over_kept_disks_only_when_a_person_says_so() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({}));
    let kept = ["data-0-orders-broker-0", "data-0-orders-broker-1"].map(str::to_owned);
    lab.target().kept.insert(key("Cluster/acme/orders"), kept.into());
    let look = lab.look();
    let plan = lab.plan();
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    let why = "it would be created over the disks of an earlier cluster with this name".to_owned();
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [Waiting::Approval { id: id.clone(), why }]);
    let told = format!(
        "2 disks of an earlier cluster with this name exist, such as data-0-orders-broker-0: {RESUME}"
    );
    assert!(look.contains(&told), "{look}");
    lab.approve(&id);
    assert!(running(&lab.plan()).contains(&"acme/orders".to_owned()));
}

/// On directory fleets disks can't be observed, but whether there may be any is known.
#[test]
fn where_disks_cannot_be_seen_it_is_told_that_a_cluster_may_be_made_over_some() {
    let mut lab = Lab::with(&["orders"]);
    let told = format!(
        "disks of an earlier cluster with this name may exist, which streamfleet can't see: kubectl get pvc -n \
         kafka-acme--orders -l strimzi.io/cluster=orders. If they exist, {RESUME}"
    );
    let tells = |lab: &Lab| lab.look().contains(&told);
    assert!(!tells(&lab));
    // The tool that applies the files may have deleted it with its file.
    let kafka = object("Kafka", "orders", "orders");
    let pools = ["broker", "controller"].map(|pool| object("KafkaNodePool", "orders", pool));
    let files = [&[kafka.clone()][..], &pools].concat();
    let files: Vec<_> =
        files.into_iter().map(|key| (key.clone(), lab.target().objects.remove(&key).unwrap())).collect();
    assert!(tells(&lab), "{}", lab.look());
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
    lab.target().objects.extend(files);

    // It is deleted, and its namespace stays for its disks.
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    lab.settle();
    lab.cluster("orders", json!({}));
    assert!(tells(&lab), "{}", lab.look());
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
    // If its namespace is gone, too, no disk is left.
    lab.target().objects.remove(&object("Namespace", "orders", ""));
    lab.target().inventory.remove(&object("Namespace", "orders", ""));
    assert!(!tells(&lab), "{}", lab.look());

    // An interrupted creation created the namespace itself.
    let mut lab = Lab::new();
    lab.cluster("orders", json!({}));
    lab.execute(&lab.plan());
    lab.target().objects.remove(&kafka);
    lab.target().inventory.remove(&kafka);
    let record = lab.recorded.resources.get_mut(&key("Cluster/acme/orders")).unwrap();
    record.durable.creating = true;
    assert!(!tells(&lab), "{}", lab.look());
}

/// A new version of the software may annotate load balancers differently.
#[test]
fn a_gateway_gets_another_load_balancer_by_itself_only_when_a_person_says_so() {
    let mut lab = Lab::with(&["orders"]);
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.settle();
    let marked = |key: &ObjectKey, body: &mut Value| {
        if key.kind == "Gateway" {
            body["spec"]["infrastructure"] = json!({"annotations": {"scheme": "internet-facing"}});
        }
    };
    let facts = PreflightFacts { groups: None, gateway_classes: None, ..super::preflight::complete() };
    let plan = super::preflight::planned(&lab, &facts, marked);
    let fleet = plan.changes.iter().find(|change| change.resource == key("Fleet/acme/eu")).unwrap();
    assert!(
        matches!(fleet.waiting.as_slice(), [Waiting::Approval { why, .. }] if why == "the cause is streamfleet 0.1.0, not \
             an edit of a spec"),
        "{:?}",
        fleet.waiting
    );
}
