use super::*;

#[test]
fn a_reference_leads_to_the_same_organization_or_is_refused() {
    let dangling = |line: u32, noun: &str, name: &str, hint: &str| {
        format!(
            "error dangling-reference acme/orders.yaml:{line} [no such {noun}] organization `acme` has no {noun} \
             `{name}`\n= {hint}\nheld cluster acme/orders: invalid (1)"
        )
    };
    let tiered = |account: &str| {
        format!(
            "  tiered_storage_bucket_name: log\n  tiered_storage_provider:\n    cloud_account: {account}\n    cloud_region: eu\n"
        )
    };
    let cases = [
        ("infrastructure: eu", "infrastructure: eux", dangling(3, "fleet", "eux", "did you mean `eu`?")),
        // Another organization's fleet is reported as missing.
        (
            "infrastructure: eu",
            "infrastructure: far-us",
            dangling(3, "fleet", "far-us", "known: `eu`; or describe `far-us` first"),
        ),
        (
            "infrastructure: eu",
            "infrastructure: north",
            dangling(3, "fleet", "north", "known: `eu`; or describe `north` first"),
        ),
        (
            "  version: 4.3.1\n",
            "  version: 4.3.1\n  oauth: globex-sso\n",
            dangling(
                11,
                "identity provider",
                "globex-sso",
                "known: `acme-sso`; or describe `globex-sso` first",
            ),
        ),
        (
            "  version: 4.3.1\n",
            &format!("  version: 4.3.1\n{}", tiered("globex-s3")),
            dangling(13, "cloud account", "globex-s3", "known: `acme-s3`; or describe `globex-s3` first"),
        ),
    ];
    for (from, to, expected) in cases {
        let mut world = World::new();
        world.edit("globex/base.yaml", "identifier: us", "identifier: far-us");
        world.edit("acme/orders.yaml", from, to);
        world.check(&expected);
    }
}

#[test]
fn brokers_fit_the_zones_and_the_ids_that_they_get() {
    let zones =
        |units: u32, zones: u32| cluster("acme", "orders", units, &format!("  number_of_zones: {zones}\n"));
    let refused = |label: &str, message: &str, fit: &str| {
        format!(
            "error unfit-zones acme/orders.yaml:11 [{label}] {message}
= use other `kafka_units`, or set `number_of_zones` to one of {fit}
held cluster acme/orders: invalid (1)"
        )
    };
    let cases = [
        (zones(1, 5), refused("5 zones", "3 brokers can't be in 5 zones", "1, 3")),
        (zones(1, 2), refused("2 zones", "3 brokers can't be spread evenly over 2 zones", "1, 3")),
        (zones(2, 4), refused("4 zones", "6 brokers can't be spread evenly over 4 zones", "1, 3, 6")),
        (zones(2, 2), refused("2 zones", TOO_FEW_ZONES, "1, 3, 6")),
        (zones(2, 6), String::new()),
    ];
    for (spec, expected) in cases {
        World::new().put("acme/orders.yaml", &spec).check(&expected);
    }
    let mut world = World::new();
    world.config.units.standard.brokers_per_unit = 4;
    world.put("acme/orders.yaml", &cluster("acme", "orders", 256, "")).check(
        "error too-many-brokers acme/orders.yaml:7 [1024 brokers] a cluster can't have 1024 brokers, because broker ids end at 999
= use fewer `kafka_units`, or larger brokers in the `units` of the settings
held cluster acme/orders: invalid (1)",
    );
}

const TOO_FEW_ZONES: &str = "3 copies of a partition don't fit in 2 zones, one copy per zone, so Cruise Control would move \
                             nothing: added brokers would stay empty, and brokers couldn't be removed";

#[test]
fn a_cluster_that_has_fewer_zones_than_copies_already_goes_on_at_its_size() {
    let zones =
        |units: u32, more: &str| cluster("acme", "orders", units, &format!("  number_of_zones: 2\n{more}"));
    let mut world = World::new();
    let standard = world.config.units.standard.clone();
    world.config.units.standard.replication_factor = 2;
    world.config.units.standard.min_insync_replicas = 1;
    world.put("acme/orders.yaml", &zones(2, "")).apply().check("");
    world.config.units.standard = standard;
    world.put("acme/orders.yaml", &zones(2, "  operations: {metrics: true}\n")).check("");
    world.put("acme/orders.yaml", &zones(4, "")).check(&format!(
        "error unfit-zones acme/orders.yaml:11 [2 zones] {TOO_FEW_ZONES}
= use other `kafka_units`, or set `number_of_zones` to one of 1, 3, 4, 6
held cluster acme/orders: invalid (1), rendered"
    ));
}

#[test]
fn another_organizations_domain_and_account_are_refused_in_fleets_and_domains() {
    let mut world = World::new();
    world.remove("acme/orders.yaml");
    world.edit("acme/base.yaml", "max_tenants", "suspend: false\nmax_tenants");
    world.edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ndomain: k.globex.com\ntenancy");
    world.edit("acme/base.yaml", "tls_key: $key", "tls_key: $key\ncloud_account: globex-s3");
    world.check(
        "error dangling-reference acme/base.yaml:6 [no such cloud account] organization `acme` has no cloud account `globex-s3`
         = known: `acme-s3`; or describe `globex-s3` first
         error dangling-reference acme/base.yaml:12 [no such base domain] organization `acme` has no base domain `k.globex.com`
         = known: `k.acme.com`; or describe `k.globex.com` first
         held base domain acme/k.acme.com: invalid (1)
         held fleet acme/eu: invalid (1)",
    );
}

#[test]
fn a_fleet_names_its_domain_as_submitted_or_as_derived() {
    for name in ["k.acme.com", "acme.k.acme.com"] {
        let mut world = World::new();
        world.edit("acme/base.yaml", "tls_cert: $*.k.acme.com", "tls_cert: $*.acme.k.acme.com");
        world.edit(
            "acme/base.yaml",
            "tls_key: $key",
            "tls_key: $key\ndns_provider: external-dns\ncloud_account: acme-s3",
        );
        world.edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", &format!("\ndomain: {name}\ntenancy"));
        world.edit("acme/orders.yaml", "  version", "  cluster_access: External\n  version");
        world.check("");
        let catalog = world.resolve();
        let cluster = catalog.clusters.values().next().unwrap();
        let host = cluster.domain.as_ref().unwrap().bootstrap_host(&cluster.spec.identifier);
        assert_eq!(host, "orders.acme.k.acme.com");
    }
}

#[test]
fn a_cluster_is_as_private_as_the_gateway_of_its_fleet() {
    let check = |gateway: &str, cluster: &str, expected: &str| {
        let mut world = World::new();
        let config = format!("advanced_config: {{exposure: tlsroute, gateway: {{class: envoy{gateway}}}}}");
        world.edit("acme/base.yaml", "max_tenants", &format!("{config}\nmax_tenants"));
        world.edit("acme/orders.yaml", "  version", &format!("  {cluster}\n  version"));
        world.check(expected);
    };
    check(
        "",
        "cluster_access: External\n  private_access: true",
        "error gateway-mismatch acme/orders.yaml:11 [must be false] the cluster's external listener is private, and the \
         Gateway of fleet `eu` is public
         see acme/base.yaml:13 [false here]
         = set `private_access: false`, or `private: true` in the fleet's `advanced_config.gateway`, for all of its clusters
         held cluster acme/orders: invalid (1)",
    );
    check("", "cluster_access: External", "");
    check(", private: true", "cluster_access: External\n  private_access: true", "");
    check(", private: true", "cluster_access: Internal", "");
    check(
        ", private: true",
        "cluster_access: External",
        "error gateway-mismatch acme/orders.yaml:9 [must be true] the cluster's external listener is public, and the \
         Gateway of fleet `eu` is private
         see acme/base.yaml:13 [true here]
         = set `private_access: true`, or `private: false` in the fleet's `advanced_config.gateway`, for all of its clusters
         held cluster acme/orders: invalid (1)",
    );
}

#[test]
fn a_cluster_and_its_fleet_must_agree() {
    let cases = [
        (
            "tenancy_mode: Shared",
            "tenancy_mode: Isolated",
            "error tenancy-mismatch acme/orders.yaml:6 [must be Shared] the cluster's tenancy_mode is Isolated and that \
             of fleet `eu` is Shared
             see acme/base.yaml:12 [Shared here]
             = set `tenancy_mode: Shared`, or choose a fleet that is Isolated",
        ),
        (
            "kafka_units: 1",
            "cloud_provider: byok",
            "error provider-mismatch acme/orders.yaml:7 [must be `directory`] the cluster's cloud_provider is `byok` and the infra_type of fleet `eu` is `directory`
             see acme/base.yaml:10 [`directory` here]
             = set `cloud_provider: directory`, or remove it",
        ),
        (
            "  version: 4.3.1",
            "  version: 4.1.0",
            "error unknown-version acme/orders.yaml:10 [not a supported version] Kafka 4.1.0 is not supported
             = use one of 4.2.0, 4.2.1, 4.3.0, 4.3.1",
        ),
        (
            "  version",
            "  cluster_access: External\n  version",
            "error no-domain acme/orders.yaml:10 [reachable from outside] external access needs a base domain, and fleet `eu` has none
             = set `domain` in the fleet, or `cluster_access: Internal` here",
        ),
        (
            "  version: 4.3.1\n",
            "  version: 4.3.1\n  tiered_storage_bucket_name: log\n",
            "error no-tiered-storage-provider acme/orders.yaml:11 [the bucket has no account] tiered storage needs a cloud account for its bucket
             = add `tiered_storage_provider` with `cloud_account`, or remove the bucket",
        ),
        (
            "  version: 4.3.1\n",
            "  version: 4.3.1\n  tiered_storage_bucket_name: log\n  tiered_storage_provider:\n    cloud_account: acme-s3\n",
            "error no-region acme/orders.yaml:12 [no region] the region of the bucket for tiered storage is unknown
             = set `cloud_region` here, or `region` in cloud account `acme-s3`",
        ),
        (
            "organization: acme",
            "organization: acne",
            "error unknown-organization orders.yaml:2 [no such organization] there is no organization `acne`
             = describe it in an Organization document in an administrator's file, or correct the name
             error dangling-reference orders.yaml:3 [no such fleet] organization `acne` has no fleet `eu`
             = organization `acne` has no fleet yet; describe `eu` first",
        ),
    ];
    for (from, to, expected) in cases {
        let mut world = World::new();
        world.edit("acme/orders.yaml", from, to);
        if from.starts_with("kafka_units") {
            world.edit("acme/orders.yaml", "cloud_provider: byok", "cloud_provider: byok\nkafka_units: 1");
        }
        if expected.contains("no-domain") {
            world.edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ntenancy");
        }
        let mut name = "acme";
        if to.ends_with("acne") {
            let text = world.files["acme/orders.yaml"].clone();
            world.remove("acme/orders.yaml").put("orders.yaml", &text);
            name = "acne";
        }
        let count = expected.matches("error ").count();
        world.check(&format!("{expected}\nheld cluster {name}/orders: invalid ({count})"));
    }
}

#[test]
fn a_dedicated_fleet_hosts_one_cluster() {
    let mut world = World::new();
    world.remove("acme/orders.yaml");
    world.edit("acme/base.yaml", "Shared", "Dedicated");
    world.check(
        "error dedicated-tenants acme/base.yaml:13 [must be 1] a Dedicated fleet hosts exactly one cluster
         = set `max_tenants: 1`, or use Shared or Isolated
         held fleet acme/eu: invalid (1)",
    );
    world.edit("acme/base.yaml", "max_tenants: 10", "max_tenants: 1").check("");
}

#[test]
fn what_leads_to_an_invalid_document_uses_its_last_good_or_waits_without_a_cascade() {
    let broken = "INVALID\nkind: Fleet\norganization: acme\nidentifier: eu\n---\n";
    let mut world = World::new();
    let text = world.files["acme/base.yaml"].clone();
    let (domain, rest) = text.split_once("---\n").unwrap();
    let (fleet, rest) = rest.split_once("---\n").unwrap();
    world.put("acme/base.yaml", &format!("{domain}---\n{rest}"));
    world.put("acme/fleet.yaml", broken);
    world.check("held cluster acme/orders: waits for fleet acme/eu");
    world.put("acme/fleet.yaml", fleet).apply();
    world.put("acme/fleet.yaml", broken);
    world.check("held fleet acme/eu: invalid (1)");
    assert!(world.resolve().clusters.values().all(|cluster| cluster.fleet_spec.max_tenants == 10));
}

#[test]
fn suspending_holds_a_cluster_or_a_whole_fleet() {
    let mut world = World::new();
    world.apply();
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 2\nsuspend: true");
    world.check("held cluster acme/orders: suspended by cluster acme/orders, rendered");
    assert_eq!(world.resolve().clusters.values().next().unwrap().spec.units(), 1);
    world.edit("acme/orders.yaml", "suspend: true", "suspend: false");
    world.edit("acme/base.yaml", "max_tenants: 10", "max_tenants: 10\nsuspend: true");
    world.put("acme/new.yaml", &cluster("acme", "new", 1, ""));
    world.check(
        "held fleet acme/eu: suspended by fleet acme/eu
         held cluster acme/new: suspended by fleet acme/eu
         held cluster acme/orders: suspended by fleet acme/eu, rendered",
    );
}

/// A suspension is a promise that nothing happens there.
#[test]
fn a_mistake_in_the_document_of_a_suspended_fleet_or_its_loss_does_not_end_the_suspension() {
    let mut world = World::new();
    world.put("acme/topic.yaml", "kind: Topic\norganization: acme\ncluster: orders\nname: a\n");
    world.apply();
    let fleet: ResourceKey = "Fleet/acme/eu".to_owned().try_into().unwrap();
    world.recorded.resources.get_mut(&fleet).unwrap().durable.suspended = true;
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    let whole = base("acme", "eu", "k.acme.com");
    let told = whole.replace("max_tenants: 10", "max_tenants: 10\nsuspend: true");
    let holds = |world: &World| {
        let catalog = world.resolve();
        let told = |key: &str| {
            let key: ResourceKey = key.to_owned().try_into().unwrap();
            catalog.resources[&key].hold.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        ["Fleet/acme/eu", "Cluster/acme/orders"].map(told)
    };
    let suspended = "suspend is true on fleet acme/eu";
    world.put("acme/base.yaml", &told);
    assert_eq!(holds(&world), [suspended; 2]);
    world.put("acme/base.yaml", &told.replace("kind: Fleet", "INVALID\nkind: Fleet"));
    let invalid = "its spec has 1 problem; it stays as it was last applied";
    assert_eq!(holds(&world), [invalid, suspended]);
    world.put("acme/base.yaml", &told.replace("domain: k.acme.com\ntenancy", "domain: other.com\ntenancy"));
    assert_eq!(holds(&world), [invalid, suspended]);
    world.put("acme/base.yaml", &whole.replace("domain: k.acme.com\ntenancy", "domain: other.com\ntenancy"));
    let waits = "fleet acme/eu can't be used yet";
    assert_eq!(holds(&world), [invalid, waits], "it says that the suspension is over, and can't be used");
    world.put("acme/base.yaml", "UNREADABLE\n");
    let [lost, of_cluster] = holds(&world);
    assert!(lost.contains("acme/base.yaml"), "{lost}");
    assert_eq!(of_cluster, suspended);
    world.put("acme/base.yaml", &whole);
    assert_eq!(holds(&world), [""; 2]);
}

#[test]
fn one_host_name_means_one_thing() {
    let external =
        |organization: &str, name: &str| cluster(organization, name, 1, "  cluster_access: External\n");
    let mut world = World::new();
    world.put("acme/orders.yaml", &external("acme", "orders"));
    // An administrator grants the same domain to a second organization.
    world.remove("globex/base.yaml");
    world.put("delegated.yaml", &base("globex", "eu", "k.acme.com"));
    world.remove("acme/base.yaml").put("acme.yaml", &base("acme", "eu", "k.acme.com"));
    world.put("globex/orders.yaml", &external("globex", "orders"));
    world.put("globex/other.yaml", &external("globex", "other"));
    let taken = |host: &str, file: &str| {
        format!(
            "error host-taken {file}:4 [gives that address] `{host}` is already the address of another resource
             = give the cluster another identifier, or its fleet another domain"
        )
    };
    world.check(&format!(
        "{}\nheld cluster globex/orders: invalid (1)",
        taken("orders.k.acme.com", "globex/orders.yaml")
    ));
    // A cluster's address may not equal another organization's domain either.
    let mut world = World::new();
    world.put("delegated.yaml", &base("globex", "far", "far.k.acme.com").replace("globex-", "far-"));
    world.put("acme/far.yaml", &external("acme", "far"));
    world.check(&format!("{}\nheld cluster acme/far: invalid (1)", taken("far.k.acme.com", "acme/far.yaml")));
}

#[test]
fn a_host_name_fits_dns() {
    let label = "a".repeat(60);
    let domain = format!("{label}.{label}.{label}.{label}.com");
    let mut world = World::new();
    world.edit("organizations.yaml", "acme.com", &domain);
    world.put("acme/base.yaml", &base("acme", "eu", &domain));
    world.put("acme/orders.yaml", &cluster("acme", "orders", 1, "  cluster_access: External\n"));
    world.check(&format!(
        "error host-too-long acme/orders.yaml:4 [too long with its domain] the brokers of `orders` would have host names that are too long for DNS
         = `broker-999--orders.{domain}` has 266 characters; at most 253 are allowed, and at most 63 between dots; use a shorter identifier or domain
         held cluster acme/orders: invalid (1)"
    ));
}

#[test]
fn what_is_reached_under_a_domain_that_is_gone_is_held_with_its_fleet() {
    let mut world = World::new();
    world.edit("acme/orders.yaml", "  version", "  cluster_access: External\n  version").apply();
    let text = world.files["acme/base.yaml"].clone();
    let (_, rest) = text.split_once("---\n").unwrap();
    world.put("acme/base.yaml", rest);
    world.check(
        "error dangling-reference acme/base.yaml:5 [no such base domain] organization `acme` has no base domain \
         `k.acme.com`
         = organization `acme` has no base domain yet; describe `k.acme.com` first
         held fleet acme/eu: invalid (1)
         held cluster acme/orders: waits for base domain acme/k.acme.com
         absent base domain acme/k.acme.com: removed",
    );
}

#[test]
fn what_a_cluster_asks_of_its_fleet_and_account_has_to_be_possible() {
    let cases = [
        (
            "  config:\n    min.insync.replicas: 3\n",
            "too-many-in-sync acme/orders.yaml:12 [at most 2] `min.insync.replicas` is 3, and the cluster keeps 3 copies \
             of each record\n= use at most 2: if every copy is needed, no broker can restart without blocking all writes",
        ),
        (
            "  profile: dev\n  config:\n    min.insync.replicas: 2\n",
            "too-many-in-sync acme/orders.yaml:13 [at most 1] `min.insync.replicas` is 2, and the cluster keeps 1 copy of \
             each record\n= use at most 1: if every copy is needed, no broker can restart without blocking all writes",
        ),
        (
            "  auto_upgrade: true\n",
            "not-supported acme/orders.yaml:11 [not supported on a directory fleet] `auto_upgrade: true` is not supported \
             on fleet `eu`, whose infra_type is `directory`\n= streamfleet can't see which versions its operator runs: \
             remove `auto_upgrade`, and raise `version` to upgrade",
        ),
        (
            "  tiered_storage_create_bucket: true\n",
            "no-bucket acme/orders.yaml:11 [no bucket] `tiered_storage_create_bucket` makes no bucket without a name\n= add \
             `tiered_storage_bucket_name`, or remove `tiered_storage_create_bucket`",
        ),
    ];
    for (more, expected) in cases {
        let mut world = World::new();
        world.put("acme/orders.yaml", &cluster("acme", "orders", 1, more));
        world.check(&format!("error {expected}\nheld cluster acme/orders: invalid (1)"));
    }
}

#[test]
fn copies_in_sync_leave_room_for_a_restart() {
    for more in
        ["  config:\n    min.insync.replicas: 1\n", "  profile: dev\n  config:\n    min.insync.replicas: 1\n"]
    {
        World::new().put("acme/orders.yaml", &cluster("acme", "orders", 1, more)).check("");
    }
}
