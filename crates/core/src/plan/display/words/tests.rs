use super::*;
use crate::plan::change::kept_resource;
use crate::problem::Origin;

fn key(text: &str) -> ResourceKey {
    text.to_owned().try_into().unwrap()
}

#[test]
fn how_old_the_last_look_is_is_told() {
    let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let then = "; the plan below uses the state recorded then";
    for (seen, expected) in [
        (Some("2026-11-21T11:59:30Z"), "last seen less than a minute ago, at 2026-11-21T11:59:30Z"),
        (Some("2026-11-21T10:01:00Z"), "last seen 119 min ago, at 2026-11-21T10:01:00Z"),
        (Some("2026-11-21T08:59:00Z"), "last seen 3 h ago, at 2026-11-21T08:59:00Z"),
        (Some("2026-11-19T11:00:00Z"), "last seen 2 days ago, at 2026-11-19T11:00:00Z"),
        // The clock was set back.
        (Some("2026-11-22T12:00:00Z"), "last seen less than a minute ago, at 2026-11-22T12:00:00Z"),
        (None, "last seen: unknown"),
    ] {
        let seen = seen.map(|seen| seen.parse().unwrap());
        assert_eq!(last_known(seen, now), format!("{expected}{then}"));
    }
}

#[test]
fn to_remove_what_others_depend_on_is_never_proposed() {
    let (cluster, fleet) = (key("Cluster/acme/orders"), key("Fleet/acme/eu"));
    let cases = [
        (&fleet, "apiextensions.k8s.io/v1|CustomResourceDefinition||kafkas.kafka.strimzi.io"),
        (&fleet, "v1|Namespace||strimzi-operator"),
        (&cluster, "v1|Namespace||kafka-acme--orders"),
    ];
    let lines = cases.map(|(resource, object)| {
        let object = ObjectKey::try_from(object.to_owned()).unwrap();
        wait_remedy(&kept_resource(resource, None), &Waiting::ForeignObject { object }, "specs").unwrap()
    });
    assert!(lines.iter().all(|line| line.starts_with("don't remove it") && !line.contains("move it away")));
    insta::assert_snapshot!(lines.join("\n"), @"
    don't remove it: every Kafka of the Kubernetes cluster depends on it. Somebody else installed an operator: set `strimzi: existing` in `advanced_config.components` of the fleet, or have its owner upgrade it; if streamfleet created it, restore the target's inventory
    don't remove it: somebody else installed an operator: set `strimzi: existing` in `advanced_config.components` of the fleet; if streamfleet created it, restore the target's inventory
    don't remove it, because everything in it would be deleted too: give cluster acme/orders another name; if streamfleet created it, restore the target's inventory
    ");
}

#[test]
fn to_forget_a_fleet_is_proposed_only_where_its_target_may_be_gone() {
    let fleet = Change { verb: Verb::Keep, ..kept_resource(&key("Fleet/acme/eu"), None) };
    for (lost, expected) in [
        (true, Some("if everything on it is gone for good: streamfleet forget acme/eu specs".to_owned())),
        (false, None),
    ] {
        let waiting = Waiting::Unreachable {
            reason: "401".into(),
            hint: String::new(),
            refused: false,
            lost,
            concealed: false,
        };
        assert_eq!(wait_remedy(&fleet, &waiting, "specs"), expected);
    }
}

#[test]
fn every_wait_says_for_what_and_the_way_out() {
    let cluster = || key("Cluster/acme/orders");
    let fleet = || key("Fleet/acme/eu");
    let origin = || Origin { path: "acme/x.yaml".parse().unwrap(), line: 3 };
    let object = ObjectKey::try_from("v1|Secret|ns|tls".to_owned()).unwrap();
    let unreachable = |reason: &str, hint: &str, refused| Waiting::Unreachable {
        reason: reason.into(),
        hint: hint.into(),
        refused,
        lost: false,
        concealed: false,
    };
    let namespace = || ObjectKey::try_from("v1|Namespace||kafka-acme--orders".to_owned()).unwrap();
    let gateway = || {
        let key = "gateway.networking.k8s.io/v1|Gateway|streamfleet-gateway|kafka";
        ObjectKey::try_from(key.to_owned()).unwrap()
    };
    let until = "2026-11-21T12:00:30Z".parse().unwrap();
    let over = Hold::OverCapacity {
        limited_by: fleet(),
        what: "max_kafka_units".into(),
        used: 39,
        wanted: 2,
        limit: 40,
    };
    let waits = [
        Waiting::Held(Hold::Invalid { problems: 1 }),
        Waiting::Held(Hold::Invalid { problems: 2 }),
        Waiting::Held(Hold::Unreadable { origin: origin() }),
        Waiting::Held(over),
        Waiting::Held(Hold::Suspended { by: fleet() }),
        Waiting::Held(Hold::Dependency { on: fleet() }),
        Waiting::UnreadableFile { origin: origin() },
        Waiting::Protected,
        Waiting::Approval {
            id: "03b369592dea".into(),
            why: "limit of 1 cluster deletion per fleet and hour".into(),
        },
        Waiting::OneDisruption { after: cluster() },
        Waiting::Renewal { after: cluster(), domain: key("BaseDomain/acme/k.example.com") },
        Waiting::Maintenance { windows: "daily 02:00 for 4 h, UTC".into(), until, is_urgent: false },
        Waiting::Maintenance { windows: "daily 02:00 for 4 h, UTC".into(), until, is_urgent: true },
        Waiting::Unsettled,
        Waiting::Unconfirmed { cluster: cluster() },
        Waiting::Unseen { cluster: cluster(), reason: "the user may not list Pod objects".into() },
        unreachable("connection refused", "", false),
        unreachable("fleet acme/eu is on it", "give it another one", true),
        Waiting::UnderWay { since: until },
        Waiting::Repeated { times: 1, until },
        Waiting::Repeated { times: 7, until },
        Waiting::PlanOnly,
        Waiting::SecretUnavailable {
            secret: "`kubeconfig` of fleet acme/eu".into(),
            reason: "no file".into(),
        },
        Waiting::ForeignObject { object },
        Waiting::Children { count: 1, example: cluster() },
        Waiting::Children { count: 3, example: cluster() },
        Waiting::Leftovers { count: 1, example: namespace() },
        Waiting::Leftovers { count: 3, example: namespace() },
        Waiting::InUse { object: gateway(), count: 1, example: cluster() },
        Waiting::InUse { object: gateway(), count: 3, example: cluster() },
        Waiting::Preflight {
            condition: "StorageClassMissing".into(),
            why: "there is no StorageClass gp3".into(),
        },
        Waiting::MetadataUnknown { to: "4.3-IV0".into() },
        Waiting::Absence { until },
        Waiting::Flapping {
            object: ObjectKey::try_from("v1|ResourceQuota|ns|quota".to_owned()).unwrap(),
            by: Some("kubectl-edit".into()),
            field: Some("/spec/hard/pods".into()),
            until,
        },
        Waiting::Flapping {
            object: ObjectKey::try_from("v1|ResourceQuota|ns|quota".to_owned()).unwrap(),
            by: None,
            field: None,
            until,
        },
        Waiting::Retry { failed: "cannot write it".into(), hint: "free some space".into(), until },
        Waiting::Retry { failed: "cannot reach it".into(), hint: String::new(), until },
        Waiting::Refused { why: "disks only grow".into() },
        Waiting::RefusedByTarget {
            object: namespace(),
            reason: "403 Forbidden: no".into(),
            hint: "allow it".into(),
        },
        Waiting::Contested {
            object: namespace(),
            contest: Contest { manager: "autoscaler".into(), field: ".spec.x".into() },
        },
    ];
    let change = kept_resource(&cluster(), None);
    let lines = waits.iter().map(|wait| {
        let way_out = wait_remedy(&change, wait, "specs").map(|way_out| format!("\n  {way_out}"));
        waiting(wait) + &way_out.unwrap_or_default()
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    its spec has 1 problem; it stays as it was last applied
    its spec has 2 problems; it stays as it was last applied
    acme/x.yaml:3 can't be read; it stays as it was last applied
    fleet acme/eu has max_kafka_units 40: 39 are in use and this adds 2
      to continue: raise `max_kafka_units` of fleet acme/eu, or use less
    suspend is true on fleet acme/eu
      to continue: set `suspend: false` on fleet acme/eu
    fleet acme/eu can't be used yet
    its spec may be in acme/x.yaml:3, which can't be read
      to continue: fix acme/x.yaml
    deletion protection is on
      to keep it, restore its spec; to delete it, restore it with `deletion_protection: false`, apply, and remove it again
    needs approval: limit of 1 cluster deletion per fleet and hour
      to approve: streamfleet approve 03b369592dea specs
    one disruption at a time; cluster acme/orders is first
      to see its progress: streamfleet why acme/orders specs
    cluster acme/orders has the new certificate of base domain acme/k.example.com and isn't Healthy yet
      to see what is wrong: streamfleet why acme/orders specs; if the certificate is, give base domain acme/k.example.com another one, otherwise repair the cluster
    may begin from 2026-11-21T12:00:30Z, in the maintenance window (daily 02:00 for 4 h, UTC)
      to begin now: give its fleet a window that is open, in `advanced_config.maintenance`
    may begin from 2026-11-21T12:00:30Z, 14 days before the old certificate ends; the maintenance window (daily 02:00 for 4 h, UTC) is later
      to begin now: give its fleet a window that is open, in `advanced_config.maintenance`
    starts when the cluster is Healthy
    the reachability probe hasn't reached cluster acme/orders since its last change
      to see its progress: streamfleet why acme/orders specs
    no disruption while the health of cluster acme/orders is unknown: the user may not list Pod objects
    the target can't be reached: connection refused
    the target can't be used: fleet acme/eu is on it; give it another one
    an earlier plan has been running there since 2026-11-21T12:00:30Z
    the change was applied once without lasting effect; next attempt at 2026-11-21T12:00:30Z
      to resolve it: find out in `streamfleet events` what undoes the change; if nothing does, report it
    the change was applied 7 times without lasting effect; next attempt at 2026-11-21T12:00:30Z
      to resolve it: find out in `streamfleet events` what undoes the change; if nothing does, report it
    the settings allow no changes: `policy.mode` is `plan-only`
    `kubeconfig` of fleet acme/eu can't be opened here: no file
    Secret ns/tls exists and isn't managed by streamfleet
      to continue: if streamfleet created Secret ns/tls, restore the target's inventory; otherwise move it away
    cluster acme/orders must be deleted first
    cluster acme/orders and 2 more must be deleted first
    Namespace kafka-acme--orders is kept for its data
      to delete it: remove Namespace kafka-acme--orders from the target by hand once you no longer need its data
    Namespace kafka-acme--orders and 2 more objects are kept for their data
      to delete it: remove Namespace kafka-acme--orders from the target by hand once you no longer need its data
    Gateway streamfleet-gateway/kafka is kept while clients reach cluster acme/orders through it
    Gateway streamfleet-gateway/kafka is kept while clients reach cluster acme/orders and 2 more through it
    there is no StorageClass gp3 (StorageClassMissing)
    the current metadata version is unknown, because the Kafka object no longer contains it; it would become 4.3-IV0, which can't be undone
      to continue: set `spec.kafka.metadataVersion` of the Kafka object to the version that its brokers have, or let the operator write it into the object's status
    spec file missing; counts as removed at 2026-11-21T12:00:30Z unless it returns
    kubectl-edit keeps changing /spec/hard/pods of ResourceQuota ns/quota back; the object is left unchanged until 2026-11-21T12:00:30Z
      to resolve it: stop the program that changes it, or set its value in the spec
    an unknown program keeps deleting ResourceQuota ns/quota; it isn't created again before 2026-11-21T12:00:30Z
      to resolve it: stop the program that deletes it; a change of the spec has it created before
    cannot write it; next attempt at 2026-11-21T12:00:30Z
      to continue: free some space
    cannot reach it; next attempt at 2026-11-21T12:00:30Z
    refused: disks only grow
    the target would refuse Namespace kafka-acme--orders: 403 Forbidden: no
      to continue: allow it
    autoscaler manages `.spec.x` of Namespace kafka-acme--orders, so streamfleet leaves it unchanged
      to apply the spec: make autoscaler stop managing the field
    "#);
}

#[test]
fn what_is_missing_for_a_moment_is_kept_by_its_file() {
    let until: jiff::Timestamp = "2026-11-21T12:00:30Z".parse().unwrap();
    let cluster: ResourceKey = "Cluster/acme/sandbox".to_owned().try_into().unwrap();
    let mut change = kept_resource(&cluster, None);
    change.verb = Verb::Delete;
    change.waiting = vec![Waiting::Absence { until }];
    let told = |change: &Change| wait_remedy(change, &Waiting::Absence { until }, "specs");
    let expected = "to keep it: restore its spec file; otherwise it is deleted at 2026-11-21T12:00:30Z";
    assert_eq!(told(&change).as_deref(), Some(expected));
    // The time is left out if the change also waits for something else.
    change.waiting.push(Waiting::Protected);
    assert_eq!(told(&change).as_deref(), Some("to keep it: restore its spec file"));
}
