use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::component::fixtures::cluster;

fn read(text: &str) -> Result<PodSamples, UnreadableMetrics> {
    let mut samples = PodSamples::default();
    text.lines().try_for_each(|line| samples.read(line).map(drop))?;
    samples.finish()
}

fn cluster_metrics(pods: &[(&str, &str)]) -> ClusterMetrics {
    let pods = pods.iter().map(|(pod, text)| PodMetrics {
        pod: (*pod).to_owned(),
        samples: read(text).map_err(|why| why.to_string()),
    });
    ClusterMetrics::of(&cluster(json!({})), &UnitCatalogue::default(), pods.collect())
}

/// The lines of the text that aren't our own metrics.
fn passed_on(text: &str) -> Vec<&str> {
    let is_passed = |line: &&str| !line.contains("streamfleet_") && !line.starts_with("# HELP");
    text.lines().filter(is_passed).collect()
}

#[test]
fn names_are_unique_and_those_of_counters_alone_end_in_total() {
    let names: BTreeSet<&str> = METRICS.iter().flat_map(|metric| [metric.reads, metric.name]).collect();
    let renamed = METRICS.iter().filter(|metric| metric.reads != metric.name).count();
    assert_eq!(names.len(), METRICS.len() + renamed);
    for metric in METRICS {
        assert_eq!(
            metric.kind == metrics::MetricKind::Counter,
            metric.name.ends_with("_total"),
            "{}",
            metric.name
        );
    }
}

#[test]
fn brokers_say_what_is_on_the_list_and_partitions_are_added_up() {
    let broker = "# HELP kafka_log_log_size anything\n\
        # TYPE kafka_log_log_size gauge\n\
        kafka_log_log_size{topic=\"a\",partition=\"0\"} 1.0E3\n\
        kafka_log_log_size{partition=\"1\",topic=\"a\",} 24 1700000000\n\
        kafka_log_log_size{topic=\"b\",partition=\"0\"} 5\n\
        kafka_server_replicamanager_leadercount 7.0\n\
        kafka_server_replicamanager_leadercount_of_another 7.0\n\
        jvm_info{vendor=\"x\"} 1\n";
    let text = text([&cluster_metrics(&[("orders-broker-0", broker), ("orders-broker-1", "<html>")])]);
    assert_eq!(
        passed_on(&text),
        [
            "# pod orders-broker-1 of organization=\"acme\",cluster=\"orders\": its answer has none of the metrics of Kafka",
            "# TYPE up gauge",
            "up{organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-0\"} 1",
            "up{organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-1\"} 0",
            "# TYPE kafka_log_log_size_bytes gauge",
            "kafka_log_log_size_bytes{organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-0\",topic=\"a\"} 1024",
            "kafka_log_log_size_bytes{organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-0\",topic=\"b\"} 5",
            "# TYPE kafka_server_replicamanager_leadercount gauge",
            "kafka_server_replicamanager_leadercount{organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-0\"} 7",
        ]
    );
    assert!(
        text.contains(
            "\nstreamfleet_broker_connections_limit{organization=\"acme\",cluster=\"orders\"} 3000\n"
        )
    );
}

#[test]
fn labels_of_strangers_are_cut_and_escaped_and_take_the_place_of_none_of_ours() {
    let long = "x".repeat(5_000);
    let broker = format!(
        "kafka_log_log_size{{cluster=\"theirs\",organization=\"theirs\",pod=\"theirs\",topic=\"a\\\"}} 1\\n\\\\ \u{202e}\"}} +Inf\n\
         kafka_log_log_size{{topic=\"{long}\"}} NaN\n"
    );
    let text = text([&cluster_metrics(&[("orders-broker-0\" 1\nup 2", &broker)])]);
    let of_ours = "organization=\"acme\",cluster=\"orders\",pod=\"orders-broker-0\\\" 1 up 2\"";
    assert_eq!(
        passed_on(&text),
        [
            "# TYPE up gauge".to_owned(),
            format!("up{{{of_ours}}} 1"),
            "# TYPE kafka_log_log_size_bytes gauge".to_owned(),
            format!("kafka_log_log_size_bytes{{{of_ours},topic=\"a\\\"}} 1 \\\\ \\\\u{{202e}}\"}} +Inf"),
            format!("kafka_log_log_size_bytes{{{of_ours},topic=\"{}…\"}} NaN", &long[..249]),
        ]
    );
}

#[test]
fn a_text_that_is_malformed_or_too_long_is_refused_as_a_whole() {
    use UnreadableMetrics::*;
    let size = "kafka_log_log_size";
    for (line, expected) in [
        (String::new(), None),
        ("kafka_log_log_siz 1".to_owned(), None),
        (size.to_owned(), Malformed),
        (format!("{size} many"), Malformed),
        (format!("{size}{{topic=\"a"), Malformed),
        (format!("{size}{{topic=\"a\" 1"), Malformed),
        (format!("{size}{{topic}} 1"), Malformed),
        (format!("{size}{{topic=a}} 1"), Malformed),
    ] {
        assert_eq!(read(&line).unwrap_err(), expected, "{line}");
    }
    let topics = |number: usize| -> String {
        (0..number).map(|topic| format!("{size}{{topic=\"t{topic}\"}} 1\n")).collect()
    };
    assert_eq!(read(&topics(PodSamples::MOST)).unwrap().len(), PodSamples::MOST);
    assert_eq!(read(&topics(PodSamples::MOST + 1)).unwrap_err(), TooMany);
    for (why, expected) in [
        (Malformed, "its answer is not in Prometheus' text format"),
        (TooMany, "its answer has more than 10000 series, the limit"),
        (None, "its answer has none of the metrics of Kafka"),
    ] {
        assert_eq!(why.to_string(), expected);
    }
}
