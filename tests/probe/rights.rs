//! The rights of the probe's user: those that it is given are all needed, and enough; the broker refuses every other
//! call.

use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use kafka_protocol::messages::delete_acls_request::{DeleteAclsFilter, DeleteAclsRequest};
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicsRequest;
use kafka_protocol::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use kafka_protocol::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use kafka_protocol::messages::{
    AlterClientQuotasRequest, AlterPartitionReassignmentsRequest, AlterUserScramCredentialsRequest, BrokerId,
    CreateAclsRequest, DeleteGroupsRequest, DescribeAclsRequest, DescribeClientQuotasRequest,
    DescribeLogDirsRequest, DescribeUserScramCredentialsRequest, ElectLeadersRequest, FindCoordinatorRequest,
    GroupId, InitProducerIdRequest, JoinGroupRequest, ListPartitionReassignmentsRequest, MetadataRequest,
    TopicName, TransactionalId, UnregisterBrokerRequest,
};
use kafka_protocol::protocol::{Request, StrBytes};
use streamfleet::component::probe::{ProbePlace, TOPIC};

use super::raw::RawClient;
use super::stage::{SCRAM, Stage, USER, sentence};

/// `TOPIC_AUTHORIZATION_FAILED`, `GROUP_AUTHORIZATION_FAILED`, `CLUSTER_AUTHORIZATION_FAILED`,
/// `TRANSACTIONAL_ID_AUTHORIZATION_FAILED`.
const OF_TOPIC: i16 = 29;
const OF_GROUP: i16 = 30;
const OF_CLUSTER: i16 = 31;
const OF_TRANSACTION: i16 = 53;

/// A topic of somebody else.
const OTHER: &str = "orders";

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic(name: &'static str) -> TopicName {
    TopicName(text(name))
}

struct Caller(RawClient);

impl Caller {
    #[track_caller]
    fn is_refused<R: Request>(
        &mut self,
        (request, version): (R, i16),
        expected: i16,
        code: impl Fn(&R::Response) -> i16,
    ) {
        let response = self.0.call(&request, version);
        assert_eq!(code(&response), expected, "API {}", R::KEY);
    }
}

/// The probe's user has exactly the rights of the table.
pub fn every_other_call_is_refused(stage: &Stage) {
    let created = CreateTopicsRequest::default()
        .with_topics(vec![
            CreatableTopic::default()
                .with_name(topic(OTHER))
                .with_num_partitions(1)
                .with_replication_factor(1),
        ])
        .with_timeout_ms(10_000);
    assert_eq!(stage.admin().call(&created, 5).topics[0].error_code, 0);
    let mut user = Caller(stage.raw(USER));
    of_other_topics(&mut user);
    of_its_topic(&mut user);
    of_cluster_and_groups(&mut user);
}

fn of_other_topics(user: &mut Caller) {
    let another = CreateTopicsRequest::default().with_topics(vec![
        CreatableTopic::default()
            .with_name(topic("another"))
            .with_num_partitions(1)
            .with_replication_factor(1),
    ]);
    user.is_refused((another, 5), OF_TOPIC, |it| it.topics[0].error_code);
    let more = CreatePartitionsTopic::default().with_name(topic(OTHER)).with_count(2);
    let more = CreatePartitionsRequest::default().with_topics(vec![more]).with_timeout_ms(10_000);
    user.is_refused((more, 3), OF_TOPIC, |it| it.results[0].error_code);
    let asked = MetadataRequestTopic::default().with_name(Some(topic(OTHER)));
    let metadata = MetadataRequest::default().with_topics(Some(vec![asked]));
    user.is_refused((metadata, 8), OF_TOPIC, |it| it.topics[0].error_code);
    let everything = user.0.call(&MetadataRequest::default().with_topics(None), 8);
    let seen: Vec<_> = everything.topics.iter().map(|it| it.name.clone().unwrap()).collect();
    assert_eq!(seen, [topic(TOPIC)]);
    let produce = ProduceRequest::default().with_acks(-1).with_timeout_ms(1000).with_topic_data(vec![
        TopicProduceData::default()
            .with_name(topic(OTHER))
            .with_partition_data(vec![PartitionProduceData::default().with_records(Some(Vec::new().into()))]),
    ]);
    user.is_refused((produce, 7), OF_TOPIC, |it| it.responses[0].partition_responses[0].error_code);
    let fetch = FetchRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![
        FetchTopic::default().with_topic(topic(OTHER)).with_partitions(vec![FetchPartition::default()]),
    ]);
    user.is_refused((fetch, 6), OF_TOPIC, |it| it.responses[0].partitions[0].error_code);
    let offsets = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![
        ListOffsetsTopic::default()
            .with_name(topic(OTHER))
            .with_partitions(vec![ListOffsetsPartition::default()]),
    ]);
    user.is_refused((offsets, 2), OF_TOPIC, |it| it.topics[0].partitions[0].error_code);
}

fn of_its_topic(user: &mut Caller) {
    let delete = DeleteTopicsRequest::default().with_topic_names(vec![topic(TOPIC)]).with_timeout_ms(10_000);
    user.is_refused((delete, 5), OF_TOPIC, |it| it.responses[0].error_code);
    let records = DeleteRecordsTopic::default()
        .with_name(topic(TOPIC))
        .with_partitions(vec![DeleteRecordsPartition::default().with_offset(-1)]);
    let records = DeleteRecordsRequest::default().with_topics(vec![records]).with_timeout_ms(1000);
    user.is_refused((records, 2), OF_TOPIC, |it| it.topics[0].partitions[0].error_code);
    for (kind, name, code) in [(2, TOPIC, OF_TOPIC), (4, "0", OF_CLUSTER)] {
        let resource =
            DescribeConfigsResource::default().with_resource_type(kind).with_resource_name(text(name));
        let describe = DescribeConfigsRequest::default().with_resources(vec![resource]);
        user.is_refused((describe, 4), code, |it| it.results[0].error_code);
        let option = AlterableConfig::default().with_name(text("retention.ms")).with_value(Some(text("1")));
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configs(vec![option]);
        let alter = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        user.is_refused((alter, 1), code, |it| it.responses[0].error_code);
    }
}

fn of_cluster_and_groups(user: &mut Caller) {
    let right = AclCreation::default()
        .with_resource_type(2)
        .with_resource_name(text(OTHER))
        .with_resource_pattern_type(3)
        .with_principal(text("User:orders-probe"))
        .with_host(text("*"))
        .with_operation(3)
        .with_permission_type(3);
    let rights = CreateAclsRequest::default().with_creations(vec![right]);
    user.is_refused((rights, 3), OF_CLUSTER, |it| it.results[0].error_code);
    let any = DescribeAclsRequest::default()
        .with_resource_type_filter(1)
        .with_pattern_type_filter(1)
        .with_host_filter(None)
        .with_operation(1)
        .with_permission_type(1);
    user.is_refused((any, 3), OF_CLUSTER, |it| it.error_code);
    user.is_refused((removal(1), 3), OF_CLUSTER, |it| it.filter_results[0].error_code);
    user.is_refused(
        (AlterPartitionReassignmentsRequest::default().with_timeout_ms(10_000), 0),
        OF_CLUSTER,
        |it| it.error_code,
    );
    user.is_refused(
        (ListPartitionReassignmentsRequest::default().with_timeout_ms(10_000), 0),
        OF_CLUSTER,
        |it| it.error_code,
    );
    user.is_refused((ElectLeadersRequest::default().with_timeout_ms(10_000), 2), OF_CLUSTER, |it| {
        it.error_code
    });
    user.is_refused((DescribeLogDirsRequest::default(), 4), OF_CLUSTER, |it| it.error_code);
    user.is_refused((DescribeUserScramCredentialsRequest::default(), 0), OF_CLUSTER, |it| it.error_code);
    let deletion =
        kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialDeletion::default();
    let deletion = deletion.with_name(text(USER)).with_mechanism(2);
    let scram = AlterUserScramCredentialsRequest::default().with_deletions(vec![deletion]);
    user.is_refused((scram, 0), OF_CLUSTER, |it| it.results[0].error_code);
    user.is_refused((DescribeClientQuotasRequest::default(), 1), OF_CLUSTER, |it| it.error_code);
    let quotas = AlterClientQuotasRequest::default().with_entries(vec![Default::default()]);
    user.is_refused((quotas, 1), OF_CLUSTER, |it| it.entries[0].error_code);
    user.is_refused((UnregisterBrokerRequest::default(), 0), OF_CLUSTER, |it| it.error_code);
    user.is_refused((FindCoordinatorRequest::default().with_key(text("group")), 2), OF_GROUP, |it| {
        it.error_code
    });
    user.is_refused((JoinGroupRequest::default().with_group_id(GroupId(text("group"))), 5), OF_GROUP, |it| {
        it.error_code
    });
    let groups = DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text("group"))]);
    user.is_refused((groups, 2), OF_GROUP, |it| it.results[0].error_code);
    let transaction = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("transaction"))))
        .with_transaction_timeout_ms(1000);
    user.is_refused((transaction, 4), OF_TRANSACTION, |it| it.error_code);
}

/// Takes an operation on its topic from the probe's user that logs in with a password; 1 is any.
fn removal(operation: i8) -> DeleteAclsRequest {
    let filter = DeleteAclsFilter::default()
        .with_resource_type_filter(2)
        .with_resource_name_filter(Some(text(TOPIC)))
        .with_pattern_type_filter(3)
        .with_principal_filter(Some(StrBytes::from_string(format!("User:{USER}"))))
        .with_host_filter(None)
        .with_operation(operation)
        .with_permission_type(1);
    DeleteAclsRequest::default().with_filters(vec![filter])
}

/// Without one of its rights, the probe says which step is refused. The topic is there, with a partition for the
/// only broker.
pub fn every_right_is_needed(stage: &Stage) {
    let order = stage.order(&[0], SCRAM);
    let lacks = |operation: i8, what: &str| {
        let removed = stage.admin().call(&removal(operation), 3);
        assert_eq!(removed.filter_results[0].matching_acls.len(), 1, "{removed:?}");
        let report = stage.check_until(what, &order, |report| !report.is_reachable());
        let said = sentence(&report, ProbePlace::Broker(0));
        let expected = format!(
            "broker 0: {what}: TOPIC_AUTHORIZATION_FAILED, the user lacks the right (from ADDRESS-0)"
        );
        assert_eq!(said, expected);
    };
    lacks(3, &format!("partition 0 of {TOPIC} can't be read"));
    lacks(4, &format!("a record for partition 0 of {TOPIC} is refused"));
    // Altering implies describing.
    let delete = DeleteTopicsRequest::default().with_topic_names(vec![topic(TOPIC)]).with_timeout_ms(10_000);
    assert_eq!(stage.admin().call(&delete, 5).responses[0].error_code, 0);
    lacks(5, "cannot create the probe's topic");
    lacks(7, "cannot read the probe's topic");
}
