//! The metrics of a cluster for programs outside of Kubernetes: a short list of names, and the sizes that its units
//! give it.
//!
//! A broker's text is a stranger's: only the names and labels of [`METRICS`] are read, values of labels are cut and
//! escaped, and the help and type of a metric are ours.

mod metrics;
mod read;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{METRICS_PORT, Sizing};
use crate::catalog::ResolvedCluster;
use crate::config::UnitCatalogue;
use crate::names::{Identifier, one_line};

pub use metrics::{CuratedMetric, METRICS};
pub use read::{PodSamples, UnreadableMetrics};

/// The port of a pod's metrics.
pub const PORT: u16 = METRICS_PORT;

/// Returns the part of a URL's query that selects the pods of a cluster's brokers and controllers.
pub fn pod_selector(cluster: &str) -> String {
    format!("labelSelector=strimzi.io%2Fcomponent-type%3Dkafka%2Cstrimzi.io%2Fcluster%3D{cluster}")
}

/// A name of the text that follows from the spec, or from how reading went.
struct OwnMetric {
    name: &'static str,
    help: &'static str,
    value: fn(&Sizing, units: u32) -> u64,
}

const OWN: [OwnMetric; 8] = [
    OwnMetric {
        name: "streamfleet_kafka_units",
        help: "Kafka units of the cluster.",
        value: |_, units| units.into(),
    },
    OwnMetric {
        name: "streamfleet_brokers",
        help: "Brokers that the cluster should have.",
        value: |sizing, _| sizing.brokers.into(),
    },
    OwnMetric {
        name: "streamfleet_partitions_limit",
        help: "Partitions that the cluster is designed for, before replication.",
        value: |sizing, _| sizing.partitions.into(),
    },
    OwnMetric {
        name: "streamfleet_broker_connections_limit",
        help: "Client connections that each listener of a broker accepts.",
        value: |sizing, _| sizing.connections.into(),
    },
    OwnMetric {
        name: "streamfleet_broker_connection_rate_limit",
        help: "New client connections per second that each listener of a broker accepts.",
        value: |sizing, _| sizing.connection_rate.into(),
    },
    OwnMetric {
        name: "streamfleet_broker_produce_limit_bytes",
        help: "Bytes per second that a broker takes from all producers together.",
        value: |sizing, _| sizing.ingress_bytes_per_second,
    },
    OwnMetric {
        name: "streamfleet_broker_fetch_limit_bytes",
        help: "Bytes per second that a broker gives to all consumers together.",
        value: |sizing, _| sizing.egress_bytes_per_second,
    },
    OwnMetric {
        name: "streamfleet_broker_disk_bytes",
        help: "Size of a broker's disk.",
        value: |sizing, _| u64::from(sizing.storage_gib) << 30,
    },
];

/// A pod of Kafka, with its samples or why there are none: a sentence without a full stop.
#[derive(Debug)]
pub struct PodMetrics {
    pub pod: String,
    pub samples: Result<PodSamples, String>,
}

/// The names and values that follow from a cluster's spec.
pub fn sizes(cluster: &ResolvedCluster, units: &UnitCatalogue) -> [(&'static str, u64); OWN.len()] {
    let sizing = Sizing::of(cluster, units);
    OWN.map(|metric| (metric.name, (metric.value)(&sizing, cluster.spec.units())))
}

/// How many brokers and controllers a cluster should have.
pub fn pods(cluster: &ResolvedCluster, units: &UnitCatalogue) -> u32 {
    let sizing = Sizing::of(cluster, units);
    sizing.brokers + sizing.controllers
}

/// The metrics of a cluster at a time.
#[derive(Debug)]
pub struct ClusterMetrics {
    organization: Identifier,
    cluster: Identifier,
    own: [u64; OWN.len()],
    pods: Vec<PodMetrics>,
}

impl ClusterMetrics {
    pub fn of(cluster: &ResolvedCluster, units: &UnitCatalogue, pods: Vec<PodMetrics>) -> ClusterMetrics {
        ClusterMetrics {
            organization: cluster.key.organization.clone(),
            cluster: cluster.spec.identifier.clone(),
            own: sizes(cluster, units).map(|(_, value)| value),
            pods,
        }
    }

    pub fn series(&self) -> usize {
        self.pods.iter().filter_map(|pod| pod.samples.as_ref().ok()).map(PodSamples::len).sum()
    }

    fn labels(&self) -> String {
        format!("organization=\"{}\",cluster=\"{}\"", self.organization, self.cluster)
    }
}

/// Formats the metrics of clusters as Prometheus' text, version 0.0.4.
pub fn text<'c>(clusters: impl IntoIterator<Item = &'c ClusterMetrics>) -> String {
    let clusters: Vec<(String, &ClusterMetrics)> =
        clusters.into_iter().map(|cluster| (cluster.labels(), cluster)).collect();
    let pods =
        || clusters.iter().flat_map(|(labels, cluster)| cluster.pods.iter().map(move |pod| (labels, pod)));
    let mut text = MetricsText::default();
    for (labels, PodMetrics { pod, samples }) in pods() {
        if let Err(reason) = samples {
            text.line(format_args!("# pod {} of {labels}: {}", one_line(pod, 253), one_line(reason, 500)));
        }
    }
    text.head("up", "gauge", "Whether the metrics of the pod were read (1) or not (0).");
    for (labels, PodMetrics { pod, samples }) in pods() {
        text.sample("up", labels, pod, "", if samples.is_ok() { 1.0 } else { 0.0 });
    }
    for (number, metric) in OWN.iter().enumerate() {
        text.head(metric.name, "gauge", metric.help);
        for (labels, cluster) in &clusters {
            text.line(format_args!("{}{{{labels}}} {}", metric.name, cluster.own[number]));
        }
    }
    for (number, metric) in METRICS.iter().enumerate() {
        let read = pods().filter_map(|(labels, PodMetrics { pod, samples })| {
            let series = samples.as_ref().ok()?.of(number);
            (!series.is_empty()).then_some((labels, pod, series))
        });
        let mut read = read.peekable();
        if read.peek().is_some() {
            text.head(metric.name, metric.kind.word(), metric.help);
        }
        for (labels, pod, series) in read {
            for (own, value) in series {
                text.sample(metric.name, labels, pod, own, *value);
            }
        }
    }
    text.0
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    /// `own` are labels in the text's form, or empty.
    fn sample(&mut self, name: &str, labels: &str, pod: &str, own: &str, value: f64) {
        let comma = if own.is_empty() { "" } else { "," };
        let pod = escaped(pod);
        match value {
            value if value.is_infinite() => {
                let infinite = if value > 0.0 { "+Inf" } else { "-Inf" };
                self.line(format_args!("{name}{{{labels},pod=\"{pod}\"{comma}{own}}} {infinite}"));
            }
            value => self.line(format_args!("{name}{{{labels},pod=\"{pod}\"{comma}{own}}} {value}")),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments) {
        // Writing to a string can't fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// The longest value of a label, in characters: Kafka's longest name of a topic.
const LONGEST_LABEL: usize = 249;

/// A label's value as the text has it.
fn escaped(value: &str) -> String {
    one_line(value, LONGEST_LABEL).replace('\\', "\\\\").replace('"', "\\\"")
}

type Series = BTreeMap<Box<str>, f64>;

#[cfg(test)]
mod tests;
