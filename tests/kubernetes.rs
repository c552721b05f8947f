//! `plan` and `apply` of `byok` fleets, on a real control plane.

mod access;
mod foreign_objects;
mod logs;
mod memory;
mod metrics;
mod recreated_kafka;
mod refusals;
pub mod removal;
mod topics;

use std::fs;

use crate::support::Tree;
use crate::support::control_plane::ControlPlane;

pub const FLEET: &str = "acme/fleets/eu.yaml";
pub const SANDBOX: &str = "acme/clusters/sandbox.yaml";
pub const QUOTA: &str = "resourcequota sandbox --namespace=kafka-acme--sandbox";

/// An example with its fleet on a control plane, and settings that allow kubeconfigs that point at this host.
pub fn on(plane: &ControlPlane) -> Tree {
    reached_with(&plane.kubeconfig())
}

/// As [`on`], with the user of a kubeconfig.
pub fn reached_with(kubeconfig: &str) -> Tree {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("config.toml"), "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n").unwrap();
    make_byok(&tree, FLEET, kubeconfig);
    for cluster in ["orders", "sandbox"] {
        tree.edit(
            &format!("acme/clusters/{cluster}.yaml"),
            "cluster_type",
            "cloud_provider: byok\ncluster_type",
        );
    }
    tree
}

fn make_byok(tree: &Tree, fleet: &str, kubeconfig: &str) {
    tree.edit(fleet, "infra_type: directory", "infra_type: byok");
    let text = tree.read(fleet);
    tree.write(fleet, format!("{text}advanced_config:\n  kubeconfig: '{kubeconfig}'\n"));
}

#[test]
fn a_fleet_goes_through_its_life() {
    let mut plane = ControlPlane::lease();
    let tree = on(&plane);
    let apply = "apply tree --yes --config config.toml";
    let plan = "plan tree --config config.toml";

    // Everything is created, and then nothing is left to do.
    tree.run(plan).expect(2).says(&["fleet acme/eu   byok      units", "0 to change"]);
    tree.run(apply).expect(0);
    let get = "get kafkas,kafkanodepools,secrets,resourcequotas --all-namespaces --output=name";
    plane
        .kubectl(get, "")
        .expect(0)
        .says(&["kafka.kafka.strimzi.io/orders", "kafkanodepool.kafka.strimzi.io/"]);
    tree.run(plan).expect(0).says(&["Nothing to do"]);

    // A manual edit is seen, named and reverted, even after the cache is lost.
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.run(plan).expect(0).says(&["Nothing to do"]);
    let patch = format!(
        "patch {QUOTA} --type=merge --field-manager=kubectl-edit -p {{\"spec\":{{\"hard\":{{\"pods\":\"99\"}}}}}}"
    );
    plane.kubectl(&patch, "").expect(0);
    tree.run(plan).expect(2).says(&["kubectl-edit", "ResourceQuota kafka-acme--sandbox/sandbox", "99"]);
    tree.run(apply).expect(0);
    let pods = format!("get {QUOTA} --output=jsonpath={{.spec.hard.pods}}");
    assert_eq!(plane.kubectl(&pods, "").expect(0).out, "14");
    tree.run(plan).expect(0);

    // The same for a Secret, without showing its content.
    plane
        .kubectl(
            "patch secret orders-tls --namespace=kafka-acme--orders -p {\"data\":{\"tls.key\":\"c2VjcmV0\"}}",
            "",
        )
        .expect(0);
    tree.run(plan)
        .expect(2)
        .says(&["kubectl-patch", "Secret kafka-acme--orders/orders-tls"])
        .says_nothing_of(&["c2VjcmV0", "PRIVATE KEY"]);
    tree.run(apply).expect(0).says_nothing_of(&["c2VjcmV0"]);
    tree.run(plan).expect(0);

    // An unreachable server doesn't count as an empty cluster.
    plane.stop();
    tree.run(plan).expect(3).says(&[
        "byok, Unreachable",
        "  last seen less than a minute ago, at 20",
        "; the plan below uses the state recorded then",
        "cannot read the namespace kube-system",
    ]);
    tree.run(apply).expect(3).says(&["Connection refused"]);
    plane.start_again();
    tree.run(plan).expect(0);

    // A second fleet can't use this cluster.
    let fleet = tree.read(FLEET).replace("identifier: eu", "identifier: us");
    tree.write("acme/fleets/us.yaml", fleet);
    tree.run(plan).expect(3).says(&["cannot use the Kubernetes cluster: fleet acme/eu is on it"]);
    tree.remove("acme/fleets/us.yaml");

    // An unprotected cluster is deleted with its file; its namespace and disks stay.
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-0, namespace: kafka-acme--sandbox}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    plane.kubectl("apply -f -", claim).expect(0);
    tree.edit(SANDBOX, "    on_delete: Delete", "    on_delete: Retain");
    tree.run(apply).expect(0);
    tree.remove(SANDBOX);
    tree.run(apply).expect(0).says(&["1 to delete", "Applied 1 resource"]);
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(1).says(&["not found"]);
    plane.kubectl("get pvc data-0 --namespace=kafka-acme--sandbox", "").expect(0);
    tree.run(plan).expect(0);

    // A protected one stays, even if only the Kubernetes cluster still knows of it.
    fs::remove_dir_all(tree.path().join(".streamfleet/state")).unwrap();
    tree.remove("acme/clusters/orders.yaml");
    tree.run(apply);
    plane.kubectl("get kafka orders --namespace=kafka-acme--orders", "").expect(0);
}

#[test]
fn nothing_that_is_not_ours_is_touched_and_nothing_is_reached_that_may_not_be() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let foreign =
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: kafka-acme--orders, labels: {theirs: \"yes\"}}\n";
    plane.kubectl("apply -f -", foreign).expect(0);
    let before = plane.kubectl("get namespace kafka-acme--orders --output=json", "").expect(0).out;

    // Only the settings allow a kubeconfig that points at this host.
    tree.run("plan tree").expect(3).says(&[
        "cannot connect to the `server` of the fleet's `kubeconfig`: 127.0.0.1 is a loopback address",
        "`allow_addresses` under `[targets]`",
    ]);

    // A foreign object in the place of ours stays unchanged and is reported.
    tree.run("plan tree --config config.toml").says(&["kafka-acme--orders"]);
    tree.run("apply tree --yes --config config.toml");
    let after = plane.kubectl("get namespace kafka-acme--orders --output=json", "").expect(0).out;
    assert_eq!(after, before);
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(0);

    // A kubeconfig for another cluster than before changes nothing there.
    let another = ControlPlane::lease();
    let (here, there) = (plane.kubeconfig(), another.kubeconfig());
    tree.edit(FLEET, &here, &there);
    tree.run("apply tree --yes --config config.toml")
        .says(&["cannot use the Kubernetes cluster: it is not the one that the fleet was created on (its `kube-system` has \
                 the uid"]);
    another.kubectl("get namespace streamfleet-system", "").expect(1).says(&["not found"]);
}

/// If two new fleets claim one cluster, both are refused, and the plan says so.
#[test]
fn two_new_fleets_on_one_cluster_are_both_refused_in_the_plan() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let second = tree.read(FLEET).replace("identifier: eu", "identifier: us");
    tree.write("acme/fleets/us.yaml", second);
    let said = [
        "cannot use the Kubernetes cluster: the specs of fleet acme/us lead to it too",
        "cannot use the Kubernetes cluster: the specs of fleet acme/eu lead to it too",
        "4 waiting",
    ];
    for verb in ["plan tree", "apply tree --yes"] {
        tree.run(&format!("{verb} --config config.toml")).expect(3).says(&said);
    }
    plane.kubectl("get namespace streamfleet-system", "").expect(1).says(&["not found"]);

    // Once one fleet owns it, only the other is refused.
    tree.remove("acme/fleets/us.yaml");
    tree.run("apply tree --yes --config config.toml").expect(0);
}

#[test]
fn a_run_that_is_killed_or_hangs_is_finished_by_the_next() {
    let mut plane = ControlPlane::lease();
    let tree = on(&plane);
    let words = "apply tree --yes --config config.toml";
    // With growing delays, until one run completes.
    for patience in (0..).map(|round| std::time::Duration::from_millis(150 * round)) {
        let mut run = tree.command(words).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(patience);
        if run.try_wait().unwrap().is_some() {
            break;
        }
        run.kill().unwrap();
        run.wait().unwrap();
    }
    tree.run(words).expect(0);
    tree.run("plan tree --config config.toml").expect(0);
    let inventory = "get configmaps --namespace=streamfleet-system --output=jsonpath={.items[*].data}";
    plane.kubectl(inventory, "").expect(0).says_nothing_of(&["\"deleting\\\":true"]);

    // A hanging deletion names the holder, and resumes when possible: only controllers end the deletion of a
    // namespace.
    tree.remove(SANDBOX);
    tree.run(words).expect(1).says(&[
        "cannot finish the deletion of Namespace kafka-acme--sandbox: it is being deleted and blocked by kubernetes",
    ]);
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(1).says(&["not found"]);
    plane.run_controllers();
    tree.run(words).expect(0);
    plane.kubectl("get namespace kafka-acme--sandbox", "").expect(1).says(&["not found"]);
}

/// A kubeconfig's exec program is never run, neither by a plan nor by an apply.
#[test]
fn a_kubeconfig_runs_nothing() {
    let tree = Tree::example("quickstart");
    let mark = tree.beside("was-run");
    let kubeconfig = format!(
        "{{\"current-context\": \"c\", \"contexts\": [{{\"name\": \"c\", \"context\": {{\"cluster\": \"c\", \"user\": \"u\"}}}}], \
         \"clusters\": [{{\"name\": \"c\", \"cluster\": {{\"server\": \"https://192.0.2.1\"}}}}], \
         \"users\": [{{\"name\": \"u\", \"user\": {{\"exec\": {{\"apiVersion\": \"client.authentication.k8s.io/v1\", \
         \"command\": \"touch\", \"args\": [\"{}\"]}}}}}}]}}",
        mark.display()
    );
    make_byok(&tree, FLEET, &kubeconfig);
    tree.run("plan tree").expect(1).says(&["the kubeconfig's user has `exec`"]);
    tree.run("apply tree --yes").expect(1);
    assert!(!mark.exists());
}
