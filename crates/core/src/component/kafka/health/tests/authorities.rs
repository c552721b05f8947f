use super::*;

const FAILED: &str = "An error while trying to determine the active controller";

/// Recreates the Kafka object at 11:00, with this status from 11:05.
fn made_anew(status: Value) -> Lab {
    let mut lab = Lab::healthy();
    let pods: Vec<String> = lab.objects.keys().filter(|key| key.starts_with("Pod/")).cloned().collect();
    for pod in pods {
        lab.objects.get_mut(&pod).unwrap()["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z".into();
    }
    lab.put(json!({"kind": "Kafka", "metadata": {"name": "orders", "uid": "u2", "generation": 1,
        "creationTimestamp": "2026-11-21T11:00:00Z"}, "status": status}));
    lab
}

fn unforceable() -> Value {
    json!({"observedGeneration": 1, "conditions": [{"type": "NotReady", "status": "True",
        "reason": "UnforceableProblem", "message": FAILED, "lastTransitionTime": "2026-11-21T11:05:00.471Z"}]})
}

/// Recreates the pods of a pool at this time.
fn replace(lab: &mut Lab, pool: &str, first: u32, at: &str) {
    for id in first..first + 3 {
        lab.pod(pool, id, json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        let pod = lab.objects.get_mut(&format!("Pod/orders-{pool}-{id}")).unwrap();
        pod["metadata"]["creationTimestamp"] = at.into();
    }
}

#[test]
fn pods_that_are_older_than_the_kafka_object_have_to_be_deleted() {
    let creating = json!({"conditions": [{"type": "NotReady", "status": "True", "reason": "Creating"}]});
    for status in [creating, unforceable()] {
        let mut lab = made_anew(status);
        assert_eq!(
            lab.told(),
            "Degraded: its Kafka object was recreated with other certificate authorities, and the operator can't talk to \
             older pods: `orders-broker-0`, `orders-broker-1`, `orders-broker-2` and 3 more; delete them one by one, each \
             when the one before is ready again (6 of 6 pods are ready)"
        );
        let objects = objects::of(&lab.wanted, &lab.seen(), &[]);
        let next: Vec<&str> = objects.amiss.iter().filter_map(|it| it.next.as_deref()).collect();
        assert_eq!(
            next,
            [
                "delete the pods that are older than the Kafka object one by one, each when the one before is ready again: kubectl \
              delete pod -n kafka-acme--orders orders-broker-0"
            ]
        );
        assert_eq!(objects.amiss.iter().filter(|it| it.kind == "Pod").count(), 6);
    }
    // The operator managed after all.
    let mut lab = made_anew(json!({"observedGeneration": 1, "operatorLastSuccessfulVersion": "1.2.0",
        "conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(lab.status(), Status::Healthy);
}

#[test]
fn what_the_operator_reported_before_the_pods_were_made_says_nothing_of_them() {
    let mut lab = made_anew(unforceable());
    lab.told();
    replace(&mut lab, "broker", 0, "2026-11-21T11:10:00Z");
    replace(&mut lab, "controller", 1000, "2026-11-21T11:09:00Z");
    let overtaken = "the operator hasn't finished since these pods were created, and its earlier report \
                     (UnforceableProblem) doesn't cover them";
    assert_eq!(lab.told(), format!("Provisioning: 6 of 6 pods are ready; {overtaken}"));
    lab.broker(json!({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}));
    lab.objects.get_mut("Pod/orders-broker-0").unwrap()["metadata"]["creationTimestamp"] =
        "2026-11-21T11:10:00Z".into();
    assert!(
        lab.told().contains("5 of 6 pods are ready: `orders-broker-0` is in a crash loop"),
        "{}",
        lab.told()
    );

    // The same failure of a cluster that worked before.
    let mut lab = Lab::healthy();
    lab.say(unforceable()["conditions"][0].clone());
    assert_eq!(
        lab.told(),
        format!("Degraded: 6 of 6 pods are ready; the operator reports UnforceableProblem: {FAILED}")
    );
    replace(&mut lab, "broker", 0, "2026-11-21T11:10:00Z");
    assert_eq!(lab.told(), format!("Degraded: 6 of 6 pods are ready; {overtaken}"));
    lab.say(json!({"type": "Ready", "status": "True"}));
    assert_eq!(lab.told(), "Healthy: ");
}
