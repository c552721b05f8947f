//! `serve` connects to clusters by their public names, and what it finds is a part of their health.

use std::fs;

use super::SERVE;
use super::health::{SimulatedOperator, nothing_runs_yet, operator, two_clusters};
use crate::interrupted::certificate;
use crate::kubernetes::FLEET;
use crate::support::control_plane::ControlPlane;
use crate::support::serve::Serve;

#[test]
fn a_cluster_whose_public_name_leads_nowhere_is_degraded_and_the_next_restart_waits_for_it() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings + "\n[daemon]\nprobe_seconds = 1\n").unwrap();
    tree.edit("acme/clusters/dev.yaml", "cluster_access: Internal", "cluster_access: External");
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    nothing_runs_yet(&serve);
    cast.make(&operator());
    for cluster in ["dev", "web"] {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &certificate(&tree));
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Healthy"]);
    }

    serve.says(&["WARN", "clients may not reach cluster acme/dev: bootstrap: the name dev."]);
    serve.says(&[" is ", "cluster acme/dev", "from=Healthy", "to=Degraded"]);
    let status = "status tree --config config.toml";
    // The name of its only broker leads nowhere, either.
    let why = "clients outside of Kubernetes can't reach 2 of its names; the first: bootstrap: the name dev.";
    tree.run(status).says(&[why]);
    tree.run("why Cluster/acme/dev tree --config config.toml").says(&[why]);

    let metrics = "advanced_config:\n  operations: {metrics: true}\n";
    tree.edit("acme/clusters/web.yaml", "advanced_config:\n", metrics);
    serve.says(&["cluster acme/web", "waiting: ", "one disruption at a time; cluster acme/dev is first"]);

    // With nobody connecting, nothing is known, and the pods decide.
    tree.edit(FLEET, "advanced_config:\n", "advanced_config:\n  reachability: none\n");
    serve.says(&[" is ", "cluster acme/dev", "from=Degraded", "to=Healthy"]);
    serve.says(&["decided", "cluster acme/web", "restart"]);
    assert_eq!(serve.stop(), Some(0));
}
