//! Metrics of brokers, passed on by the API from real API servers and pods that have only metrics.

use serde_json::Value;

use super::{FLEET, SANDBOX, reached_with};
use crate::api::{Api, ROOT, new_token};
use crate::rights::{give, tenant};
use crate::service::http::{Answer, send};
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, until};
use crate::support::exporter::Exporter;
use crate::support::prometheus::promtool;

const SERVE: &str = "serve --specs tree --config settings.toml";
const SETTINGS: &str =
    "base_url = \"https://kafka.example.com\"\n[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";

/// What a broker says; Strimzi's reporter has hundreds of lines more.
fn broker(bytes: u32) -> String {
    format!(
        "# HELP jvm_info VM version info\n# TYPE jvm_info gauge\njvm_info{{vendor=\"theirs\"}} 1\n\
         # HELP kafka_server_brokertopicmetrics_bytesinpersec_total Use it in allowlist\n\
         # TYPE kafka_server_brokertopicmetrics_bytesinpersec_total counter\n\
         kafka_server_brokertopicmetrics_bytesinpersec_total {bytes}.0\n\
         kafka_server_brokertopicmetrics_bytesinpersec_total{{topic=\"payments\"}} {bytes}.0\n\
         kafka_log_log_size{{partition=\"0\",topic=\"payments\"}} 5.0\n\
         kafka_log_log_size{{partition=\"1\",topic=\"payments\",cluster=\"of another\"}} 6.0\n\
         kafka_server_socket_server_metrics_connection_count{{listener=\"TLS-9094\",networkProcessor=\"0\"}} 2.0\n\
         kafka_server_socket_server_metrics_connection_count{{listener=\"TLS-9094\",networkProcessor=\"1\"}} 3.0\n\
         kafka_controller_kafkacontroller_offlinepartitionscount 0.0\n"
    )
}

/// Prepares a namespace for pods, as Kubernetes' controllers would.
fn admits_pods(plane: &ControlPlane, namespace: &str) {
    plane.kubectl(&format!("delete resourcequotas --all --namespace={namespace}"), "").expect(0);
    plane.kubectl(&format!("create serviceaccount default --namespace={namespace}"), "").expect(0);
}

fn scrape(api: &Api, token: &str, path: &str) -> Answer {
    send(&api.address, &format!("GET {path}"), &[("Authorization", &format!("Bearer {token}"))], "")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, detail: &str, hint: &str) {
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (answer.status, problem["detail"].as_str(), problem["hint"].as_str().unwrap_or_default()),
        (status, Some(detail), hint)
    );
}

#[test]
fn each_organization_scrapes_its_own_clusters_and_a_hung_broker_costs_only_its_own_samples() {
    if !Exporter::are_possible() {
        return;
    }
    let planes = [("acme", ControlPlane::lease()), ("globex", ControlPlane::lease())];
    let tree = Tree::example("two-organizations");
    for (organization, plane) in &planes {
        let fleet = format!("{organization}/fleets/main.yaml");
        tree.edit(&fleet, "infra_type: directory", "infra_type: byok");
        let config = format!("  kubeconfig: '{}'\n  monitoring: {{federate: true}}\n", plane.kubeconfig());
        tree.write(&fleet, format!("{}advanced_config:\n{config}", tree.read(&fleet)));
        let cluster = format!("{organization}/clusters/events.yaml");
        tree.write(&cluster, tree.read(&cluster) + "  operations: {metrics: true}\n");
    }
    let api = Api::start_with(&tree, SERVE, SETTINGS);
    api.serve.has_made(&["cluster acme/events", "cluster globex/events"]);
    let exporters: Vec<Vec<Exporter>> = planes
        .iter()
        .map(|(organization, plane)| {
            let namespace = format!("kafka-{organization}--events");
            admits_pods(plane, &namespace);
            let exporters: Vec<Exporter> = (0..4).map(|number| Exporter::start(&broker(number))).collect();
            for (number, exporter) in exporters.iter().enumerate() {
                exporter.run(plane, &namespace, "events", &format!("events-broker-{number}"));
            }
            exporters
        })
        .collect();
    let [acme, globex] = ["acme", "globex"].map(|organization| new_token(&tree, ROOT, organization, "read"));
    let of_fleet = |organization: &str| format!("/organizations/{organization}/infrastructure/main/metrics");

    // Each sees its own alone, and however often it asks, a broker is read once.
    for _ in 0..10 {
        let text = scrape(&api, &acme, &of_fleet("acme"));
        assert_eq!(text.status, 200, "{}", text.body);
        assert!(
            text.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
            "{}",
            text.head
        );
        let lines: Vec<&str> = text.body.lines().collect();
        for expected in [
            "up{organization=\"acme\",cluster=\"events\",pod=\"events-broker-1\"} 1",
            "streamfleet_kafka_units{organization=\"acme\",cluster=\"events\"} 1",
            "kafka_server_brokertopicmetrics_bytesinpersec_total{organization=\"acme\",cluster=\"events\",pod=\"events-broker-1\",topic=\"payments\"} 1",
            "kafka_log_log_size_bytes{organization=\"acme\",cluster=\"events\",pod=\"events-broker-0\",topic=\"payments\"} 11",
            "kafka_server_socket_server_metrics_connections{organization=\"acme\",cluster=\"events\",pod=\"events-broker-0\",listener=\"TLS-9094\"} 5",
        ] {
            assert!(lines.contains(&expected), "{}", text.body);
        }
        assert!(!text.body.contains("globex") && !text.body.contains("theirs"), "{}", text.body);
        let checked = promtool("check metrics", &text.body).expect(0);
        assert_eq!((checked.out.as_str(), checked.err.as_str()), ("", ""));
    }
    let same = scrape(&api, &acme, "/v1/clusters/events/metrics?organization=acme");
    assert_eq!(same.body, scrape(&api, &acme, &of_fleet("acme")).body);
    assert_eq!(exporters[0].iter().map(Exporter::reads).collect::<Vec<_>>(), [1; 4]);

    // The other's is not there.
    let detail = "there is no organization `globex`, or the caller may not see it";
    refused(&scrape(&api, &acme, &of_fleet("globex")), 404, detail, "");
    let theirs =
        api.get("/v1/clusters?organization=globex").body["items"][0]["id"].as_str().unwrap().to_owned();
    let other = scrape(&api, &acme, &format!("/v1/clusters/{theirs}/metrics"));
    let missing = scrape(&api, &acme, "/v1/clusters/00000000-0000-4000-8000-000000000000/metrics");
    assert_eq!((other.status, missing.status), (404, 404));
    assert_eq!(exporters[1].iter().map(Exporter::reads).sum::<usize>(), 0);

    // One that hangs, one without an end and one that is no exporter cost their own samples.
    exporters[1][1].hangs();
    exporters[1][2].never_ends();
    exporters[1][3].says("<html>hello</html>\n");
    let text = scrape(&api, &globex, &format!("/v1/clusters/{theirs}/metrics"));
    assert_eq!(text.status, 200, "{}", text.body);
    let comments = text.body.lines().filter(|line| line.starts_with("# pod "));
    let of = "organization=\"globex\",cluster=\"events\"";
    assert_eq!(
        comments.collect::<Vec<_>>(),
        [
            format!("# pod events-broker-1 of {of}: no answer within 5 s"),
            format!("# pod events-broker-2 of {of}: its answer is longer than 16 MiB, the limit"),
            format!("# pod events-broker-3 of {of}: its answer has none of the metrics of Kafka"),
        ]
    );
    let ups = text.body.lines().filter(|line| line.starts_with("up{"));
    let up = |number: u32, value: u32| format!("up{{{of},pod=\"events-broker-{number}\"}} {value}");
    assert_eq!(ups.collect::<Vec<_>>(), [up(0, 1), up(1, 0), up(2, 0), up(3, 0)]);
    let size = format!("kafka_log_log_size_bytes{{{of},pod=\"events-broker-0\",topic=\"payments\"}} 11");
    assert!(text.body.lines().any(|line| line == size), "{}", text.body);
    promtool("check metrics", &text.body).expect(0);

    // `/metrics` stays the daemon's own.
    let own = scrape(&api, &api.token, "/metrics");
    assert!(own.body.contains("streamfleet_") && !own.body.contains("kafka_log_log_size"), "{}", own.body);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn metrics_are_passed_on_once_they_are_switched_on_and_the_right_is_given() {
    if !Exporter::are_possible() {
        return;
    }
    let plane = ControlPlane::lease();
    let tree = reached_with(&tenant(&plane, ""));
    let api = Api::start_with(&tree, SERVE, SETTINGS);
    api.serve.has_made(&["cluster acme/sandbox"]);
    let fleet = || scrape(&api, &api.token, "/organizations/acme/infrastructure/eu/metrics");
    let cluster = || scrape(&api, &api.token, "/v1/clusters/sandbox/metrics");
    let record = |path: &str| api.get(path).expect(200).body;
    let records = ["/organizations/acme/infrastructure/eu", "/v1/clusters/sandbox"];

    let off = "`advanced_config.monitoring.federate` of fleet acme/eu is not on";
    refused(&fleet(), 404, &format!("fleet acme/eu has no metrics here: {off}"), "set it to true, and apply");
    refused(
        &cluster(),
        404,
        &format!("cluster acme/sandbox has no metrics here: {off}"),
        "set it to true, and apply",
    );
    for path in records {
        let why = "the fleet's `advanced_config.monitoring.federate` is not on";
        until("it is applied, and passes on no metrics", || {
            let record = record(path);
            assert_eq!(record["metrics_endpoint"], Value::Null);
            (record["null_reasons"]["metrics_endpoint"] == why).then_some(())
        });
    }

    tree.write(FLEET, tree.read(FLEET) + "  monitoring: {federate: true}\n");
    let none =
        "fleet acme/eu has no metrics: `advanced_config.operations.metrics` of none of its clusters is on";
    until("the fleet passes on metrics", || fleet().body.contains(none).then_some(()));
    let hint = "set it to true, and apply: brokers and controllers restart one by one";
    refused(&fleet(), 404, none, hint);
    let off = "cluster acme/sandbox has no metrics: `advanced_config.operations.metrics` is not on";
    refused(&cluster(), 404, off, hint);
    assert_eq!(
        record(records[1])["null_reasons"]["metrics_endpoint"],
        "the cluster's `advanced_config.operations.metrics` is not on"
    );

    admits_pods(&plane, "kafka-acme--sandbox");
    let exporter = Exporter::start(&broker(7));
    exporter.run(&plane, "kafka-acme--sandbox", "sandbox", "sandbox-broker-0");
    tree.write(SANDBOX, tree.read(SANDBOX) + "  operations: {metrics: true}\n");
    until("the cluster's metrics are on", || (cluster().status == 409).then_some(()));
    let hint = "an administrator of the Kubernetes cluster gives the right with: streamfleet role --metrics";
    for (answer, of) in [(fleet(), "fleet acme/eu"), (cluster(), "cluster acme/sandbox")] {
        let detail = format!(
            "cannot read the metrics of {of}: the Kubernetes cluster of fleet acme/eu refuses them to streamfleet's user"
        );
        refused(&answer, 409, &detail, hint);
    }
    assert_eq!(exporter.reads(), 0);
    give(&plane, "--metrics");
    let text = until("the right holds", || Some(cluster()).filter(|answer| answer.status == 200)).body;
    assert!(
        text.contains("\nup{organization=\"acme\",cluster=\"sandbox\",pod=\"sandbox-broker-0\"} 1\n"),
        "{text}"
    );
    let id = record(records[1])["id"].as_str().unwrap().to_owned();
    let base = "https://kafka.example.com";
    assert_eq!(record(records[0])["metrics_endpoint"], format!("{base}{}/metrics", records[0]));
    assert_eq!(record(records[1])["metrics_endpoint"], format!("{base}/v1/clusters/{id}/metrics"));

    tree.edit(FLEET, "federate: true", "federate: false");
    until("the fleet no longer passes on metrics", || (cluster().status == 404).then_some(()));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_folder_has_no_metrics() {
    let tree = Tree::example("quickstart");
    let api = Api::start_with(&tree, SERVE, SETTINGS);
    api.settle();
    let detail = "fleet acme/eu has no metrics: fleet acme/eu is a folder, so streamfleet can't read those of its pods";
    let hint = "let a Prometheus read them where the manifests are applied";
    let answer = scrape(&api, &api.token, "/organizations/acme/infrastructure/eu/metrics");
    refused(&answer, 404, detail, hint);
}
