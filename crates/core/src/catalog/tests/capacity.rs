use super::*;

/// Formats the gauges of fleet `acme/eu`: `used → after of limit`.
fn gauges(world: &World) -> String {
    let catalog = world.resolve();
    let fleet = &catalog.fleets[&"acme/eu".to_owned().try_into().unwrap()];
    let show = |gauge: Gauge| format!("{} → {} of {}", gauge.before, gauge.after, gauge.limit.unwrap());
    format!("units {}, clusters {}", show(fleet.kafka_units), show(fleet.clusters))
}

#[test]
fn what_is_applied_keeps_its_place_and_only_growth_waits() {
    let mut world = World::new();
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 6").apply();
    world.now = "2026-07-01T00:00:00Z".to_owned();
    world.put("acme/aaa.yaml", &cluster("acme", "aaa", 5, ""));
    world.put("acme/bbb.yaml", &cluster("acme", "bbb", 3, ""));
    // A new cluster that doesn't fit waits, and the next one that fits is accepted.
    world.check("held cluster acme/aaa: 6 + 5 of 10 max_kafka_units of fleet acme/eu");
    assert_eq!(gauges(&world), "units 6 → 9 of 10, clusters 1 → 2 of 10");
    // The older cluster comes first, though its name sorts later.
    world.edit("acme/orders.yaml", "kafka_units: 6", "kafka_units: 8");
    world.check(
        "held cluster acme/aaa: 8 + 5 of 10 max_kafka_units of fleet acme/eu
         held cluster acme/bbb: 8 + 3 of 10 max_kafka_units of fleet acme/eu",
    );
    world.edit("acme/orders.yaml", "kafka_units: 8", "kafka_units: 11").remove("acme/aaa.yaml");
    world.check("held cluster acme/orders: 6 + 5 of 10 max_kafka_units of fleet acme/eu, rendered");
    assert_eq!(gauges(&world), "units 6 → 9 of 10, clusters 1 → 2 of 10");
}

#[test]
fn every_limit_counts() {
    let cases = [
        ("acme/base.yaml", "max_tenants: 10", "max_tenants: 1", "1 + 1 of 1 max_tenants of fleet acme/eu"),
        (
            "organizations.yaml",
            "acme",
            "acme\nquotas: {clusters: 1}",
            "1 + 1 of 1 quotas.clusters of organization acme",
        ),
        (
            "organizations.yaml",
            "acme",
            "acme\nquotas: {kafka_units: 2}",
            "1 + 2 of 2 quotas.kafka_units of organization acme",
        ),
    ];
    for (path, from, to, expected) in cases {
        let mut world = World::new();
        world.edit(path, from, to).apply();
        world.put("acme/second.yaml", &cluster("acme", "second", 2, ""));
        world.check(&format!("held cluster acme/second: {expected}"));
    }
    let mut world = World::new();
    world.edit("organizations.yaml", "acme", "acme\nquotas: {fleets: 0}");
    world.check(
        "held fleet acme/eu: 0 + 1 of 0 quotas.fleets of organization acme
         held cluster acme/orders: waits for fleet acme/eu",
    );
}

#[test]
fn documents_that_an_organization_has_no_room_for_wait_and_those_that_are_applied_stay() {
    let more = "\
kind: BaseDomain
organization: acme
domain: more.acme.com
tls_cert: $*.more.acme.com
tls_key: $key
---
kind: IdentityProvider
organization: acme
identifier: more
issuer: https://id.example.com
jwks_uri: https://id.example.com/keys
audience: kafka
---
kind: CloudAccount
organization: acme
identifier: more
provider: aws
credentials: secret
";
    let cases = [
        ("base_domains", "base domain acme/more.acme.com", "1 + 1 of 1 quotas.base_domains"),
        ("identity_providers", "identity provider acme/more", "1 + 1 of 1 quotas.identity_providers"),
        ("cloud_accounts", "cloud account acme/more", "1 + 1 of 1 quotas.cloud_accounts"),
    ];
    for (quota, waits, why) in cases {
        let mut world = World::new();
        world.apply();
        world.put("acme/more.yaml", more);
        world.edit("organizations.yaml", "acme", &format!("acme\nquotas: {{{quota}: 1}}"));
        world.check(&format!("held {waits}: {why} of organization acme"));
        let acme: Identifier = "acme".parse().unwrap();
        let capacity = world.resolve().capacity[&acme];
        let of = |gauge: Gauge| (gauge.before, gauge.after, gauge.limit);
        let gauges = [capacity.base_domains, capacity.identity_providers, capacity.cloud_accounts].map(of);
        let expected = cases.map(|(it, ..)| if it == quota { (1, 1, Some(1)) } else { (1, 2, None) });
        assert_eq!(gauges, expected, "{quota}");
        // A limit below the current use removes nothing.
        world.remove("acme/more.yaml").edit("organizations.yaml", "1}", "0}").check("");
    }
}

#[test]
fn a_dev_cluster_counts_one_unit() {
    let mut world = World::new();
    world.put("acme/orders.yaml", &cluster("acme", "orders", 9, "  profile: dev\n"));
    assert_eq!(gauges(&world), "units 0 → 1 of 10, clusters 0 → 1 of 10");
}

#[test]
fn what_is_being_deleted_counts_until_it_is_gone() {
    let mut world = World::new();
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 8").apply();
    world.remove("acme/orders.yaml").put("acme/new.yaml", &cluster("acme", "new", 3, ""));
    world.recorded.resources.values_mut().for_each(|record| record.durable.deleting = true);
    world.check(
        "held cluster acme/new: 8 + 3 of 10 max_kafka_units of fleet acme/eu
         absent cluster acme/orders: removed",
    );
    assert_eq!(gauges(&world), "units 8 → 0 of 10, clusters 1 → 0 of 10");
    let records = world.recorded.resources.values_mut();
    records.for_each(|record| (record.durable.protected, record.durable.deleting) = (true, false));
    assert_eq!(gauges(&world), "units 8 → 8 of 10, clusters 1 → 1 of 10");
}

#[test]
fn a_limit_lowered_below_use_evicts_nothing() {
    let mut world = World::new();
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 8").apply();
    world.edit("acme/base.yaml", "max_kafka_units: 10", "max_kafka_units: 5").check("");
    let catalog = world.resolve();
    let fleet = catalog.fleets.values().next().unwrap();
    assert_eq!(
        fleet.conditions,
        [Condition {
            kind: "OverCommitted".to_owned(),
            degraded: true,
            message:
                "8 Kafka units are in use and `max_kafka_units` is 5; existing resources are kept, and no new ones are \
                 created"
                    .to_owned(),
        }]
    );
}

#[test]
fn nothing_grows_beside_units_that_nobody_knows() {
    let mut world = World::new();
    world.apply().lose_cache();
    world.put("acme/new.yaml", &cluster("acme", "new", 1, ""));
    world.check("held cluster acme/new: waits for cluster acme/orders");
    // Other organizations aren't affected.
    world.remove("acme/new.yaml");
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us")).check("");
}
