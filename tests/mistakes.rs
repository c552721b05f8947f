//! What a person reads who made a mistake.

use crate::support::Tree;

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
