//! Preflight on a real control plane: what a Kubernetes cluster lacks is reported before anything is created
//! there.

use serde_json::{Value, json};

use crate::api::exchanges::KUBECONFIG;
use crate::api::{Api, new_token};
use crate::kubernetes::removal::LEFT_BY_THE_OPERATOR;
use crate::kubernetes::{on, reached_with};
use crate::rights::tenant;
use crate::service::http::send;
use crate::support::control_plane::{ControlPlane, until};
use crate::support::{Run, Tree};

const APPLY: &str = "apply tree --yes --config config.toml";
const PLAN: &str = "plan tree --config config.toml";

fn given(plane: &ControlPlane, documents: &str) -> Run {
    plane.kubectl("apply --server-side --force-conflicts -f -", documents).expect(0)
}

fn class(name: &str, default: bool, expands: bool) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: example.com/disks\n\
         allowVolumeExpansion: {expands}\nmetadata:\n  name: {name}\n  annotations:\n    \
         storageclass.kubernetes.io/is-default-class: \"{default}\"\n---\n"
    )
}

fn operator(watched: &str, versions: &[&str]) -> String {
    let images: Vec<String> =
        versions.iter().map(|version| format!("{version}=example.com/kafka:{version}")).collect();
    let images = images.join("\\n");
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kafka-operator, namespace: default}}\n\
         spec:\n  selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      containers:\n        \
         - name: operator\n          image: example.com/operator:1.2.0\n          env:\n            \
         - {{name: STRIMZI_NAMESPACE, value: \"{watched}\"}}\n            \
         - {{name: STRIMZI_KAFKA_IMAGES, value: \"{images}\"}}\n"
    )
}

fn is_untouched(plane: &ControlPlane, cluster: &str) {
    let namespace = format!("get namespace kafka-acme--{cluster}");
    plane.kubectl(&namespace, "").expect(1).says(&["not found"]);
}

#[test]
fn a_fleet_waits_for_what_its_cluster_lacks() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let fast = "storage:\n    class: fast";
    tree.edit("acme/clusters/orders.yaml", "advanced_config:", &format!("advanced_config:\n  {fast}"));

    // Warnings don't block; a missing StorageClass blocks only where a spec names it.
    tree.run(APPLY).expect(3).says(&[
        "! StorageClassMissing: there is no StorageClass fast; create it: the cluster has none at all",
        "! DefaultStorageClassMissing: no StorageClass is the default one",
        "! OperatorMissing: no Deployment of the cluster runs the Strimzi operator",
        "! CapacityShort: the fleet's clusters need 11.1 CPUs and 61.1 GiB of memory",
        "and no node accepts pods",
        "blocked: there is no StorageClass fast (StorageClassMissing)",
    ]);
    is_untouched(&plane, "orders");
    plane.kubectl("get kafka sandbox --namespace=kafka-acme--sandbox", "").expect(0);

    // An operator that watches other namespaces, or runs other versions, blocks new clusters.
    given(&plane, &(class("fast", false, false) + &class("plain", true, true) + &class("other", true, true)));
    given(&plane, &operator("default,other", &["4.3.1"]));
    tree.run(PLAN)
        .expect(3)
        .says(&[
            "! OperatorNotWatching: Strimzi 1.2.0 in default/kafka-operator doesn't watch the namespace kafka-acme--orders",
            "! StorageCannotGrow: disks of StorageClass fast can't grow",
            "! DefaultStorageClassAmbiguous: several StorageClasses are the default one: other and plain",
        ])
        .says_nothing_of(&["StorageClassMissing", "cluster sandbox"]);
    given(&plane, &operator("*", &["4.2.0", "4.2.1"]));
    tree.run(APPLY).expect(3).says(&[
        "! KafkaVersionUnsupported: Kafka 4.3.1 is not supported by Strimzi 1.2.0 in default/kafka-operator, which \
         supports 4.2.0 and 4.2.1",
    ]);
    is_untouched(&plane, "orders");

    // Existing clusters aren't affected by anything missing later.
    given(&plane, &operator("*", &["4.3.1"]));
    tree.run(APPLY).expect(0);
    given(&plane, &operator("default", &["4.2.0"]));
    plane.kubectl("delete storageclass fast", "").expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do", "! StorageClassMissing"]);
}

#[test]
fn a_cluster_without_resource_definitions_says_what_to_install() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    plane.kubectl("delete customresourcedefinitions --all", "").expect(0);
    tree.run(APPLY).expect(3).says(&[
        "! DefinitionsMissing: the cluster doesn't have Kafka, KafkaNodePool and KafkaUser of kafka.strimzi.io/v1; \
         install Strimzi 1.0 or newer with its resource definitions",
    ]);
    is_untouched(&plane, "orders");
}

#[test]
fn the_role_that_is_printed_is_enough_for_a_life_and_what_it_lacks_is_named() {
    let plane = ControlPlane::lease();
    let kubeconfig = tenant(&plane, "");
    let tree = reached_with(&kubeconfig);
    tree.run(PLAN).expect(2).says_nothing_of(&["PermissionsMissing"]);

    // Without one of the role's rules, nothing is created in part.
    let rule =
        "get clusterrole streamfleet --output=jsonpath={.rules[?(@.resources[0]==\"limitranges\")].verbs}";
    let verbs = plane.kubectl(rule, "").expect(0).out;
    assert_eq!(verbs, r#"["create","delete","get","list","patch","watch"]"#);
    let role = tree.run("role --service-account default/tenant").expect(0).out;
    let poorer = role.replace("- limitranges", "- nothing");
    given(&plane, &poorer);
    let lacks = "may not create limitranges, delete limitranges, get limitranges";
    until("the role is poorer", || tree.run(PLAN).out.contains(lacks).then_some(()));
    tree.run(APPLY).expect(3).says(&[
        "add to the `rules` of its ClusterRole: {\"apiGroups\":[\"\"],\"resources\":[\"limitranges\"],\
         \"verbs\":[\"create\",\"delete\",\"get\",\"list\",\"patch\",\"watch\"]}",
    ]);
    is_untouched(&plane, "orders");

    given(&plane, &role);
    until("the role is whole", || (!tree.run(PLAN).out.contains(lacks)).then_some(()));
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    tree.run(APPLY).expect(0);

    // A cluster is deleted together with what its operator leaves behind.
    given(&plane, LEFT_BY_THE_OPERATOR);
    tree.remove("acme/clusters/sandbox.yaml");
    let mut plane = plane;
    plane.run_controllers();
    tree.run(PLAN)
        .expect(2)
        .says(&[
            "- PersistentVolumeClaim kafka-acme--sandbox/data-sandbox-dual-7",
            "- ClusterRoleBinding strimzi-kafka-acme--sandbox-sandbox-kafka-init",
        ])
        .says_nothing_of(&["PermissionsMissing"]);
    tree.run(APPLY).expect(0);
    is_untouched(&plane, "sandbox");
    plane
        .kubectl("get clusterrolebinding strimzi-kafka-acme--sandbox-sandbox-kafka-init", "")
        .expect(1)
        .says(&["not found"]);
}

#[test]
fn a_kubeconfig_is_tried_before_a_fleet_has_it() {
    let plane = ControlPlane::lease();
    let tree = Tree::example("quickstart");
    let targets = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", targets);
    api.settle();
    let before = plane.kubectl("get namespaces --output=name", "").expect(0).out;
    let check = |kubeconfig: &str| {
        let fleet = json!({"organization": "acme", "advanced_config": {"kubeconfig": kubeconfig}});
        api.call("POST /v1/checks", fleet).expect(200).body
    };
    let found = check(&plane.kubeconfig());
    assert_eq!(found["reached"], true, "{found:#}");
    let fact = |found: &Value, subject: &str| {
        let facts = found["facts"].as_array().unwrap().clone();
        facts.into_iter().find(|fact| fact["subject"] == subject).unwrap_or_else(|| panic!("{found:#}"))
    };
    assert!(fact(&found, "Kubernetes")["found"].as_str().unwrap().starts_with("1."), "{found:#}");
    assert_eq!(fact(&found, "Permissions")["found"], "all that are needed");
    assert_eq!(fact(&found, "Nodes")["found"], "none accepts pods");
    assert!(fact(&found, "Strimzi operator")["advice"].is_string(), "{found:#}");
    // A user who may do nothing is told so in the server's words.
    let found = check(&plane.service_account("default", "nobody"));
    assert_eq!(found["reached"], false, "{found:#}");
    assert!(found["reason"].as_str().unwrap().contains("403"), "{found:#}");
    // Nobody answers: administrators of an organization don't learn why.
    let away = KUBECONFIG;
    let found = check(away);
    assert!(found["reason"].as_str().unwrap().contains("cannot"), "{found:#}");
    let token = new_token(&tree, "platform@acme.example.com", "acme", "admin");
    let headers = [("Authorization", &*format!("Bearer {token}")), ("Content-Type", "application/json")];
    let fleet = json!({"organization": "acme", "advanced_config": {"kubeconfig": away}}).to_string();
    let told = send(&api.address, "POST /v1/checks", &headers, &fleet);
    assert_eq!(told.status, 200, "{}", told.body);
    assert!(told.body.contains("\"reason\":\"the cluster's API server can't be reached\""), "{}", told.body);
    assert_eq!(
        plane.kubectl("get namespaces --output=name", "").expect(0).out,
        before,
        "nothing was written"
    );
    let log = api.serve.log();
    assert!(!log.contains("kubeconfig-token"), "{log}");
    assert_eq!(api.serve.stop(), Some(0));
}
