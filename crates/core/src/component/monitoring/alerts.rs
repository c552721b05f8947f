//! The alerts of a fleet. Nothing in them names a cluster: the labels of the series that fire do.
//!
//! No alert fires in a rolling restart of ten minutes. `tests/monitoring` has a series for each that makes it fire, and
//! the restart.

use serde_json::{Value, json};

use super::sizes::{CERTIFICATE, PODS};

struct Alert {
    name: &'static str,
    severity: Severity,
    /// How long it has to last.
    lasts: &'static str,
    expression: String,
    summary: &'static str,
    /// The meaning and the consequence, in a sentence or two.
    description: &'static str,
}

enum Severity {
    /// Clients or data are affected now.
    Critical,
    /// They will be if nobody acts.
    Warning,
}

/// The disks of our node pools, as Strimzi names their claims.
pub const CLAIMS: &str = "data-[0-9]+-.+-(broker|controller|dual)-[0-9]+";

/// The lag of a consumer group in a topic, all partitions together.
pub const LAG: &str = "streamfleet_consumergroup_lag";

/// The labels by which a cluster is known.
const CLUSTER: &str = "organization, cluster, namespace";

pub fn groups() -> Value {
    let lag = format!("sum by ({CLUSTER}, consumergroup, topic) (kafka_consumergroup_lag{{fleet!=\"\"}})");
    let alerts: Vec<Value> = all().iter().map(Alert::rule).collect();
    json!([
        {"name": "streamfleet-lag", "rules": [{"record": LAG, "expr": lag}]},
        {"name": "streamfleet-kafka", "rules": alerts},
    ])
}

impl Alert {
    fn rule(&self) -> Value {
        let severity = match self.severity {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
        };
        json!({
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasts,
            "labels": {"severity": severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook": "streamfleet why {{ $labels.organization }}/{{ $labels.cluster }}",
            },
        })
    }
}

/// A sum over everything of a cluster but these labels.
fn sum(metric: &str, further: &str) -> String {
    format!("sum by ({CLUSTER}{further}) ({metric}{{fleet!=\"\"}})")
}

#[rustfmt::skip]
fn all() -> Vec<Alert> {
    use Severity::{Critical, Warning};
    let alert = |name, severity, lasts, expression: String, summary, description| {
        Alert { name, severity, lasts, expression, summary, description }
    };
    vec![
        alert(
            "KafkaPartitionsOffline", Critical, "5m",
            format!("max by ({CLUSTER}) (kafka_controller_kafkacontroller_offlinepartitionscount{{fleet!=\"\"}}) > 0"),
            "{{ $value }} partitions of {{ $labels.organization }}/{{ $labels.cluster }} have no leader",
            "Nobody can write to or read from them until a broker with a copy is back.",
        ),
        alert(
            "KafkaUnderMinIsr", Critical, "5m",
            sum("kafka_server_replicamanager_underminisrpartitioncount", ", pod") + " > 0",
            "{{ $value }} partitions led by {{ $labels.pod }} have too few copies in sync",
            "Producers with acks=all are refused there. Brokers that hold the other copies are away or too slow.",
        ),
        alert(
            "KafkaUnderReplicated", Warning, "10m",
            sum("kafka_server_replicamanager_underreplicatedpartitions", ", pod") + " > 0",
            "{{ $value }} partitions led by {{ $labels.pod }} lack copies",
            "A broker with copies is away or can't keep up. If a further one fails, producers may be refused.",
        ),
        alert(
            "KafkaActiveControllers", Critical, "5m",
            sum("kafka_controller_kafkacontroller_activecontrollercount", "") + " != 1",
            "{{ $labels.organization }}/{{ $labels.cluster }} has {{ $value }} active controllers",
            "With none, no leader is elected and nothing can be created. With several, controllers don't see each other.",
        ),
        // In a restart every pod is away once, and between two of them all are there, which begins the time anew.
        alert(
            "KafkaBrokerLost", Critical, "15m",
            format!("{PODS} unless on (namespace) (count by (namespace) (up{{component=\"kafka\", fleet!=\"\"}} == 1) >= on (namespace) {PODS})"),
            "not all of the {{ $value }} brokers and controllers of {{ $labels.organization }}/{{ $labels.cluster }} can be read",
            "Their pods don't run, or Prometheus has no way to their metrics.",
        ),
        alert(
            "KafkaDiskFillsUp", Critical, "15m",
            disk(),
            "{{ $value | humanizePercentage }} of the disk {{ $labels.persistentvolumeclaim }} is free",
            "Less than 15 % is free, or at the pace of the last six hours none is within 24 hours. Before it is full, \
             producers are slowed down to nothing. Delete records, or give the cluster larger disks.",
        ),
        alert(
            "KafkaRequestHandlersBusy", Warning, "15m",
            format!("rate({IDLE}{{fleet!=\"\"}}[5m]) / 1e9 < 0.2"),
            "the threads of {{ $labels.pod }} that handle requests are idle for {{ $value | humanizePercentage }} of the time",
            "Requests wait for each other, and clients see it as slowness. More Kafka units give more brokers.",
        ),
        alert(
            "KafkaCertificateExpires", Warning, "5m",
            format!("{CERTIFICATE} - time() < 14 * 86400"),
            "the certificate of {{ $labels.organization }}/{{ $labels.cluster }} expires in {{ $value | humanizeDuration }}",
            "Then clients outside of Kubernetes can't connect any more. Renew it in the base domain.",
        ),
        // The least of each ten minutes is above the most of the ten before; they don't share a sample.
        alert(
            "KafkaConsumerLagGrows", Warning, "0s",
            format!(
                "min_over_time({LAG}[9m]) > max_over_time({LAG}[9m] offset 10m) \
                 and min_over_time({LAG}[9m] offset 10m) > max_over_time({LAG}[9m] offset 20m)"
            ),
            "the lag of group {{ $labels.consumergroup }} in topic {{ $labels.topic }} has grown for 30 minutes",
            "Its consumers are away or read less than is written. {{ $value }} records wait.",
        ),
        alert(
            "KafkaUncleanLeaderElection", Critical, "0s",
            format!("sum by ({CLUSTER}) (increase({UNCLEAN}{{fleet!=\"\"}}[15m])) > 0"),
            "a copy that was not in sync became the leader of a partition of {{ $labels.organization }}/{{ $labels.cluster }}",
            "Records that were acknowledged may be lost.",
        ),
        alert(
            "KafkaClientsThrottled", Warning, "15m",
            throttled(),
            "clients of {{ $labels.pod }} are slowed down by the quota, by {{ $value }} ms for each request",
            "They write or read more than the Kafka units of the cluster allow.",
        ),
        alert(
            "KafkaConnectionsNearLimit", Warning, "10m",
            format!(
                "sum by ({CLUSTER}, pod, listener) (kafka_server_socket_server_metrics_connection_count{{fleet!=\"\", \
                 listener=~\"(TLS|EXTERNAL)-[0-9]+\"}}) / on (namespace) group_left () \
                 streamfleet_broker_connections_limit > 0.8"
            ),
            "{{ $labels.pod }} has {{ $value | humanizePercentage }} of the connections that it may have on {{ $labels.listener }}",
            "Beyond the limit, further clients can't connect. More Kafka units allow more connections.",
        ),
    ]
}

const IDLE: &str = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total";
const UNCLEAN: &str = "kafka_controller_controllerstats_uncleanleaderelectionspersec_total";

/// The free part of a disk that is nearly full, or that will be within a day. A new or hardly used disk says nothing
/// about its future.
fn disk() -> String {
    let available = format!("kubelet_volume_stats_available_bytes{{persistentvolumeclaim=~\"{CLAIMS}\"}}");
    let free = format!("{available} / kubelet_volume_stats_capacity_bytes");
    format!(
        "({free} < 0.15 or ({free} < 0.5 and predict_linear({available}[6h], 24 * 3600) < 0)) \
         * on (namespace) group_left (organization, cluster) (streamfleet_brokers > bool 0)"
    )
}

fn throttled() -> String {
    let of = |what: &str| {
        format!(
            "sum by ({CLUSTER}, pod) (rate(kafka_network_requestmetrics_throttletimems_{what}{{fleet!=\"\", \
             request=~\"Produce|FetchConsumer\"}}[5m]))"
        )
    };
    format!("{} / {} > 10", of("sum"), of("count"))
}
