//! The probe and its topic while brokers come, go and fail.

use kafka_protocol::messages::delete_topics_request::DeleteTopicsRequest;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use streamfleet::component::probe::{ProbeLevel, ProbeNote, ProbePlace, ProbeReport, TOPIC};

use super::stage::{BOOTSTRAP, SCRAM, Stage, address, broker_host, sentence, verdict};

const FIRST: ProbePlace = ProbePlace::Broker(0);
const SECOND: ProbePlace = ProbePlace::Broker(1);

fn topic() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

/// The replicas of the topic's partitions.
fn replicas(stage: &Stage) -> Vec<Vec<i32>> {
    let asked = MetadataRequestTopic::default().with_name(Some(topic()));
    let metadata = stage.admin().call(&MetadataRequest::default().with_topics(Some(vec![asked])), 8);
    let mut partitions = metadata.topics[0].partitions.clone();
    partitions.sort_by_key(|it| it.partition_index);
    partitions.iter().map(|it| it.replica_nodes.iter().map(|id| id.0).collect()).collect()
}

fn is_written(report: &ProbeReport, place: ProbePlace) -> bool {
    verdict(report, place).reached == Some(ProbeLevel::Write)
}

fn is_whole(report: &ProbeReport) -> bool {
    is_written(report, FIRST) && is_written(report, SECOND) && report.is_reachable()
}

#[test]
fn each_broker_is_told_apart_and_the_topic_follows_the_plan() {
    let mut stage = Stage::set(&[0, 1], None);
    let both = stage.order(&[0, 1], SCRAM);
    stage.check_until("both brokers are reached", &both, is_whole);
    assert_eq!(replicas(&stage), [[0, 1], [1, 0]]);

    // A wrong record in DNS.
    stage.names.set(&broker_host(1), address(0));
    let report = stage.check(&both);
    let expected = format!("broker 1: the name {} leads to broker 0 (from ADDRESS-0)", broker_host(1));
    assert_eq!(sentence(&report, SECOND), expected);
    assert_eq!(verdict(&report, SECOND).failed_at(), Some(ProbeLevel::Identity));
    assert_eq!(report.first_failure().map(|it| it.place), Some(SECOND));
    assert!(is_written(&report, FIRST), "{report:#?}");
    stage.names.set(&broker_host(1), address(1));
    stage.names.set(&broker_host(0), address(1));
    let report = stage.check(&both);
    let expected = format!("broker 0: the name {} leads to broker 1 (from ADDRESS-1)", broker_host(0));
    assert_eq!(sentence(&report, FIRST), expected);
    stage.names.set(&broker_host(0), address(0));
    // The bootstrap name may lead to any broker.
    stage.names.set(BOOTSTRAP, address(1));
    assert!(is_whole(&stage.check(&both)));
    stage.names.set(BOOTSTRAP, address(0));

    // A broker that is stopped has its sentence, and the other one is reached. Nothing is moved.
    stage.kill(1);
    let stopped = stage.check(&both);
    assert_eq!(sentence(&stopped, SECOND), format!("broker 1: port {SCRAM} is closed (from ADDRESS-1)"));
    stage.check_until("the other broker is reached", &both, |report| is_written(report, FIRST));
    assert_eq!(replicas(&stage), [[0, 1], [1, 0]]);

    // Two replicas must have the record, and one is away.
    stage.set_option("min.insync.replicas", "2");
    let refused = format!(
        "broker 0: a record for partition 0 of {TOPIC} is refused: NOT_ENOUGH_REPLICAS, fewer are in sync than its \
         min.insync.replicas (from ADDRESS-0)"
    );
    stage.check_until("the record is refused", &both, |report| sentence(report, FIRST) == refused);
    stage.set_option("min.insync.replicas", "1");

    // Back again, it doesn't lead its partition yet, and the record is written through the leader.
    stage.start(&[1]);
    let back = stage.check_until("the broker is back", &both, is_whole);
    let led = ProbeNote::Led { partition: 1, by: 0 };
    assert_eq!(verdict(&back, SECOND).note, Some(led), "{back:#?}");
    assert_eq!(replicas(&stage), [[0, 1], [1, 0]]);

    scale(&stage);
}

/// The topic of a cluster that grows and shrinks.
fn scale(stage: &Stage) {
    let request = DeleteTopicsRequest::default().with_topic_names(vec![topic()]).with_timeout_ms(10_000);
    let deleted = stage.admin().call(&request, 5);
    assert_eq!(deleted.responses[0].error_code, 0, "{deleted:?}");
    let (one, both) = (stage.order(&[0], SCRAM), stage.order(&[0, 1], SCRAM));
    stage.check_until("one broker is reached", &one, |report| is_written(report, FIRST));
    assert_eq!(replicas(stage), [[0]]);
    stage.check_until("the new broker is reached", &both, is_whole);
    assert_eq!(replicas(stage), [[0], [1]]);
    // A broker leaves the plan before it is gone, and may come back.
    assert!(is_written(&stage.check(&one), FIRST));
    assert_eq!(replicas(stage), [[0], [1]]);
    assert!(is_whole(&stage.check(&both)));
    assert_eq!(replicas(stage), [[0], [1]]);
}
