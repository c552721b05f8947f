//! What the printed roles allow and forbid, on a real control plane.

use std::fs;

use crate::kubernetes::reached_with;
use crate::support::control_plane::{ControlPlane, until};
use crate::support::serve::Serve;
use crate::support::{Run, Tree};
use crate::watch::no_round_asks_anything;

const USER: &str = "system:serviceaccount:default:tenant";

/// Applies the tenant's roles as printed with these options, as an administrator does.
pub fn give(plane: &ControlPlane, options: &str) {
    let rights = Tree::empty().run(&format!("role --service-account default/tenant {options}")).expect(0).out;
    plane.kubectl("apply --server-side --force-conflicts -f -", &rights).expect(0);
}

/// A service account with exactly the rights printed with these options.
pub fn tenant(plane: &ControlPlane, options: &str) -> String {
    give(plane, options);
    let kubeconfig = plane.service_account("default", "tenant");
    // The server learns of a role, and of a policy, a moment after it is stored.
    until("the role holds", || (plane.kubectl_with(&kubeconfig, "get namespaces").code == 0).then_some(()));
    until("the policy holds", || {
        let namespace = plane.kubectl_with(&kubeconfig, "create namespace elsewhere --dry-run=server");
        namespace.err.contains("streamfleet may only write namespaces of its own").then_some(())
    });
    kubeconfig
}

/// A kubectl call of the tenant on an object.
fn with(plane: &ControlPlane, kubeconfig: &str, verb: &str, object: &str) -> Run {
    fs::write(plane.folder().join("object.yaml"), object).unwrap();
    plane.kubectl_with(kubeconfig, &format!("{verb} -f object.yaml"))
}

fn namespace(name: &str, labels: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\n")
}

fn binding(namespace: &str, role: &str, user: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: mine, namespace: {namespace}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"{user}\"}}]\n"
    )
}

fn cluster_binding(name: &str, role: &str, subject: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\nsubjects: [{subject}]\n"
    )
}

const OURS: &str = "app.kubernetes.io/managed-by: streamfleet, pod-security.kubernetes.io/enforce: baseline";

const MAY_NOT_WRITE: &str = "streamfleet may only write in namespaces of its own";
const MAY_NOT_BIND: &str = "streamfleet may only bind itself to the ClusterRole streamfleet-namespace";

#[test]
fn the_rights_that_are_printed_lead_to_no_secret_outside_of_our_namespaces() {
    let plane = ControlPlane::lease();
    for namespace in ["kube-system", "kafka-prod", "kafka-monitoring"] {
        if namespace != "kube-system" {
            plane.kubectl(&format!("create namespace {namespace}"), "").expect(0);
        }
        let secret = format!("create secret generic treasure --namespace={namespace} --from-literal=a=b");
        plane.kubectl(&secret, "").expect(0);
    }
    let kubeconfig = tenant(&plane, "");
    leads_nowhere(&plane, &kubeconfig);

    // The same with all options.
    give(&plane, "--operator --gateway --prometheus");
    let may = format!("auth can-i create deployments.apps --as={USER} --all-namespaces");
    until("the role holds", || (plane.kubectl(&may, "").code == 0).then_some(()));
    leads_nowhere(&plane, &kubeconfig);
    let refused = |object: &str, words: &str| {
        with(&plane, &kubeconfig, "create", object).expect(1).says(&[words]);
    };
    let me = "{kind: ServiceAccount, namespace: default, name: tenant}";
    let may_not = "streamfleet may not write this cluster-scoped object";
    refused(&cluster_binding("strimzi-kafka-client", "strimzi-kafka-client", me), may_not);
    refused(&cluster_binding("strimzi-kafka-client", "cluster-admin", me), "attempting to grant");
    let operator = "{kind: ServiceAccount, namespace: strimzi-operator, name: strimzi-cluster-operator}";
    refused(&cluster_binding("mine", "strimzi-kafka-client", operator), may_not);
    let role = |name: &str, rule: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules: [{rule}]\n"
        )
    };
    let all = "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}";
    refused(&role("strimzi-mine", all), "attempting to grant");
    for (name, rule) in [
        ("strimzi-kafka-client", all),
        ("strimzi-kafka-client", "{apiGroups: [''], resources: [users], verbs: [impersonate]}"),
        ("streamfleet-namespace", "{apiGroups: [''], resources: [secrets], verbs: [get]}"),
    ] {
        // Applied by its name, like the operator's own roles.
        let applied = with(&plane, &kubeconfig, "apply --server-side --force-conflicts", &role(name, rule));
        assert_eq!(applied.code, 1, "{name}: {}", applied.out);
    }
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mine, namespace: kube-system}\nspec:\n  \
                selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: \
                {containers: [{name: a, image: a}]}\n";
    refused(pods, MAY_NOT_WRITE);
    refused(&pods.replace("kube-system", "kafka-acme--mine"), MAY_NOT_WRITE);
    refused(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mine, namespace: kube-system}\n",
        MAY_NOT_WRITE,
    );
}

fn leads_nowhere(plane: &ControlPlane, kubeconfig: &str) {
    let refused = |words: &str, why: &str| {
        plane.kubectl_with(kubeconfig, words).expect(1).says(&[why]);
    };
    let unreadable = || {
        refused("get secret treasure --namespace=kube-system", "cannot get resource \"secrets\"");
        refused("get secret treasure --namespace=kafka-prod", "cannot get resource \"secrets\"");
        refused("get secret treasure --namespace=kafka-monitoring", "cannot get resource \"secrets\"");
        refused("get secrets --all-namespaces", "cannot list resource \"secrets\"");
    };
    unreadable();

    // By granting itself rights.
    for namespace in ["kube-system", "kafka-prod", "kafka-monitoring", "default"] {
        let mine = binding(namespace, "streamfleet-namespace", USER);
        with(plane, kubeconfig, "create", &mine).expect(1).says(&[MAY_NOT_WRITE]);
    }
    with(plane, kubeconfig, "create", &binding("kube-system", "cluster-admin", USER)).expect(1);
    let all =
        cluster_binding("mine", "cluster-admin", "{kind: ServiceAccount, namespace: default, name: tenant}");
    with(plane, kubeconfig, "create", &all).expect(1);
    refused("create clusterrole mine --verb=* --resource=*", "is forbidden");
    refused("get secrets --namespace=kube-system --as=admin --as-group=system:masters", "cannot impersonate");
    refused("create token default --namespace=kube-system", "is forbidden");
    refused("delete validatingadmissionpolicybinding streamfleet", "is forbidden");
    refused("delete validatingadmissionpolicy streamfleet", "is forbidden");

    // By claiming or changing a foreign namespace.
    let label = "app.kubernetes.io/managed-by=streamfleet";
    for namespace in ["kube-system", "kafka-prod", "kafka-monitoring", "default"] {
        let why = "streamfleet may only write namespaces of its own";
        refused(&format!("label namespace {namespace} {label}"), why);
    }
    refused("delete namespace kafka-prod", "streamfleet may only write namespaces of its own");
    refused("delete namespace kafka-monitoring", "streamfleet may only write namespaces of its own");
    refused("create configmap mine --namespace=kafka-monitoring", MAY_NOT_WRITE);
    refused("create serviceaccount mine --namespace=kafka-monitoring", "forbidden");
    refused("create configmap mine --namespace=kube-system", MAY_NOT_WRITE);
    refused("create configmap mine --namespace=kafka-prod", MAY_NOT_WRITE);
    with(plane, kubeconfig, "create", &namespace("elsewhere", OURS)).expect(1);
    with(plane, kubeconfig, "create", &namespace("kafka-acme--x", "")).expect(1);
    let privileged = OURS.replace("baseline", "privileged");
    with(plane, kubeconfig, "create", &namespace("kafka-acme--x", &privileged))
        .expect(1)
        .says(&["enforces the pod security `baseline` or `restricted`"]);

    // In its own namespaces it may grant itself what it needs there, and nothing else, and nothing to others.
    with(plane, kubeconfig, "apply --server-side", &namespace("kafka-acme--mine", OURS)).expect(0);
    refused(
        "label namespace kafka-acme--mine --overwrite pod-security.kubernetes.io/enforce=privileged",
        "pod security",
    );
    let mine =
        |role: &str, user: &str| with(plane, kubeconfig, "create", &binding("kafka-acme--mine", role, user));
    mine("streamfleet-namespace", "somebody").expect(1).says(&[MAY_NOT_BIND]);
    mine("cluster-admin", USER).expect(1);
    mine("streamfleet-namespace", USER);
    until("its Secrets can be read", || {
        (plane.kubectl_with(kubeconfig, "get secrets --namespace=kafka-acme--mine").code == 0).then_some(())
    });
    refused(
        "patch rolebinding mine --namespace=kafka-acme--mine --type=merge -p {\"subjects\":[]}",
        "forbidden",
    );
    unreadable();
}

#[test]
fn serve_with_the_rights_that_are_printed_warns_of_nothing_it_may_not_do() {
    let plane = ControlPlane::lease();
    let tree = reached_with(&tenant(&plane, ""));
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);

    // Secrets are watched as well: no request is needed, and a deleted one is restored.
    no_round_asks_anything(&plane, &serve);
    let secret = "secret orders-tls --namespace=kafka-acme--orders";
    let before =
        plane.kubectl(&format!("get {secret} --output=jsonpath={{.metadata.uid}}"), "").expect(0).out;
    plane.kubectl(&format!("delete {secret}"), "").expect(0);
    serve.until("a Secret that was deleted is back", || {
        let now = plane.kubectl(&format!("get {secret} --output=jsonpath={{.metadata.uid}}"), "");
        (now.code == 0 && now.out != before).then_some(())
    });
    let log = serve.log();
    let forbidden = ["cannot list or watch", "PermissionsMissing", "forbidden", "cannot watch", "403"];
    let warnings = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR"));
    let told: Vec<&str> = warnings.filter(|line| forbidden.iter().any(|word| line.contains(word))).collect();
    assert_eq!(told, [""; 0], "{log}");

    // Nothing to warn about in the deletion of a cluster either.
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn rights_in_a_namespace_that_were_taken_away_are_given_again() {
    let plane = ControlPlane::lease();
    let tree = reached_with(&tenant(&plane, ""));
    tree.run("apply tree --yes --config config.toml").expect(0);
    let bindings = "rolebindings --namespace=kafka-acme--orders";
    plane.kubectl(&format!("get {bindings}"), "").expect(0).says(&["ClusterRole/streamfleet-namespace"]);
    plane.kubectl(&format!("delete {bindings} --all"), "").expect(0);
    let secret = "get secret orders-tls --namespace=kafka-acme--orders";
    until("the rights are gone", || {
        let may = format!("{secret} --as={USER}");
        (plane.kubectl(&may, "").code != 0).then_some(())
    });
    tree.run("plan tree --config config.toml").expect(0).says(&["Nothing to do"]);

    // Without the label, the namespace isn't ours, and the policy refuses to grant rights in it.
    plane.kubectl("label namespace kafka-acme--orders app.kubernetes.io/managed-by-", "").expect(0);
    plane.kubectl(&format!("delete {bindings} --all"), "").expect(0);
    until("the rights are gone", || {
        let may = format!("{secret} --as={USER}");
        (plane.kubectl(&may, "").code != 0).then_some(())
    });
    tree.run("plan tree --config config.toml").says(&["cannot get resource \"secrets\""]);
}

/// An account that may install the operator can do whatever the operator can.
#[test]
fn rights_to_install_what_clusters_share_are_printed_only_where_they_are_asked_for() {
    for (options, operator, gateway) in
        [("", false, false), ("--operator", true, false), ("--gateway", false, true)]
    {
        let role = Tree::empty().run(&format!("role {options}")).expect(0).out;
        for word in ["- escalate", "variables.ns == 'strimzi-operator'"] {
            assert_eq!(role.contains(word), operator, "`role {options}`: {word}");
        }
        assert_eq!(role.contains("variables.ns == 'streamfleet-gateway'"), gateway, "`role {options}`");
    }
}

#[test]
fn a_service_account_that_is_none_is_refused() {
    let tree = Tree::empty();
    tree.run("role --service-account streamfleet").expect(64).says(&["write it as NAMESPACE/NAME"]);
    tree.run("role --service-account a/b'c")
        .expect(64)
        .says(&["a name in Kubernetes consists of lower-case letters, digits, `-` and `.`"]);
}
