use super::*;

const NEW: &str = "describe a new cluster, move the data with MirrorMaker 2, then remove this one";

#[test]
fn fields_that_cannot_change_or_go_back_are_refused() {
    let immutable = |line: u32, label: &str, field: &str, back: &str| {
        format!(
            "error immutable-field acme/orders.yaml:{line} [{label}] `{field}` of cluster acme/orders can't change
             = {back}; to change it, {NEW}"
        )
    };
    let cases = [
        ("infrastructure: eu", "infrastructure: eu2", immutable(3, "was `eu`, would be `eu2`", "infrastructure", "restore \
             `eu`")),
        (
            "  profile: standard",
            "  profile: dev",
            immutable(12, "was `standard`, would be `dev`", "advanced_config.profile", "restore `standard`"),
        ),
        (
            "    size_gib: 100",
            "    class: fast\n    size_gib: 100",
            immutable(14, "was absent, would be `fast`", "advanced_config.storage.class", "remove `advanced_config.storage.class`"),
        ),
        (
            "    size_gib: 100",
            "    size_gib: 99",
            format!(
                "error smaller-disks acme/orders.yaml:14 [was 100] the disks of a broker can't shrink from 100 to 99 GiB
                 = set `size_gib` to 100 or more; for smaller disks, {NEW}"
            ),
        ),
        (
            "kafka_units: 2",
            "kafka_units: 1",
            "error fewer-units acme/orders.yaml:7 [was 2] `kafka_units` can't be lowered from 2 to 1 without confirmation
                 = the cluster would shrink to 3 brokers, from 6: restore 2, or confirm with `scale_down_to: 1` in `advanced_config`"
                .to_owned(),
        ),
        (
            "  tiered_storage_bucket_name: log\n",
            "",
            format!(
                "error tiered-storage-change acme/orders.yaml:9 [was `log`] tiered storage can't be turned off
                 = the older part of the log is in bucket `log`, and brokers fail without it; restore the old value, or {NEW}"
            ),
        ),
        (
            "bucket_name: log",
            "bucket_name: other",
            format!(
                "error tiered-storage-change acme/orders.yaml:11 [was `log`] tiered storage can't move to another bucket
                 = the older part of the log is in bucket `log`, and brokers fail without it; restore the old value, or {NEW}"
            ),
        ),
    ];
    let more = "  tiered_storage_bucket_name: log\n  profile: standard\n  storage:\n    size_gib: 100\n  \
                tiered_storage_provider:\n    cloud_account: acme-s3\n    cloud_region: eu\n";
    for (from, to, expected) in cases {
        let mut world = World::new();
        let second = world.files["acme/base.yaml"].split("---\n").nth(1).unwrap().replace("eu", "eu2");
        world.put("acme/second.yaml", &second);
        world.put("acme/orders.yaml", &cluster("acme", "orders", 2, more)).apply().check("");
        world.edit("acme/orders.yaml", from, to);
        world.check(&format!("{expected}\nheld cluster acme/orders: invalid (1), rendered"));
    }
}

#[test]
fn a_patch_release_may_be_taken_back_and_growth_goes_on() {
    let mut world = World::new();
    world.apply();
    world.edit("acme/orders.yaml", "4.3.1", "4.3.0").check("");
    world.edit("acme/orders.yaml", "kafka_units: 1", "kafka_units: 3").check("");
}

#[test]
fn brokers_go_when_that_is_confirmed_and_half_of_them_at_a_time() {
    let mut world = World::new();
    world.put("acme/orders.yaml", &cluster("acme", "orders", 5, "")).apply().check("");
    world.put("acme/orders.yaml", &cluster("acme", "orders", 2, "  scale_down_to: 2\n")).check(
        "error too-few-units acme/orders.yaml:7 [was 5] `kafka_units` can't be lowered from 5 to 2 at once
                 = remove at most half of the brokers at a time: set `kafka_units` and `scale_down_to` to 3, and continue when the cluster is Healthy
held cluster acme/orders: invalid (1), rendered",
    );
    world.put("acme/orders.yaml", &cluster("acme", "orders", 3, "  scale_down_to: 3\n")).apply().check("");
    world.put("acme/orders.yaml", &cluster("acme", "orders", 2, "  scale_down_to: 2\n")).check("");
}

#[test]
fn a_size_below_what_the_units_gave_is_a_smaller_disk() {
    let mut world = World::new();
    world.apply();
    world.edit("acme/orders.yaml", "  version: 4.3.1\n", "  version: 4.3.1\n  storage:\n    size_gib: 100\n");
    world.check(&format!(
        "error smaller-disks acme/orders.yaml:12 [was 364] the disks of a broker can't shrink from 364 to 100 GiB
         = set `size_gib` to 364 or more; for smaller disks, {NEW}
         held cluster acme/orders: invalid (1), rendered"
    ));
}

#[test]
fn a_fleets_fields_cannot_change_even_when_the_cache_is_lost() {
    let mut world = World::new();
    world.remove("acme/orders.yaml").apply().lose_cache();
    world.edit("acme/base.yaml", "tenancy_mode: Shared", "tenancy_mode: Isolated");
    world.check(
        "error immutable-field acme/base.yaml:12 [was `Shared`, would be `Isolated`] `tenancy_mode` of fleet acme/eu can't \
         change\n= restore `Shared`; to change it, describe a new fleet and create new clusters on it\nheld fleet acme/eu: \
         invalid (1)",
    );
}

#[test]
fn a_storage_class_that_clusters_have_from_their_fleet_cannot_change() {
    let mut world = World::new();
    world.apply();
    world.edit("acme/base.yaml", "max_tenants", "advanced_config:\n  storage_class: fast\nmax_tenants");
    world.check(
        "error inherited-storage-class acme/base.yaml:14 [was absent] `advanced_config.storage_class` of fleet acme/eu can't change while clusters use it
         = cluster acme/orders has no class of its own, and the class of its disks can't change; remove `advanced_config.storage_class`, and set the new class in new clusters
         held fleet acme/eu: invalid (1)",
    );
}

#[test]
fn the_domain_of_a_fleet_stays_while_clusters_have_their_addresses_from_it() {
    let outside = cluster("acme", "orders", 1, "  cluster_access: External\n");
    let refused = |line: u32| {
        format!(
            "error domain-in-use acme/base.yaml:{line} [was `k.acme.com`] `domain` of fleet acme/eu can't change while \
             clusters use it for their addresses\n             = clients outside find cluster acme/orders under \
             `k.acme.com`; restore it, or first set `cluster_access: Internal` on each cluster of the fleet and apply, \
             which closes them to clients outside\n             held fleet acme/eu: invalid (1)"
        )
    };
    let mut world = World::new();
    world.put("acme/other.yaml", "kind: BaseDomain\norganization: acme\ndomain: k2.acme.com\ntls_cert: $*.k2.acme.com\ntls_key: $key\n");
    world.put("acme/orders.yaml", &outside).apply();
    world
        .clone()
        .edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ndomain: k2.acme.com\ntenancy")
        .check(&refused(11));
    world.clone().edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ntenancy").check(&refused(7));

    // If this happened in the same revision, clients would have no time to move.
    let inside = cluster("acme", "orders", 1, "  cluster_access: Internal\n");
    world
        .put("acme/orders.yaml", &inside)
        .clone()
        .edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ntenancy")
        .check(&refused(7));
    world.apply().edit("acme/base.yaml", "\ndomain: k.acme.com\ntenancy", "\ntenancy").check("");
}

#[test]
fn a_gateway_opens_only_when_every_cluster_behind_it_says_so() {
    let private = "  cluster_access: External\n  private_access: true\n";
    let gateway =
        "advanced_config: {exposure: tlsroute, gateway: {class: envoy, private: true}}\nmax_tenants";
    let mut world = World::new();
    world.put("acme/orders.yaml", &cluster("acme", "orders", 1, private));
    world.edit("acme/base.yaml", "max_tenants", gateway).apply();
    world.edit("acme/base.yaml", "private: true", "private: false").clone().check(
        "error gateway-opened acme/base.yaml:13 [was true] the Gateway of fleet acme/eu can't become public while clusters \
         are private\n= clients reach cluster acme/orders through it, which has `private_access: true`; restore `private: \
         true`, or set `private_access: false` in each cluster of the fleet in the same change\nheld fleet acme/eu: \
         invalid (1)",
    );
    world.edit("acme/orders.yaml", "private_access: true", "private_access: false").check("");
}

#[test]
fn spelling_out_the_disk_that_units_give_and_taking_it_away_is_no_change() {
    let mut world = World::new();
    let sized = cluster("acme", "orders", 1, "  storage:\n    size_gib: 364\n");
    world.apply().put("acme/orders.yaml", &sized).check("");
    world.apply().put("acme/orders.yaml", &cluster("acme", "orders", 1, "")).check("");
}
