//! What a person reads who made a mistake.

use crate::support::Tree;

#[test]
fn a_word_for_going_down_that_was_left_in_a_file_is_named_with_its_line() {
    let tree = Tree::example("quickstart");
    let orders = "acme/clusters/orders.yaml";
    tree.edit(orders, "kafka_units: 1", "kafka_units: 2");
    tree.run("apply tree --yes").expect(0);
    tree.edit(orders, "kafka_units: 2", "kafka_units: 1");
    tree.edit(orders, "advanced_config:\n", "advanced_config:\n  scale_down_to: 1\n");
    tree.run("apply tree --yes").expect(0);
    tree.edit(orders, "kafka_units: 1", "kafka_units: 2");
    let run = tree.run("plan tree").expect(1).says(&[
        "error: `scale_down_to: 1` confirms nothing, since `kafka_units` is 2\n",
        "--> acme/clusters/orders.yaml:",
        "help: remove the line `scale_down_to: 1` from `advanced_config`: it is only for going down, and was used up by \
         that; to go down again, write 1 in `kafka_units` too\n",
    ]);
    assert!(run.err.contains("  scale_down_to: 1\n"), "{}", run.err);
    tree.edit(orders, "  scale_down_to: 1\n", "");
    tree.run("apply tree --yes").expect(0);
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
