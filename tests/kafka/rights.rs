//! A real broker, with the rights of a user's KafkaUser, lets the calls of the spec pass and refuses their neighbours.

use super::{ADMIN, CONFIGS, CONSUME, PRODUCE, Stage, TOPICS, grant};
use crate::support::kafka::Client;

const GROUPS: &str = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand";

const BILLING: (&str, &str) = ("billing", "pay-me-later");

/// The user of the example of topics, on the example's small cluster.
fn user() -> String {
    let text = std::fs::read_to_string("examples/topics/acme/users/orders/billing.yaml").unwrap();
    text.replace("cluster: orders", "cluster: sandbox")
}

#[test]
fn a_user_may_do_what_its_spec_says_and_nothing_beside_it() {
    let users = [ADMIN, BILLING];
    let stage = Stage::with_users(&users, |tree| tree.write("acme/users/sandbox/billing.yaml", user()));
    let user = stage.object("KafkaUser", BILLING.0);
    assert_eq!(user["spec"]["authorization"]["acls"].as_array().unwrap().len(), 4, "{user:#}");
    grant(&stage.broker, &stage.admin(), BILLING.0, user);
    let topics = ["payments.in", "paymentsx", "Payments_State", "Payments_State2"];
    topics.iter().for_each(|topic| stage.make(topic));
    ["payments.in", "paymentsx", "Payments_State"].iter().for_each(|topic| {
        stage.send(&stage.admin(), topic, "");
    });

    // As the properties for this user say, from inside and outside.
    let client = |listener: &str| Client::new(&stage.told_to_user[listener]).user(BILLING);
    assert_eq!(stage.told_to_user.keys().copied().collect::<Vec<_>>(), ["external", "tls"]);
    let secret = "the value of `sasl.jaas.config` in the Secret kafka-acme--sandbox/billing\n";
    assert!(stage.told_to_user["tls"].contains(secret), "{}", stage.told_to_user["tls"]);
    let (inside, outside) = (client("tls"), client("external"));

    // Writes are idempotent by default.
    stage.send(&outside, "Payments_State", "");
    stage.send(&inside, "Payments_State", "--transactional-id billing-1");
    let take = |topic: &str, group: &str| {
        let words =
            format!("--topic {topic} --group {group} --from-beginning --max-messages 3 --timeout-ms 60000");
        stage.broker.tool(&inside, CONSUME, &words)
    };
    let taken = take("payments.in", "billing").succeeds();
    assert!(taken.contains("0\n1\n2\n"), "{taken}");
    let seen = stage.run(&inside, TOPICS, "--list");
    let seen: Vec<&str> = seen.lines().filter(|line| topics.contains(line)).collect();
    assert_eq!(seen, ["Payments_State", "payments.in"]);

    let send = |topic: &str, more: &str| {
        let words = format!("--topic {topic} --num-records 1 --record-size 1 --throughput -1 {more}");
        stage.broker.tool(&inside, PRODUCE, &words)
    };
    for topic in ["Payments_State2", "payments.in"] {
        send(topic, "").says(&format!("Not authorized to access topics: [{topic}]"));
    }
    send("Payments_State", "--transactional-id other-1").says("Transactional Id authorization failed");
    for topic in ["paymentsx", "Payments_State"] {
        take(topic, "billing").says(&format!("Not authorized to access topics: [{topic}]"));
    }
    take("payments.in", "billing2").says("Not authorized to access group: billing2");
}

/// The user that the guide gives to people who may look at everything in a console, on the example's small cluster.
fn reader() -> String {
    let guide = std::fs::read_to_string("docs/guide/console.md").unwrap();
    let documents = guide.split("```yaml\n").filter_map(|text| text.split("```").next());
    let user = documents.into_iter().find(|text| text.contains("kind: User")).unwrap();
    user.replace("cluster: meters", "cluster: sandbox")
}

/// With the calls that StreamsHub Console makes, by the rights that its README asks for.
#[test]
fn who_may_look_at_everything_in_a_console_can_change_nothing() {
    const READER: (&str, &str) = ("reader", "let-me-see");
    let stage =
        Stage::with_users(&[ADMIN, READER], |tree| tree.write("acme/users/sandbox/reader.yaml", reader()));
    grant(&stage.broker, &stage.admin(), READER.0, stage.object("KafkaUser", READER.0));
    stage.make("numbers");
    stage.send(&stage.admin(), "numbers", "");
    let user = stage.client("tls").user(READER);
    let words = "--topic numbers --partition 0 --offset earliest --max-messages 3 --timeout-ms 60000";
    assert!(stage.run(&user, CONSUME, words).contains("0\n1\n2\n"));
    stage.take(&stage.admin(), "numbers");
    for (class, words, told) in [
        (TOPICS, "--describe --topic numbers", "PartitionCount"),
        (CONFIGS, "--describe --entity-type brokers --entity-name 0 --all", "log.retention.hours"),
        (GROUPS, "--describe --group numbers", "CURRENT-OFFSET"),
    ] {
        let said = stage.run(&user, class, words);
        assert!(said.contains(told), "{said}");
    }
    for (class, words) in [
        (TOPICS, "--create --topic others"),
        (CONFIGS, "--alter --entity-type topics --entity-name numbers --add-config retention.ms=1"),
        (GROUPS, "--reset-offsets --group numbers --topic numbers --to-earliest --execute"),
        (PRODUCE, "--topic numbers --num-records 1 --record-size 1 --throughput -1"),
    ] {
        let said = stage.broker.tool(&user, class, words).said;
        assert!(said.to_lowercase().contains("authoriz"), "{words}: {said}");
    }
}
