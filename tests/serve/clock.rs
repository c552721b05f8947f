//! A clock that is set back under a running process.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ORDERS, SANDBOX, SERVE, brokers, units};
use crate::support::Tree;
use crate::support::serve::Serve;

/// The library that sets the clock of a process, to be preloaded.
pub fn library(tree: &Tree) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/clock.c");
    let library = tree.beside("clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compiler.status().expect("a C compiler builds this project anyway").success());
    library.to_str().unwrap().to_owned()
}

#[test]
fn a_clock_that_is_set_back_holds_up_nothing_and_deletes_nothing_that_is_put_back() {
    let tree = Tree::example("quickstart");
    let clock = tree.beside("clock");
    fs::write(&clock, "0").unwrap();
    let variables = [("LD_PRELOAD", library(&tree)), ("CLOCK_FILE", clock.to_str().unwrap().to_owned())];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let serve = Serve::start_with(&tree, SERVE, &variables);
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    // The file is missing when the clock is set back: its deletion now seems an hour away.
    let sandbox = tree.read(SANDBOX);
    tree.remove(SANDBOX);
    serve.says(&["cluster acme/sandbox", "spec file missing"]);
    fs::write(&clock, "-3600").unwrap();
    tree.write(ORDERS, units(&tree, 2));
    brokers(&serve, 6);
    serve.says(&["done", "verb=delete", "cluster acme/sandbox"]);
    tree.write(SANDBOX, sandbox);
    let made = |serve: &Serve<'_>| {
        let log = serve.log();
        let is_made = |line: &&str| line.contains("execute: done") && line.contains("acme/sandbox");
        log.lines().filter(is_made).count()
    };
    serve.until("it is made again", || (made(&serve) == 3).then_some(()));
    // Now a whole day, with nothing missing; records in the future don't disturb a restart.
    fs::write(&clock, "-90000").unwrap();
    tree.write(ORDERS, units(&tree, 3));
    brokers(&serve, 9);
    assert_eq!(serve.stop(), Some(0));
    let serve = Serve::start_with(&tree, SERVE, &variables);
    serve.says(&["planned", "looked="]);
    tree.write(ORDERS, units(&tree, 4));
    brokers(&serve, 12);
    assert!(!serve.log().contains("verb=delete"), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));
    tree.run("plan tree --state-dir state --output-dir output").expect(0);
}
