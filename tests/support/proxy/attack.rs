//! Attacks by a hostile API server on its client.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use super::tls::ToClient;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Endless lists of valid objects.
    EndlessPages,
    /// Endless watch events about new objects, as fast as possible.
    EndlessEvents,
    /// Answers of 62 MiB that take twenty times as much in memory.
    HugeAnswer,
    /// An object with a new name of 20 MiB in each list.
    HugeNames,
    /// One faulty object, with a new name and a new reason of 20 KiB in each list, and in each of a hundred
    /// watch events a second.
    ChangingNames,
    /// Control characters for terminals and deceptive characters in all texts, in lists and in watch events.
    Escapes,
    /// Answers without an end, a byte at a time.
    SlowAnswers,
}

/// Characters that control terminals or deceive readers.
pub const ESCAPES: &str = "\\u001b[2J\\u001b]0;owned\\u0007\\r\\nfake: line\\u202egnp\\u200b\\u0085";

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/// Attacks the caller; `harmed` counts the attacks so far. An error ends the connection.
pub fn attack(attack: Attack, harmed: &AtomicU64, path: &str, client: &mut ToClient) -> io::Result<()> {
    let number = harmed.fetch_add(1, Ordering::SeqCst);
    let kind = kind_of(path);
    let page = |items: &str, next: &str| {
        let metadata = format!(r#"{{"resourceVersion":"{}","continue":"{next}"}}"#, 1_000_000 + number);
        format!(r#"{{"kind":"{kind}List","apiVersion":"v1","metadata":{metadata},"items":[{items}]}}"#)
    };
    match attack {
        Attack::EndlessPages => {
            let items: Vec<String> = (0..500)
                .map(|item| object(kind, &format!("p-{number}-{item}"), &"w".repeat(1_000)))
                .collect();
            whole(&page(&items.join(","), &format!("next-{number}")), client)
        }
        Attack::EndlessEvents => endless_events(kind, number, client),
        Attack::HugeAnswer => {
            let zeros = "0,".repeat(1 << 20);
            let tail = "0]";
            let before = page("[", "").replace("]}", "");
            let length = before.len() + 31 * zeros.len() + tail.len() + 2;
            let out = client.get_mut();
            write!(out, "{HEAD}content-length: {length}\r\n\r\n{before}")?;
            for _ in 0..31 {
                out.write_all(zeros.as_bytes())?;
            }
            write!(out, "{tail}]}}")?;
            out.flush()
        }
        Attack::HugeNames => {
            whole(&page(&object(kind, &format!("{number}-{}", "n".repeat(20 << 20)), "w"), ""), client)
        }
        Attack::ChangingNames if path.contains("watch=true") => {
            let why = |event| format!("why {number}-{event}: {}", "w".repeat(20 << 10));
            changing_events(kind, number, why, harmed, client)
        }
        Attack::Escapes if path.contains("watch=true") => {
            let why = |event| format!("{event}{ESCAPES}");
            changing_events(kind, number, why, harmed, client)
        }
        Attack::ChangingNames => {
            let why = format!("why {number}: {}", "w".repeat(20 << 10));
            whole(&page(&object(kind, &format!("orders-broker-{number}"), &why), ""), client)
        }
        Attack::Escapes => {
            let object = object(kind, &format!("orders-broker-{number}"), ESCAPES);
            whole(&page(&object, ""), client)
        }
        Attack::SlowAnswers => {
            let out = client.get_mut();
            write!(out, "{HEAD}content-length: 1000000\r\n\r\n{{")?;
            loop {
                out.write_all(b" ")?;
                out.flush()?;
                sleep(Duration::from_millis(100));
            }
        }
    }
}

fn whole(body: &str, client: &mut ToClient) -> io::Result<()> {
    let out = client.get_mut();
    write!(out, "{HEAD}content-length: {}\r\n\r\n", body.len())?;
    out.write_all(body.as_bytes())?;
    out.flush()
}

fn endless_events(kind: &str, number: u64, client: &mut ToClient) -> io::Result<()> {
    let out = client.get_mut();
    write!(out, "{HEAD}transfer-encoding: chunked\r\n\r\n")?;
    for event in 0_u64.. {
        let object = object(kind, &format!("orders-broker-{number}-{event}"), &"w".repeat(1_000));
        let line = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        write!(out, "{:x}\r\n{line}\r\n", line.len())?;
        // Many small writes would cost the test more than the daemon.
        if event % 64 == 0 {
            out.flush()?;
        }
    }
    Ok(())
}

/// A watch in which one faulty object after another takes the place of the one before.
fn changing_events(
    kind: &str,
    number: u64,
    why: impl Fn(u64) -> String,
    harmed: &AtomicU64,
    client: &mut ToClient,
) -> io::Result<()> {
    let out = client.get_mut();
    write!(out, "{HEAD}transfer-encoding: chunked\r\n\r\n")?;
    let named = |event: u64| object(kind, &format!("orders-broker-{number}-{event}"), &why(event));
    for event in 1_u64.. {
        for (what, object) in [("ADDED", named(event)), ("DELETED", named(event - 1))] {
            let line = format!("{{\"type\":\"{what}\",\"object\":{object}}}\n");
            write!(out, "{:x}\r\n{line}\r\n", line.len())?;
        }
        out.flush()?;
        harmed.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A faulty object of the tests' cluster.
fn object(kind: &str, name: &str, why: &str) -> String {
    let condition = |kind: &str, status: &str| {
        format!(r#"{{"type":"{kind}","status":"{status}","reason":"{why}","message":"{why}"}}"#)
    };
    let conditions =
        [condition("Ready", "False"), condition("PodScheduled", "False"), condition("Warning", "True")];
    format!(
        r#"{{"kind":"{kind}","metadata":{{"name":"{name}","namespace":"kafka-acme--events","uid":"u-1","resourceVersion":"2000000",
        "labels":{{"strimzi.io/cluster":"events","strimzi.io/pool-name":"broker","app.kubernetes.io/managed-by":"streamfleet"}}}},
        "involvedObject":{{"kind":"Pod","name":"{name}"}},"type":"Warning","reason":"{why}","message":"{why}",
        "status":{{"phase":"{why}","conditions":[{}]}}}}"#,
        conditions.join(",")
    )
    .replace('\n', "")
}

fn kind_of(path: &str) -> &'static str {
    let kinds = [
        ("persistentvolumeclaims", "PersistentVolumeClaim"),
        ("strimzipodsets", "StrimziPodSet"),
        ("kafkanodepools", "KafkaNodePool"),
        ("kafkausers", "KafkaUser"),
        ("kafkas", "Kafka"),
        ("deployments", "Deployment"),
        ("events", "Event"),
        ("storageclasses", "StorageClass"),
        ("configmaps", "ConfigMap"),
        ("pods", "Pod"),
    ];
    let collection = path.split('?').next().unwrap_or_default();
    kinds.iter().find(|(name, _)| collection.ends_with(name)).map_or("Pod", |(_, kind)| kind)
}
