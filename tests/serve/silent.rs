//! A Kubernetes cluster that falls silent beside directory fleets.

use std::time::Duration;

use super::{ORDERS, SANDBOX, SERVE, brokers, far, units};
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Proxy, Rule};
use crate::support::serve::Serve;

/// Durations of the plans since a log line, as logged by the process.
fn took(serve: &Serve<'_>, since: usize) -> Vec<Duration> {
    let log = serve.log();
    let planned = log.lines().skip(since).filter_map(|line| line.split("took=").nth(1));
    let seconds = |text: &str| {
        let (number, unit) = text.trim().split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let scale = match unit {
            "s" => 1.0,
            "ms" => 1e-3,
            _ => 1e-6,
        };
        Some(Duration::from_secs_f64(number.parse::<f64>().ok()? * scale))
    };
    planned.filter_map(seconds).collect()
}

#[test]
fn a_cluster_that_falls_silent_is_asked_beside_the_plans_until_it_answers() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = Tree::example("quickstart");
    far(&tree, &proxy);
    let serve = Serve::start(&tree, &format!("{SERVE} --config config.toml"));
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    let units_of = || {
        let get = "get resourcequota sandbox --namespace=kafka-acme--sandbox --output=jsonpath={.spec.hard}";
        plane.kubectl(get, "").expect(0).out
    };
    let before = units_of();

    // Its watches go on, but no call is answered, so only the watches can show the drift.
    proxy.inject(Rule::always(Fault::Silence));
    tree.edit(SANDBOX, "on_delete: Delete", "on_delete: Delete\n    size_gib: 40");
    serve.says(&["unreachable", "fleet=acme/far", "no complete answer within 8 s"]);
    serve.says(&["waiting: ", "the target can't be reached", "cluster acme/sandbox"]);
    let since = serve.log().lines().count();
    for more in 2..6 {
        tree.write(ORDERS, units(&tree, more));
        brokers(&serve, more * 3);
    }
    let took = took(&serve, since);
    assert!(took.len() >= 4 && took.iter().all(|took| *took < Duration::from_secs(8)), "{took:?}");
    assert_eq!(units_of(), before);

    // The process keeps probing, and the waiting work is done once the server answers, without another event.
    proxy.reset();
    serve.says(&["is reachable", "fleet=acme/far"]);
    let log = || serve.log();
    serve.until("what was wanted is done", || {
        let done = log()
            .lines()
            .filter(|line| line.contains("execute: done") && line.contains("cluster acme/sandbox"))
            .count();
        (done > 1).then_some(())
    });
    assert_eq!(serve.stop(), Some(0));
}
