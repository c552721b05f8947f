//! Log lines about specs, and the log formats.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::{ORDERS, SANDBOX, SERVE, brokers};
use crate::support::Tree;
use crate::support::serve::Serve;

#[test]
fn problems_of_specs_are_lines_with_level_and_time_told_once_and_bounded() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    tree.write(SANDBOX, tree.read(SANDBOX).replace("kafka_units:", "kafka_unit:"));
    serve.says(&["Z ERROR ", "unknown key `kafka_unit`", "file=\"acme/clusters/sandbox.yaml\" line="]);
    serve.says(&["code=\"unknown-key\"", "hint="]);
    let rounds = serve.rounds();
    serve.signal("HUP");
    serve.until("there was another round", || (serve.rounds() > rounds).then_some(()));
    assert_eq!(serve.log().matches("unknown key `kafka_unit`").count(), 1, "{}", serve.log());

    for number in 0..40 {
        tree.write(&format!("acme/clusters/n{number}.yaml"), "nothing: of this\n");
    }
    serve.says(&["more problems in the specs: `streamfleet validate` shows them"]);
    let log = serve.log();
    let told = (0..40).filter(|number| log.contains(&format!("acme/clusters/n{number}.yaml"))).count();
    assert!((1..40).contains(&told), "{told} of 40 files: {log}");
    assert!(serve.log().lines().all(|line| line.starts_with("20")), "{}", serve.log());
    for number in 0..40 {
        tree.remove(&format!("acme/clusters/n{number}.yaml"));
    }
    tree.write(SANDBOX, tree.read(SANDBOX).replace("kafka_unit:", "kafka_units:"));
    serve.says(&["INFO", "the specs have no problems left"]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_tree_behind_a_link_that_led_nowhere_is_told_to_be_back() {
    let tree = Tree::example("quickstart");
    let link = tree.beside("cur");
    symlink(tree.path(), &link).unwrap();
    let serve = Serve::start(&tree, "serve --specs cur --state-dir state --output-dir output");
    brokers(&serve, 3);
    fs::remove_file(&link).unwrap();
    symlink("nowhere", &link).unwrap();
    serve.signal("HUP");
    serve.says(&["ERROR", "cannot read the specs; no changes until they can be read"]);
    fs::remove_file(&link).unwrap();
    symlink(tree.path(), &link).unwrap();
    serve.signal("HUP");
    serve.says(&["INFO", "the specs can be read again"]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn the_log_can_be_lines_of_json() {
    let tree = Tree::example("quickstart");
    tree.write(ORDERS, tree.read(ORDERS).replace("kafka_units:", "kafka_unit:"));
    let serve = Serve::start(&tree, &format!("{SERVE} --log-format json"));
    serve.says(&["\"message\":\"unknown key `kafka_unit`\"", "\"level\":\"ERROR\""]);
    let log = serve.log();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["time"].is_string() && line["message"].is_string(), "{line}");
    }
    let problem = log.lines().find(|line| line.contains("unknown key")).unwrap();
    let problem: Value = serde_json::from_str(problem).unwrap();
    assert_eq!(problem["fields"]["file"], ORDERS);
    assert!(problem["fields"]["line"].is_number());
    assert!(!log.contains("PRIVATE KEY"));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_ends_the_process_is_a_line_of_json_too() {
    let tree = Tree::example("quickstart");
    let ended = tree.run("serve --specs nosuch --log-format json").expect(1);
    let lines: Vec<Value> = ended.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR", "{}", ended.err);
    assert!(last["message"].as_str().unwrap().contains("nosuch"), "{}", ended.err);
}
