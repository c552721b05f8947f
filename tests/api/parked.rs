//! Callers that go away while something is written for them, and writers that wait for a repository that hangs.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};

use super::{Api, git, push};
use crate::support::ssh::{Server, make_key};
use crate::support::{Tree, files};

const ORDERS: &str = "/v1/clusters/orders";

/// What stands between the daemon and its remote: it passes everything on, or nothing once it hangs.
struct Door {
    port: u16,
    hangs: Arc<AtomicBool>,
}

impl Door {
    fn before(to: u16) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, hangs) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
        let door = Door { port, hangs: Arc::clone(&hangs) };
        thread::spawn(move || {
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                if hangs.load(Ordering::SeqCst) {
                    held.push(client);
                    continue;
                }
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        // Either of them may go away whenever it likes.
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        door
    }
}

/// The specs in a repository on an ssh server, behind a door.
fn start(tree: &Tree) -> (Api<'_>, Server, Door) {
    let folder = tree.beside("");
    git(&folder, "init --quiet --bare --initial-branch=main specs.git");
    git(&tree.path(), "init --quiet --initial-branch=main");
    push(tree, "first");
    ["host", "user"].iter().for_each(|name| make_key(&folder, name, ""));
    let server = Server::start(&folder, &[]);
    let door = Door::before(server.port);
    let known = server.known_as(&folder, "host").replace(&server.port.to_string(), &door.port.to_string());
    fs::write(folder.join("known_hosts"), known).unwrap();
    let source = format!(
        "[source]\ngit = \"ssh://git@127.0.0.1:{}/specs.git\"\nssh_key = \"user\"\nknown_hosts = \"known_hosts\"\n\
         interval_seconds = 3600\ntimeout_seconds = 1\n[secrets]\nallow_plain_in_git = true\n",
        door.port
    );
    (Api::start_with(tree, "serve --config settings.toml", &source), server, door)
}

/// Sends a change and goes away without hearing what came of it.
fn vanish(api: &Api<'_>, path: &str, body: &Value, after: Duration) {
    let (address, token, body) = (&api.address, &api.token, body.to_string());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/merge-patch+json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    // Anywhere in what is done for it.
    thread::sleep(after);
}

#[test]
fn what_a_client_asked_for_that_went_away_is_there_as_a_whole_or_not_at_all() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let file = "acme/clusters/orders.yaml";
    let (before, all) = (tree.read(file), files(&tree.path()));
    let dry = format!("{ORDERS}?dry_run=true");
    for after in 0..10 {
        vanish(&api, &dry, &json!({"kafka_units": 2}), Duration::from_millis(after * 3));
        assert_eq!(api.get(ORDERS).expect(200).body["kafka_units"], 1);
    }
    assert_eq!(files(&tree.path()), all, "a plan writes nothing, whoever waits for it");
    let mut last = 1;
    for after in 0..30 {
        let tags = json!({"tags": [{"key": "turn", "value": after.to_string()}]});
        vanish(&api, ORDERS, &tags, Duration::from_micros(after * 300));
        let shown = api.get(ORDERS).expect(200).body;
        let text = tree.read(file);
        let (head, tail) =
            (before.split_once("tags:\n").unwrap().0, before.split_once("advanced_config").unwrap().1);
        assert!(text.starts_with(head) && text.ends_with(tail), "{text}");
        let turn = shown["tags"][0]["value"].as_str().unwrap();
        last = turn.parse().unwrap_or(last);
        assert!(last <= after.max(1), "{shown:#}");
    }
    // All that were begun are done before the next one.
    api.call(&format!("PATCH {ORDERS}"), json!({"kafka_units": 2})).expect(200);
    assert!(tree.read(file).contains("kafka_units: 2\n"));
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&files(&tree.path())), names(&all), "nothing lies about");
    api.serve.until("a round is made of it", || {
        let pool = tree.beside("output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml");
        fs::read_to_string(pool).ok()?.contains("replicas: 6\n").then_some(())
    });
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn writers_that_wait_for_a_repository_that_hangs_are_all_answered_and_hold_up_nobody_who_reads() {
    const WRITERS: usize = 40;
    let tree = Tree::example("quickstart");
    let (api, _server, door) = start(&tree);
    api.settle();
    api.call(&format!("PATCH {ORDERS}"), json!({"region": "before"})).expect(200);
    let (repository, memory) = (tree.beside("specs.git"), api.serve.memory());
    let tip = git(&repository, "rev-parse main");
    door.hangs.store(true, Ordering::SeqCst);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let write = |number: usize| {
            let patch =
                json!({"region": format!("r{number}"), "tags": [{"key": "k", "value": "v".repeat(60_000)}]});
            api.call(&format!("PATCH {ORDERS}"), patch)
        };
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || write(number))).collect();
        let reader = scope.spawn(|| {
            let (mut slowest, mut reads) = (Duration::ZERO, 0);
            while !done.load(Ordering::SeqCst) {
                let begun = Instant::now();
                assert_eq!(api.get(ORDERS).expect(200).body["region"], "before");
                (slowest, reads) = (slowest.max(begun.elapsed()), reads + 1);
                thread::sleep(Duration::from_millis(20));
            }
            (slowest, reads)
        });
        let mut most = 0;
        for writer in writers {
            let answer = writer.join().unwrap();
            assert_eq!(
                (answer.status, &answer.body["code"]),
                (503, &json!("unavailable")),
                "{:#}",
                answer.body
            );
            assert!(answer.header("retry-after").is_some(), "{}", answer.head);
            most = most.max(api.serve.memory());
        }
        done.store(true, Ordering::SeqCst);
        let (slowest, reads) = reader.join().unwrap();
        assert!(
            reads > 10 && slowest < Duration::from_secs(5),
            "{reads} reads, the slowest took {slowest:?}"
        );
        assert!(most < memory + (64 << 20), "{memory} bytes became {most}");
    });
    assert_eq!(git(&repository, "rev-parse main"), tip, "nothing was written");
    door.hangs.store(false, Ordering::SeqCst);
    api.call(&format!("PATCH {ORDERS}"), json!({"region": "after"})).expect(200);
    assert_eq!(git(&repository, "rev-parse main~1"), tip);
    assert_eq!(api.serve.stop(), Some(0));
}
