//! Requests and responses are those that an independent implementation of the protocol writes and reads.

use kafka_protocol::messages as theirs;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::RecordBatchDecoder;

use super::super::batch;
use super::*;

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic() -> TopicName {
    TopicName(text(TOPIC))
}

/// A request, as another implementation reads it.
#[track_caller]
fn sent<T: Decodable, R: Request>(request: &R) -> T {
    let mut writer = WireWriter::default();
    request.write(&mut writer);
    let bytes = writer.into_bytes().to_vec();
    let mut rest = axum::body::Bytes::from(bytes);
    let read = T::decode(&mut rest, R::VERSION).unwrap();
    assert!(rest.is_empty(), "{} bytes are left", rest.len());
    read
}

/// A response that another implementation wrote. Every part of it is refused.
#[track_caller]
fn received<R: Request>(response: &impl Encodable) -> R::Response {
    let mut bytes = Vec::new();
    response.encode(&mut bytes, R::VERSION).unwrap();
    for end in 0..bytes.len() {
        assert!(R::read(&mut Reader(&bytes[..end])).is_err(), "{end} of {}", bytes.len());
    }
    let mut reader = Reader(&bytes);
    let read = R::read(&mut reader).unwrap_or_else(|fault| panic!("{fault:?}"));
    assert!(reader.0.is_empty(), "{} bytes are left", reader.0.len());
    read
}

#[test]
fn versions_are_asked_for_and_read() {
    let _: theirs::ApiVersionsRequest = sent(&ApiVersions);
    let known = theirs::api_versions_response::ApiVersion::default()
        .with_api_key(1)
        .with_min_version(4)
        .with_max_version(17);
    let response = theirs::ApiVersionsResponse::default().with_api_keys(vec![known]);
    let read = received::<ApiVersions>(&response);
    assert_eq!((read.error, &read.known[..]), (0, &[(1, 4, 17)][..]));
    assert!(read.has::<Fetch>() && !read.has::<Produce>());
}

#[test]
fn metadata_is_asked_for_and_read() {
    let all: theirs::MetadataRequest = sent(&Metadata { with_topic: false });
    assert_eq!((all.topics.unwrap().len(), all.allow_auto_topic_creation), (0, false));
    let of_topic: theirs::MetadataRequest = sent(&Metadata { with_topic: true });
    assert_eq!(of_topic.topics.unwrap()[0].name, Some(topic()));

    let broker =
        MetadataResponseBroker::default().with_node_id(BrokerId(2)).with_host(text("b")).with_port(9094);
    let partition = MetadataResponsePartition::default()
        .with_partition_index(7)
        .with_leader_id(BrokerId(-1))
        .with_replica_nodes(vec![BrokerId(2), BrokerId(0)])
        .with_isr_nodes(vec![BrokerId(0)]);
    let partitions =
        MetadataResponseTopic::default().with_name(Some(topic())).with_partitions(vec![partition]);
    let response = theirs::MetadataResponse::default()
        .with_brokers(vec![broker.with_rack(Some(text("zone")))])
        .with_cluster_id(Some(text("id")))
        .with_topics(vec![
            MetadataResponseTopic::default().with_name(Some(TopicName(text("other")))),
            partitions,
        ]);
    let read = received::<Metadata>(&response);
    assert_eq!(read.brokers, [AdvertisedBroker { id: 2, host: "b".to_owned(), port: 9094 }]);
    assert_eq!(read.cluster.as_deref(), Some("id"));
    assert_eq!(read.topic, Some((0, vec![Partition { index: 7, leader: -1, replicas: vec![2, 0] }])));
}

#[test]
fn offsets_are_asked_for_and_read() {
    let read: theirs::ListOffsetsRequest = sent(&ListOffsets { partitions: &[0, 5] });
    let partitions: Vec<_> =
        read.topics[0].partitions.iter().map(|it| (it.partition_index, it.timestamp)).collect();
    assert_eq!(
        (read.replica_id, &read.topics[0].name, &partitions[..]),
        (BrokerId(-1), &topic(), &[(0, -1), (5, -1)][..])
    );
    let partition = ListOffsetsPartitionResponse::default().with_partition_index(5).with_error_code(6);
    let of_topic = ListOffsetsTopicResponse::default().with_name(topic()).with_partitions(vec![partition]);
    let response = theirs::ListOffsetsResponse::default().with_topics(vec![of_topic]);
    assert_eq!(received::<ListOffsets>(&response), [(5, 6)]);
}

#[test]
fn the_topic_is_created_and_extended() {
    let replicas = [vec![0, 1, 2], vec![1, 2, 0]];
    let read: theirs::CreateTopicsRequest = sent(&CreateTopic { replicas: &replicas, timeout_ms: 4000 });
    let asked = &read.topics[0];
    assert_eq!((&asked.name, asked.num_partitions, asked.replication_factor), (&topic(), -1, -1));
    let brokers: Vec<Vec<i32>> =
        asked.assignments.iter().map(|it| it.broker_ids.iter().map(|id| id.0).collect()).collect();
    assert_eq!(brokers, [[0, 1, 2], [1, 2, 0]]);
    assert_eq!(asked.assignments[1].partition_index, 1);
    let options: Vec<_> = asked.configs.iter().map(|it| (&*it.name, it.value.as_deref().unwrap())).collect();
    assert_eq!(options, TOPIC_OPTIONS);
    assert_eq!((read.timeout_ms, read.validate_only), (4000, false));
    let result = CreatableTopicResult::default().with_name(topic()).with_error_code(29);
    let response = theirs::CreateTopicsResponse::default().with_topics(vec![result]);
    assert_eq!(received::<CreateTopic>(&response), 29);

    let added = CreatePartitions { count: 4, replicas: &replicas, timeout_ms: 4000 };
    let read: theirs::CreatePartitionsRequest = sent(&added);
    let asked = &read.topics[0];
    let brokers: Vec<Vec<i32>> = asked
        .assignments
        .as_ref()
        .unwrap()
        .iter()
        .map(|it| it.broker_ids.iter().map(|id| id.0).collect())
        .collect();
    assert_eq!((asked.count, brokers.len(), &brokers[1][..]), (4, 2, &[1, 2, 0][..]));
    let result = theirs::create_partitions_response::CreatePartitionsTopicResult::default()
        .with_name(topic())
        .with_error_code(39)
        .with_error_message(Some(text("no")));
    let response = theirs::CreatePartitionsResponse::default().with_results(vec![result]);
    assert_eq!(received::<CreatePartitions>(&response), 39);
}

#[test]
fn a_record_is_written_and_read() {
    let value = [7; 64];
    let batch = batch::of_one(&value, 1_700_000_000_000);
    let read: theirs::ProduceRequest = sent(&Produce { partition: 3, batch: &batch, timeout_ms: 4000 });
    assert_eq!((read.acks, read.timeout_ms, read.transactional_id), (-1, 4000, None));
    let partition = &read.topic_data[0].partition_data[0];
    assert_eq!(partition.index, 3);
    let mut records = partition.records.clone().unwrap();
    let read = RecordBatchDecoder::decode(&mut records).unwrap().records;
    assert_eq!(read.len(), 1);
    assert_eq!((read[0].value.as_deref(), read[0].key.as_deref()), (Some(&value[..]), None));
    assert_eq!(read[0].timestamp, 1_700_000_000_000);

    let produced = PartitionProduceResponse::default().with_index(3).with_error_code(19).with_base_offset(42);
    let of_topic =
        TopicProduceResponse::default().with_name(topic()).with_partition_responses(vec![produced]);
    let read = received::<Produce>(&theirs::ProduceResponse::default().with_responses(vec![of_topic]));
    assert_eq!((read.error, read.offset), (19, 42));

    let read: theirs::FetchRequest = sent(&Fetch { partition: 3, offset: 42, wait_ms: 500 });
    let partition = &read.topics[0].partitions[0];
    assert_eq!((partition.partition, partition.fetch_offset), (3, 42));
    assert_eq!((read.max_wait_ms, read.min_bytes, read.replica_id), (500, 1, BrokerId(-1)));
    let data = PartitionData::default()
        .with_partition_index(3)
        .with_aborted_transactions(Some(vec![AbortedTransaction::default()]))
        .with_records(Some(batch.clone().into()));
    let of_topic = FetchableTopicResponse::default().with_topic(topic()).with_partitions(vec![data]);
    let read = received::<Fetch>(&theirs::FetchResponse::default().with_responses(vec![of_topic]));
    assert_eq!((read.error, &read.records), (0, &batch));
}

#[test]
fn a_login_is_asked_for_and_read() {
    let read: theirs::SaslHandshakeRequest = sent(&SaslHandshake { mechanism: "SCRAM-SHA-512" });
    assert_eq!(&*read.mechanism, "SCRAM-SHA-512");
    let response =
        theirs::SaslHandshakeResponse::default().with_error_code(33).with_mechanisms(vec![text("PLAIN")]);
    let read = received::<SaslHandshake>(&response);
    assert_eq!((read.error, read.offered), (33, vec!["PLAIN".to_owned()]));

    let read: theirs::SaslAuthenticateRequest = sent(&SaslAuthenticate { message: b"n,," });
    assert_eq!(&*read.auth_bytes, b"n,,");
    let response = theirs::SaslAuthenticateResponse::default()
        .with_error_code(58)
        .with_error_message(Some(text("no")))
        .with_auth_bytes(axum::body::Bytes::from_static(b"v="));
    let read = received::<SaslAuthenticate>(&response);
    assert_eq!((read.error, read.says.as_deref(), &read.message[..]), (58, Some("no"), &b"v="[..]));
}

#[test]
fn a_length_that_the_bytes_contradict_is_refused() {
    for claimed in [i32::MAX, 1 << 20, 5, -2] {
        // No throttling, and so many brokers.
        let mut bytes = vec![0, 0, 0, 0];
        bytes.extend(claimed.to_be_bytes());
        bytes.extend([0; 4]);
        assert!(Metadata::read(&mut Reader(&bytes)).is_err(), "{claimed}");
        let mut reader = Reader(&bytes[4..]);
        assert!(reader.bytes().is_err(), "{claimed}");
    }
    assert_eq!(Reader(&[0xff; 4]).bytes().unwrap(), None);
    assert_eq!(Reader(&[0xff; 2]).null_string().unwrap(), None);
    assert!(Reader(&[0xff; 2]).string().is_err());
    assert!(Reader(&[0x7f, 0xff, 0]).string().is_err());
}

proptest::proptest! {
    /// Whatever a server sends is read or refused.
    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = ApiVersions::read(&mut Reader(&bytes));
        let _ = Metadata::read(&mut Reader(&bytes));
        let _ = ListOffsets::read(&mut Reader(&bytes));
        let _ = CreateTopic::read(&mut Reader(&bytes));
        let _ = Produce::read(&mut Reader(&bytes));
        let _ = Fetch::read(&mut Reader(&bytes));
        let _ = SaslHandshake::read(&mut Reader(&bytes));
        let _ = SaslAuthenticate::read(&mut Reader(&bytes));
    }
}
