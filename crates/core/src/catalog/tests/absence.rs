use super::*;
use crate::names::Kind;

fn applied() -> World {
    let mut world = World::new();
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.apply();
    world
}

#[test]
fn a_removed_file_is_a_removed_resource() {
    applied().remove("acme/orders.yaml").check("absent cluster acme/orders: removed");
}

#[test]
fn what_an_organizations_folder_hides_concerns_that_organization_only() {
    let mut world = applied();
    world.remove("acme/orders.yaml").remove("globex/stock.yaml").put("acme/bad.yaml", "UNREADABLE\n");
    world.check(
        "held cluster acme/orders: unreadable acme/bad.yaml:1, rendered
         absent cluster acme/orders: unknown because of acme/bad.yaml:1
         absent cluster globex/stock: removed",
    );
}

#[test]
fn what_an_administrators_file_hides_concerns_everyone() {
    for path in ["bad.yaml", "platform/bad.yaml"] {
        let mut world = applied();
        world.remove("acme/orders.yaml").remove("globex/stock.yaml").put(path, "UNREADABLE\n");
        world.check(&format!(
            "held cluster acme/orders: unreadable {path}:1, rendered
             held cluster globex/stock: unreadable {path}:1, rendered
             absent cluster acme/orders: unknown because of {path}:1
             absent cluster globex/stock: unknown because of {path}:1"
        ));
    }
}

#[test]
fn an_error_where_an_organizations_documents_may_stand_makes_its_removals_suspicious() {
    for (path, organization, suspicious) in [
        ("acme/more.yaml", "acme", true),
        ("globex/more.yaml", "globex", false),
        ("platform/more.yaml", "globex", true),
    ] {
        let mut world = applied();
        let fleet = format!(
            "kind: Fleet\norganization: {organization}\nidentifier: more\ninfra_type: directory\n\
             domain: nowhere.example.com\ntenancy_mode: Shared\nmax_tenants: 10\nmax_kafka_units: 10\n"
        );
        world.remove("acme/orders.yaml").put(path, &fleet);
        let absence = &world.resolve().absent[&"Cluster/acme/orders".to_owned().try_into().unwrap()];
        let why = format!("the error at {path}:5 may concern it");
        let expected = if suspicious { Absence::Suspicious { why } } else { Absence::Removed };
        assert_eq!(*absence, expected, "{path}");
    }
}

#[test]
fn an_unreadable_file_is_named_where_a_reference_is_missing() {
    let mut world = World::new();
    world.remove("acme/base.yaml").put("acme/bad.yaml", "UNREADABLE\n");
    world.check(
        "error dangling-reference acme/orders.yaml:3 [no such fleet] organization `acme` has no fleet `eu`
         = organization `acme` has no fleet yet; describe `eu` first; acme/bad.yaml:1 can't be read and may contain it
         held cluster acme/orders: invalid (1)",
    );
    // A held fleet stays as it was applied, and so do its clusters.
    let mut world = applied();
    world.remove("acme/base.yaml").put("acme/bad.yaml", "UNREADABLE\n");
    let catalog = world.resolve();
    assert!(catalog.problems.is_empty() && catalog.clusters.len() == 2 && catalog.fleets.len() == 2);
}

#[test]
fn an_emptied_file_an_empty_tree_and_another_tree_are_suspicious() {
    let suspicious = |why: &str| {
        format!("held cluster acme/orders: absent, rendered\nabsent cluster acme/orders: suspicious: {why}")
    };
    let mut world = applied();
    world.put("acme/orders.yaml", "").check(&suspicious("acme/orders.yaml was emptied"));
    // Without the path in the record, any empty file is suspicious.
    world.lose_cache().check("absent cluster acme/orders: suspicious: acme/orders.yaml was emptied");

    let mut world = applied();
    world.source = "/other".to_owned();
    world.remove("acme/orders.yaml");
    world.check(&suspicious("the spec tree was /specs before, and /other when the spec disappeared"));

    let mut world = applied();
    (world.git, world.rewrote) = (true, Some("c1".to_owned()));
    world.config.secrets.allow_plain_in_git = true;
    world.remove("acme/orders.yaml");
    world
        .check(&suspicious("the branch was rewritten and no longer had commit c1, which was applied before"));

    let mut world = applied();
    world.files.clear();
    let catalog = world.resolve();
    let why = "the spec tree had no documents at all".to_owned();
    assert!(catalog.absent.values().all(|absence| *absence == Absence::Suspicious { why: why.clone() }));
    assert_eq!((catalog.absent.len(), catalog.clusters.len()), (world.recorded.resources.len(), 2));
}

#[test]
fn what_a_call_removed_is_missing_by_no_mistake() {
    let orders = || ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders");
    let removed = || {
        let mut world = applied();
        world.recorded.removed.insert(orders());
        world
    };
    let is =
        |world: &World, expected: &Absence| assert_eq!(world.resolve().absent.get(&orders()), Some(expected));
    for (path, text) in [
        ("acme/orders.yaml", ""),
        ("acme/orders.yaml", cluster("acme", "sales", 1, "").as_str()),
        ("acme/bad.yaml", "INVALID\nkind: Cluster\norganization: acme\nidentifier: bad\n"),
    ] {
        let mut world = removed();
        world.remove("acme/orders.yaml").put(path, text);
        is(&world, &Absence::Removed);
        world.recorded.removed.clear();
        assert_ne!(world.resolve().absent.get(&orders()), Some(&Absence::Removed), "{path}");
    }
    // An unreadable file may still contain it, and so may another tree.
    let mut world = removed();
    world.remove("acme/orders.yaml").put("acme/bad.yaml", "UNREADABLE\n");
    assert!(matches!(world.resolve().absent.get(&orders()), Some(Absence::Unknown { .. })));
    let mut world = removed();
    world.source = "/other".to_owned();
    world.remove("acme/orders.yaml");
    assert!(matches!(world.resolve().absent.get(&orders()), Some(Absence::Suspicious { .. })));
    // Describing it again cancels the removal.
    assert_eq!(removed().resolve().absent.get(&orders()), None);
}

#[test]
fn a_rename_is_refused_on_both_sides() {
    let refused = |line: u32, held: &str| {
        format!(
            "error renamed acme/orders.yaml:{line} [`acme/orders` was here] cluster acme/orders can't be renamed to \
             `acme/sales`\n             = restore `acme/orders`, which stays as it was applied; to replace it, \
             describe the new cluster in a file of its own, move its data there with MirrorMaker 2, then remove the \
             old one\n       {held}\n             held cluster acme/sales: invalid (1)\n             absent cluster \
             acme/orders: renamed to cluster acme/sales"
        )
    };
    let held = "held cluster acme/orders: absent, rendered";
    let mut world = applied();
    world.edit("acme/orders.yaml", "identifier: orders", "identifier: sales").check(&refused(4, held));

    // At the same position among several documents, after a comment that moves the lines.
    let two =
        |first: &str| format!("{}---\n{}", cluster("acme", first, 1, ""), cluster("acme", "other", 1, ""));
    let mut world = applied();
    world.put("acme/orders.yaml", &two("orders")).apply();
    world.put("acme/orders.yaml", &format!("# moved\n{}", two("sales"))).check(&refused(5, held));
    // In a new file it is either another cluster, or the same one with a new name.
    world.put("acme/orders.yaml", &cluster("acme", "other", 1, ""));
    world.put("acme/sales.yaml", &cluster("acme", "sales", 1, ""));
    world.check(&format!(
        "{held}
         absent cluster acme/orders: suspicious: cluster acme/sales at acme/sales.yaml:1, which isn't applied yet, may be its new name"
    ));
    // If the new one is applied before the old one is removed, it is no rename.
    world.put("acme/orders.yaml", &two("orders")).apply();
    world.put("acme/orders.yaml", &cluster("acme", "other", 1, ""));
    world.check("absent cluster acme/orders: removed");
}

#[test]
fn a_rename_to_a_document_with_mistakes_deletes_nothing() {
    let mut world = applied();
    world.put("acme/orders.yaml", "INVALID\nkind: Cluster\norganization: acme\nidentifier: sales\n");
    world.check(
        "held cluster acme/orders: absent, rendered
         absent cluster acme/orders: renamed to cluster acme/sales",
    );
}

#[test]
fn an_invalid_document_holds_what_it_names() {
    let mut world = applied();
    world.put("acme/orders.yaml", "INVALID\nkind: Cluster\norganization: acme\nidentifier: orders\n");
    world.check("held cluster acme/orders: invalid (1), rendered");
    // Even without a recorded spec, its objects must not count as abandoned.
    world.lose_cache().check("absent cluster acme/orders: unknown because of acme/orders.yaml:1");
}

#[test]
fn parents_that_go_while_something_refers_to_them_are_missed() {
    let mut world = applied();
    world.edit("organizations.yaml", "kind: Organization\nidentifier: globex\ndomains: [globex.com]\n", "");
    let text = describe(&world.resolve());
    assert_eq!(text.matches("error unknown-organization globex/").count(), 5, "{text}");
    assert!(text.contains("held cluster globex/stock: invalid (1), rendered"), "{text}");
    assert!(text.contains("absent organization globex: removed"), "{text}");
    assert!(!text.contains("acme"), "{text}");
}

#[test]
fn a_rename_is_refused_where_the_name_stands() {
    let hint = |old: &str, noun: &str| {
        format!(
            "= restore `{old}`, which stays as it was applied; to replace it, describe the new {noun} in a file of its \
             own, change all references to it, then remove the old one"
        )
    };
    let mut world = applied();
    world.edit("acme/base.yaml", "domain: k.acme.com", "domain: new.acme.com");
    world.edit("acme/base.yaml", "$*.k.acme.com", "$*.new.acme.com");
    world.check(&format!(
        "error renamed acme/base.yaml:3 [`acme/k.acme.com` was here] base domain acme/k.acme.com can't be renamed to \
         `acme/new.acme.com`\n         {}\n         held base domain acme/k.acme.com: absent\n         held base domain \
         acme/new.acme.com: invalid (1)\n         absent base domain acme/k.acme.com: renamed to base domain \
         acme/new.acme.com",
        hint("acme/k.acme.com", "base domain")
    ));
    let mut world = World::new();
    world.put("stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us")).apply();
    world.put("stock.yaml", &cluster("acme", "stock", 1, ""));
    let text = describe(&world.resolve());
    assert!(
        text.starts_with(
            "error renamed stock.yaml:2 [`globex/stock` was here] cluster globex/stock can't be renamed to `acme/stock`"
        ),
        "{text}"
    );
}

#[test]
fn what_another_organization_is_still_to_approve_holds_nobody_up() {
    let mut world = applied();
    world.put("acme/sales.yaml", &cluster("acme", "sales", 1, ""));
    world.apply();
    world.remove("acme/orders.yaml").remove("globex/stock.yaml");
    let at_once = "clusters of several organizations disappeared at once";
    world.check(&format!(
        "held cluster acme/orders: absent, rendered
         held cluster globex/stock: absent, rendered
         absent cluster acme/orders: suspicious: {at_once}
         absent cluster globex/stock: suspicious: {at_once}"
    ));
    // In a later round, the other organization's absence is no longer new and doesn't count.
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    let orders = ResourceKey::at(Kind::Cluster, "acme/orders").unwrap();
    world.recorded.resources.get_mut(&orders).unwrap().durable.suspicion =
        Some("it was seen before".to_owned());
    world.remove("globex/stock.yaml");
    world.check(&format!(
        "held cluster acme/orders: absent, rendered
         absent cluster acme/orders: suspicious: {at_once}
         absent cluster globex/stock: removed"
    ));
}
