use super::*;
use crate::names::Digest;

#[test]
fn the_cause_of_a_pod_that_is_not_ready_is_named() {
    let logs = "see `kubectl logs --previous -n kafka-acme--orders orders-broker-0 -c kafka`";
    let waiting = |reason| json!({"state": {"waiting": {"reason": reason, "message": "no such thing.\n"}}});
    for (container, expected) in [
        (waiting("ContainerCreating"), "is starting".to_owned()),
        (waiting("SomethingNew"), "is starting".to_owned()),
        (waiting("ErrImagePull"), "can't run container `kafka`: ErrImagePull: no such thing".to_owned()),
        (
            waiting("CreateContainerConfigError"),
            "can't run container `kafka`: CreateContainerConfigError: no such thing".to_owned(),
        ),
        (
            json!({"restartCount": 1, "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
            format!("has crashed (restarted once, exit code 137, OOMKilled); {logs}"),
        ),
        (
            json!({"restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}),
            format!("is in a crash loop (CrashLoopBackOff, restarted 7 times, exit code 1); {logs}"),
        ),
    ] {
        let mut lab = Lab::healthy();
        lab.broker(container);
        assert_eq!(lab.told(), format!("Degraded: 5 of 6 pods are ready: `orders-broker-0` {expected}"));
    }
}

#[test]
fn a_pod_that_finds_no_place_tells_the_scheduler_and_its_volume() {
    let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False",
        "message": "0/3 nodes are available."}]});
    let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data-0-orders-broker-0"},
        "spec": {"storageClassName": "gp9"}, "status": {"phase": "Pending"}});
    let event = json!({"kind": "Event", "metadata": {"name": "e"}, "type": "Warning", "reason": "ProvisioningFailed",
        "message": "out of disks.", "lastTimestamp": "2026-11-21T11:00:00Z",
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": "data-0-orders-broker-0"}});
    let begin =
        "Degraded: 5 of 6 pods are ready: `orders-broker-0` can't be scheduled: 0/3 nodes are available";
    let no_volume = "; its claim `data-0-orders-broker-0` has no volume yet";

    let mut lab = Lab::healthy();
    lab.pod("broker", 0, unscheduled);
    assert_eq!(lab.told(), begin);
    lab.put(claim);
    assert_eq!(lab.told(), format!("{begin}{no_volume} (storage class `gp9`)"));
    lab.put(event);
    assert_eq!(lab.told(), format!("{begin}{no_volume}: ProvisioningFailed: out of disks"));
    lab.classes = Some(vec!["gp3".into()]);
    assert_eq!(
        lab.told(),
        format!(
            "{begin}{no_volume}: storage class `gp9` doesn't exist; create one with that name, because a claim keeps its \
             class"
        )
    );
}

#[test]
fn at_most_three_pods_are_named() {
    let mut lab = Lab::healthy();
    let ids: Vec<u32> = (0..5).collect();
    lab.wanted.pools.get_mut("broker").unwrap().replicas = 5;
    lab.edit("KafkaNodePool/broker", "/spec/replicas", json!(5));
    lab.edit("KafkaNodePool/broker", "/status/nodeIds", json!(ids));
    for id in 0..3 {
        lab.objects.remove(&format!("Pod/orders-broker-{id}"));
    }
    assert_eq!(
        lab.told(),
        "Degraded: 3 of 8 pods are ready: `orders-broker-0` is missing; `orders-broker-1` is missing; `orders-broker-2` is \
         missing; and 2 more; the operator restores what was lost in its absence within 5 minutes of its start"
    );
}

#[test]
fn a_lost_quorum_comes_before_everything_that_pods_say() {
    let mut lab = Lab::healthy();
    for id in [1001, 1002] {
        lab.pod("controller", id, json!({}));
    }
    assert_eq!(
        lab.told(),
        "Degraded: the controllers have lost their quorum: 1 of the 3 that vote is ready and 2 are needed; 4 of 6 pods \
         are ready: `orders-controller-1001` is starting; `orders-controller-1002` is starting"
    );
}

#[test]
fn an_operator_s_reason_that_is_not_known_fails_nothing_for_good() {
    let failed =
        json!({"type": "NotReady", "status": "True", "reason": "CompletionException", "message": "Oh."});
    let mut lab = Lab::healthy();
    lab.say(failed.clone());
    assert_eq!(lab.told(), "Degraded: 6 of 6 pods are ready; the operator reports CompletionException: Oh");
    let mut lab = Lab::new_cluster();
    lab.say(failed);
    assert_eq!(lab.status(), Status::Provisioning);
}

#[test]
fn warnings_that_mean_that_something_was_not_done_need_a_person_and_others_do_not() {
    for (reason, expected) in [
        ("KafkaStorage", Status::Degraded),
        ("PvcResizingWarning", Status::Degraded),
        ("MetadataUpdateFailed", Status::Degraded),
        ("DeprecatedFields", Status::Healthy),
        ("SomethingNew", Status::Healthy),
    ] {
        let mut lab = Lab::healthy();
        let warning = json!({"type": "Warning", "status": "True", "reason": reason, "message": "Mind."});
        lab.edit("Kafka/orders", "/status/conditions", json!([warning, {"type": "Ready", "status": "True"}]));
        let status = lab.after(DEBOUNCE).status;
        assert_eq!(status.status, expected, "{reason}");
        assert_eq!(status.conditions[0].kind, reason);
    }
}

#[test]
fn a_broker_that_can_not_go_yet_is_needed_like_the_others() {
    let mut lab = Lab::healthy();
    lab.wanted.pools.get_mut("broker").unwrap().replicas = 2;
    lab.edit("KafkaNodePool/broker", "/spec/replicas", json!(2));
    let warning = json!({"type": "Warning", "status": "True", "reason": "ScaleDownPreventionCheck"});
    lab.edit("Kafka/orders", "/status/conditions", json!([warning, {"type": "Ready", "status": "True"}]));
    assert_eq!(
        lab.told(),
        "Degraded: the operator will shrink pool `broker` from 3 to 2 nodes as soon as node 2 has no partition; set the \
         number back to 3 to keep it"
    );
    lab.broker(json!({}));
    assert_eq!(lab.told(), "Degraded: 5 of 6 pods are ready: `orders-broker-0` is starting");
}

#[test]
fn an_entity_operator_that_is_away_is_told() {
    let mut lab = Lab::healthy();
    lab.objects.get_mut("Kafka/orders").unwrap()["spec"] = json!({"entityOperator": {}});
    assert_eq!(lab.told(), "Degraded: users and topics aren't synchronized: it has no pod");
    lab.put(json!({"kind": "Pod",
        "metadata": {"name": "orders-entity-operator-x", "labels": {"strimzi.io/name": "orders-entity-operator"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    assert_eq!(lab.status(), Status::Healthy);
}

#[test]
fn a_user_that_can_not_be_made_is_told() {
    let mut lab = Lab::healthy();
    lab.put(json!({"kind": "KafkaUser", "metadata": {"name": "app"}, "status": {"conditions":
        [{"type": "NotReady", "status": "True", "reason": "InvalidResourceException", "message": "No ACLs."}]}}));
    assert_eq!(lab.told(), "Degraded: user `app` can't be created: InvalidResourceException: No ACLs");
}

#[test]
fn a_certificate_that_is_not_shown_yet_is_under_way() {
    let mut lab = Lab::healthy();
    let made = rcgen::generate_simple_self_signed(vec!["k.example.com".into()]).unwrap();
    let listener = json!([{"name": "tls", "certificates": [made.cert.pem()]}]);
    lab.edit("Kafka/orders", "/status/listeners", listener);
    lab.wanted.certificates = BTreeMap::from([("tls".into(), Digest::of(made.cert.der()))]);
    assert_eq!(lab.status(), Status::Healthy);
    lab.wanted.certificates = BTreeMap::from([("tls".into(), Digest::of("another"))]);
    assert_eq!(lab.told(), "Updating: listener `tls` doesn't use the new certificate yet");
}

#[test]
fn trouble_that_was_there_before_a_certificate_or_came_after_all_was_well_with_it_is_not_from_it() {
    let mut lab = Lab::healthy();
    let give = |lab: &mut Lab, certificate: &str| {
        lab.wanted.certificates = BTreeMap::from([("external".into(), Digest::of(certificate))]);
    };
    let crashes =
        json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "ready": false, "restartCount": 5});
    let is_clear = |lab: &mut Lab| {
        let judgement = lab.after(DEBOUNCE);
        assert_eq!(judgement.status.status, Status::Degraded);
        judgement.clear_certificates
    };
    // It was Healthy with these certificates.
    give(&mut lab, "first");
    lab.judge();
    lab.broker(crashes.clone());
    assert_eq!(is_clear(&mut lab), Some(true));
    // It was already unwell when it got these.
    give(&mut lab, "second");
    assert_eq!(is_clear(&mut lab), Some(true));

    // It became unwell with these, before it was ever Healthy.
    let mut lab = Lab::healthy();
    give(&mut lab, "first");
    lab.broker(crashes);
    assert_eq!(is_clear(&mut lab), Some(false));
    // So the next ones aren't ruled out.
    give(&mut lab, "second");
    assert_eq!(is_clear(&mut lab), Some(false));

    // Nothing is known of certificates whose arrival wasn't observed.
    lab.memory = HealthMemory::default();
    assert_eq!(is_clear(&mut lab), None);
}
