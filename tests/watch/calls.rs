//! The calls that a change costs in a running process.

use std::collections::BTreeMap;

use crate::kubernetes::on;
use crate::support::control_plane::ControlPlane;

use super::{quiet, serve};

const ORDERS: &str = "acme/clusters/orders.yaml";

/// A change of one object is tried, made and recorded. Before it is made, the run asks which cluster it is on and
/// whether the inventory has changed. After it, the facts that plans depend on are collected anew, once.
#[test]
fn a_changed_object_costs_five_calls_and_the_facts_of_its_cluster() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let serve = serve(&tree);
    let text = tree.read(ORDERS);
    let enlarge = |gib: usize| {
        tree.write(ORDERS, format!("{text}  storage:\n    size_gib: {gib}\n"));
        let size =
            "get kafkanodepool broker --namespace=kafka-acme--orders --output=jsonpath={.spec.storage}";
        let is_so = || plane.kubectl(size, "").out.contains(&format!("{gib}Gi")).then_some(());
        serve.until("the disks are larger", is_so);
    };
    enlarge(2000);
    let before = counts(&quiet(&plane, &serve));
    enlarge(2001);
    let mut after = counts(&quiet(&plane, &serve));
    after.retain(|what, count| {
        *count -= before.get(what).copied().unwrap_or_default();
        *count > 0
    });
    // The test itself reads the node pool.
    after.remove("GET kafkanodepools");
    let expected = [
        ("APPLY kafkanodepools", 1),
        ("APPLY kafkanodepools as a dry run", 1),
        ("GET namespaces", 1),
        ("LIST configmaps", 1),
        ("PUT configmaps", 1),
        // The facts. Services are listed, too, but the API server's own lists of them can't be told apart.
        ("LIST deployments", 2),
        ("LIST nodes", 1),
        ("LIST pods", 1),
        ("LIST storageclasses", 1),
        ("POST selfsubjectaccessreviews", 1),
    ];
    let expected: BTreeMap<String, usize> =
        expected.into_iter().map(|(what, count)| (what.to_owned(), count)).collect();
    assert_eq!(after, expected, "{}", serve.log());
}

/// Requests by verb and resource.
fn counts(lines: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let label = |name: &str| line.split_once(&format!("{name}=\""))?.1.split_once('"').map(|it| it.0);
        let dry = label("dry_run").filter(|dry| !dry.is_empty()).map_or("", |_| " as a dry run");
        let what = format!("{} {}{dry}", label("verb").unwrap_or("?"), label("resource").unwrap_or("?"));
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<usize>().ok());
        *counts.entry(what).or_default() += count.unwrap_or_default();
    }
    counts
}
