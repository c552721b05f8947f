//! The list of names.

/// The type of a metric in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
}

/// A metric of brokers and controllers that is passed on.
#[derive(Debug)]
pub struct CuratedMetric {
    /// As Strimzi's reporter names it.
    pub reads: &'static str,
    /// As it is passed on: the same, unless Prometheus' conventions forbid that name.
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// The labels that are kept. Series that differ in others are added up, so that partitions of a topic and threads
    /// of a broker are one series.
    pub labels: &'static [&'static str],
}

impl MetricKind {
    pub fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        }
    }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> CuratedMetric {
    CuratedMetric { reads: name, name, kind: MetricKind::Counter, help, labels }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> CuratedMetric {
    CuratedMetric { reads: name, name, kind: MetricKind::Gauge, help, labels }
}

impl CuratedMetric {
    const fn named(self, name: &'static str) -> CuratedMetric {
        CuratedMetric { name, ..self }
    }
}

const TOPIC: &[&str] = &["topic"];
const LISTENER: &[&str] = &["listener"];
const NO_LABELS: &[&str] = &[];

/// The metrics of Kafka's pods that are passed on. Series per partition are not among them: a unit has 1,500 partitions,
/// with copies on several brokers.
#[rustfmt::skip]
pub static METRICS: &[CuratedMetric] = &[
    counter("kafka_server_brokertopicmetrics_bytesinpersec_total", TOPIC, "Bytes from producers; without a topic, of all topics."),
    counter("kafka_server_brokertopicmetrics_bytesoutpersec_total", TOPIC, "Bytes to consumers; without a topic, of all topics."),
    counter("kafka_server_brokertopicmetrics_messagesinpersec_total", TOPIC, "Records from producers; without a topic, of all topics."),
    gauge("kafka_log_log_size", TOPIC, "Size of a topic's log on the broker, all partitions together.").named("kafka_log_log_size_bytes"),
    counter("kafka_server_brokertopicmetrics_bytesrejectedpersec_total", NO_LABELS, "Bytes of records that were refused as too large."),
    counter("kafka_server_brokertopicmetrics_totalproducerequestspersec_total", NO_LABELS, "Requests of producers."),
    counter("kafka_server_brokertopicmetrics_totalfetchrequestspersec_total", NO_LABELS, "Requests of consumers."),
    counter("kafka_server_brokertopicmetrics_failedproducerequestspersec_total", NO_LABELS, "Requests of producers that failed."),
    counter("kafka_server_brokertopicmetrics_failedfetchrequestspersec_total", NO_LABELS, "Requests of consumers that failed."),
    gauge("kafka_server_socket_server_metrics_connection_count", LISTENER, "Open connections.").named("kafka_server_socket_server_metrics_connections"),
    gauge("kafka_server_socket_server_metrics_connection_creation_rate", LISTENER, "New connections per second."),
    gauge("kafka_server_replicamanager_partitioncount", NO_LABELS, "Copies of partitions on the broker."),
    gauge("kafka_server_replicamanager_leadercount", NO_LABELS, "Partitions that the broker leads."),
    gauge("kafka_server_replicamanager_underreplicatedpartitions", NO_LABELS, "Partitions led by the broker with fewer copies in sync than they have."),
    gauge("kafka_server_replicamanager_underminisrpartitioncount", NO_LABELS, "Partitions led by the broker with fewer copies in sync than producers need."),
    gauge("kafka_server_replicamanager_atminisrpartitioncount", NO_LABELS, "Partitions led by the broker with just as many copies in sync as producers need."),
    gauge("kafka_server_replicamanager_offlinereplicacount", NO_LABELS, "Copies on the broker that are offline."),
    gauge("kafka_controller_kafkacontroller_offlinepartitionscount", NO_LABELS, "Partitions without a leader, as the active controller sees them."),
    gauge("kafka_controller_kafkacontroller_activecontrollercount", NO_LABELS, "Whether the pod is the active controller."),
    gauge("kafka_controller_kafkacontroller_activebrokercount", NO_LABELS, "Brokers that are registered and not fenced."),
    gauge("kafka_controller_kafkacontroller_fencedbrokercount", NO_LABELS, "Brokers that are registered and fenced."),
    gauge("kafka_controller_kafkacontroller_globaltopiccount", NO_LABELS, "Topics of the cluster."),
    gauge("kafka_controller_kafkacontroller_globalpartitioncount", NO_LABELS, "Partitions of the cluster."),
    counter("kafka_controller_controllerstats_uncleanleaderelectionspersec_total", NO_LABELS, "Elections of leaders that were not in sync: records may be lost."),
    counter("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total", NO_LABELS, "Nanoseconds for which the threads that handle requests were idle, as a mean of them."),
    gauge("kafka_network_socketserver_networkprocessoravgidlepercent", NO_LABELS, "Part of the time for which the network's threads are idle, from 0 to 1."),
];
