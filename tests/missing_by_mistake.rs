//! Half-made changes, copies, unread files and what follows: no cluster is deleted by accident.

use crate::mistaken_deletions::{Mistake, deletes_nothing, paths, rename};
use crate::support::{Tree, approval_id};

/// The quickstart, applied without any protection: a fleet `eu` with a base domain and two clusters.
fn quickstart() -> Tree {
    let tree = Tree::example("quickstart");
    for file in ["fleets/eu.yaml", "clusters/orders.yaml", "clusters/sandbox.yaml"] {
        let path = format!("acme/{file}");
        let text = tree.read(&path).replace("deletion_protection: false\n", "");
        tree.write(&path, text + "deletion_protection: false\n");
    }
    tree.run("apply tree --yes").expect(0);
    tree
}

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
const EU: &str = "acme/fleets/eu.yaml";
const DOMAIN: &str = "acme/base-domains/kafka.acme.example.com.yaml";

/// Appends a file to another with an indentation, and removes it: a half-made move of documents into one
/// file.
fn append_indented(tree: &Tree, from: &str, to: &str) {
    let indented: String = tree.read(from).lines().map(|line| format!("  {line}\n")).collect();
    let text = tree.read(to) + "  ---\n" + &indented;
    tree.write(to, text);
    tree.remove(from);
}

#[test]
fn half_of_a_change_deletes_nothing() {
    let mistakes: [(Mistake, &str); 10] = [
        // The fleet's file copied over the cluster's.
        (
            |tree| {
                let fleet = tree.read(EU).replace("identifier: eu", "identifier: foo");
                let lines = fleet.lines().filter(|line| !line.starts_with("domain"));
                tree.write(ORDERS, lines.map(|line| format!("{line}\n")).collect::<String>());
            },
            "fleet acme/foo at acme/clusters/orders.yaml:",
        ),
        // Moved, with the organization mistyped.
        (
            |tree| {
                tree.edit(ORDERS, "organization: acme", "organization: acmee");
                rename(tree, ORDERS, "orders.yaml");
            },
            "cluster acmee/orders at orders.yaml:",
        ),
        // Half of swapping two names, with a typo.
        (
            |tree| {
                tree.edit(SANDBOX, "identifier: sandbox", "identifier: orders");
                tree.edit(ORDERS, "identifier: orders", "identifier: sandboxx");
            },
            "cluster acme/orders was moved to acme/clusters/sandbox.yaml:",
        ),
        // A fleet renamed with one of its clusters, whose file is still to be rewritten.
        (
            |tree| {
                tree.edit(EU, "identifier: eu", "identifier: europe");
                tree.remove(ORDERS);
            },
            "its fleet acme/eu disappeared too",
        ),
        (
            |tree| {
                tree.edit(EU, "infra_type", "infra_typ");
                tree.remove(ORDERS);
            },
            "the error at acme/fleets/eu.yaml:",
        ),
        // Moved, with the identifier mistyped.
        (
            |tree| {
                tree.edit(ORDERS, "identifier: orders", "identifier: order");
                rename(tree, ORDERS, "acme/order.yaml");
            },
            "cluster acme/order at acme/order.yaml:",
        ),
        // Moved into another file with an indentation.
        (|tree| append_indented(tree, ORDERS, DOMAIN), "contains what looks like another document"),
        (|tree| append_indented(tree, ORDERS, EU), "acme/fleets/eu.yaml"),
        // Temporarily unreadable.
        (
            |tree| rename(tree, ORDERS, "acme/clusters/orders.YAML"),
            "its name doesn't end in `.yaml` or `.yml`",
        ),
        // Renamed in two steps, the first of which was never applied.
        (
            |tree| {
                let copy = tree.read(ORDERS).replace("identifier: orders", "identifier: sales");
                tree.write("acme/clusters/sales.yaml", copy);
                tree.remove(ORDERS);
            },
            "cluster acme/sales at acme/clusters/sales.yaml:",
        ),
    ];
    for (mistake, says) in mistakes {
        let tree = quickstart();
        mistake(&tree);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn what_once_looked_like_a_mistake_waits_until_it_is_approved_or_put_back() {
    // The cause of the suspicion is gone in the next round.
    let tree = quickstart();
    let orders = tree.read(ORDERS);
    tree.edit(EU, "infra_type", "infra_typ");
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(1);
    tree.edit(EU, "infra_typ", "infra_type");
    deletes_nothing(&tree, &["the error at acme/fleets/eu.yaml:"]);
    // Restored, then removed on purpose.
    tree.write(ORDERS, orders);
    tree.run("apply tree --yes").expect(0);
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(0);
    assert!(!paths(&tree).iter().any(|path| path.contains("kafka-acme--orders/Kafka")));
}

/// An unreadable file, edits made while it exists, and its repair.
#[test]
fn a_broken_file_in_between_makes_no_removal_clean() {
    let meanwhile: [(Mistake, Mistake); 3] = [
        // An earlier suspicion.
        (|tree| tree.write(ORDERS, ""), |tree| tree.remove(ORDERS)),
        // Removed while the file was broken.
        (|_| {}, |tree| tree.remove(ORDERS)),
        // Replaced by another while the file was broken.
        (
            |_| {},
            |tree| {
                let copy = tree.read(ORDERS).replace("identifier: orders", "identifier: sales");
                tree.write("acme/clusters/sales.yaml", copy);
                tree.remove(ORDERS);
            },
        ),
    ];
    for (before, during) in meanwhile {
        let tree = quickstart();
        before(&tree);
        tree.run("apply tree --yes");
        tree.write("broken.yaml", "kind: [\n");
        during(&tree);
        tree.run("apply tree --yes").says(&["! cluster orders", "broken.yaml"]);
        tree.remove("broken.yaml");
        deletes_nothing(&tree, &["! cluster orders     on hold for approval"]);
    }
}

#[test]
fn what_was_put_back_while_it_was_being_deleted_is_judged_anew() {
    let tree = quickstart();
    let registry = ".streamfleet/state/registry.jsonl";
    let line = |line: &str| match line.contains("Cluster/acme/orders") || line.contains("\"orders\"") {
        true => {
            // With the checksum in front.
            let (_, rest) = line.split_once(',').unwrap();
            let rest = rest.replace("\"deleting\":false", "\"deleting\":true");
            let sum = streamfleet::names::Digest::of(&rest).as_str()[..16].to_owned();
            format!("{{\"sum\":\"{sum}\",{rest}\n")
        }
        false => line.to_owned() + "\n",
    };
    let begun: String = tree.read(registry).lines().map(line).collect();
    assert!(begun.contains("\"deleting\":true"), "{begun}");
    tree.write(registry, begun);
    // It is back, and waits.
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 99");
    tree.run("apply tree --yes");
    tree.write(ORDERS, "");
    deletes_nothing(&tree, &["was emptied"]);
}

#[test]
fn a_file_that_is_no_longer_read_deletes_nothing() {
    let places = [
        "acme/clusters/orders.yaml.bak",
        "acme/clusters/orders.yaml~",
        "acme/clusters/.orders.yaml",
        "acme/clusters/orders",
        "acme/clusters/orders.ymal",
        "acme/clusters/orders,yaml",
        "acme/clusters/.old/orders.yaml",
        "old/orders.txt",
    ];
    for place in places {
        let tree = quickstart();
        rename(&tree, ORDERS, place);
        deletes_nothing(&tree, &[&format!("{place}, which is not read, may contain it")]);
    }
    // A file too large to be searched counts by its name.
    let tree = quickstart();
    let large = tree.read(ORDERS) + &"# more\n".repeat(200_000);
    tree.write("acme/clusters/orders.yaml.bak", large);
    tree.remove(ORDERS);
    deletes_nothing(&tree, &["orders.yaml.bak, which is not read, may contain it"]);
    // A page about specs with an example isn't a spec.
    let tree = quickstart();
    tree.write("README.md", "# Clusters\n```yaml\napiVersion: streamfleet/v1\nkind: Cluster\n```\n");
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(0);
}

#[test]
fn what_is_written_over_moved_or_commented_out_deletes_nothing() {
    let mistakes: [(Mistake, &str); 4] = [
        (
            |tree| rename(tree, SANDBOX, ORDERS),
            "cluster acme/sandbox was moved to acme/clusters/orders.yaml:2, where it was described",
        ),
        (
            |tree| {
                rename(tree, SANDBOX, "acme/sandbox.yaml");
                tree.run("apply tree --yes").expect(0);
                tree.remove(ORDERS);
                tree.remove("acme/sandbox.yaml");
            },
            "2 clusters disappeared at once",
        ),
        (
            |tree| {
                tree.edit("organizations.yaml", "identifier: acme", "identifier: acme\n---\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex");
                let fleet = tree.read(EU).replace("organization: acme", "organization: globex");
                let lines = fleet.lines().filter(|line| !line.starts_with("domain"));
                tree.write("globex/eu.yaml", lines.map(|line| format!("{line}\n")).collect::<String>());
                let cluster = tree.read(ORDERS).replace("organization: acme", "organization: globex");
                tree.write("globex/orders.yaml", cluster.replace("Internal & External", "Internal"));
                tree.remove(ORDERS);
            },
            "cluster globex/orders at globex/orders.yaml:2",
        ),
        (
            // Joined without a separator between the documents, and the reported duplicates removed.
            |tree| {
                let joined = tree.read(SANDBOX) + &tree.read(ORDERS);
                let sandbox = tree.read(SANDBOX);
                tree.write(SANDBOX, joined);
                tree.remove(ORDERS);
                tree.run("apply tree --yes").expect(1);
                tree.write(SANDBOX, sandbox);
            },
            "acme/clusters/sandbox.yaml:2, which can't be read, may contain it",
        ),
    ];
    for (mistake, says) in mistakes {
        let tree = quickstart();
        mistake(&tree);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn a_document_of_which_something_is_left_is_not_removed() {
    for remnant in ["null\n", ""] {
        let tree = quickstart();
        let (orders, sandbox) = (tree.read(ORDERS), tree.read(SANDBOX));
        tree.remove(ORDERS);
        tree.write(SANDBOX, format!("{sandbox}---\n{orders}"));
        tree.run("apply tree --yes").expect(0);
        tree.write(SANDBOX, format!("{sandbox}---\n{remnant}"));
        deletes_nothing(&tree, &["acme/clusters/sandbox.yaml, which contained it, had an empty document"]);
    }
    // Moved, and commented out.
    let tree = quickstart();
    let out: String = tree.read(ORDERS).lines().map(|line| format!("# {line}\n")).collect();
    tree.remove(ORDERS);
    tree.write("acme/clusters/orders-disabled.yaml", out);
    deletes_nothing(&tree, &["acme/clusters/orders-disabled.yaml contained it in a comment"]);
}

#[test]
fn a_fleet_that_is_gone_too_makes_no_removal_clean() {
    let tree = quickstart();
    tree.remove(EU);
    tree.run("apply tree --yes");
    tree.remove(ORDERS);
    deletes_nothing(&tree, &["its fleet acme/eu disappeared too"]);
}

#[test]
fn a_folder_full_of_other_files_hides_no_copy() {
    let tree = quickstart();
    for number in 0..300 {
        tree.write(&format!(".venv/{number}.py"), "pass\n");
    }
    rename(&tree, ORDERS, "acme/clusters/orders.bak");
    deletes_nothing(&tree, &["acme/clusters/orders.bak, which is not read, may contain it"]);
}

#[test]
fn an_approval_is_void_once_the_resource_was_put_back() {
    let tree = quickstart();
    let orders = tree.read(ORDERS);
    tree.write(ORDERS, "");
    let id = approval_id(&tree.run("plan tree").expect(3).out);
    tree.run(&format!("approve {id} tree")).expect(0);
    tree.write(ORDERS, orders);
    tree.run("apply tree --yes").expect(0);
    tree.write(ORDERS, "");
    deletes_nothing(&tree, &["was emptied"]);
}

#[test]
fn a_document_with_mistakes_is_heard_where_it_asks_not_to_be_deleted() {
    for (asks, says) in
        [("deletion_protection: true", "deletion protection is on"), ("suspend: true", "suspend is true")]
    {
        let tree = quickstart();
        let orders = tree.read(ORDERS).replace("deletion_protection: false", asks);
        tree.write(ORDERS, orders.replace("kafka_units: 1", "kafka_units: x"));
        tree.run("apply tree --yes").expect(1);
        tree.remove(ORDERS);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn where_a_document_moved_while_it_waited_is_known() {
    let tree = quickstart();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 99");
    rename(&tree, ORDERS, "acme/clusters/moved.yaml");
    tree.run("apply tree --yes").expect(3);
    tree.write("acme/clusters/moved.yaml", "");
    deletes_nothing(&tree, &["acme/clusters/moved.yaml was emptied"]);
}

#[test]
fn the_last_organization_can_be_removed() {
    let tree = Tree::empty();
    tree.write("organizations.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: acme\n");
    tree.run("apply tree --yes").expect(0);
    tree.remove("organizations.yaml");
    tree.run("apply tree --yes").expect(0).says(&["- organization acme"]);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_folder_of_a_tree_is_no_tree_and_its_output_no_spec() {
    let tree = quickstart();
    tree.run("apply tree/acme --yes").expect(1).says(&[
        "`tree/acme` is a part of the spec tree `",
        "`, which was applied as a whole",
        "to make this part a tree of its own, give it a --state-dir",
    ]);
    tree.run("apply tree --yes --output-dir tree/out").expect(1).says(&[
        "the output folder `tree/out` is inside the spec tree, and its files would be read as specs",
        "choose a folder outside of the tree, or one whose name begins with a dot",
    ]);
}

#[test]
fn the_folder_of_a_fleet_does_not_move() {
    let tree = quickstart();
    tree.write(EU, tree.read(EU) + "advanced_config:\n  path: other\n");
    deletes_nothing(&tree, &["`advanced_config.path` of fleet acme/eu can't change"]);
}
