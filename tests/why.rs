//! The output of `why` for a cluster, and of `status`, `get` and `plan` for its health.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::kubernetes::{FLEET, SANDBOX, on};
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Writer};
use crate::support::serve::Serve;

/// The recorded object of a kind after some seconds, renamed to the cluster `sandbox`.
fn recorded(recording: &str, kind: &str, seconds: f64) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{recording}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    let text = text.replace("kafka-acme--uns", "kafka-acme--sandbox").replace("uns", "sandbox");
    let changes = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut earlier = changes.filter(|it| it["kind"] == kind && it["t"].as_f64().unwrap() <= seconds);
    let mut object = earlier.next_back().unwrap()["object"].take();
    object["kind"] = kind.into();
    object
}

fn stable(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (before, since) = line.split_once(" since ").unwrap_or((line, ""));
        lines.push(if since.is_empty() { line.to_owned() } else { format!("{before} since …") });
    }
    lines.join("\n")
}

#[test]
fn the_way_from_a_spec_to_a_pod_that_no_node_takes_is_one_screen() {
    let mut plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run("apply tree --yes --config config.toml").expect(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let writer = runtime.block_on(Writer::to(&plane));
    runtime.block_on(async {
        let operator = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1},
            "metadata": {"name": "strimzi-cluster-operator", "namespace": "kafka", "labels": {"app": "strimzi"}},
            "status": {"replicas": 1, "readyReplicas": 1}});
        writer.put(&operator, None).await;
        for kind in ["Kafka", "KafkaNodePool"] {
            writer.put_status(&recorded("unschedulable", kind, 100.0)).await;
        }
        let pod = recorded("unschedulable", "Pod", 100.0);
        writer.put(&pod, None).await;
        let hours_ago = (Timestamp::now() - SignedDuration::from_mins(200)).strftime("%FT%TZ").to_string();
        let event = json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedScheduling",
            "metadata": {"name": "e", "namespace": "kafka-acme--sandbox"}, "lastTimestamp": hours_ago,
            "message": "0/1 nodes are available: 1 Insufficient cpu.",
            "involvedObject": {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": "kafka-acme--sandbox"}});
        writer.create("/api/v1/namespaces/kafka-acme--sandbox/events", &event).await;
    });

    let why = "why sandbox tree --config config.toml";
    let page = tree.run(why).expect(0).out;
    insta::assert_snapshot!("why_unschedulable", stable(&page));
    // A daemon that has known it for a while says the same.
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.until("it was looked at twice", || (serve.rounds() > 1).then_some(()));
    let beside = tree.run(why).expect(0).says(&["the running daemon (pid "]);
    assert_eq!(stable(&beside.out), stable(&page));
    assert_eq!(serve.stop(), Some(0));
    let json = tree.run(&format!("{why} --format json")).expect(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["status"], "Provisioning");
    assert_eq!(json["objects"]["amiss"][0]["kind"], "Pod");

    // The other commands say the same, and the fleet has no room for it.
    tree.run("status tree --config config.toml").expect(0).says(&[
        "fleet acme/eu           Updating      no node accepts a pod of cluster acme/sandbox: `sandbox-dual-0` can't be \
         scheduled",
        "cluster acme/sandbox  Provisioning",
        "can't be scheduled",
        "cluster acme/orders   Pending       the operator hasn't processed it yet",
    ]);
    runtime.block_on(async {
        let mut kafka = recorded("unschedulable", "Kafka", 1000.0);
        kafka["status"]["conditions"] = json!([{"type": "NotReady", "status": "True",
            "reason": "FatalProblem", "message": "Pod is unschedulable"}]);
        writer.put_status(&kafka).await;
    });
    tree.run("plan tree --config config.toml").expect(0).says(&[
        "fleet acme/eu   byok, Degraded      units",
        "! cluster sandbox is Degraded: 0 of 1 pods are ready",
        "Nothing to do",
    ]);
    runtime.block_on(async {
        let listeners = json!([{"name": "external", "bootstrapServers": "lb-1.example.net:9094"}]);
        let orders = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "status": {"listeners": listeners},
            "metadata": {"name": "orders", "namespace": "kafka-acme--orders"}});
        writer.put_status(&orders).await;
    });
    tree.run("get cluster/acme/orders tree --config config.toml --format json")
        .expect(0)
        .says(&[r#""bootstrap.servers": "orders.kafka.acme.example.com:9094""#]);
    tree.run("get fleet/acme/eu tree --config config.toml --format json")
        .expect(0)
        .says(&[r#""loadbalancer_dns": "lb-1.example.net""#]);
    tree.run("get cluster/acme/sandbox tree --config config.toml --format json").expect(0).says(&[
        r#""bootstrap.servers": "sandbox-kafka-bootstrap.kafka-acme--sandbox.svc:9093""#,
        r#""admin_secret": "kafka-acme--sandbox/sandbox-admin""#,
        r#""status": "Degraded""#,
    ]);

    // Objects that may not be read are named, and don't block the rest.
    let role = "create clusterrole most --verb=* --resource=namespaces,configmaps,secrets,resourcequotas,limitranges,\
                networkpolicies.networking.k8s.io,kafkas.kafka.strimzi.io,kafkanodepools.kafka.strimzi.io,\
                kafkausers.kafka.strimzi.io,deployments.apps,persistentvolumeclaims,strimzipodsets.core.strimzi.io,\
                events,storageclasses.storage.k8s.io";
    plane.run_controllers();
    let kubeconfig = plane.service_account("default", "tenant");
    plane.kubectl(role, "").expect(0);
    let bind = "create clusterrolebinding most --clusterrole=most --serviceaccount=default:tenant";
    plane.kubectl(bind, "").expect(0);
    tree.edit(FLEET, &plane.kubeconfig(), &kubeconfig);
    tree.run("status tree --config config.toml").expect(0).says(&[
        "Degraded      the health of clusters is known only in part: the user of the fleet's `kubeconfig` may not list Pod \
         objects; grant it `list` on `pods` with a ClusterRole",
    ]);

    // Of an unreachable cluster, the last known state is shown with its age.
    plane.stop();
    tree.run(why).expect(0).says(&[
        "Unreachable",
        "s ago its status was ",
        "unknown, because the target can't be reached",
    ]);
    tree.run("get cluster/acme/sandbox tree --config config.toml --format json")
        .expect(0)
        .says(&["sandbox-kafka-bootstrap.kafka-acme--sandbox.svc:9093"]);
}

#[test]
fn of_a_folder_nothing_is_observed() {
    let tree = Tree::example("quickstart");
    tree.run("why orders tree").expect(0).says(&[
        "status    Pending",
        "the next apply will create it",
        "streamfleet apply tree",
    ]);
    tree.run("apply tree --yes").expect(0);
    let page = tree.run("why cluster/acme/orders tree").expect(0).out;
    insta::assert_snapshot!("why_folder", page);

    // A waiting change names the reason and the remedy.
    tree.remove(SANDBOX);
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 100");
    let page = tree.run("why acme/orders tree").expect(0).out;
    insta::assert_snapshot!("why_waiting", page);

    tree.run("why acme/order tree").expect(1).says(&["there is no cluster acme/order", "known: acme/orders"]);
}
