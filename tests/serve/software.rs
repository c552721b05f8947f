//! A new software version that renders something else than the one before.

use crate::pipeline::{Surroundings, converge};
use crate::support::Tree;
use crate::support::serve::Serve;

const SERVE: &str = "serve --specs tree";
const POOL: &str = ".streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";

/// An older version gave brokers more memory. This version's manifests for the same specs restart them.
#[test]
fn what_a_new_version_would_restart_waits_for_approval_and_says_why() {
    let tree = Tree::example("quickstart");
    let mut older = Surroundings { software: "0.0.9", ..Surroundings::default() };
    older.config.units.standard.broker_memory_mib += 1024;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    drop(runtime.block_on(converge(&tree, &older)));
    let before = tree.read(POOL);

    let serve = Serve::start(&tree, SERVE);
    let why = "on hold for approval: the cause is streamfleet 0.1.0, not an edit of a spec";
    serve.says(&["cluster acme/orders", "verb=update", "cause=\"software\"", why]);
    let rounds = serve.rounds();
    serve.signal("HUP");
    serve.until("there was another round", || (serve.rounds() > rounds).then_some(()));
    assert_eq!(tree.read(POOL), before, "nothing is restarted that nobody agreed to");
    let log = serve.log();
    let id = log.split("approve=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let approve = format!("approve {id} tree");
    tree.run(&approve).expect(0).says(&["Approved", "update cluster acme/orders"]);
    serve.says(&["execute: done", "cluster acme/orders"]);
    assert_ne!(tree.read(POOL), before);
    assert_eq!(serve.stop(), Some(0));
    tree.run("plan tree").expect(0);
}
