//! The series of a cluster of three brokers and three controllers, as Prometheus has them by the PodMonitor.

use std::collections::BTreeMap;

/// How often they are read, in seconds, and how many times in a test.
pub const STEP: usize = 30;
pub const SAMPLES: usize = 121;

/// A series' samples. `None` is a pod that isn't there.
pub type Samples = Vec<Option<f64>>;

pub struct Cluster(pub BTreeMap<String, Samples>);

/// The pods, in the order in which the operator restarts them, and whether each is a broker.
pub const PODS: [(&str, bool); 6] = [
    ("orders-controller-1000", false),
    ("orders-controller-1001", false),
    ("orders-controller-1002", false),
    ("orders-broker-0", true),
    ("orders-broker-1", true),
    ("orders-broker-2", true),
];

pub const OF_CLUSTER: &str =
    r#"organization="acme", cluster="orders", fleet="eu", namespace="kafka-acme--orders""#;

pub fn name(metric: &str, pod: &str, further: &str) -> String {
    format!("{metric}{{{OF_CLUSTER}, component=\"kafka\", pod=\"{pod}\"{further}}}")
}

pub fn claim(metric: &str, claim: &str) -> String {
    format!("{metric}{{namespace=\"kafka-acme--orders\", persistentvolumeclaim=\"{claim}\", node=\"a\"}}")
}

pub fn lag(group: &str) -> String {
    format!(
        "kafka_consumergroup_lag{{{OF_CLUSTER}, component=\"kafka-exporter\", pod=\"orders-kafka-exporter-1\", \
         consumergroup=\"{group}\", topic=\"payments\", partition=\"0\"}}"
    )
}

pub fn certificate() -> String {
    format!("streamfleet_certificate_expiry_timestamp_seconds{{{OF_CLUSTER}}}")
}

pub const IDLE: &str = "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total";
pub const UNCLEAN: &str = "kafka_controller_controllerstats_uncleanleaderelectionspersec_total";
pub const OFFLINE: &str = "kafka_controller_kafkacontroller_offlinepartitionscount";
pub const ACTIVE: &str = "kafka_controller_kafkacontroller_activecontrollercount";
pub const UNDER_MIN: &str = "kafka_server_replicamanager_underminisrpartitioncount";
pub const UNDER_REPLICATED: &str = "kafka_server_replicamanager_underreplicatedpartitions";
pub const CONNECTIONS: &str = "kafka_server_socket_server_metrics_connection_count";
pub const THROTTLED: &str = "kafka_network_requestmetrics_throttletimems";
pub const AVAILABLE: &str = "kubelet_volume_stats_available_bytes";
pub const CAPACITY: &str = "kubelet_volume_stats_capacity_bytes";
pub const PRODUCE: &str = ", request=\"Produce\"";
pub const LISTENER: &str = ", listener=\"TLS-9093\", networkProcessor=\"0\"";
pub const GIB: f64 = (1u64 << 30) as f64;
/// The disk of a broker by the unit catalogue.
pub const DISK: f64 = 364.0 * GIB;

/// A value for each sample.
pub fn always(value: f64) -> Samples {
    vec![Some(value); SAMPLES]
}

pub fn by(value: impl Fn(usize) -> f64) -> Samples {
    (0..SAMPLES).map(|index| Some(value(index))).collect()
}

impl Cluster {
    /// One that has nothing wrong, with some traffic.
    pub fn healthy() -> Cluster {
        let mut all = BTreeMap::new();
        for (pod, is_broker) in PODS {
            let mut add = |metric: &str, further: &str, samples: Samples| {
                all.insert(name(metric, pod, further), samples);
            };
            add("up", "", always(1.0));
            add(IDLE, "", by(|index| index as f64 * 0.9 * STEP as f64 * 1e9));
            if is_broker {
                add(UNDER_MIN, "", always(0.0));
                add(UNDER_REPLICATED, "", always(0.0));
                add(CONNECTIONS, LISTENER, always(1000.0));
                // Those of other nodes have no limit.
                add(CONNECTIONS, ", listener=\"REPLICATION-9091\", networkProcessor=\"0\"", always(9000.0));
                add(&format!("{THROTTLED}_sum"), PRODUCE, by(|index| index as f64));
                add(&format!("{THROTTLED}_count"), PRODUCE, by(|index| index as f64 * 3000.0));
            } else {
                add(OFFLINE, "", always(0.0));
                add(UNCLEAN, "", always(0.0));
                add(ACTIVE, "", always(if pod.ends_with("1000") { 1.0 } else { 0.0 }));
            }
            let disk = format!("data-0-{pod}");
            all.insert(claim(AVAILABLE, &disk), by(|index| 0.6 * DISK - index as f64 * 1e6));
            all.insert(claim(CAPACITY, &disk), always(DISK));
        }
        // Disks of others may be full.
        all.insert(claim(AVAILABLE, "postgres-0"), always(0.0));
        all.insert(claim(CAPACITY, "postgres-0"), always(DISK));
        // Large, and neither growing nor steady.
        all.insert(lag("slow"), by(|index| 1e6 + (index % 7) as f64 * 1000.0));
        // It grows while a batch is written, and is read then.
        all.insert(lag("batch"), by(|index| (index % 30) as f64 * 5000.0));
        all.insert(certificate(), always(20.0 * 86400.0));
        Cluster(all)
    }

    pub fn with(mut self, series: String, samples: Samples) -> Cluster {
        assert!(self.0.insert(series.clone(), samples).is_some(), "no healthy cluster has {series}");
        self
    }

    /// A rolling restart of ten minutes that begins ten minutes into the test.
    pub fn restarting() -> Cluster {
        let mut cluster = Cluster::healthy();
        let (begin, all) = (600 / STEP, 600 / STEP);
        let away = |number: usize| begin + number * all / PODS.len()..begin + (number + 1) * all / PODS.len();
        let of = |sample: usize| (0..PODS.len()).find(|number| away(*number).contains(&sample));
        for (number, (pod, is_broker)) in PODS.iter().enumerate() {
            let back = away(number).end;
            // The copies on a broker that restarts lag behind until it has caught up, a sample later.
            let lacking = |sample: usize| {
                let missing = [Some(sample), sample.checked_sub(1)].into_iter().flatten().filter_map(of);
                if missing.into_iter().any(|other| PODS[other].1 && other != number) { 50.0 } else { 0.0 }
            };
            if *is_broker {
                cluster = cluster.with(name(UNDER_REPLICATED, pod, ""), by(lacking));
                // Clients of the one that is away are on the others.
                let clients = |sample: usize| of(sample).map_or(1000.0, |_| 1500.0);
                cluster = cluster.with(name(CONNECTIONS, pod, LISTENER), by(clients));
            } else {
                // For one sample there is none; then it is the next one, which is restarted next.
                let last = ["1000", "1001", "1002"];
                let active = |sample: usize| {
                    let gone = (0..3).filter(|other| away(*other).start < sample).count();
                    let leads = last[if gone == 3 { 0 } else { gone }];
                    let elects = (0..3).any(|other| away(other).start == sample);
                    if pod.ends_with(leads) && !elects { 1.0 } else { 0.0 }
                };
                cluster = cluster.with(name(ACTIVE, pod, ""), by(active));
            }
            for (series, samples) in &mut cluster.0 {
                if !series.contains(&format!("pod=\"{pod}\"")) && !series.contains(&format!("data-0-{pod}\""))
                {
                    continue;
                }
                // Counters begin anew.
                let is_counter = ["_total{", "_sum{", "_count{"].iter().any(|end| series.contains(end));
                let first = samples[back].unwrap_or_default();
                for (sample, value) in samples.iter_mut().enumerate() {
                    if away(number).contains(&sample) {
                        *value = None;
                    } else if sample >= back && is_counter && !series.contains("connection_count") {
                        *value = value.map(|value| value - first);
                    }
                }
            }
        }
        // Consumers pause, and catch up.
        cluster.with(
            lag("batch"),
            by(|sample| match sample.saturating_sub(begin) {
                since if since <= all => since as f64 * 1000.0,
                since => (all as f64 * 1000.0 - (since - all) as f64 * 2000.0).max(0.0),
            }),
        )
    }

    /// As `promtool test rules` takes them.
    pub fn input(&self) -> Vec<serde_json::Value> {
        let values = |samples: &Samples| {
            let mut before = None;
            let each = samples.iter().map(|sample| {
                let text = match (before, sample) {
                    (_, Some(value)) => value.to_string(),
                    // A target that is gone ends its series.
                    (Some(true), None) => "stale".to_owned(),
                    (_, None) => "_".to_owned(),
                };
                before = Some(sample.is_some());
                text
            });
            each.collect::<Vec<_>>().join(" ")
        };
        let series = |(name, samples): (&String, &Samples)| serde_json::json!({"series": name, "values": values(samples)});
        self.0.iter().map(series).collect()
    }
}
