use serde_json::json;

use super::*;

#[test]
fn a_change_and_a_protected_deletion() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.remove("Cluster/acme/payments");
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   directory      units 1 → 2 of 40    clusters 1 → 2 of 10
      6 → 9 brokers and 6 controllers take 18 → 22.5 CPUs, 96 → 120 GiB of memory, 1200 → 1500 GiB of disk
      ~ cluster orders     kafka_units 1 → 2                                 acme/clusters/orders.yaml:8
          adds 3 brokers and rebalances; clients keep their connections
          3 → 6 brokers and 3 controllers: 9 → 13.5 CPUs, 48 → 72 GiB of memory, 600 → 900 GiB of disk
          ~ KafkaNodePool kafka-acme--orders/broker
              spec:
            -   replicas: 3
            +   replicas: 6
                resources:
                  requests:
                    cpu: 1500m
      ! cluster payments   blocked: deletion protection is on          was acme/clusters/payments.yaml:1
          to keep it, restore its spec; to delete it, restore it with `deletion_protection: false`, apply, and remove it again
          the cluster is deleted; its namespace and disks are kept: kafka-acme--payments

    1 to change, 0 to create, 0 to delete, 1 waiting.    plan …
    "#);
}

#[test]
fn something_new() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({}));
    insta::assert_snapshot!(lab.look(), @r#"
    organization acme   units 0    clusters 0    fleets 0
      + organization acme                                                 acme/organizations/acme.yaml:1

    fleet acme/eu   directory      units 1 → 2 of 40    clusters 1 → 2 of 10
      3 brokers and 3 controllers take 9 CPUs, 48 GiB of memory, 600 GiB of disk
      + fleet eu                                                                   acme/fleets/eu.yaml:1
      + cluster orders                                                       acme/clusters/orders.yaml:1
          creates a cluster of 3 brokers and 3 controllers
          takes 9 CPUs, 48 GiB of memory, 600 GiB of disk
          + Namespace kafka-acme--orders
          + NetworkPolicy kafka-acme--orders/deny
          + Kafka kafka-acme--orders/orders
          + KafkaNodePool kafka-acme--orders/broker
          + KafkaNodePool kafka-acme--orders/controller

    0 to change, 3 to create, 0 to delete, 0 waiting.    plan …
    "#);
}

#[test]
fn a_new_certificate_shows_no_secret() {
    let mut lab = Lab::with(&["orders"]);
    lab.domain("hmac:0011223344556677");
    lab.settle();
    lab.domain("hmac:8899aabbccddeeff");
    let secret = object("Secret", "orders", "tls");
    let there = lab.target().objects.get_mut(&secret).unwrap();
    there.unchanged = false;
    let data = json!({"tls.crt": "c2VjcmV0", "tls.key": "c2VjcmV0LWtleQ=="});
    there.manifest.as_mut().unwrap().edit(|secret| secret["data"] = data);
    let look = lab.look();
    assert!(!look.contains("c2Vj") && !look.contains("Y2Vy"), "{look}");
    insta::assert_snapshot!(look, @r#"
    organization acme   units 0    clusters 0    fleets 0
      ~ base domain k.example.com   tls_key hmac:00112233… → hmac:8899aabb…  acme/base-domains/k.example.com.yaml:1

    fleet acme/eu   directory      units 1 → 2 of 40    clusters 1 → 2 of 10
      ~ cluster orders                                                       acme/clusters/orders.yaml:1
          because base domain acme/k.example.com changed
          brokers restart one by one with the new certificate; clients reconnect and continue
          ~ Secret kafka-acme--orders/tls
              data:
            -   tls.crt: ‹hidden, before›
            -   tls.key: ‹hidden, before›
            +   tls.crt: ‹hidden, changed›
            +   tls.key: ‹secret BaseDomain/acme/k.example.com tls_key, hmac:8899aabb…›
              type: kubernetes.io/tls

    2 to change, 0 to create, 0 to delete, 0 waiting.    plan …
    "#);
}

#[test]
fn what_needs_approval() {
    let mut lab = Lab::with(&["a", "b"]);
    ["a", "b"].iter().for_each(|name| lab.unprotected(name));
    lab.settle();
    ["a", "b"].iter().for_each(|name| lab.remove(&format!("Cluster/acme/{name}")));
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   directory      units 1 → 2 of 40    clusters 1 → 2 of 10
      6 → 3 brokers and 6 → 3 controllers take 18 → 9 CPUs, 96 → 48 GiB of memory, 1200 → 600 GiB of disk
      - cluster a                                                             was acme/clusters/a.yaml:1
          the cluster is deleted; its namespace and disks are kept: kafka-acme--a
          - Kafka kafka-acme--a/a
          - KafkaNodePool kafka-acme--a/broker
          - KafkaNodePool kafka-acme--a/controller
          - NetworkPolicy kafka-acme--a/deny
      ! cluster b          on hold for approval: limit of 1 cluster deletion per fleet and hour. Deletes when the hour is over; restore the file to keep it, approve to delete now  was acme/clusters/b.yaml:1
          to keep it, restore its spec; to delete it: streamfleet approve 256eda9199e3 specs
          the cluster is deleted; its namespace and disks are kept: kafka-acme--b
          - Kafka kafka-acme--b/b
          - KafkaNodePool kafka-acme--b/broker
          - KafkaNodePool kafka-acme--b/controller
          - NetworkPolicy kafka-acme--b/deny

    0 to change, 0 to create, 1 to delete, 1 waiting.    plan …
    "#);
}

#[test]
fn nothing_to_do() {
    let plan = Lab::with(&["orders"]).look();
    assert!(plan.starts_with("Nothing to do: 3 resources match their specs.    plan "), "{plan}");
}

#[test]
fn what_people_wrote_does_not_drive_the_terminal() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", json!({"region": "\u{1b}[31meu\n"}));
    let look = lab.look();
    assert!(look.contains("region none → \\u{1b}[31meu\\n") || look.contains("region changed"), "{look}");
    assert!(!look.contains('\u{1b}'));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.remove("Cluster/acme/payments");
    let coloured = lab.shown(true);
    assert!(coloured.contains('\u{1b}'));
    let stripped = anstream::adapter::strip_str(&coloured).to_string();
    assert_eq!(stripped, lab.look());
}

#[test]
fn brokers_that_will_go_by_themselves_are_told_in_every_plan() {
    let mut lab = Lab::with(&["orders"]);
    lab.judged("orders", Status::Updating);
    let health = lab.target().health.as_mut().unwrap();
    let orders = health.clusters.get_mut(&key("Cluster/acme/orders")).unwrap();
    orders.status.reason = Some("partitions are being moved".into());
    let going = crate::component::health::PendingDestruction {
        pool: "broker".into(),
        from: 6,
        to: 3,
        nodes: vec![3, 4, 5],
    };
    orders.status.conditions.push(crate::catalog::Condition {
        kind: crate::component::health::SCALE_DOWN_PREVENTION.into(),
        degraded: false,
        message: going.to_string(),
    });
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   directory, Healthy      units 1 → 2 of 40    clusters 1 → 2 of 10
      ! cluster orders is Updating: partitions are being moved
          the operator will shrink pool `broker` from 6 to 3 nodes as soon as nodes 3, 4, 5 have no partition; set the number back to 6 to keep it

    Nothing to do: 3 resources match their specs.    plan …
    "#);
}

#[test]
fn when_a_deletion_beyond_the_limit_goes_by_itself_is_told_to_the_minute() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    ["a", "b", "c"].iter().for_each(|name| lab.unprotected(name));
    lab.settle();
    ["a", "b", "c"].iter().for_each(|name| lab.remove(&format!("Cluster/acme/{name}")));
    lab.policy.now = at(12);
    let gone = |minutes: i64, seconds: i64| Deletion {
        fleet: fleet_key(),
        cluster: key("Cluster/acme/gone"),
        at: at(12) - SignedDuration::from_secs(60 * minutes + seconds),
    };
    lab.recorded.deletions = vec![gone(20, 30), gone(50, 0), gone(61, 0)];
    lab.policy.cluster_deletions_per_hour = 2;
    let look = lab.look();
    let told = |cluster: &str| {
        let line = look.lines().find(|line| line.contains(&format!("cluster {cluster} "))).unwrap();
        line.split(". Deletes ").nth(1).unwrap().split(";").next().unwrap().to_owned()
    };
    assert_eq!([told("a"), told("b"), told("c")], ["at 12:10 UTC", "at 12:40 UTC", "when the hour is over"]);
}
