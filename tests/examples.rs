//! Every example works as it is: it is planned, applied and then has nothing left to do. The plans are
//! recorded.

use serde_json::Value;
use streamfleet::render::yaml::to_yaml;

use crate::support::{MANAGED, Tree, settings, stable, stories, without_own};

#[test]
fn every_example_is_planned_applied_and_then_done() {
    for story in stories() {
        let tree = Tree::example(&story);
        let run = |words: &str| tree.run(&format!("{words}{}", settings(&story)));
        run("validate tree").expect(0).says(&["checked, no problems found."]);
        let plan = run("plan tree").expect(2);
        insta::assert_snapshot!(format!("plan_{story}"), stable(&(plan.out + &plan.err)));
        assert!(!tree.path().join(".streamfleet").exists(), "a dry run leaves nothing behind");
        run("apply tree --yes").expect(0);
        insta::assert_snapshot!(format!("manifests_{story}"), manifests(&tree));
        run("plan tree").expect(0).says(&["Nothing to do"]);
        run("apply tree --yes").expect(0).says(&["Nothing to do"]);
    }
}

/// What it gets by its settings is in `tests/acme.rs`.
#[test]
fn the_example_of_a_domain_that_looks_after_itself_is_planned_without_asking_anybody() {
    let tree = Tree::example(MANAGED);
    tree.run("validate tree --config tree/streamfleet.toml").expect(0).says(&["no problems found."]);
    let plan = tree.run("plan tree --config tree/streamfleet.toml").expect(3);
    insta::assert_snapshot!(format!("plan_{MANAGED}"), stable(&(plan.out + &plan.err)));
    assert!(!tree.path().join(".streamfleet").exists(), "a dry run leaves nothing behind");
}

/// All written manifests as one text, without values unique to the installation.
fn manifests(tree: &Tree) -> String {
    let files = tree.output().into_iter().filter(|(path, _)| path.ends_with(".yaml"));
    let manifests = files.map(|(path, bytes)| {
        let mut manifest: Value = serde_saphyr::from_slice(&bytes).unwrap();
        if manifest["kind"] == "Secret" {
            let data = manifest["data"].as_object_mut().unwrap();
            data.values_mut().for_each(|value| *value = "…".into());
        }
        format!("--- # {path}\n{}\n", without_own(&to_yaml(&manifest)))
    });
    manifests.collect()
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let (one, two) = (Tree::example("quickstart"), Tree::example("quickstart"));
    let manifests = |tree: &Tree| {
        tree.run("apply tree --yes").expect(0);
        let mut files = tree.output();
        // Ids and fingerprints are unique to the installation; only the shape of what contains them can be
        // compared.
        files.retain(|(path, _)| !path.contains("inventory"));
        files
            .into_iter()
            .map(|(path, bytes)| {
                let text = String::from_utf8(bytes).unwrap();
                let own = |line: &&str| line.contains("streamfleet.io/id:") || line.starts_with("# Random");
                let kept: Vec<&str> = text.lines().filter(|line| !own(line)).collect();
                (path, kept.join("\n"))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(manifests(&one), manifests(&two));
}

#[test]
fn what_init_writes_works() {
    let tree = Tree::empty();
    tree.run("init tree/new --organization globex").expect(0).says(&["streamfleet plan tree/new"]);
    tree.run("validate tree/new").expect(0).says(&["checked, no problems found."]);
    // What an administrator needs for base domains is there to be uncommented.
    let written = tree.read("new/organizations.yaml");
    tree.edit("new/organizations.yaml", "# domains:\n#   - kafka", "domains:\n  - kafka");
    tree.run("validate tree/new").expect(0).says(&["checked, no problems found."]);
    tree.write("new/organizations.yaml", written);
    tree.run("plan tree/new").expect(2);
    tree.run("apply tree/new --yes").expect(0);
    tree.run("init tree/new --organization globex")
        .expect(1)
        .says(&["`tree/new/organizations.yaml` exists already, so nothing was written"]);
    tree.run("init other --organization Globex").expect(64).says(&["`Globex` is not an identifier"]);
}
