//! `serve` on real control planes: changes there are seen without a poll.

mod calls;
pub mod health;
mod reachability;
pub mod renewal;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::kubernetes::{FLEET, QUOTA, SANDBOX, on};
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::serve::Serve;

/// The arguments for a tree with the settings of its control plane.
pub const SERVE: &str = "serve --specs tree --config config.toml";

/// Starts on a tree, and waits until its clusters are created and a later round has seen them.
fn serve(tree: &Tree) -> Serve<'_> {
    let serve = Serve::start(tree, SERVE);
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    serve
}

fn pods(plane: &ControlPlane) -> String {
    plane.kubectl(&format!("get {QUOTA} --output=jsonpath={{.spec.hard.pods}}"), "").out
}

fn edit(plane: &ControlPlane, pods: &str, manager: &str) {
    let patch = format!("{{\"spec\":{{\"hard\":{{\"pods\":\"{pods}\"}}}}}}");
    plane.kubectl(&format!("patch {QUOTA} --type=merge --field-manager={manager} -p {patch}"), "").expect(0);
}

#[test]
fn what_happens_on_the_cluster_and_in_the_files_is_seen_and_acted_on() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let serve = serve(&tree);

    edit(&plane, "99", "kubectl-edit");
    serve.until("an edit by hand is undone", || (pods(&plane) == "14").then_some(()));
    serve.says(&[
        "decided",
        "fleet=\"acme/eu\"",
        "cluster acme/sandbox",
        "drift",
        "by=\"kubectl-edit\"",
        "plan=",
    ]);

    plane.kubectl(&format!("label {QUOTA} app.kubernetes.io/managed-by-"), "").expect(0);
    let label = format!("get {QUOTA} --output=jsonpath={{.metadata.labels}}");
    serve.until("a label that was taken away is back", || {
        plane
            .kubectl(&label, "")
            .out
            .contains("\"app.kubernetes.io/managed-by\":\"streamfleet\"")
            .then_some(())
    });

    plane.kubectl(&format!("delete {QUOTA}"), "").expect(0);
    serve.until("what was deleted by hand is made again", || (pods(&plane) == "14").then_some(()));

    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    let replicas =
        "get kafkanodepools --namespace=kafka-acme--orders --output=jsonpath={.items[*].spec.replicas}";
    serve.until("an edited spec is applied", || plane.kubectl(replicas, "").out.contains('6').then_some(()));

    no_round_asks_anything(&plane, &serve);

    // A spec stays active until its file has been missing for a while.
    tree.remove(SANDBOX);
    serve.says(&["cluster acme/sandbox", "spec file missing; counts as removed at"]);
    assert_eq!(pods(&plane), "14");
    assert_eq!(serve.stop(), Some(0));
}

/// Waits until rounds and requests have ended, and returns the server's own count of requests.
fn quiet(plane: &ControlPlane, serve: &Serve<'_>) -> Vec<String> {
    let before = serve.until("nothing is asked any more", || {
        let (first, rounds) = (requests(plane), serve.rounds());
        sleep(Duration::from_millis(500));
        (first == requests(plane) && rounds == serve.rounds()).then_some(first)
    });
    assert!(!before.is_empty(), "the server counts nothing by these names");
    before
}

/// Asserts that ten rounds without a change leave the server's own count of requests as it is.
pub fn no_round_asks_anything(plane: &ControlPlane, serve: &Serve<'_>) {
    let before = quiet(plane, serve);
    let first = serve.rounds();
    for round in 1..=10 {
        fs::create_dir(serve.tree.path().join(format!("acme/folder-{round}"))).unwrap();
        serve.until("another round is over", || (serve.rounds() >= first + round).then_some(()));
    }
    let asked: Vec<_> = requests(plane).into_iter().filter(|count| !before.contains(count)).collect();
    // The log comes first: of a long output, people are shown the end.
    assert!(asked.is_empty(), "{}\nrequests of rounds without a change: {asked:#?}", serve.log());
}

/// The API server itself lists all services every three minutes, to repair its record of node ports.
const REPAIR: &str = "resource=\"services\",scope=\"cluster\",subresource=\"\",verb=\"LIST\"";

/// The server's own count of requests for the kinds of fleets, without watches.
fn requests(plane: &ControlPlane) -> Vec<String> {
    let kinds = [
        "kafkas",
        "kafkanodepools",
        "kafkausers",
        "kafkarebalances",
        "namespaces",
        "configmaps",
        "secrets",
        "resourcequotas",
        "limitranges",
        "networkpolicies",
        "pods",
        "persistentvolumeclaims",
        "strimzipodsets",
        "deployments",
        "events",
        "storageclasses",
        "services",
        "nodes",
        "selfsubjectaccessreviews",
    ];
    let metrics = plane.kubectl("get --raw /metrics", "").expect(0).out;
    let counts = metrics.lines().filter(|line| {
        line.starts_with("apiserver_request_total{")
            && !line.contains("verb=\"WATCH\"")
            && !line.contains(REPAIR)
            && kinds.iter().any(|kind| line.contains(&format!("resource=\"{kind}\"")))
    });
    counts.map(str::to_owned).collect()
}

#[test]
fn a_server_that_goes_and_comes_back_and_a_token_that_ends_are_told_from_an_empty_cluster() {
    let mut plane = ControlPlane::lease();
    let tree = on(&plane);
    let (admin, tenant) = (plane.kubeconfig(), plane.service_account("default", "tenant"));
    let role = "create clusterrolebinding tenant --clusterrole=cluster-admin --serviceaccount=default:tenant";
    plane.kubectl(role, "").expect(0);
    tree.edit(FLEET, &admin, &tenant);
    let serve = serve(&tree);

    plane.stop();
    serve.says(&["unreachable", "fleet=acme/eu"]);
    serve.says(&["fleet acme/eu", "the target can't be reached"]);
    plane.start_again();
    edit(&plane, "99", "kubectl-edit");
    serve.until("what changed meanwhile is undone", || (pods(&plane) == "14").then_some(()));

    // A running watch outlives its token; a new connection doesn't.
    plane.kubectl("delete serviceaccount tenant --namespace=default", "").expect(0);
    plane.stop();
    plane.start_again();
    serve.says(&["unreachable", "the server refused it with 401"]);
    edit(&plane, "98", "kubectl-edit");
    tree.edit(FLEET, &tenant, &admin);
    serve.until("another kubeconfig is used", || (pods(&plane) == "14").then_some(()));

    // Another cluster at the same address, with the same credentials, isn't taken for an empty one.
    plane.replace();
    serve.says(&[
        "unreachable",
        "cannot use the Kubernetes cluster: it is not the one that the fleet was created on (its \
                                 `kube-system` has the uid",
    ]);
    plane.kubectl("get namespace streamfleet-system", "").expect(1).says(&["not found"]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn who_keeps_changing_it_back_is_left_alone_after_a_while_and_named() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let serve = serve(&tree);
    for round in 1..=5 {
        edit(&plane, &format!("9{round}"), "kubectl-rival");
        serve.until("it is corrected", || (pods(&plane) == "14").then_some(()));
    }
    edit(&plane, "99", "kubectl-rival");
    serve.says(&[
        "cluster acme/sandbox",
        "kubectl-rival keeps changing /spec/hard/pods of ResourceQuota kafka-acme--sandbox/sandbox back",
    ]);
    assert_eq!(pods(&plane), "99");
    // Other drift there is still corrected.
    plane.kubectl("delete kafka sandbox --namespace=kafka-acme--sandbox", "").expect(0);
    serve.until("another object is made again", || {
        (plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").code == 0).then_some(())
    });
    assert_eq!(pods(&plane), "99");
    // A change of the spec is intended.
    tree.edit(SANDBOX, "on_delete: Delete", "on_delete: Retain");
    serve.until("a changed spec is applied", || (pods(&plane) == "14").then_some(()));
}
