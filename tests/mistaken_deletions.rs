//! Mistakes that must not delete: each changes a tree that was applied without any protection, and nothing may go.

use std::fs;

use crate::support::{Tree, approval_id};

const ACME: &str = "acme/clusters/events.yaml";

/// Two organizations with a cluster each, none of which is protected.
fn applied() -> Tree {
    let tree = Tree::example("two-organizations");
    for organization in ["acme", "globex"] {
        for file in ["fleets/main.yaml", "clusters/events.yaml"] {
            let path = format!("{organization}/{file}");
            let text = tree.read(&path) + "deletion_protection: false\n";
            tree.write(&path, text);
        }
    }
    tree.run("apply tree --yes").expect(0);
    tree
}

fn another_cluster(tree: &Tree, name: &str) -> String {
    tree.read(ACME)
        .replace("identifier: events", &format!("identifier: {name}"))
        .replace("version: 4.3.1\n", "version: 4.3.1\n  profile: dev\n")
        .replace("  number_of_zones: \"3\"\n", "")
}

fn rename(tree: &Tree, from: &str, to: &str) {
    let to = tree.path().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(tree.path().join(from), to).unwrap();
}

fn lose_cache(tree: &Tree) {
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.output().into_iter().map(|(path, _)| path).collect()
}

/// Applies the tree three times, since a mistake that only waits for another round is no better, and nothing may go.
#[track_caller]
fn deletes_nothing(tree: &Tree, says: &[&str]) {
    let before = paths(tree);
    for _ in 0..3 {
        let run = tree.run("apply tree --yes").says(says);
        assert_ne!(run.code, 0, "{}{}", run.out, run.err);
        let after = paths(tree);
        let gone: Vec<&String> = before.iter().filter(|path| !after.contains(path)).collect();
        assert!(gone.is_empty(), "{gone:?} went\n{}{}", run.out, run.err);
    }
}

/// A way to change a tree.
type Mistake = fn(&Tree);

#[test]
fn changing_what_a_document_names_deletes_nothing() {
    let mistakes: [(Mistake, &str); 8] = [
        (|tree| tree.edit(ACME, "organization: acme", "organization: globex"), "acme/clusters/events.yaml"),
        (|tree| tree.edit(ACME, "kind: Cluster", "kind: Fleet"), "acme/clusters/events.yaml"),
        (|tree| rename(tree, ACME, "globex/clusters/events2.yaml"), "globex/clusters/events2.yaml"),
        (
            |tree| {
                rename(tree, "acme", "moved");
                rename(tree, "moved", "globex/acme");
            },
            "globex/acme/clusters/events.yaml",
        ),
        (
            |tree| {
                for file in ["organizations.yaml", "acme/fleets/main.yaml", ACME] {
                    tree.write(file, tree.read(file).replace("acme", "initech"));
                }
            },
            "organization acme",
        ),
        (
            |tree| {
                for file in ["organizations.yaml", "acme/fleets/main.yaml", ACME] {
                    tree.write(file, tree.read(file).replace("acme", "initech"));
                }
                rename(tree, "acme", "initech");
            },
            "everything of organization acme was gone at once",
        ),
        (|tree| rename(tree, "acme", ".acme"), "everything of organization acme was gone at once"),
        (
            |tree| {
                rename(tree, ACME, "acme/clusters/events.yaml.bak");
                rename(tree, "acme/fleets/main.yaml", "acme/fleets/main.YAML.bak");
            },
            "acme/clusters/events.yaml.bak, which is not read, may be its file",
        ),
    ];
    for (mistake, says) in mistakes {
        let tree = applied();
        mistake(&tree);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn a_folder_that_is_gone_as_a_whole_is_taken_for_a_mistake() {
    let tree = applied();
    let second = another_cluster(&tree, "second");
    tree.write("acme/clusters/second.yaml", second);
    tree.run("apply tree --yes").expect(0);
    rename(&tree, "acme/clusters", "acme/.clusters");
    deletes_nothing(&tree, &["the folder acme/clusters was gone as a whole"]);
}

#[test]
fn what_is_approved_goes_on() {
    let tree = applied();
    rename(&tree, "acme", ".acme");
    let plan = tree.run("plan tree").expect(3);
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes");
    assert!(!paths(&tree).iter().any(|path| path.contains("acme/main/kafka-acme--events/")));
    // The data was to be retained, so its namespace is, and with it the fleet that it is on.
    tree.run("apply tree --yes").expect(3).says(&["Namespace kafka-acme--events is kept for its data"]);
}

#[test]
fn mistakes_are_seen_without_the_cache() {
    let mistakes: [(Mistake, &str); 2] = [
        (|tree| tree.edit(ACME, "identifier: events", "identifier: sales"), "can't be renamed"),
        (|tree| tree.write(ACME, ""), "was emptied"),
    ];
    for (mistake, says) in mistakes {
        let tree = applied();
        lose_cache(&tree);
        mistake(&tree);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn removing_one_document_and_renaming_another_of_a_file_deletes_neither() {
    let tree = applied();
    let documents = |names: &[&str]| {
        let documents: Vec<String> = names.iter().map(|name| another_cluster(&tree, name)).collect();
        documents.join("---\n")
    };
    tree.edit("acme/fleets/main.yaml", "max_tenants: 3", "max_tenants: 9");
    tree.edit("organizations.yaml", "clusters: 3", "clusters: 9");
    let (three, two) = (documents(&["a", "b", "c"]), documents(&["b2", "c"]));
    tree.write("acme/clusters/more.yaml", three);
    tree.run("apply tree --yes").expect(0);
    tree.write("acme/clusters/more.yaml", two);
    deletes_nothing(&tree, &["cluster acme/a", "cluster acme/b"]);
}

#[test]
fn what_is_suspended_is_not_deleted() {
    for file in ["acme/fleets/main.yaml", ACME] {
        let tree = applied();
        let text = tree.read(file);
        tree.write(file, format!("{text}suspend: true\n"));
        tree.run("apply tree --yes");
        tree.remove(ACME);
        deletes_nothing(&tree, &["suspend is true on", "suspend: false"]);
        lose_cache(&tree);
        deletes_nothing(&tree, &["suspend is true on", "suspend: false"]);
        // The way out.
        tree.write(
            "acme/fleets/main.yaml",
            tree.read("acme/fleets/main.yaml").replace("suspend: true\n", ""),
        );
        if file == ACME {
            tree.write(ACME, text);
            tree.run("apply tree --yes").expect(0);
            tree.remove(ACME);
        }
        tree.run("apply tree --yes").expect(0);
        assert!(!paths(&tree).iter().any(|path| path.contains("acme/main/kafka-acme--events/")));
    }
}

#[test]
fn protection_that_is_turned_on_holds_whatever_else_waits() {
    for (from, to) in
        [("kafka_units: 1", "kafka_units: 60"), ("infrastructure: main", "infrastructure: other")]
    {
        let tree = applied();
        tree.edit(ACME, "deletion_protection: false", "deletion_protection: true");
        tree.edit(ACME, from, to);
        tree.run("apply tree --yes");
        tree.remove(ACME);
        deletes_nothing(&tree, &["deletion_protection is on"]);
    }
}

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

/// Appends a file to another with an indentation, and removes it: half of moving documents into one file.
fn append_indented(tree: &Tree, from: &str, to: &str) {
    let indented: String = tree.read(from).lines().map(|line| format!("  {line}\n")).collect();
    let text = tree.read(to) + "  ---\n" + &indented;
    tree.write(to, text);
    tree.remove(from);
}

#[test]
fn half_of_a_change_deletes_nothing() {
    let mistakes: [(Mistake, &str); 12] = [
        // The fleet's file copied over the cluster's.
        (
            |tree| {
                let fleet = tree.read(EU).replace("identifier: eu", "identifier: foo");
                let lines = fleet.lines().filter(|line| !line.starts_with("domain"));
                tree.write(ORDERS, lines.map(|line| format!("{line}\n")).collect::<String>());
            },
            "fleet acme/foo at acme/clusters/orders.yaml:",
        ),
        // Moved, and the organization mistyped.
        (
            |tree| {
                tree.edit(ORDERS, "organization: acme", "organization: acmee");
                rename(tree, ORDERS, "orders.yaml");
            },
            "cluster acmee/orders at orders.yaml:",
        ),
        // Half a swap of two names, and that mistyped.
        (
            |tree| {
                tree.edit(SANDBOX, "identifier: sandbox", "identifier: orders");
                tree.edit(ORDERS, "identifier: orders", "identifier: sandboxx");
            },
            "cluster acme/sandboxx at acme/clusters/orders.yaml:",
        ),
        // A fleet renamed with one of its clusters, whose file is to be written anew.
        (
            |tree| {
                tree.edit(EU, "identifier: eu", "identifier: europe");
                tree.remove(ORDERS);
            },
            "the error at acme/fleets/eu.yaml:",
        ),
        (
            |tree| {
                tree.edit(EU, "infra_type", "infra_typ");
                tree.remove(ORDERS);
            },
            "the error at acme/fleets/eu.yaml:",
        ),
        // Moved, and the identifier mistyped.
        (
            |tree| {
                tree.edit(ORDERS, "identifier: orders", "identifier: order");
                rename(tree, ORDERS, "acme/order.yaml");
            },
            "cluster acme/order at acme/order.yaml:",
        ),
        // Moved into another file with an indentation.
        (|tree| append_indented(tree, ORDERS, DOMAIN), "holds what looks like a document of its own"),
        (|tree| append_indented(tree, ORDERS, EU), "acme/fleets/eu.yaml"),
        // Not to be read for now.
        (
            |tree| rename(tree, ORDERS, "acme/clusters/orders.yaml.bak"),
            "orders.yaml.bak, which is not read, may be",
        ),
        (
            |tree| rename(tree, ORDERS, "acme/clusters/.orders.yaml"),
            ".orders.yaml, which is not read, may be",
        ),
        (
            |tree| rename(tree, ORDERS, "acme/clusters/orders.YAML"),
            "its name doesn't end in `.yaml` or `.yml`",
        ),
        // Renamed in two steps of which the first was never applied.
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
fn a_cluster_that_moves_to_another_organization_under_another_name_is_not_deleted() {
    let tree = applied();
    tree.edit(ACME, "organization: acme", "organization: globex");
    tree.edit(ACME, "identifier: events", "identifier: event");
    tree.edit("organizations.yaml", "  clusters: 2\n  kafka_units: 2", "  clusters: 9\n  kafka_units: 9");
    rename(&tree, ACME, "globex/clusters/event.yaml");
    deletes_nothing(&tree, &["cluster globex/event at globex/clusters/event.yaml:", "may be what it became"]);
}

#[test]
fn what_once_looked_like_a_mistake_waits_until_it_is_approved_or_put_back() {
    // What made it look so is gone in the next round.
    let tree = quickstart();
    let orders = tree.read(ORDERS);
    tree.edit(EU, "infra_type", "infra_typ");
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(1);
    tree.edit(EU, "infra_typ", "infra_type");
    deletes_nothing(&tree, &["the error at acme/fleets/eu.yaml:"]);
    // Put back, and removed in earnest.
    tree.write(ORDERS, orders);
    tree.run("apply tree --yes").expect(0);
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(0);
    assert!(!paths(&tree).iter().any(|path| path.contains("kafka-acme--orders/Kafka")));
}

/// A file that can't be read, and what a person does while it is there; then it is mended.
#[test]
fn a_broken_file_in_between_makes_no_removal_clean() {
    let meanwhile: [(Mistake, Mistake); 3] = [
        // Something looked like a mistake before.
        (|tree| tree.write(ORDERS, ""), |tree| tree.remove(ORDERS)),
        // It went while the file was broken.
        (|_| {}, |tree| tree.remove(ORDERS)),
        // Another took its place while the file was broken.
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
        deletes_nothing(&tree, &["! cluster orders     waiting: approval"]);
    }
}

#[test]
fn what_was_put_back_while_it_was_being_deleted_is_judged_anew() {
    let tree = quickstart();
    let registry = ".streamfleet/state/registry.jsonl";
    let line = |line: &str| match line.contains("Cluster/acme/orders") || line.contains("\"orders\"") {
        true => line.replace("\"deleting\":false", "\"deleting\":true") + "\n",
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
