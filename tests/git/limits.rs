//! The hourly deletion limit of a fleet in a running process.

use std::fs;

use super::{SANDBOX, SERVE, Specs};
use crate::support::serve::Serve;

/// The approval id in the log for a waiting deletion.
fn asked(serve: &Serve<'_>, cluster: &str) -> String {
    let words =
        ["on hold for approval: limit of 1 cluster deletion per fleet and hour. Deletes at ", cluster];
    serve.says(&words);
    let log = serve.log();
    let line = log.lines().rfind(|line| words.iter().all(|word| line.contains(word))).unwrap();
    line.split("approve=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[test]
fn a_fleet_loses_one_cluster_an_hour_in_however_many_rounds_and_processes() {
    let specs = Specs::new();
    let sandbox = specs.tree.read(SANDBOX);
    let file = |name: &str| format!("acme/clusters/{name}.yaml");
    for name in ["one", "two"] {
        specs.tree.write(&file(name), sandbox.replace("identifier: sandbox", &format!("identifier: {name}")));
    }
    specs.push("more");
    let removed = |name: &str| {
        specs.tree.remove(&file(name));
        specs.push(name);
    };
    let is_there =
        |name: &str| specs.target().iter().any(|(path, _)| path.contains(&format!("kafka-acme--{name}/")));
    let is_gone = |serve: &Serve<'_>, name: &str| {
        serve.until(&format!("{name} is gone"), || (!is_there(name)).then_some(()));
        serve.says(&["done", &format!("resource=\"cluster acme/{name}\" "), "verb=delete"]);
    };
    let serve = Serve::start(&specs.tree, SERVE);
    serve.says(&["done", "cluster acme/two"]);
    removed("one");
    serve.signal("HUP");
    is_gone(&serve, "one");
    removed("two");
    serve.signal("HUP");
    asked(&serve, "cluster acme/two");
    assert_eq!(serve.stop(), Some(0));

    // The limit survives the loss of the cache and the process.
    fs::remove_dir_all(specs.tree.beside("state/cache-v1")).unwrap();
    let serve = Serve::start(&specs.tree, SERVE);
    let id = asked(&serve, "cluster acme/two");
    assert!(is_there("two"));
    specs.tree.run(&format!("approve {id} --config config.toml")).expect(0);
    is_gone(&serve, "two");
    // Approved deletions count, too.
    removed("sandbox");
    serve.signal("HUP");
    asked(&serve, "cluster acme/sandbox");
    assert!(is_there("sandbox"));
    assert_eq!(serve.stop(), Some(0));
}
