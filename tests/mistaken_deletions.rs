//! Mistakes that must not delete: each changes a tree applied without any protection, and nothing may be
//! deleted.

use std::fs;

use crate::support::{Tree, approval_id};

const ACME: &str = "acme/clusters/events.yaml";

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

pub fn rename(tree: &Tree, from: &str, to: &str) {
    let to = tree.path().join(to);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(tree.path().join(from), to).unwrap();
}

fn lose_cache(tree: &Tree) {
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
}

pub fn paths(tree: &Tree) -> Vec<String> {
    tree.output().into_iter().map(|(path, _)| path).collect()
}

/// Applies three times, since a mistake may take effect a round later, and nothing may be deleted.
#[track_caller]
pub fn deletes_nothing(tree: &Tree, says: &[&str]) {
    let before = paths(tree);
    for _ in 0..3 {
        let run = tree.run("apply tree --yes").says(says);
        assert_ne!(run.code, 0, "{}{}", run.out, run.err);
        let after = paths(tree);
        let gone: Vec<&String> = before.iter().filter(|path| !after.contains(path)).collect();
        assert!(gone.is_empty(), "{gone:?} went\n{}{}", run.out, run.err);
    }
}

pub type Mistake = fn(&Tree);

#[test]
fn changing_what_a_document_names_deletes_nothing() {
    let mistakes: [(Mistake, &str); 9] = [
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
            "all resources of organization acme disappeared at once",
        ),
        (
            |tree| rename(tree, "acme", ".acme"),
            ".acme/clusters/events.yaml, which is not read, may contain it",
        ),
        (
            |tree| fs::remove_dir_all(tree.path().join("acme")).unwrap(),
            "all resources of organization acme disappeared at once",
        ),
        (
            |tree| {
                rename(tree, ACME, "acme/clusters/events.yaml.bak");
                rename(tree, "acme/fleets/main.yaml", "acme/fleets/main.YAML.bak");
            },
            "acme/clusters/events.yaml.bak, which is not read, may contain it",
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
    fs::remove_dir_all(tree.path().join("acme/clusters")).unwrap();
    deletes_nothing(&tree, &["the whole folder acme/clusters disappeared"]);
}

#[test]
fn what_is_approved_goes_on() {
    let tree = applied();
    rename(&tree, "acme", ".acme");
    let plan = tree.run("plan tree").expect(3);
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes");
    assert!(!paths(&tree).iter().any(|path| path.contains("acme/main/kafka-acme--events/")));
    // The data is retained, and so are its namespace and its fleet.
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
        // The remedy.
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
        deletes_nothing(&tree, &["deletion protection is on"]);
    }
}

#[test]
fn a_cluster_that_moves_to_another_organization_under_another_name_is_not_deleted() {
    let tree = applied();
    tree.edit(ACME, "organization: acme", "organization: globex");
    tree.edit(ACME, "identifier: events", "identifier: event");
    tree.edit("organizations.yaml", "  clusters: 2\n  kafka_units: 2", "  clusters: 9\n  kafka_units: 9");
    rename(&tree, ACME, "globex/clusters/event.yaml");
    deletes_nothing(
        &tree,
        &[
            "cluster globex/event at globex/clusters/event.yaml:",
            "which isn't applied yet, may be its \
         new name",
        ],
    );
}
