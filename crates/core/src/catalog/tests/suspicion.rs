//! Absences that are suspicious, and those that come close and are not.

use super::*;
use crate::names::Kind;

/// A fleet of `acme` without a base domain.
const WEST: &str = "\
kind: Fleet
organization: acme
identifier: west
infra_type: directory
tenancy_mode: Shared
max_tenants: 10
max_kafka_units: 10
";

fn identity_provider(name: &str) -> String {
    format!(
        "kind: IdentityProvider\norganization: acme\nidentifier: {name}\nissuer: https://id.example.com\n\
         jwks_uri: https://id.example.com/keys\naudience: kafka\n"
    )
}

/// A world where all of these were applied, too, and where one deletion after another is allowed.
fn applied(files: &[(&str, String)]) -> World {
    let mut world = World::new();
    world.config.policy.cluster_deletions_per_hour = 5;
    world.put("acme/sales.yaml", &cluster("acme", "sales", 1, ""));
    for (path, text) in files {
        world.put(path, text);
    }
    assert!(world.resolve().problems.is_empty(), "{}", describe(&world.resolve()));
    world.apply();
    world
}

#[track_caller]
fn is(world: &World, key: &str, expected: &str) {
    let text = describe(&world.resolve());
    let key = ResourceKey::try_from(key.to_owned()).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(&format!("absent {key}: ")));
    assert_eq!(found.unwrap_or("not absent"), expected, "{text}");
}

const ORDERS: &str = "Cluster/acme/orders";

#[test]
fn only_the_organization_root_exists_without_a_document() {
    let mut world = applied(&[("acme/root.yaml", cluster("acme", "root", 1, ""))]);
    world.put("root.yaml", "kind: Organization\nidentifier: root\n").apply();
    world.remove("acme/root.yaml").remove("root.yaml");
    is(&world, "Organization/root/root", "not absent");
    is(&world, "Cluster/acme/root", "removed");
}

#[test]
fn another_kind_of_the_same_name_at_the_same_place_is_a_rename() {
    let mut world = applied(&[]);
    world.put("acme/orders.yaml", &identity_provider("orders"));
    let text = describe(&world.resolve());
    let refused = "error renamed acme/orders.yaml:1 [`acme/orders` was here] cluster acme/orders can't become identity \
                   provider acme/orders\n";
    assert!(text.starts_with(refused), "{text}");
    is(&world, ORDERS, "renamed to identity provider acme/orders");
    // Of another name, it is something else.
    let mut world = applied(&[]);
    world.put("acme/orders.yaml", &identity_provider("other"));
    let why = "suspicious: identity provider acme/other at acme/orders.yaml:1, which isn't applied yet, may be its new name";
    is(&world, ORDERS, why);
}

#[test]
fn an_organization_that_is_renamed_is_told_where_its_name_stands() {
    let mut world = applied(&[("other.yaml", "kind: Organization\nidentifier: other\n".to_owned())]);
    world.put("other.yaml", "kind: Organization\nidentifier: another\n");
    let text = describe(&world.resolve());
    let refused =
        "error renamed other.yaml:2 [`other` was here] organization other can't be renamed to `another`\n";
    assert!(text.starts_with(refused), "{text}");
}

#[test]
fn a_refused_document_that_is_alike_may_be_its_own() {
    let invalid = |kind: &str, organization: &str, name: &str| {
        format!("INVALID\nkind: {kind}\norganization: {organization}\nidentifier: {name}\n")
    };
    let alike = "suspicious: globex/bad.yaml:1, which was refused, may be the same resource";
    for (kind, organization, name, expected) in [
        ("Cluster", "globex", "orders", alike),
        ("IdentityProvider", "acme", "orders", alike),
        ("IdentityProvider", "globex", "orders", "removed"),
    ] {
        let mut world = applied(&[]);
        world.remove("acme/orders.yaml").put("globex/bad.yaml", &invalid(kind, organization, name));
        is(&world, ORDERS, expected);
    }
}

#[test]
fn a_new_cluster_of_another_organization_counts_by_its_name_or_what_it_says() {
    let of_globex = |name: &str, units: u32| cluster("globex", name, units, "").replace("eu", "us");
    let may_be = |new: &str| {
        format!("suspicious: {new} at globex/new.yaml:1, which isn't applied yet, may be its new name")
    };
    for (text, expected) in [
        (of_globex("orders", 2), may_be("cluster globex/orders")),
        (of_globex("ledger", 1), may_be("cluster globex/ledger")),
        (of_globex("ledger", 2), "removed".to_owned()),
    ] {
        let mut world = applied(&[]);
        world.remove("acme/orders.yaml").put("globex/new.yaml", &text);
        is(&world, ORDERS, &expected);
    }
    // An unknown value may be the same.
    let mut world = applied(&[]);
    world.remove("acme/orders.yaml").put("globex/new.yaml", &of_globex("ledger", 2)).lose_cache();
    is(&world, ORDERS, &may_be("cluster globex/ledger"));
    // Another kind is something else.
    let mut world = applied(&[]);
    world.remove("acme/orders.yaml").put("acme/new.yaml", &identity_provider("new"));
    is(&world, ORDERS, "removed");
}

#[test]
fn as_many_as_the_policy_allows_may_go_at_once() {
    let third = || [("acme/stock.yaml", cluster("acme", "stock", 1, ""))];
    let mut world = applied(&third());
    world.remove("acme/orders.yaml").remove("acme/sales.yaml");
    for (allowed, expected) in
        [(5, "removed"), (2, "removed"), (1, "suspicious: 2 clusters disappeared at once")]
    {
        world.config.policy.cluster_deletions_per_hour = allowed;
        is(&world, ORDERS, expected);
    }
    // One alone is a removal like any other.
    let mut world = applied(&third());
    world.config.policy.cluster_deletions_per_hour = 0;
    world.remove("acme/orders.yaml");
    is(&world, ORDERS, "removed");
}

#[test]
fn only_clusters_whose_deletion_has_not_begun_count_as_gone_at_once() {
    let others =
        [("acme/sso.yaml", identity_provider("sso")), ("acme/stock.yaml", cluster("acme", "stock", 1, ""))];
    let mut world = applied(&others);
    world.config.policy.cluster_deletions_per_hour = 1;
    world.remove("acme/orders.yaml").remove("acme/sso.yaml").remove("acme/sales.yaml");
    let sales = ResourceKey::at(Kind::Cluster, "acme/sales").unwrap();
    world.recorded.resources.get_mut(&sales).unwrap().durable.deleting = true;
    is(&world, ORDERS, "removed");
    is(&world, "IdentityProvider/acme/sso", "removed");
    // Nor do those that are there.
    let mut world = applied(&others);
    world.config.policy.cluster_deletions_per_hour = 1;
    world.remove("acme/orders.yaml");
    is(&world, ORDERS, "removed");
}

#[test]
fn everything_of_an_organization_or_a_fleet_is_not_removed_at_once() {
    let mut world = applied(&[]);
    world.remove("acme/orders.yaml").remove("acme/sales.yaml");
    world.edit("acme/base.yaml", &fleet_of(&world, "acme/base.yaml"), "");
    is(&world, ORDERS, "suspicious: all resources of organization acme disappeared at once");

    let west = || {
        let mut world = applied(&[
            ("acme/west.yaml", WEST.to_owned()),
            ("acme/left.yaml", cluster("acme", "left", 1, "").replace(": eu", ": west")),
        ]);
        world.edit("acme/base.yaml", &fleet_of(&world, "acme/base.yaml"), "");
        world
    };
    let mut world = west();
    world.remove("acme/orders.yaml").remove("acme/sales.yaml");
    is(&world, ORDERS, "suspicious: all resources of fleet acme/eu disappeared at once");
    is(&world, "Fleet/acme/eu", "suspicious: all resources of fleet acme/eu disappeared at once");
    // Where another cluster is still on it, only the cluster is suspicious for that.
    let mut world = west();
    world.remove("acme/orders.yaml");
    is(&world, ORDERS, "suspicious: its fleet acme/eu disappeared too");
    is(&world, "Fleet/acme/eu", "suspicious: the error at acme/sales.yaml:3 may concern it");
}

/// The document of the fleet in a file of several.
fn fleet_of(world: &World, path: &str) -> String {
    let fleet = world.files[path].split("---\n").find(|part| part.starts_with("kind: Fleet"));
    format!("{}---\n", fleet.unwrap())
}

#[test]
fn a_folder_is_not_removed_as_a_whole() {
    let files = [
        ("acme/more/a.yaml", cluster("acme", "a", 1, "")),
        ("acme/more/b.yaml", cluster("acme", "b", 1, "")),
    ];
    let a = "Cluster/acme/a";
    let mut world = applied(&files);
    world.remove("acme/more/a.yaml").remove("acme/more/b.yaml");
    is(&world, a, "suspicious: the whole folder acme/more disappeared");
    // A file is left, or came: the folder is still there.
    world.put("acme/more/sso.yaml", &identity_provider("sso"));
    is(&world, a, "removed");
    // Another folder of a longer name is another one.
    let mut world = applied(&files);
    world.remove("acme/more/a.yaml").remove("acme/more/b.yaml");
    world.put("acme/moreover/sso.yaml", &identity_provider("sso"));
    is(&world, a, "suspicious: the whole folder acme/more disappeared");
    // A single file is a file, and no folder.
    let mut world = applied(&files[..1]);
    world.remove("acme/more/a.yaml");
    is(&world, a, "removed");
}
