//! The Strimzi operator installed by a fleet, on a real control plane: install, upgrade, handover, refusal.

use std::fs;

use sha2::{Digest as _, Sha256};

use crate::kubernetes::{on, reached_with};
use crate::rights::tenant;
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;

const FLEET: &str = "acme/fleets/eu.yaml";
const APPLY: &str = "apply tree --yes --config config.toml";
const PLAN: &str = "plan tree --config config.toml";
const DEPLOYMENT: &str = "get deployment strimzi-cluster-operator --namespace=strimzi-operator";

const OPERATOR: &str = include_str!("../crates/core/src/config/release/strimzi.yaml");

/// The manifests of a version, with the real definitions of Strimzi's resources.
fn manifests(version: &str) -> String {
    let definitions = ControlPlane::definitions();
    format!("{definitions}\n---\n{}", OPERATOR.replace("operator:1.2.0", &format!("operator:{version}")))
}

/// Settings that offer these operator versions, with their files.
fn offer(tree: &Tree, versions: &[&str]) {
    let mut settings = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n".to_owned();
    for version in versions {
        let manifests = manifests(version);
        let digest = hex::encode(Sha256::digest(&manifests));
        fs::write(tree.beside(&format!("strimzi-{version}.yaml")), manifests).unwrap();
        settings += &format!(
            "[operators.strimzi.\"{version}\"]\nmanifests = \"strimzi-{version}.yaml\"\nsha256 = \"{digest}\"\n\
             images = [\"quay.io/strimzi/\"]\n"
        );
    }
    fs::write(tree.beside("config.toml"), settings).unwrap();
}

fn ask(tree: &Tree, version: &str) {
    let text = tree.read(FLEET);
    let component = format!("  components: {{strimzi: {version}}}\n");
    match text.contains("advanced_config:\n") {
        true => tree.edit(FLEET, "advanced_config:\n", &format!("advanced_config:\n{component}")),
        false => tree.write(FLEET, format!("{text}advanced_config:\n{component}")),
    }
}

#[test]
fn an_operator_is_installed_upgraded_and_given_back() {
    let plane = ControlPlane::lease();
    plane.kubectl("delete customresourcedefinitions --all", "").expect(0);
    let tree = reached_with(&tenant(&plane, "--operator"));
    offer(&tree, &["1.2.0", "1.3.0"]);
    ask(&tree, "1.2.0");

    // Definitions come first and are awaited, so that one apply creates the operator and the clusters.
    tree.run(PLAN).expect(2).says(&[
        "+ Namespace strimzi-operator",
        "+ CustomResourceDefinition kafkas.kafka.strimzi.io",
        "+ ClusterRoleBinding strimzi-entity-operator",
        "+ Deployment strimzi-operator/strimzi-cluster-operator",
    ]);
    tree.run(APPLY).expect(0);
    plane.kubectl("get kafka orders --namespace=kafka-acme--orders", "").expect(0);
    let watched = format!("{DEPLOYMENT} --output=jsonpath={{.spec.template.spec.containers[0].env[0]}}");
    assert_eq!(plane.kubectl(&watched, "").expect(0).out, r#"{"name":"STRIMZI_NAMESPACE","value":"*"}"#);
    let role = "auth can-i watch kafkas.kafka.strimzi.io --all-namespaces \
                --as=system:serviceaccount:strimzi-operator:strimzi-cluster-operator";
    plane.kubectl(role, "").expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]).says_nothing_of(&["OperatorMissing", "Permissions"]);

    // Manual changes are reverted.
    plane
        .kubectl("scale deployment strimzi-cluster-operator --replicas=0 --namespace=strimzi-operator", "")
        .expect(0);
    tree.run(PLAN).expect(2).says(&["~ Deployment strimzi-operator/strimzi-cluster-operator"]);
    tree.run(APPLY).expect(0);

    // Another version restarts brokers, and the plan says so.
    tree.edit(FLEET, "strimzi: 1.2.0", "strimzi: 1.3.0");
    tree.run(APPLY).expect(0).says(&[
        "advanced_config.components.strimzi 1.2.0 → 1.3.0",
        "a new version of the operator restarts the brokers of every cluster",
        "+         image: quay.io/strimzi/operator:1.3.0",
    ]);
    tree.run(PLAN).expect(0);
    tree.edit(FLEET, "strimzi: 1.3.0", "strimzi: 1.2.0");
    tree.run(APPLY).expect(1).says(&[
        "error: the Strimzi operator can't go from 1.3.0 back to 1.2.0",
        "an older operator can't handle what a newer one wrote; restore 1.3.0",
    ]);

    // After the handover the operator is deleted; custom resources, their definitions and the namespace stay.
    tree.edit(FLEET, "strimzi: 1.2.0", "strimzi: existing");
    tree.run(APPLY)
        .expect(0)
        .says(&["is deleted; clusters keep running, and changes have no effect until another operator \
                                      is installed"]);
    plane.kubectl(DEPLOYMENT, "").expect(1).says(&["not found"]);
    plane.kubectl("get namespace strimzi-operator", "").expect(0);
    plane.kubectl("get kafka orders --namespace=kafka-acme--orders", "").expect(0);
    tree.run(PLAN).expect(0).says(&[
        "Nothing to do",
        "install it, or set a version to install in \
                                                      `advanced_config.components.strimzi` of the fleet",
    ]);
}

#[test]
fn what_somebody_else_runs_is_not_installed_over() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    offer(&tree, &["1.2.0"]);
    ask(&tree, "1.2.0");
    let theirs = OPERATOR.split("---\n").last().unwrap();
    plane.kubectl("apply --namespace=default -f -", theirs).expect(0);
    tree.run(APPLY).expect(3).says(&[
        "! SecondOperator: Strimzi 1.2.0 in default/strimzi-cluster-operator is on the cluster already, and a second \
         operator would conflict with it; set `strimzi: existing` in `advanced_config.components` of the fleet",
        "! cluster sandbox    waiting: fleet acme/eu can't be used yet",
        "CustomResourceDefinition kafkas.kafka.strimzi.io exists and isn't managed by streamfleet",
        "don't remove it: every Kafka of the Kubernetes cluster depends on it. Somebody else installed an operator",
    ]).says_nothing_of(&["move it away"]);
    for namespace in ["strimzi-operator", "kafka-acme--sandbox"] {
        plane.kubectl(&format!("get namespace {namespace}"), "").expect(1).says(&["not found"]);
    }
}

#[test]
fn an_operator_is_written_for_a_folder_too() {
    let tree = Tree::example("quickstart");
    for cluster in ["orders", "sandbox"] {
        tree.remove(&format!("acme/clusters/{cluster}.yaml"));
    }
    tree.edit(FLEET, "max_tenants", "deletion_protection: false\nmax_tenants");
    offer(&tree, &["1.2.0"]);
    ask(&tree, "1.2.0");
    tree.run(APPLY).expect(0);
    let written = |file: &str| tree.output().iter().any(|(path, _)| path == file);
    let definition = "acme/eu/_cluster/customresourcedefinition-kafkas.kafka.strimzi.io.yaml";
    let others = [
        "acme/eu/_cluster/namespace-strimzi-operator.yaml",
        "acme/eu/strimzi-operator/deployment-strimzi-cluster-operator.yaml",
    ];
    assert!(written(definition) && others.iter().all(|file| written(file)), "{:?}", tree.output());
    tree.run(PLAN).expect(0);

    // It is deleted with its fleet, except for the definitions.
    tree.remove(FLEET);
    tree.run(APPLY).expect(0);
    assert!(written(definition) && !others.iter().any(|file| written(file)));
    tree.run(PLAN).expect(0);
}

#[test]
fn manifests_that_are_not_what_the_settings_say_install_nothing() {
    let tree = Tree::example("quickstart");
    offer(&tree, &["1.2.0"]);
    ask(&tree, "1.2.0");
    let file = tree.beside("strimzi-1.2.0.yaml");
    let whole = fs::read_to_string(&file).unwrap();

    fs::write(&file, format!("{whole}\n")).unwrap();
    tree.run(APPLY).expect(1).says(&[
        "error: the manifests of Strimzi 1.2.0 don't match: their SHA-256 digest is",
        "acme/fleets/eu.yaml:13:25",
        "compare the file with the one that Strimzi publishes",
    ]);
    fs::remove_file(&file).unwrap();
    tree.run(PLAN).expect(1).says(&[
        "error: the manifests of Strimzi 1.2.0 can't be read from `strimzi-1.2.0.yaml`: No such file or directory",
    ]);
    fs::write(&file, &whole).unwrap();
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings.replace("quay.io/strimzi/", "registry.example.com/"))
        .unwrap();
    tree.run(PLAN).expect(1).says(&[
        "error: the manifests of Strimzi 1.2.0 use the image `quay.io/strimzi/operator:1.2.0`, which the settings don't allow",
    ]);
    fs::write(tree.beside("config.toml"), settings).unwrap();
    tree.edit(FLEET, "strimzi: 1.2.0", "strimzi: 1.4.0");
    tree.run(PLAN).expect(1).says(&[
        "error: the settings of the installation have no manifests of Strimzi 1.4.0",
        "help: choose one of 1.2.0, or have the administrators of the installation add it",
    ]);
    assert_eq!(tree.output(), []);
}
