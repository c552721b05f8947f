//! Messages about mistakes.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::{Run, Tree};

fn at_terminal(tree: &Tree, words: &str, typed: &str) -> Run {
    let command = format!("{} {words}", env!("CARGO_BIN_EXE_streamfleet"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.env("NO_COLOR", "1");
    script.current_dir(tree.beside("")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().expect("the tests of prompts need script, of util-linux");
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

fn plan_id(run: &Run) -> String {
    let id = run.out.split("    plan ").nth(1).unwrap_or_else(|| panic!("no id in\n{}", run.out));
    id.chars().take_while(char::is_ascii_hexdigit).collect()
}

#[test]
fn who_says_no_to_the_first_apply_leaves_nothing_behind() {
    let tree = Tree::example("quickstart");
    let part = "is a part of the spec tree";
    tree.run("apply tree")
        .expect(64)
        .says(&["cannot ask for confirmation, because standard input is not a terminal"]);
    at_terminal(&tree, "apply tree", "no\n").expect(1).says(&["Apply this plan?", "Nothing was changed."]);
    assert!(!tree.path().join(".streamfleet").exists());
    // A saved plan, or a new key for secrets, doesn't apply anything either.
    tree.run("plan tree --out plan.json").expect(2);
    tree.run("secret recipient tree").expect(0);
    tree.run("plan tree/acme").says_nothing_of(&[part]);
    at_terminal(&tree, "apply tree", "yes\n").expect(0).says(&["Applied 5 resources"]);
    tree.run("plan tree/acme").expect(1).says(&[part, "which was applied as a whole", "use the whole tree"]);
}

#[test]
fn an_apply_of_a_tree_without_resources_makes_it_no_whole() {
    let tree = Tree::empty();
    fs::create_dir(tree.path().join("inner")).unwrap();
    tree.run("apply tree").expect(0).says(&["Nothing to do"]);
    assert!(!tree.path().join(".streamfleet").exists());
    tree.run("apply tree --yes").expect(0);
    tree.run("plan tree/inner").expect(0);
}

#[test]
fn the_first_plan_has_the_id_that_is_applied() {
    let tree = Tree::example("quickstart");
    let first = plan_id(&tree.run("plan tree").expect(2));
    assert_eq!(plan_id(&tree.run("plan tree").expect(2)), first);
    assert_eq!(plan_id(&tree.run("plan tree --out plan.json").expect(2)), first);
    assert_eq!(plan_id(&tree.run("plan tree").expect(2)), first);
    assert_eq!(plan_id(&tree.run("apply plan.json --yes").expect(0)), first);
    assert_ne!(plan_id(&tree.run("plan tree").expect(0)), first);
    let other = Tree::example("quickstart");
    let id = plan_id(&other.run("plan tree").expect(2));
    assert_eq!(plan_id(&at_terminal(&other, "apply tree", "yes\n").expect(0)), id);
}

#[test]
fn commands_that_are_proposed_name_the_installation_and_can_be_pasted() {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("my.toml"), "output_dir = \"out\"\n").unwrap();
    let named = "tree --config my.toml --state-dir state";
    let pasted = |run: &Run, verb: &str| {
        let after = run.out.split(&format!("streamfleet {verb} ")).nth(1);
        let after = after.unwrap_or_else(|| panic!("no command to {verb} in\n{}", run.out));
        format!("{verb} {}", after.lines().next().unwrap())
    };
    tree.run("plan tree --config my.toml --state-dir state --out plan.json")
        .expect(2)
        .says(&["apply exactly this with: streamfleet apply plan.json --config my.toml --state-dir state\n"]);
    tree.run("apply plan.json --config my.toml --state-dir state --yes").expect(0);
    tree.write("acme/clusters/sandbox.yaml", "");
    let approve = pasted(&tree.run(&format!("plan {named}")).expect(3), "approve");
    assert!(approve.ends_with(named), "{approve}");
    let apply = pasted(&tree.run(&approve).expect(0), "apply");
    assert_eq!(apply, format!("apply {named}"));
    tree.run(&format!("{apply} --yes")).expect(0);
    let variables = [("STREAMFLEET_STATE_DIR", "state"), ("STREAMFLEET_CONFIG", "my.toml")];
    let why = tree.run_with("why orders tree", &variables, "").expect(0);
    assert!(why.out.contains("next      ask the tool that applies"), "{}", why.out);
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    let why = tree.run_with("why orders tree", &variables, "").expect(0);
    assert_eq!(pasted(&why, "apply"), format!("apply {named}"));
}

#[test]
fn a_secret_that_everybody_can_read_is_warned_of_once() {
    let tree = Tree::empty();
    tree.write("organizations.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: acme\n");
    for name in ["one", "two"] {
        tree.write(
            &format!("acme/{name}.yaml"),
            format!(
                "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: {name}\nprovider: s3\n\
                 region: eu-west-1\nendpoint: https://s3.example.com\ncredentials: {{from_file: s3}}\n"
            ),
        );
    }
    let file = ".streamfleet/secrets/acme/s3";
    tree.write(file, "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hunter2\n");
    let mode =
        |path: std::path::PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(tree.beside(""), 0o755);
    mode(tree.path().join(file), 0o644);
    let path = tree.path().join(file).canonicalize().unwrap();
    // The first plan is made from the specs, and is refused if a secret changed since.
    let saved = Tree::empty();
    crate::support::copy(&tree.path(), &saved.path());
    saved.run("plan tree --out plan.json").expect(2);
    saved.write(file, "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = hunter3\n");
    saved.run("apply plan.json --yes").expect(1).says(&[
        "- a secret of cloud account acme/one changed\n",
        "- a secret of cloud account acme/two changed\n",
    ]);
    let run = tree.run("plan tree").expect(2);
    let expected = format!(
        "\nwarning: every user of this host can read `acme/s3` in the secrets folder\n --> acme/one.yaml:8:1\n  |\n8 | \
         credentials: {{from_file: s3}}\n  | ^^^^^^^^^^^\n  |\n  = help: restrict it: chmod 600 {}\n",
        path.display()
    );
    assert_eq!(run.err, expected);
    // Other users can't read a file, or anything through a folder, without permissions.
    mode(tree.path().join(".streamfleet"), 0o700);
    assert_eq!(tree.run("plan tree").expect(2).err, "");
    mode(tree.path().join(".streamfleet"), 0o755);
    mode(tree.path().join(file), 0o600);
    assert_eq!(tree.run("plan tree").expect(2).err, "");
}

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
        "error: `scale_down_to: 1` has no effect, because `kafka_units` is 2\n",
        "--> acme/clusters/orders.yaml:",
        "help: remove `advanced_config.scale_down_to` if the scale-down that it confirms is done; to scale down, set \
         `kafka_units` to 1 too\n",
    ]);
    assert!(run.err.contains("  scale_down_to: 1\n"), "{}", run.err);
    tree.edit(orders, "  scale_down_to: 1\n", "");
    tree.run("apply tree --yes").expect(0);
}

#[test]
fn a_tree_that_is_not_there_is_said_so() {
    let tree = Tree::empty();
    tree.run("plan nowhere").expect(1).says(&[
        "cannot open the spec tree `nowhere`",
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
        .says(&["cannot read the config file `nowhere.toml`"]);
}

#[test]
fn a_mistake_in_a_spec_is_a_reason_and_leaves_the_status_as_it_is() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let record = || {
        let get = tree.run("get cluster/acme/orders tree --format json");
        serde_json::from_str::<serde_json::Value>(&get.out).unwrap()
    };
    let before = record();
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: none");
    let after = record();
    assert_eq!(after["status"], before["status"]);
    assert_eq!(after["status_reason"], "its spec has 1 problem; it stays as it was last applied");
}
