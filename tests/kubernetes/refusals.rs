//! Server refusals, changes by others and immutable objects: announced before anything is done, and carried
//! out as announced.

use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, until};

use super::{FLEET, QUOTA, SANDBOX, on};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const PODS: &str = "--output=jsonpath={.spec.hard.pods}";

/// A policy of the Kubernetes cluster's owner that permits Kafkas of one name only.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-kafka}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [kafka.strimzi.io], apiVersions: ['*'], operations: [CREATE, UPDATE], resources: [kafkas]}
  validations:
    - {expression: \"object.metadata.name == 'spare'\", message: ask the platform team first, reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-kafka}
spec: {policyName: no-kafka, validationActions: [Deny]}
";

const SOME_KAFKA: &str = "
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: trial, namespace: default}
spec: {kafka: {listeners: [{name: tls, port: 9093, type: internal, tls: true}]}}
";

/// Waits until the policy is active: the server learns of it a moment after it is stored.
fn wait_for_policy(plane: &ControlPlane, holds: bool) {
    let try_it = "apply --server-side --dry-run=server -f -";
    until("the policy is as it was set", || {
        let refused = plane.kubectl(try_it, SOME_KAFKA).err.contains("ask the platform team");
        (refused == holds).then_some(())
    });
}

fn add_cluster(tree: &Tree, name: &str) {
    let text = tree.read(SANDBOX).replace("identifier: sandbox", &format!("identifier: {name}"));
    tree.write(&format!("acme/clusters/{name}.yaml"), text);
}

#[test]
fn what_the_server_refuses_is_told_with_its_place_and_the_rest_is_done() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    add_cluster(&tree, "spare");
    plane.kubectl("apply -f -", POLICY).expect(0);
    wait_for_policy(&plane, true);

    // No dry run is possible in a namespace that doesn't exist yet, and the plan says so.
    tree.run(PLAN).expect(2).says(&[
        "objects unverified until Namespace kafka-acme--orders exists",
        "objects unverified until Namespace kafka-acme--spare exists",
    ]);

    // Two steps fail, each with its object and spec location, and the third is done.
    let applied = tree.run(APPLY).expect(1).says(&[
        "cluster acme/orders (acme/clusters/orders.yaml:2): cannot apply Kafka kafka-acme--orders/orders: the server refused \
         it with 403 Forbidden",
        "cluster acme/sandbox (acme/clusters/sandbox.yaml:2): cannot apply Kafka kafka-acme--sandbox/sandbox",
        "ask the platform team first",
    ]);
    assert_eq!(applied.err.matches("ask the platform team first").count(), 2, "{}", applied.err);
    plane.kubectl("get kafka spare --namespace=kafka-acme--spare", "").expect(0);

    // Now the dry run is possible: refused steps wait with the server's message, and none of them is sent.
    let refused = [
        "! cluster orders     blocked: the target would refuse Kafka kafka-acme--orders/orders: 403 Forbidden",
        "acme/clusters/orders.yaml:2",
        "! cluster sandbox",
        "ask the platform team first",
        "to continue: check the policy, webhook or quota of the cluster that refuses it",
    ];
    tree.run(PLAN).expect(3).says(&refused).says_nothing_of(&["unverified", "spare"]);
    tree.run(APPLY).expect(3).says(&refused).says_nothing_of(&["cannot apply"]);

    plane.kubectl("delete -f -", POLICY).expect(0);
    wait_for_policy(&plane, false);
    tree.run(APPLY).expect(0).says(&["Applied 2 resources"]);

    // Without a difference there is no dry run.
    let before = dry_runs(&plane);
    tree.run(PLAN).expect(0);
    assert_eq!(dry_runs(&plane), before);
    assert!(before > 0);
}

/// New Namespaces are alike, so only some have a dry run. If one of them is refused, each has its own.
#[test]
fn of_many_new_namespaces_some_are_tried_and_all_once_one_is_refused() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let limits = [("max_tenants: 5", "max_tenants: 20"), ("max_kafka_units: 10", "max_kafka_units: 40")];
    limits.iter().for_each(|(before, after)| tree.edit(FLEET, before, after));
    tree.edit("organizations.yaml", "clusters: 10\n  kafka_units: 20", "clusters: 20\n  kafka_units: 40");
    let names: Vec<String> = (0..10).map(|number| format!("spare-{number}")).collect();
    names.iter().for_each(|name| add_cluster(&tree, name));
    let before = dry_runs(&plane);
    tree.run(PLAN).expect(2).says(&[
        " objects unverified until Namespace kafka-acme--orders exists",
        " objects unverified until Namespace kafka-acme--spare-9 exists",
    ]);
    assert_eq!(dry_runs(&plane) - before, 8);

    // All are refused: each waits, and nothing is sent.
    let policy = |expression: &str| NAMESPACES.replace("EXPRESSION", expression);
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kafka-acme--trial-9}\n";
    let wait_for = |holds: bool| {
        until("the policy is as it was set", || {
            let refused = plane.kubectl("apply --server-side --dry-run=server -f -", namespace);
            (refused.err.contains("one team only") == holds).then_some(())
        });
    };
    let nobody = policy("false");
    plane.kubectl("apply -f -", &nobody).expect(0);
    wait_for(true);
    let planned = tree.run(PLAN).expect(3);
    assert_eq!(planned.out.matches("the target would refuse Namespace").count(), 12, "{}", planned.out);
    tree.run(APPLY).expect(3).says(&["12 waiting"]).says_nothing_of(&["cannot apply"]);
    plane.kubectl("delete -f -", &nobody).expect(0);
    wait_for(false);

    // One that wasn't tried is refused: it alone fails, and it waits from then on.
    let some = policy("!object.metadata.name.endsWith('-9')");
    plane.kubectl("apply -f -", &some).expect(0);
    wait_for(true);
    tree.run(PLAN).expect(2).says_nothing_of(&["would refuse"]);
    tree.run(APPLY).expect(1).says(&["cannot apply Namespace kafka-acme--spare-9", "one team only"]);
    plane.kubectl("get kafka spare-8 --namespace=kafka-acme--spare-8", "").expect(0);
    tree.run(PLAN).expect(3).says(&[
        "! cluster spare-9    blocked: the target would refuse Namespace kafka-acme--spare-9: 403 Forbidden",
        "1 waiting",
    ]);
}

/// A policy for the Namespaces of ours.
const NAMESPACES: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-namespaces}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [''], apiVersions: ['*'], operations: [CREATE], resources: [namespaces]}
  validations:
    - {expression: \"!object.metadata.name.startsWith('kafka-') || EXPRESSION\", message: one team only, reason: Forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-namespaces}
spec: {policyName: no-namespaces, validationActions: [Deny]}
";

fn dry_runs(plane: &ControlPlane) -> usize {
    let metrics = plane.kubectl("get --raw /metrics", "").expect(0).out;
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_request_total") && line.contains("dry_run=\"All\""));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

#[test]
fn what_people_changed_is_taken_back_and_what_a_controller_has_is_left() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let pods = || plane.kubectl(&format!("get {QUOTA} {PODS}"), "").expect(0).out;
    let patch = |manager: &str, spec: &str| {
        let patch = format!(
            "patch {QUOTA} --type=merge --field-manager={manager} -p {{\"spec\":{{\"hard\":{spec}}}}}"
        );
        plane.kubectl(&patch, "").expect(0);
    };

    // A person's change is named before it is reverted.
    patch("kubectl-edit", r#"{"pods":"99"}"#);
    tree.run(PLAN).expect(2).says(&[
        "kubectl-edit changed `.spec.hard.pods`: it is changed back",
        "because kubectl-edit changed the target",
    ]);
    tree.run(APPLY).expect(0);
    assert_eq!(pods(), "14");
    tree.run(PLAN).expect(0);

    // A controller's change is left in place and shown in each plan, and doesn't block other changes.
    patch("autoscaler", r#"{"pods":"99"}"#);
    patch("kubectl-edit", r#"{"limits.memory":"1Gi"}"#);
    let left = "autoscaler manages `.spec.hard.pods`: it is left unchanged";
    let shown =
        tree.run(PLAN).expect(2).says(&[left, "kubectl-edit changed `.spec.hard.limits.memory`", "1Gi"]);
    assert!(!shown.out.contains("\"99\""), "what is left doesn't change\n{}", shown.out);
    tree.run(APPLY).expect(0).says(&[left]);
    let memory = format!("get {QUOTA} --output=jsonpath={{.spec.hard.limits\\.memory}}");
    assert_eq!(pods(), "99");
    assert_ne!(plane.kubectl(&memory, "").expect(0).out, "1Gi");
    let waits = "blocked: autoscaler manages `.spec.hard.pods` of ResourceQuota kafka-acme--sandbox/sandbox, so \
                 streamfleet leaves it unchanged";
    for _ in 0..2 {
        tree.run(PLAN).expect(3).says(&[waits, "make autoscaler stop managing the field"]);
    }
    // Nor does it block a change of the spec.
    tree.edit(SANDBOX, "kafka_units: 1", "kafka_units: 1\ntags: [{key: team, value: lab}]");
    tree.run(APPLY).expect(0).says(&["ResourceQuota kafka-acme--sandbox/sandbox: autoscaler manages"]);
    tree.run(PLAN).expect(3).says(&[waits]);

    // When the controller releases the field, it is ours again.
    let managers =
        format!("get {QUOTA} --output=jsonpath={{.metadata.managedFields[*].manager}} --show-managed-fields");
    let managers = plane.kubectl(&managers, "").expect(0).out;
    let index = managers.split_whitespace().position(|manager| manager == "autoscaler").unwrap();
    let release = format!(
        "patch {QUOTA} --type=json -p [{{\"op\":\"remove\",\"path\":\"/metadata/managedFields/{index}\"}}]"
    );
    plane.kubectl(&release, "").expect(0);
    tree.run(APPLY).expect(0);
    assert_eq!(pods(), "14");
    tree.run(PLAN).expect(0);
}

#[test]
fn what_can_not_be_changed_is_made_anew_where_no_data_is_in_it() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let secret = "secret orders-tls --namespace=kafka-acme--orders";
    let uid =
        || plane.kubectl(&format!("get {secret} --output=jsonpath={{.metadata.uid}}"), "").expect(0).out;
    let before = uid();

    // A Secret was changed and made immutable.
    let spoil = format!("patch {secret} -p {{\"immutable\":true,\"data\":{{\"tls.key\":\"c2VjcmV0\"}}}}");
    plane.kubectl(&spoil, "").expect(0);
    tree.run(PLAN)
        .expect(2)
        .says(&["± Secret kafka-acme--orders/orders-tls: deleted and recreated, because it can't be changed"])
        .says_nothing_of(&["c2VjcmV0", "PRIVATE KEY"]);
    tree.run(APPLY).expect(0).says_nothing_of(&["c2VjcmV0"]);
    let after = uid();
    assert_ne!(after, before);
    let look = format!("get {secret} --output=jsonpath={{.immutable}}{{.data.tls\\.key}}");
    plane.kubectl(&look, "").expect(0).says_nothing_of(&["true", "c2VjcmV0"]);
    tree.run(PLAN).expect(0);

    // An object that may hold data isn't recreated: here, a Kafka that the cluster's owner made immutable.
    let frozen = POLICY
        .replace("object.metadata.name == 'spare'", "oldObject == null || object.spec == oldObject.spec")
        .replace("ask the platform team first, reason: Forbidden", "field is immutable, reason: Invalid");
    plane.kubectl("apply -f -", &frozen).expect(0);
    tree.edit(ORDERS, "Internal & External", "Internal");
    let refused = until("the policy holds", || {
        let plan = tree.run(PLAN);
        plan.out.contains("would refuse").then_some(plan)
    });
    refused.expect(3).says(&[
        "Kafka kafka-acme--orders/orders: Invalid: ",
        "restore the field: streamfleet doesn't delete and recreate the object, because its data could be lost; to use \
         another value, create a new cluster and move the data there",
        "field is immutable",
        "to continue:",
    ]);
    tree.run(APPLY).expect(3);
    plane.kubectl("get kafka orders --namespace=kafka-acme--orders", "").expect(0);
}
