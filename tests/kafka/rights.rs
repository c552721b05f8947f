//! A real broker, with the rights of a user's KafkaUser, lets the calls of the spec pass and refuses their neighbours.

use super::{ADMIN, CONSUME, PRODUCE, Stage, TOPICS, grant};
use crate::support::kafka::Client;

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
    grant(&stage, BILLING.0, user);
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
