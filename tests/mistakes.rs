//! What a person reads who made a mistake.

use crate::support::Tree;

#[test]
fn ten_mistakes_are_ten_problems_in_one_run() {
    let tree = Tree::example("quickstart");
    // 1 unknown key, 2 wrong type, 3 out of range, 4 unknown enum value, all in one document.
    tree.edit(
        "acme/clusters/orders.yaml",
        "kafka_units: 1",
        "kafka_unit: 1\nkafka_units: two\nsuspend: maybe",
    );
    tree.edit(
        "acme/clusters/orders.yaml",
        "cluster_access: Internal & External",
        "cluster_access: Everywhere",
    );
    // 5 a dangling reference.
    tree.edit("acme/clusters/sandbox.yaml", "infrastructure: eu", "infrastructure: ue");
    // 6 a duplicate key, 7 a bound.
    tree.edit("acme/fleets/eu.yaml", "max_tenants: 5", "max_tenants: 0\nmax_kafka_units: 9");
    // 8 a kind that does not exist.
    tree.write("acme/extra.yaml", "apiVersion: streamfleet/v1\nkind: Topic\nidentifier: t\n");
    // 9 broken YAML.
    tree.write("acme/broken.yaml", "apiVersion: streamfleet/v1\nkind: \"Cluster\n");
    // 10 a name that tries to be a path.
    tree.write("evil.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: ../../etc\n");
    let run = tree.run("validate tree").expect(1);
    assert_eq!(run.err.matches("error: ").count(), 10, "{}", run.err);
    insta::assert_snapshot!("ten_mistakes", format!("{}{}", run.err, run.out));
}

#[test]
fn a_tree_that_is_not_there_is_said_so() {
    let tree = Tree::empty();
    tree.run("plan nowhere").expect(1).says(&[
        "could not open the spec tree `nowhere`",
        "No such file or directory",
        "streamfleet init DIR",
    ]);
    tree.write("file.yaml", "a: 1\n");
    tree.run("plan tree/file.yaml").expect(1).says(&["the spec tree `tree/file.yaml` is not a folder"]);
}

#[test]
fn an_empty_tree_has_nothing_to_do() {
    Tree::empty().run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_config_file_with_a_mistake_is_refused() {
    let tree = Tree::empty();
    tree.write("../config.toml", "[policy]\napproval_hour = 3\n");
    tree.run("plan tree --config config.toml").expect(1).says(&["config.toml", "approval_hour", "line 2"]);
    tree.run("plan tree --config nowhere.toml")
        .expect(1)
        .says(&["could not read the config file `nowhere.toml`"]);
}
