//! A fleet that is the Kubernetes cluster that Streamfleet runs in, as the service account of its pod.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kubernetes::{FLEET, QUOTA, SANDBOX};
use crate::support::control_plane::{ControlPlane, until};
use crate::support::serve::Serve;
use crate::support::{Run, Tree};

const ACCOUNT: &str = "serviceaccount streamfleet --namespace=streamfleet";
const PLAN: &str = "plan tree --config config.toml";

/// A tree whose fleet is `in_cluster`, and the mount of the pod's service account.
struct Pod<'p> {
    plane: &'p ControlPlane,
    tree: Tree,
    port: String,
}

impl Pod<'_> {
    /// A pod whose account has the rights that are printed for it.
    fn of(plane: &ControlPlane) -> Pod<'_> {
        let tree = Tree::example("quickstart");
        tree.edit(FLEET, "infra_type: directory", "infra_type: byok");
        tree.write(FLEET, format!("{}advanced_config:\n  in_cluster: true\n", tree.read(FLEET)));
        for cluster in ["acme/clusters/orders.yaml", SANDBOX] {
            tree.edit(cluster, "cluster_type", "cloud_provider: byok\ncluster_type");
        }
        fs::write(tree.beside("config.toml"), "[targets]\nin_cluster = [\"acme/eu\"]\n").unwrap();
        let kubeconfig: Value = serde_json::from_str(&plane.kubeconfig()).unwrap();
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let pod = Pod { plane, tree, port: server.rsplit(':').next().unwrap().to_owned() };
        let rights = pod.tree.run("role --service-account streamfleet/streamfleet").expect(0).out;
        plane.kubectl("apply --server-side -f -", &rights).expect(0);
        plane.kubectl("create namespace streamfleet", "").expect(0);
        plane.kubectl(&format!("create {ACCOUNT}"), "").expect(0);
        fs::create_dir(pod.mount()).unwrap();
        fs::copy(plane.folder().join("ca.crt"), pod.mount().join("ca.crt")).unwrap();
        let token = pod.rotate();
        until("the role holds", || (as_user(plane, &token, "get namespaces").code == 0).then_some(()));
        pod
    }

    fn mount(&self) -> PathBuf {
        self.tree.beside("serviceaccount")
    }

    /// Replaces the token by a new one, as the kubelet does: by a rename.
    fn rotate(&self) -> String {
        let token = self.plane.kubectl("create token streamfleet --namespace=streamfleet", "").expect(0);
        let token = token.out.trim().to_owned();
        fs::write(self.mount().join("token.new"), &token).unwrap();
        fs::rename(self.mount().join("token.new"), self.mount().join("token")).unwrap();
        token
    }

    fn variables(&self) -> [(&str, &str); 3] {
        [
            ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
            ("KUBERNETES_SERVICE_PORT", &self.port),
            ("STREAMFLEET_SERVICE_ACCOUNT_DIR", "serviceaccount"),
        ]
    }

    fn run(&self, words: &str) -> Run {
        self.tree.run_with(words, &self.variables(), "")
    }
}

fn as_user(plane: &ControlPlane, token: &str, words: &str) -> Run {
    let mut kubeconfig: Value = serde_json::from_str(&plane.kubeconfig()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": token});
    plane.kubectl_with(&kubeconfig.to_string(), words)
}

#[test]
fn a_fleet_on_the_own_cluster_is_applied_by_the_pods_account_whose_token_is_replaced_meanwhile() {
    let plane = ControlPlane::lease();
    let pod = Pod::of(&plane);
    pod.run(PLAN).expect(2).says(&["fleet acme/eu   byok      units"]);
    pod.run("apply tree --yes --config config.toml").expect(0);
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(0);
    fs::remove_dir_all(pod.tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    pod.run(PLAN).expect(0).says(&["Nothing to do"]);

    let serve = Serve::start_with(&pod.tree, "serve --specs tree --config config.toml", &pod.variables());
    serve.says(&["planned", "looked=1"]);
    // A token is bound to the uid of its account, so the earlier one ends with it.
    let before = fs::read_to_string(pod.mount().join("token")).unwrap();
    plane.kubectl(&format!("delete {ACCOUNT}"), "").expect(0);
    plane.kubectl(&format!("create {ACCOUNT}"), "").expect(0);
    let now = pod.rotate();
    until("the earlier token is refused", || {
        as_user(&plane, &before, "get namespaces").err.contains("Unauthorized").then_some(())
    });
    plane.kubectl(&format!("delete {QUOTA}"), "").expect(0);
    let get = format!("get {QUOTA}");
    serve.until("what was deleted is there again", || (plane.kubectl(&get, "").code == 0).then_some(()));
    assert!(![&before, &now].iter().any(|token| serve.log().contains(*token)), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));

    // What the spec no longer says is recorded: the fleet is reached, and protected.
    let spec = pod.tree.read(FLEET);
    pod.tree.remove(FLEET);
    pod.run(PLAN).expect(1).says_nothing_of(&["Unreachable", "cannot use the fleet's"]);
    pod.tree.write(FLEET, spec);

    // Settings that no longer name it take the right away.
    fs::write(pod.tree.beside("config.toml"), "").unwrap();
    pod.run(PLAN).expect(1).says(&[
        "the settings don't allow fleet acme/eu to be `in_cluster`",
        "cannot use the fleet's `in_cluster`: the settings don't name the fleet",
    ]);
}

#[test]
fn outside_of_a_pod_and_without_its_files_the_fleet_is_unreachable_with_the_reason() {
    let plane = ControlPlane::lease();
    let pod = Pod::of(&plane);
    pod.tree.run(PLAN).expect(3).says(&[
        "cannot use the fleet's `in_cluster`: streamfleet doesn't run in a pod: the variable KUBERNETES_SERVICE_HOST is \
         not set",
        "the settings have to name the fleet in `in_cluster` under `[targets]`, and streamfleet to run in a pod with its \
         service account's token mounted; the chart does both with `inCluster`",
    ]);
    fs::remove_file(pod.mount().join("token")).unwrap();
    pod.run(PLAN).expect(3).says(&[
        "cannot use the fleet's `in_cluster`: cannot read `serviceaccount/token` of the pod's service account: No such \
         file or directory (os error 2)",
    ]);
    let account = pod.rotate();
    plane.kubectl("delete clusterrolebinding streamfleet", "").expect(0);
    until("the role is gone", || (as_user(&plane, &account, "get namespaces").code != 0).then_some(()));
    pod.run(PLAN).expect(3).says(&["system:serviceaccount:streamfleet:streamfleet"]);
}
