mod words;

use serde_json::json;

use super::*;
use crate::component::consequence::{DirectionFilter, ObjectFilter};
use crate::names::{Json, ObjectKey};
use crate::render::{Manifest, Stage};

fn step(kind: &str, before: Option<Value>, after: Option<Value>) -> Step {
    let object = ObjectKey {
        namespace: Some("ns".into()),
        kind: kind.into(),
        name: "x".into(),
        api_version: "v1".into(),
    };
    let owner = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let stage = Stage::Custom;
    let after = after.map(|body| Manifest { key: object.clone(), owner, stage, body: body.into() });
    let verb = if after.is_some() { Verb::Update } else { Verb::Delete };
    Step { verb, object, stage, uid: None, before: before.map(Json::from), after }
}

#[test]
fn every_field_has_the_verdict_that_strimzi_gives_it() {
    use Verdict::*;
    let broker = |key: &str, value: Value| json!({"spec": {"roles": ["broker"], key: value}});
    let controller = |key: &str, value: Value| json!({"spec": {"roles": ["controller"], key: value}});
    let disk = |value: Value| broker("storage", json!({"type": "jbod", "volumes": [value]}));
    let kafka = |key: &str, value: Value| json!({"spec": {"kafka": {key: value}}});
    let rate = |value: u32| kafka("quotas", json!({"producerByteRate": value}));
    let annotated = |name: &str, value: &str| {
        let template = json!({"perBrokerAnnotationsTemplate": {name: value}});
        kafka("listeners", json!([{"configuration": template}]))
    };
    let tls = |value: &str| json!({"type": "kubernetes.io/tls", "data": {"tls.crt": value}});
    let named = |value: &str| json!({"metadata": {"labels": {"a": value}}, "spec": {}});
    let cases = [
        ("KafkaNodePool", broker("replicas", json!(3)), broker("replicas", json!(6)), InPlace),
        ("KafkaNodePool", broker("replicas", json!(6)), broker("replicas", json!(3)), Refused),
        ("KafkaNodePool", controller("replicas", json!(1)), controller("replicas", json!(3)), Refused),
        ("KafkaNodePool", controller("replicas", json!(3)), controller("replicas", json!(1)), Refused),
        ("KafkaNodePool", broker("a", json!(1)), controller("a", json!(1)), Refused),
        ("KafkaNodePool", disk(json!({"size": "1Ti"})), disk(json!({"size": "2000Gi"})), StorageGrowth),
        ("KafkaNodePool", disk(json!({"size": "1Ti"})), disk(json!({"size": "1000Gi"})), Refused),
        ("KafkaNodePool", disk(json!({"class": "a"})), disk(json!({"class": "b"})), Refused),
        ("KafkaNodePool", disk(json!({"type": "a"})), disk(json!({"type": "b"})), Refused),
        ("KafkaNodePool", disk(json!({"deleteClaim": false})), disk(json!({"deleteClaim": true})), InPlace),
        ("KafkaNodePool", disk(json!({"deleteClaim": true})), disk(json!({"deleteClaim": false})), InPlace),
        ("KafkaNodePool", broker("resources", json!(1)), broker("resources", json!(2)), RollingRestart),
        ("KafkaNodePool", broker("jvmOptions", json!(1)), broker("jvmOptions", json!(2)), RollingRestart),
        ("KafkaNodePool", broker("template", json!(1)), broker("template", json!(2)), RollingRestart),
        ("KafkaNodePool", named("1"), named("2"), NoOp),
        ("Kafka", kafka("config", json!({"a": 1})), kafka("config", json!({})), RollingRestart),
        ("Kafka", kafka("version", json!("4.3.0")), kafka("version", json!("4.3.1")), RollingRestart),
        (
            "Kafka",
            kafka("metadataVersion", json!("4.2-IV1")),
            kafka("metadataVersion", json!("4.3-IV0")),
            InPlace,
        ),
        (
            "Kafka",
            kafka("metadataVersion", json!("4.3-IV0")),
            kafka("metadataVersion", json!("4.2-IV1")),
            Refused,
        ),
        ("Kafka", kafka("listeners", json!([])), kafka("listeners", json!([1])), RollingRestart),
        ("Kafka", kafka("listeners", json!([1, 2])), kafka("listeners", json!([2])), ClientsReconnect),
        (
            "Kafka",
            kafka("listeners", json!([{"port": 1}])),
            kafka("listeners", json!([{"port": 2}])),
            ClientsReconnect,
        ),
        (
            "Kafka",
            kafka("listeners", json!([{"configuration": {"maxConnections": 1}}])),
            kafka("listeners", json!([{"configuration": {"maxConnections": 2}}])),
            RollingRestart,
        ),
        (
            "Kafka",
            kafka("config", json!({"log.retention.ms": 1, "a": 1})),
            kafka("config", json!({"a": 1, "log.segment.bytes": 2})),
            InPlace,
        ),
        (
            "Kafka",
            kafka("config", json!({"log.retention.ms": 2})),
            kafka("config", json!({"log.retention.ms": 1})),
            DataLoss,
        ),
        (
            "Kafka",
            kafka("config", json!({"min.insync.replicas": 1})),
            kafka("config", json!({"min.insync.replicas": 2})),
            InPlace,
        ),
        (
            "Kafka",
            kafka("config", json!({"group.max.size": 1})),
            kafka("config", json!({"group.max.size": 2})),
            RollingRestart,
        ),
        (
            "Kafka",
            annotated("external-dns.alpha.kubernetes.io/hostname", "a"),
            annotated("external-dns.alpha.kubernetes.io/hostname", "b"),
            InPlace,
        ),
        (
            "Kafka",
            annotated("service.beta.kubernetes.io/aws-load-balancer-scheme", "internal"),
            annotated("service.beta.kubernetes.io/aws-load-balancer-scheme", "internet-facing"),
            ClientsReconnect,
        ),
        (
            "Kafka",
            kafka("config", json!({"num.partitions": 1})),
            kafka("config", json!({"num.partitions": 3})),
            RollingRestart,
        ),
        ("Kafka", kafka("rack", json!(1)), kafka("rack", json!(2)), RollingRestart),
        ("Kafka", kafka("template", json!(1)), kafka("template", json!(2)), RollingRestart),
        ("Kafka", kafka("quotas", json!(1)), kafka("quotas", json!({"a": 2})), RollingRestart),
        ("Kafka", rate(2), rate(1), RollingRestart),
        ("Kafka", rate(1), rate(2), RollingRestart),
        (
            "Kafka",
            kafka("authorization", json!({"superUsers": ["a"]})),
            kafka("authorization", json!({"superUsers": ["b"]})),
            RollingRestart,
        ),
        (
            "Kafka",
            json!({"spec": {"cruiseControl": {}}}),
            json!({"spec": {"cruiseControl": {"a": 1}}}),
            InPlace,
        ),
        ("Kafka", json!({"spec": {}}), json!({"spec": {"cruiseControl": {}}}), RollingRestart),
        ("Kafka", json!({"spec": {"cruiseControl": {}}}), json!({"spec": {}}), RollingRestart),
        ("Kafka", json!({"spec": {}}), json!({"spec": {"entityOperator": {}}}), InPlace),
        ("Kafka", named("1"), named("2"), NoOp),
        ("Secret", tls("a"), tls("b"), RollingRestart),
        ("Secret", json!({"data": {"a": "1"}}), json!({"data": {"a": "2"}}), InPlace),
        ("NetworkPolicy", json!({"spec": 1}), json!({"spec": 2}), InPlace),
        ("ResourceQuota", json!({"spec": 1}), json!({"spec": 2}), InPlace),
        ("LimitRange", json!({"spec": 1}), json!({"spec": 2}), InPlace),
        ("Namespace", named("1"), named("2"), InPlace),
        ("ConfigMap", named("1"), named("2"), NoOp),
        ("ConfigMap", named("1"), named("1"), NoOp),
    ];
    let mut refusals = Vec::new();
    for (kind, before, after, expected) in cases {
        let shown = format!("{kind} {before} {after}");
        let judgement = judge([step(kind, Some(before), Some(after))].iter(), Permits::default());
        assert_eq!(judgement.verdict, Some(expected), "{shown}");
        assert_eq!(judgement.refusals.is_empty(), expected != Refused, "{shown}");
        refusals.extend(
            judgement.refusals.into_iter().map(|refusal| format!("{}: {}", refusal.code, refusal.why)),
        );
    }
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    brokers-removed: KafkaNodePool ns/x would shrink from 6 to 3 brokers, and the removed ones may hold the only copies of data
    controllers-changed: the controllers of KafkaNodePool ns/x would change from 1 to 3, and a running quorum can't change its size
    controllers-changed: the controllers of KafkaNodePool ns/x would change from 3 to 1, and a running quorum can't change its size
    roles-changed: the roles of KafkaNodePool ns/x would change, and running nodes can't change their roles
    storage-shrunk: the disks of KafkaNodePool ns/x would shrink from 1Ti to 1000Gi, and disks only grow
    storage-changed: the disks of KafkaNodePool ns/x would be replaced by other disks, and Strimzi can't move data between them
    storage-changed: the disks of KafkaNodePool ns/x would be replaced by other disks, and Strimzi can't move data between them
    metadata-downgrade: Kafka's metadata version would go back from 4.3-IV0 to 4.2-IV1, and it only goes forward
    "#);
}

#[test]
fn brokers_go_only_where_that_is_confirmed_and_at_most_half_of_them() {
    let pool = |replicas: u32, delete: bool| {
        let volumes = json!([{"size": "1Ti", "deleteClaim": delete}]);
        json!({"spec": {"roles": ["broker"], "replicas": replicas, "storage": {"volumes": volumes}}})
    };
    let judged = |from, to, delete, fewer_brokers| {
        let step = step("KafkaNodePool", Some(pool(from, delete)), Some(pool(to, delete)));
        judge([step].iter(), Permits { fewer_brokers })
    };
    for (from, to, confirmed, expected) in [
        (6, 3, false, Verdict::Refused),
        (6, 3, true, Verdict::BrokerRemoval),
        (9, 3, true, Verdict::Refused),
        (2, 1, true, Verdict::Refused),
        (3, 6, true, Verdict::InPlace),
    ] {
        assert_eq!(judged(from, to, false, confirmed).verdict, Some(expected), "{from} to {to}, {confirmed}");
    }
    let effects = [false, true].map(|delete| judged(6, 3, delete, true).effects.join("; "));
    insta::assert_snapshot!(effects.join("\n"), @"
    Cruise Control moves the data of 3 brokers to the others, which need enough disk space for it; then the operator \
    removes them. Clients keep their connections to the others; their disks are kept
    Cruise Control moves the data of 3 brokers to the others, which need enough disk space for it; then the operator \
    removes them. Clients keep their connections to the others; their disks are deleted with them
    ");
    let controllers = |replicas: u32| json!({"spec": {"roles": ["controller"], "replicas": replicas}});
    let step = step("KafkaNodePool", Some(controllers(5)), Some(controllers(3)));
    let judgement = judge([step].iter(), Permits { fewer_brokers: true });
    assert_eq!(judgement.refusals[0].code, "controllers-changed", "a quorum are immutables its size");
}

#[test]
fn what_an_option_of_brokers_does_to_records_is_said() {
    let judged = |before: Value, after: Value| {
        let kafka = |config: Value| Some(json!({"spec": {"kafka": {"config": config}}}));
        let step = step("Kafka", kafka(before), kafka(after));
        let judgement = judge([step.clone()].iter(), Permits::default());
        let verdict = judgement.verdict.unwrap();
        format!(
            "{}, beside it {}: {}",
            verdict.words(),
            disruption(&[step]).words(),
            judgement.effects.join("; ")
        )
    };
    let told = [
        judged(json!({}), json!({"log.retention.ms": 86_400_000})),
        judged(json!({}), json!({"offsets.retention.minutes": 1440})),
        judged(json!({"log.retention.hours": 87_600}), json!({})),
        judged(json!({"log.cleaner.enable": false}), json!({})),
        judged(json!({}), json!({"message.max.bytes": 1_024})),
        judged(json!({}), json!({"transaction.max.timeout.ms": 30_000})),
        judged(json!({"min.insync.replicas": 2}), json!({"min.insync.replicas": 1})),
        judged(json!({"min.insync.replicas": 3}), json!({"min.insync.replicas": 2})),
        judged(json!({"min.insync.replicas": 2}), json!({"min.insync.replicas": 3})),
        judged(json!({"default.replication.factor": 3}), json!({"default.replication.factor": 2})),
        judged(json!({"default.replication.factor": 1}), json!({"default.replication.factor": 3})),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    data loss, beside it in place: records older than 1 day are deleted, in topics without a `retention.ms` of their \
    own (7 days before); brokers use new options without a restart
    data loss, beside it rolling restart: offsets of consumer groups that have been empty for longer than 1 day are \
    deleted, so these groups start over (7 days before); brokers restart one by one; clients reconnect and continue
    data loss, beside it rolling restart: records older than 7 days are deleted, in topics without a `retention.ms` \
    of their own (3650 days before; Kafka's default applies now); brokers and controllers restart one by one; \
    clients reconnect and continue
    data loss, beside it rolling restart: compacted topics are compacted, which they were not before: of records \
    with one key all but the newest are deleted; brokers and controllers restart one by one; clients reconnect and \
    continue
    in place, beside it in place: batches of records above 1 KiB are refused, in topics without a \
    `max.message.bytes` of their own; by default producers send up to 1 MiB; brokers use new options without a restart
    rolling restart, beside it rolling restart: producers that request a transaction timeout above 30 seconds can't \
    start transactions; by default they request 1 minute; brokers restart one by one
    in place, beside it in place: a write with `acks=all` is acknowledged with 1 copy instead of 2: it is lost, \
    though acknowledged, if that one is lost before others have it; topics with a `min.insync.replicas` of their own \
    keep theirs; brokers use new options without a restart
    in place, beside it in place: a write with `acks=all` is acknowledged with 2 copies instead of 3: it is lost, \
    though acknowledged, if these 2 are lost before others have it; topics with a `min.insync.replicas` of their own \
    keep theirs; brokers use new options without a restart
    in place, beside it in place: topics of no more than 3 copies can't be written with `acks=all` while one of \
    their brokers is away; brokers use new options without a restart
    rolling restart, beside it rolling restart: new topics get 2 copies instead of 3, so fewer failures can lose \
    their records; existing topics keep theirs; brokers and controllers restart one by one; clients reconnect and \
    continue
    rolling restart, beside it rolling restart: new topics get 3 copies instead of 1; existing topics keep theirs; \
    brokers and controllers restart one by one; clients reconnect and continue
    ");
}

#[test]
fn what_holds_data_is_never_deleted_while_its_resource_stays() {
    let mut refusals = Vec::new();
    for kind in ["KafkaNodePool", "Kafka", "Namespace", "PersistentVolumeClaim", "CustomResourceDefinition"] {
        let judgement = judge([step(kind, Some(json!({})), None)].iter(), Permits::default());
        assert_eq!(judgement.verdict, Some(Verdict::Refused), "{kind}");
        refusals.push(judgement.refusals[0].why.clone());
    }
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    KafkaNodePool ns/x would be deleted with its brokers, while its cluster is kept
    Kafka ns/x would be deleted, while its resource is kept
    Namespace ns/x would be deleted with all data in it
    PersistentVolumeClaim ns/x would be deleted with all data in it
    CustomResourceDefinition ns/x would be deleted with all data in it
    "#);
    let judgement = judge([step("NetworkPolicy", Some(json!({})), None)].iter(), Permits::default());
    assert_eq!(judgement.verdict, Some(Verdict::InPlace));
}

#[test]
fn what_cannot_be_read_counts_as_the_worst_that_rewriting_it_may_do() {
    let judgement = judge([step("Kafka", None, Some(json!({"spec": {}})))].iter(), Permits::default());
    assert_eq!(judgement.verdict, Some(Verdict::RollingRestart));
    insta::assert_debug_snapshot!(judgement.effects, @r#"
    [
        "Kafka ns/x can't be read and is rewritten; brokers and controllers may restart one by one",
    ]
    "#);
}

#[test]
fn a_secret_that_is_shown_by_its_fingerprint_is_the_same_secret() {
    let slot = json!({"$secret": {
        "reference": "BaseDomain/acme/k.example.com#tls_key", "encoding": "pkcs8", "fingerprint": "hmac:ab"}});
    let secret = |data: Value| json!({"type": "kubernetes.io/tls", "data": {"tls.key": data}});
    let same = judge(
        [step("Secret", Some(secret(json!("hmac:ab"))), Some(secret(slot.clone())))].iter(),
        Permits::default(),
    );
    assert_eq!(same.verdict, Some(Verdict::NoOp));
    let other = judge(
        [step("Secret", Some(secret(json!("hmac:cd"))), Some(secret(slot)))].iter(),
        Permits::default(),
    );
    assert_eq!(other.verdict, Some(Verdict::RollingRestart));
}

#[test]
fn every_refusal_says_what_to_do_and_no_row_hides_another() {
    let rows: Vec<&Row> = rows().collect();
    for (index, row) in rows.iter().enumerate() {
        if let RowVerdict::Refuses([code, why, hint]) = row.outcome {
            assert!(!code.is_empty() && !hint.is_empty() && !why.ends_with('.'), "row {index}");
        }
        let twin = rows[..index].iter().find(|earlier| {
            earlier.kind == row.kind
                && earlier.path == row.path
                && matches!(earlier.of, ObjectFilter::Any)
                && match (earlier.when, row.when) {
                    (DirectionFilter::Changes, DirectionFilter::Changes) => true,
                    (DirectionFilter::Is(a), DirectionFilter::Is(b)) => a == b,
                    _ => false,
                }
        });
        assert!(twin.is_none(), "row {index} is never reached");
    }
}
