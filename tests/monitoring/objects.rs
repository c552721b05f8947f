//! The objects on a real API server, with and without the Prometheus operator's kinds.

use crate::kubernetes::{FLEET, reached_with};
use crate::rights::tenant;
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;

const APPLY: &str = "apply tree --yes --config config.toml";
const PLAN: &str = "plan tree --config config.toml";
const OF_CLUSTER: &str = "get podmonitors.monitoring.coreos.com sandbox --namespace=kafka-acme--sandbox";
const OF_FLEET: &str =
    "get prometheusrules.monitoring.coreos.com streamfleet-kafka --namespace=streamfleet-monitoring";
const MISSING: &str = "MonitoringMissing: the cluster doesn't have PodMonitor and PrometheusRule of \
    monitoring.coreos.com/v1, so no Prometheus reads the clusters' metrics; everything else of them is applied; install \
    the Prometheus operator with its resource definitions, or set `prometheus: none` in `advanced_config.monitoring` of \
    the fleet";

/// A Prometheus that takes what has a label, from all namespaces.
fn prometheus(label: &str) -> String {
    let selector = format!("{{matchLabels: {{{label}}}}}");
    format!(
        "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {{name: k8s, namespace: default}}\n\
         spec: {{podMonitorSelector: {selector}, podMonitorNamespaceSelector: {{}}, ruleSelector: {selector}, \
         ruleNamespaceSelector: {{}}}}\n"
    )
}

fn monitored(plane: &ControlPlane) -> Tree {
    // Exactly the rights that are printed for it.
    let tree = reached_with(&tenant(plane, "--monitoring"));
    tree.write(FLEET, tree.read(FLEET) + "  monitoring:\n    prometheus: existing\n");
    let sandbox = "acme/clusters/sandbox.yaml";
    tree.write(sandbox, tree.read(sandbox) + "  operations: {metrics: true}\n");
    tree
}

#[test]
fn clusters_go_on_without_the_operators_kinds_and_get_the_objects_once_they_are_there() {
    let plane = ControlPlane::lease();
    let tree = monitored(&plane);
    let sandbox = tree.read("acme/clusters/sandbox.yaml");
    tree.run(APPLY).expect(0).says(&[MISSING]);
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(0);
    plane.kubectl("get configmap streamfleet-kafka --namespace=streamfleet-monitoring", "").expect(0);
    tree.run(APPLY).expect(0).says(&["Nothing to do", MISSING]);

    plane.serve_monitoring();
    tree.run(PLAN)
        .expect(2)
        .says(&["+ PodMonitor kafka-acme--sandbox/sandbox"])
        .says_nothing_of(&["Monitoring"]);
    tree.run(APPLY).expect(0).says_nothing_of(&["MonitoringMissing"]);
    plane.kubectl(OF_CLUSTER, "").expect(0);
    plane.kubectl(OF_FLEET, "").expect(0);
    tree.run(APPLY).expect(0).says(&["Nothing to do"]).says_nothing_of(&["Monitoring"]);

    // A Prometheus that takes other labels is told, with the label and the object.
    plane.apply(&prometheus("release: stack")).expect(0);
    tree.run(PLAN).expect(0).says(&[
        "MonitoringUnselected: no Prometheus takes PodMonitor kafka-acme--sandbox/sandbox: default/k8s takes those with \
         the label `release: stack` only; add `release: \"stack\"` to `advanced_config.monitoring.labels` of the fleet",
        "MonitoringUnselected: no Prometheus takes PrometheusRule kafka-acme--orders/orders and 2 more",
    ]);
    tree.edit(FLEET, "prometheus: existing", "prometheus: existing\n    labels: {release: stack}");
    tree.run(APPLY).expect(0).says_nothing_of(&["MonitoringUnselected"]);

    // Without the definitions the objects are gone, and a cluster can still be changed and deleted.
    plane
        .kubectl("delete crd podmonitors.monitoring.coreos.com prometheusrules.monitoring.coreos.com", "")
        .expect(0);
    tree.run(APPLY).expect(0).says(&["MonitoringMissing"]);
    tree.write("acme/clusters/sandbox.yaml", sandbox.replace("metrics: true", "metrics: false"));
    tree.run(APPLY).expect(0).says(&["MonitoringMissing"]);
    tree.run(APPLY).expect(0).says(&["Nothing to do"]);
}

#[test]
fn turning_it_on_names_the_restart() {
    let tree = Tree::example("monitoring");
    let fleet = tree.read(FLEET);
    tree.write(FLEET, fleet.replace("prometheus: existing", "federate: false").replace(
        "    # The label by which the chart kube-prometheus-stack selects what it reads.\n    labels:\n      \
         release: kube-prometheus-stack\n",
        "",
    ));
    tree.run("apply tree --yes").expect(0);
    tree.write(FLEET, fleet);
    tree.run("plan tree").expect(2).says(&[
        "advanced_config.monitoring.prometheus none → existing",
        "brokers and controllers restart one by one; clients reconnect and continue",
    ]);
}
