//! The Helm chart: what it renders, refuses and leaves behind, on a real API server.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, until};
use crate::support::serve::Serve;
use crate::support::{Run, Tree, copy, examples, skipped};

/// Kinds that the tests' API server doesn't serve.
const NOT_SERVED: [&str; 3] = ["HTTPRoute", "PrometheusRule", "ServiceMonitor"];

const GUIDE: &str = include_str!("../../docs/guide/operations.md");

const DOMAIN: &str = "acme/base-domains/kafka.acme.example.com.yaml";

/// The names in the chart's roles that a release replaces.
const ROLE: &str = "role --name chart-name --service-account chart-namespace/chart-account";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/helm/streamfleet")
}

/// The helm of `.ci/packages`; `None` where it was not built.
fn helm() -> Option<PathBuf> {
    let helm = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/helm");
    if !helm.exists() {
        assert!(std::env::var("STREAMFLEET_TESTS").is_err(), "helm is missing: `.ci/packages` builds it");
        skipped("there is no target/tools/helm; `.ci/packages` builds it");
        return None;
    }
    Some(helm)
}

struct Helm {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Helm {
    fn new() -> Option<Helm> {
        Some(Helm { program: helm()?, home: tempfile::tempdir().unwrap() })
    }

    fn run(&self, words: &str) -> Run {
        let mut helm = Command::new(&self.program);
        helm.args(words.split_whitespace()).env_clear().env("HOME", self.home.path());
        helm.current_dir(chart()).output().unwrap().into()
    }

    fn render(&self, values: &str) -> Vec<Value> {
        documents(
            &self.run(&format!("template kafka . --namespace=platform --values={values}")).expect(0).out,
        )
    }
}

fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

fn values() -> Vec<String> {
    let files = fs::read_dir(chart().join("ci")).unwrap();
    let mut files: Vec<_> =
        files.map(|file| format!("ci/{}", file.unwrap().file_name().to_str().unwrap())).collect();
    files.sort();
    assert!(files.len() >= 4);
    files
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> &'d Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

#[test]
fn its_versions_and_roles_are_those_of_the_program() {
    let file: Value =
        serde_saphyr::from_str(&fs::read_to_string(chart().join("Chart.yaml")).unwrap()).unwrap();
    assert_eq!(
        (&file["version"], &file["appVersion"]),
        (&json!(env!("CARGO_PKG_VERSION")), &file["version"])
    );
    for options in ["", "--operator", "--gateway", "--operator --gateway"] {
        let role = Tree::empty().run(&format!("{ROLE} {options}")).expect(0).out;
        let name = options.split_whitespace().map(|option| option.trim_start_matches('-'));
        let name: Vec<&str> = ["role"].into_iter().chain(name).collect();
        let path = chart().join("files").join(name.join("-")).with_extension("yaml");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &role).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            role,
            "rewrite it: UPDATE_DOCS=1 cargo test --test all chart"
        );
        for document in documents(&role).iter().filter(|document| document["kind"] == "ClusterRole") {
            for rule in document["rules"].as_array().unwrap() {
                assert!(!rule["verbs"].as_array().unwrap().contains(&json!("*")), "{rule}");
            }
        }
    }
}

#[test]
fn what_it_renders_is_sound_and_an_api_server_takes_it() {
    let Some(helm) = Helm::new() else { return };
    let plane = ControlPlane::lease();
    plane.kubectl("create namespace platform", "").expect(0);
    let restricted = "label namespace platform pod-security.kubernetes.io/enforce=restricted";
    plane.kubectl(restricted, "").expect(0);
    for file in values() {
        helm.run(&format!("lint --strict . --values={file}")).expect(0);
        let documents = helm.render(&file);
        // The settings are what the program takes.
        let settings = of_kind(&documents, "ConfigMap")["data"]["streamfleet.toml"].as_str().unwrap();
        let tree = Tree::empty();
        fs::write(tree.beside("streamfleet.toml"), settings).unwrap();
        tree.run("config show --config streamfleet.toml").expect(0).says(&["[::]:3000 "]);
        let served = documents.iter().filter(|it| !NOT_SERVED.contains(&it["kind"].as_str().unwrap()));
        for document in served {
            let mut document = document.clone();
            if document["kind"] != "ClusterRole" {
                document["metadata"].as_object_mut().unwrap().entry("namespace").or_insert(json!("platform"));
            }
            let apply = "apply --server-side --dry-run=server --validate=strict -f -";
            plane.kubectl(apply, &document.to_string()).expect(0);
        }
        let template = of_kind(&documents, "StatefulSet")["spec"]["template"].clone();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
        pod["metadata"]["name"] = json!("pod");
        pod["metadata"]["namespace"] = json!("platform");
        pod["spec"]["serviceAccountName"] = json!("default");
        // The StatefulSet's controller adds the volume of its claim.
        let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
        if volumes.iter().all(|volume| volume["name"] != "state") {
            volumes.push(json!({"name": "state", "emptyDir": {}}));
        }
        plane.kubectl("create serviceaccount default --namespace=platform", "");
        plane.kubectl("create --dry-run=server --validate=strict -f -", &pod.to_string()).expect(0);
        for policy in documents.iter().filter(|document| document["kind"] == "NetworkPolicy") {
            let ports = policy["spec"]["egress"][1]["ports"].as_array().unwrap();
            assert!(ports.contains(&json!({"port": 9094})), "brokers are probed from here: {ports:?}");
        }
        assert_eq!(template["spec"]["enableServiceLinks"], false);
        let account = file.contains("in-cluster");
        assert_eq!(template["spec"]["automountServiceAccountToken"], account);
        // The alerts are those of the guide.
        for rule in documents.iter().filter(|document| document["kind"] == "PrometheusRule") {
            let rules = rule["spec"]["groups"][0]["rules"].as_array().unwrap();
            let told = |expression: &str| GUIDE.contains(&format!("| `{expression}` |"));
            assert!(rules.iter().all(|rule| told(rule["expr"].as_str().unwrap())), "{rules:?}");
            assert_eq!(
                rules.len(),
                GUIDE.matches("| `streamfleet_").count() + GUIDE.matches("| `time() - ").count()
            );
        }
        let roles = documents.iter().filter(|document| document["kind"] == "ClusterRole").count();
        assert_eq!(roles > 0, account, "{file}");
    }
}

#[test]
fn wrong_values_are_refused_with_their_path() {
    let Some(helm) = Helm::new() else { return };
    let git = "--set=source.git.url=https://git.example.com/a.git";
    for (wrong, path) in [
        ("replicas=2", "/replicas"),
        ("replica=1", "replica"),
        ("image.tag=a/b", "/image/tag"),
        ("image.digest=sha256:12", "/image/digest"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("superUserEmails={ada}", "/superUserEmails/0"),
        ("superUserEmails=ada@example.com", "/superUserEmails"),
        ("source.git.url=ftp://a", "/source/git/url"),
        ("source.git.intervalSeconds=0", "/source/git/intervalSeconds"),
        ("source.git.secretKeys={password}", "/source/git/secretKeys/0"),
        ("source.git.token=hunter2", "token"),
        ("source.git.existingSecret=git", "/source/git/secretKeys"),
        ("source.git.secretKeys={token}", "/source/git/existingSecret"),
        ("source.configMap.items[0].key=a", "/source/configMap/items/0"),
        ("source.configMap.files.a=1", "/source/configMap/files/a"),
        ("inCluster.enabled=true", "/inCluster/fleets"),
        ("inCluster.fleets={eu}", "/inCluster/fleets/0"),
        ("persistence.size=1GB", "/persistence/size"),
        ("persistence.existingClaim=A", "/persistence/existingClaim"),
        ("tls.existingSecret=a_b", "/tls/existingSecret"),
        ("service.port=70000", "/service/port"),
        ("service.type=ExternalName", "/service/type"),
        ("ingress.enabled=maybe", "/ingress/enabled"),
        ("ingress.enabled=true", "/ingress/host"),
        ("httpRoute.enabled=true", "/httpRoute/parentRefs"),
        ("networkPolicy.cidrs={anywhere}", "/networkPolicy/cidrs/0"),
        ("networkPolicy.cidrs={10.0.0.0/99}", "/networkPolicy/cidrs/0"),
        ("networkPolicy.ports={http}", "/networkPolicy/ports/0"),
        ("networkPolicy.ports={}", "/networkPolicy/ports"),
        ("image.repository=foo/bar:1.0", "/image/repository"),
        ("inCluster.fleets={acme/eu}", "/inCluster/fleets"),
        ("inCluster.role=false,inCluster.operator=true", "/inCluster/operator"),
        ("resources.limits.memory=1GB", "/resources/limits/memory"),
        ("settings.policy.mode=aprove", "/settings/policy/mode"),
        ("settings.polcy.mode=approve", "polcy"),
        ("settings.state_dir=/x", "state_dir"),
        ("settings.source.git=https://a", "source"),
        ("settings.api.listen=127.0.0.1:1", "/settings/api/listen"),
        ("source.git.url=git@github.com:x/y.git", "/source/git/secretKeys"),
        ("source.configMap.name=specs", "/source/configMap/items"),
        ("source.configMap.files.acme__a=text", "acme__a"),
        ("serviceMonitor.interval=often", "/serviceMonitor/interval"),
        ("terminationGracePeriodSeconds=5", "/terminationGracePeriodSeconds"),
        ("secretFiles.acme=", "/secretFiles/acme"),
    ] {
        let refused = helm.run(&format!("template kafka . {git} --set={wrong}")).expect(1);
        assert!(refused.err.contains(path) && refused.err.contains("schema"), "{wrong}: {}", refused.err);
    }
    let shared = "--set=inCluster.enabled=true,inCluster.fleets={acme/eu},serviceAccount.create=false";
    let shared = helm.run(&format!("template kafka . {git} {shared}")).expect(1);
    assert!(shared.err.contains("needs `create: true` or a `name`"), "{}", shared.err);
    let neither = helm.run("template kafka .").expect(1);
    assert!(neither.err.contains("source: set `git.url`, or `configMap.name`, or `configMap.files`"));
    let both = helm.run(&format!("template kafka . {git} --set=source.configMap.files.a=b")).expect(1);
    assert!(both.err.contains("source: set `git.url` or `configMap`, not both"), "{}", both.err);
}

#[test]
fn what_a_release_publishes_or_has_scraped_is_reached_without_more() {
    let Some(helm) = Helm::new() else { return };
    let (own, all) = (json!({"podSelector": {}}), json!({"namespaceSelector": {}}));
    let labels = json!({"app.kubernetes.io/name": "prometheus"});
    let prometheus = json!({"namespaceSelector": {}, "podSelector": {"matchLabels": labels}});
    let everybody = ["0.0.0.0/0", "::/0"].map(|cidr| json!({"ipBlock": {"cidr": cidr}}));
    let git = "--set=source.git.url=https://git.example.com/a.git";
    for (set, peers) in [
        ("service.port=80", json!([own])),
        ("serviceMonitor.enabled=true", json!([own, prometheus])),
        ("ingress.enabled=true,ingress.host=a.example.com", json!([own, all])),
        (
            "httpRoute.enabled=true,httpRoute.parentRefs[0].name=a,serviceMonitor.enabled=true",
            json!([own, all]),
        ),
        ("service.type=LoadBalancer", json!([own, everybody[0], everybody[1]])),
        (
            "ingress.enabled=true,ingress.host=a.example.com,networkPolicy.from[0].podSelector.matchLabels.a=b",
            json!([{"podSelector": {"matchLabels": {"a": "b"}}}]),
        ),
    ] {
        let rendered = helm.run(&format!("template kafka . {git} --set={set}")).expect(0).out;
        let policy = of_kind(&documents(&rendered), "NetworkPolicy").clone();
        assert_eq!(policy["spec"]["ingress"][0]["from"], peers, "{set}");
    }
    // A certificate has the Service's name, and Prometheus asks the pod's address.
    let tls = helm.render("ci/published-values.yaml");
    let endpoint = &of_kind(&tls, "ServiceMonitor")["spec"]["endpoints"][0];
    assert_eq!(
        endpoint["tlsConfig"],
        json!({"serverName": "kafka-streamfleet.platform.svc", "ca": {"secret": {"name": "tls", "key": "ca.crt"}}})
    );
}

#[test]
fn a_release_of_an_earlier_chart_is_upgraded_and_removed_and_its_claim_stays() {
    let Some(helm) = Helm::new() else { return };
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    plane.kubectl("create namespace platform", "").expect(0);
    let release = |words: &str| {
        let kubeconfig = plane.folder().join(ControlPlane::KUBECONFIG);
        helm.run(&format!("{words} --namespace=platform --kubeconfig={}", kubeconfig.display()))
    };
    let claim = "get pvc state-kafka-streamfleet-0 --namespace=platform --output=jsonpath={.metadata.uid}";
    let git = "--set=source.git.url=https://git.example.com/a.git --set=superUserEmails={you@example.com}";
    // The chart as it was first, which differs from the present one in more than its version.
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packages/streamfleet-0.0.1.tgz");
    release(&format!("install kafka {} {git}", earlier.display())).expect(0);
    until("its claim is made", || (plane.kubectl(claim, "").code == 0).then_some(()));
    let uid = plane.kubectl(claim, "").expect(0).out;
    let set = "get statefulset kafka-streamfleet --namespace=platform --output=jsonpath={.metadata.uid}";
    let set_before = plane.kubectl(set, "").expect(0).out;
    let installed = release(&format!("upgrade kafka . {git}")).expect(0);
    assert!(
        installed
            .out
            .contains("kubectl exec --namespace platform kafka-streamfleet-0 -- streamfleet status\n")
    );
    assert_eq!(plane.kubectl(set, "").expect(0).out, set_before, "it was changed, and not made anew");
    assert_eq!(plane.kubectl(claim, "").expect(0).out, uid);
    // No node runs it, so it is not ready when its settings change.
    let pod = "get pod kafka-streamfleet-0 --namespace=platform --output=jsonpath={.metadata.uid}";
    let pod_before =
        until("its pod is made", || Some(plane.kubectl(pod, "")).filter(|pod| pod.code == 0)).out;
    release(&format!("upgrade kafka . {git} --set=settings.policy.mode=approve")).expect(0);
    until("a change of settings replaces a pod that isn't ready", || {
        let now = plane.kubectl(pod, "");
        (now.code == 0 && now.out != pod_before).then_some(())
    });
    release(&format!(
        "upgrade kafka . {git} --set=inCluster.enabled=true --set=inCluster.fleets={{acme/eu}}"
    ))
    .expect(0);
    plane.kubectl("get clusterrolebinding platform-kafka-streamfleet", "").expect(0);

    // Rights that an administrator applies are none of the release's.
    release(&format!(
        "upgrade kafka . {git} --set=inCluster.enabled=true,inCluster.role=false --set=inCluster.fleets={{acme/eu}}"
    ))
    .expect(0);
    plane.kubectl("get clusterrolebinding platform-kafka-streamfleet", "").expect(1);

    release("uninstall kafka").expect(0);
    until("its objects are gone", || {
        let left =
            plane.kubectl("get statefulsets,services,configmaps --namespace=platform --output=name", "");
        (!left.out.contains("streamfleet")).then_some(())
    });
    assert_eq!(plane.kubectl(claim, "").expect(0).out, uid);
}

/// The kubelet writes a ConfigMap and a Secret into a folder of their own, to which links lead, and replaces one link.
#[test]
fn specs_of_a_config_map_and_secrets_of_a_secret_are_read_and_replaced_together() {
    let tree = Tree::empty();
    let volume = tree.path();
    let place = |name: &str, units: &str| {
        copy(&examples().join("quickstart"), &volume.join(name));
        let orders = volume.join(name).join("acme/clusters/orders.yaml");
        let text = fs::read_to_string(&orders).unwrap();
        fs::write(orders, text.replace("kafka_units: 1", &format!("kafka_units: {units}"))).unwrap();
        let domain = volume.join(name).join(DOMAIN);
        let text = fs::read_to_string(&domain).unwrap();
        fs::write(domain, format!("{}tls_key: {{from_file: tls}}\n", text.split("tls_key:").next().unwrap()))
            .unwrap();
        symlink(name, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    };
    place("..2026_1", "1");
    for name in ["acme", "organizations.yaml"] {
        symlink(Path::new("..data").join(name), volume.join(name)).unwrap();
    }
    let mount = tree.beside("secrets/acme");
    fs::create_dir_all(mount.join("..2026_1")).unwrap();
    let text = fs::read_to_string(examples().join("quickstart").join(DOMAIN)).unwrap();
    let key = text.split("tls_key: |\n").nth(1).unwrap().lines().map(|line| format!("{}\n", line.trim()));
    fs::write(mount.join("..2026_1/tls"), key.collect::<String>()).unwrap();
    symlink("..2026_1", mount.join("..data")).unwrap();
    symlink("..data/tls", mount.join("tls")).unwrap();
    let folders = "--state-dir state --output-dir output --secrets-dir secrets";
    let serve = Serve::start(&tree, &format!("serve --specs tree/..data {folders}"));
    let pool = || {
        let path = tree.beside("output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml");
        fs::read_to_string(path).unwrap_or_default()
    };
    serve.until("it is applied", || pool().contains("replicas: 3\n").then_some(()));
    place("..2026_2", "2");
    fs::remove_dir_all(volume.join("..2026_1")).unwrap();
    serve.until("the change is applied", || pool().contains("replicas: 6\n").then_some(()));
    tree.run(&format!("status tree/..data {folders}")).expect(0).says(&["the running daemon", "acme/orders"]);
    assert_eq!(serve.stop(), Some(0));
}
