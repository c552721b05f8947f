use super::*;
use crate::plan::{Cause, Waiting};

/// Makes a cluster's health unknown because the fleet's user lacks permissions.
fn hide(lab: &mut Lab, name: &str) -> Waiting {
    let reason =
        "the user of the fleet's `kubeconfig` may not list Pod objects; grant it `list` on `pods`".to_owned();
    lab.judged(name, Status::Unreachable);
    let cluster = key(&format!("Cluster/acme/{name}"));
    let judged = lab.target().health.as_mut().unwrap().clusters.get_mut(&cluster).unwrap();
    judged.status.reason = Some(reason.clone());
    Waiting::Unseen { cluster, reason }
}

#[test]
fn nothing_is_disrupted_while_a_cluster_of_the_fleet_cannot_be_seen() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        lab.cluster(name, json!({"advanced_config.version": "4.3.2"}));
    }
    let hidden = ["a", "b", "c"].map(|name| hide(&mut lab, name));
    let plan = lab.plan();
    assert_eq!(running(&plan), [""; 0]);
    for (name, waiting) in ["a", "b", "c"].into_iter().zip(hidden) {
        assert_eq!(change(&plan, &format!("Cluster/acme/{name}")).waiting, [waiting]);
    }
    let told = "no disruption while the health of cluster acme/a is unknown: the user of the fleet's `kubeconfig` may not \
                list Pod objects; grant it `list` on `pods`";
    assert_eq!(change(&plan, "Cluster/acme/a").waiting[0].to_string(), told);

    // A visible cluster waits for one that isn't, unless it is known to need a repair.
    lab.judged("b", Status::Healthy);
    let a = hide(&mut lab, "a");
    assert_eq!(change(&lab.plan(), "Cluster/acme/b").waiting, [a]);
    lab.judged("b", Status::Degraded);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
}

#[test]
fn a_cluster_that_is_being_changed_is_changed_further_only_where_it_alone_is() {
    let mut lab = Lab::with(&["a", "b"]);
    for name in ["a", "b"] {
        lab.cluster(name, json!({"advanced_config.version": "4.3.2"}));
    }
    lab.judged("b", Status::Updating);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
    lab.judged("a", Status::Updating);
    assert_eq!(running(&lab.plan()), [""; 0]);
}

/// Whether the other cluster's trouble may be from its certificates doesn't matter here.
#[test]
fn nothing_is_disrupted_while_another_cluster_is_in_trouble_of_any_kind() {
    for clear in [None, Some(false), Some(true)] {
        let mut lab = Lab::with(&["a", "b"]);
        lab.cluster("b", json!({"advanced_config.version": "4.3.2"}));
        lab.judged("a", Status::Degraded);
        let a = key("Cluster/acme/a");
        let health = lab.target().health.as_mut().unwrap();
        health.clusters.get_mut(&a).unwrap().clear_certificates = clear;
        let plan = lab.plan();
        let waiting = &change(&plan, "Cluster/acme/b").waiting;
        assert_eq!(*waiting, [Waiting::OneDisruption { after: a }], "{clear:?}");
    }
}

#[test]
fn nothing_is_disrupted_before_the_cluster_that_was_changed_last_is_reached() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    lab.unprotected("a");
    lab.settle();
    for name in ["b", "c"] {
        lab.cluster(name, json!({"advanced_config.version": "4.3.2"}));
    }
    lab.reached("a", false);
    let plan = lab.plan();
    assert_eq!(running(&plan), [""; 0]);
    let unconfirmed = |name: &str| Waiting::Unconfirmed { cluster: key(&format!("Cluster/acme/{name}")) };
    for name in ["b", "c"] {
        assert_eq!(change(&plan, &format!("Cluster/acme/{name}")).waiting, [unconfirmed("a")]);
    }
    let told = "the reachability probe hasn't reached cluster acme/a since its last change";
    assert_eq!(change(&plan, "Cluster/acme/b").waiting[0].to_string(), told);

    // What it lacks may be another change.
    lab.reached("a", true);
    lab.reached("c", false);
    assert_eq!(running(&lab.plan()), ["acme/c"]);
    // One that is Degraded is repaired first, and one that goes is awaited by nobody.
    lab.judged("b", Status::Degraded);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
    lab.judged("b", Status::Healthy);
    lab.reached("c", true);
    lab.reached("a", false);
    lab.remove("Cluster/acme/a");
    assert_eq!(running(&lab.plan()), ["acme/a", "acme/b"]);
}

/// It was reached before its status is worth waiting for.
#[test]
fn a_cluster_that_does_not_work_is_not_waited_for_by_its_probe() {
    let mut lab = Lab::with(&["a", "b"]);
    lab.cluster("b", json!({"advanced_config.version": "4.3.2"}));
    lab.reached("a", false);
    lab.judged("a", Status::Failed);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
}

#[test]
fn a_cluster_that_goes_holds_up_nobody() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    lab.unprotected("b");
    lab.settle();
    lab.cluster("c", json!({"advanced_config.version": "4.3.2"}));
    lab.remove("Cluster/acme/b");
    lab.judged("a", Status::Updating);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
    lab.judged("a", Status::Healthy);
    lab.judged("b", Status::Degraded);
    assert_eq!(running(&lab.plan()), ["acme/b", "acme/c"]);
}

#[test]
fn quotas_that_somebody_changed_by_hand_are_put_back_one_cluster_after_another() {
    let mut lab = Lab::with(&["a", "b"]);
    for name in ["a", "b"] {
        let kafka = lab.target().objects.get_mut(&object("Kafka", name, name)).unwrap();
        kafka.unchanged = false;
        let quotas = json!({"type": "strimzi", "producerByteRate": 1});
        kafka.manifest.as_mut().unwrap().edit(|kafka| kafka["spec"]["kafka"]["quotas"] = quotas);
    }
    let plan = lab.plan();
    assert!(matches!(change(&plan, "Cluster/acme/a").cause, Cause::Drift { .. }));
    assert_eq!(running(&plan), ["acme/a"]);
}

#[test]
fn a_cluster_of_a_single_broker_is_said_to_be_away_while_that_restarts() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({"advanced_config.profile": "dev"}));
    lab.settle();
    let config = json!({"num.partitions": 3, "group.max.size": 2, "log.segment.bytes": 1_048_576});
    lab.cluster("orders", json!({"advanced_config.profile": "dev", "advanced_config.config": config}));
    assert_eq!(
        change(&lab.plan(), "Cluster/acme/orders").effects,
        [
            "consumer groups with more than 2 members lose the others, which can't join again",
            "its only broker restarts",
            "brokers use new options without a restart",
            "the cluster has a single broker: while it restarts, clients can't read or write",
        ]
    );
    lab.settle();
    let config = json!({"num.partitions": 3, "group.max.size": 2, "log.segment.bytes": 2_097_152});
    lab.cluster("orders", json!({"advanced_config.profile": "dev", "advanced_config.config": config}));
    assert_eq!(
        change(&lab.plan(), "Cluster/acme/orders").effects,
        ["brokers use new options without a restart"]
    );
}
